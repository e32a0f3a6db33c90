"""Configuration is data: loading one imports nothing, calls nothing, constructs only strategies.

The attacks are written into every field of every strategy, in both front ends, and nested.
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.schema import Document
from pydantic import BaseModel

import rag_splitters.langchain
import rag_splitters.llama_index
from rag_splitters import (
    CATALOGUE,
    Chunker,
    RecursiveChunker,
    SentenceChunker,
    Span,
    TitledChunker,
    register,
)
from rag_splitters.llama_index import HybridNodeParser, RecursiveNodeParser, TitledNodeParser
from rag_splitters.parameters.functions import look_up
from tests.support.cases import letters
from tests.support.forms import FRAMEWORKS, classes, front_end_class, required

TEXT = "One sentence. Another one, with more words.\n\nA paragraph."


def load(kind: Any, values: dict[str, Any]) -> Any:
    return kind.from_dict(values) if hasattr(kind, "from_dict") else kind(**values)


every_strategy = pytest.mark.parametrize("name", CATALOGUE)


@pytest.fixture(autouse=True)
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module that leaves a file if it is imported or called; the file must never exist."""
    mark = tmp_path / "mark"
    (tmp_path / "planted.py").write_text(
        f"open({str(mark)!r}, 'w').close()\n"
        "class Bait:\n"
        f"    def __init__(self, *args, **kwargs): open({str(mark)!r}, 'w').close()\n"
        "def bait(*args, **kwargs): return Bait()\n"
    )
    (tmp_path / "planted-1.0.dist-info").mkdir()
    (tmp_path / "planted-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield mark
    assert not mark.exists()
    assert "planted" not in sys.modules
    assert "antigravity" not in sys.modules


PATHS = (
    *("os:system", "os.system", "builtins:exec", "subprocess:check_call", "antigravity:geohash"),
    *("planted:bait", "planted.bait", "planted:Bait.__init__", "planted"),
    *("rag_splitters.models.named:load_function", "rag_splitters.sqlite:Database"),
    *("rag_splitters.contract.chunker:Chunker", "rag_splitters:SizedChunker", ""),
)
FUNCTIONS = [f"{kind}:{path}" for kind in ("function", "tokenizer", "recogniser") for path in PATHS]
STRATEGIES = [*FUNCTIONS, *PATHS, "Chunker", "register", "__init__", "recursive:RecursiveChunker"]


def described(strategy: Any, mark: Path) -> dict[str, Any]:
    return {"strategy": strategy, "args": ["touch", str(mark)]}


def holders(part: Any) -> Iterator[dict[str, Any]]:
    """A part of a configuration, alone and two chunkers deep."""
    yield part
    yield {"strategy": "titled", "chunker": part}
    yield {"strategy": "hybrid", "stages": [{"strategy": "titled", "chunker": part}]}
    yield {"strategy": "modality", "table": {"strategy": "table", "text": part}}
    yield {"strategy": "agentic", "llm": "function:about_tea", "on_error": part}


def refused(kind: Any, values: dict[str, Any]) -> str:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  (what it says is checked by the caller)
        load(kind, values)
    return str(caught.value)


# Attacks


@pytest.mark.slow
@every_strategy
def test_name_of_a_function_in_any_field_runs_nothing(name: str) -> None:
    for kind in classes(name)[1:]:
        """Each field either refuses the name, or keeps it as text (a title, for example)."""
        base = required(name)
        load(kind, base)
        functions = {"length_function", "segmenter", "ner", "id_func", "embeddings", "llm"}
        for field in kind.model_fields:
            for value in FUNCTIONS:
                for attack in (value, [value], {"function": value}):
                    try:
                        built = load(kind, {**base, field: attack})
                    except ValueError as error:
                        assert field in str(error)  # noqa: PT017  (other values are accepted)
                        continue
                    assert field not in functions or not value.startswith("function:")
                    assert getattr(built, field) in (attack, tuple(attack)) or field == "cache"


@pytest.mark.slow
@every_strategy
def test_nested_strategy_of_another_name_is_refused(name: str, marker: Path) -> None:
    for kind in classes(name)[1:]:
        base = required(name)
        fields = {"chunker", "text", "table", "image", "code", "formula", "on_error", "stages"}
        for field in fields & set(kind.model_fields):
            for strategy in STRATEGIES:
                for part in holders(described(strategy, marker)):
                    value = [part] if field == "stages" else part
                    message = refused(kind, {**base, field: value})
                    takes_chunker = "Chunker" in str(kind.model_fields[field].annotation)
                    expected = f"unknown strategy {strategy!r}" if takes_chunker else field
                    assert expected in message


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_function_in_a_nested_strategy_is_refused(framework: str) -> None:
    inner: dict[str, dict[str, Any]] = {
        "length_function": {"strategy": "recursive"},
        "segmenter": {"strategy": "sentence"},
        "ner": {"strategy": "entity"},
        "embeddings": {"strategy": "semantic"},
        "llm": {"strategy": "agentic"},
    }
    for field, values in inner.items():
        for value in FUNCTIONS:
            for part in holders({**values, field: value}):
                message = refused(front_end_class("hybrid", framework), {"stages": [part]})
                assert field in message


@pytest.mark.parametrize("value", [None, 3, ["recursive"], {"a": 1}, True])
def test_strategy_is_a_string(value: Any) -> None:
    for part in ({"strategy": value}, {"chunk_size": 3}, {}, "function:os:system", "recursive"):
        message = refused(TitledNodeParser, {"chunker": part})
        assert 'chunker must be a chunker or {"strategy": name, ...}' in message


def test_finding_that_ran_a_command(marker: Path) -> None:
    stages = [{"strategy": "function:subprocess:check_call", "args": ["touch", str(marker)]}]
    for kind in (HybridNodeParser, rag_splitters.langchain.HybridTextSplitter):
        assert "unknown strategy" in refused(kind, {"stages": stages})
    message = refused(RecursiveNodeParser, {"length_function": "function:os:system"})
    assert "names a function that is not registered" in message
    assert "pass the function again as length_function=" in message


@pytest.mark.parametrize("name", [path for path in PATHS if path])
def test_name_of_an_installed_package_imports_nothing_when_used(name: str) -> None:
    """Only packages that declare themselves as pipelines of spaCy are imported by their names."""
    pytest.importorskip("spacy")
    for strategy, values in (
        ("entity", {"ner": name}),
        ("sentence", {"segmenter": f"spacy:{name}"}),
    ):
        parser = load(front_end_class(strategy, "llama_index"), values)
        with pytest.raises(ImportError, match="spaCy has no pipeline"):
            parser([Document(text=TEXT)])


# What still works


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_nested_front_end_is_written_as_its_strategy(framework: str) -> None:
    options = {"chunk_size": 50, "length_function": "characters", "page_break": "\f"}
    inner = front_end_class("recursive", framework)(**options)
    written = TitledNodeParser(chunker=inner).to_dict()
    assert written == TitledNodeParser(chunker=RecursiveChunker(chunk_size=50)).to_dict()
    assert written["chunker"]["strategy"] == "recursive"
    assert TitledNodeParser.from_dict(written).chunker == RecursiveChunker(chunk_size=50)
    assert json.loads(json.dumps(written)) == json.loads(TitledNodeParser(chunker=inner).to_json())


class Shouting(RecursiveChunker):
    """A strategy of a user's own."""

    def spans(self, text: str) -> list[Span]:
        return [Span(s.start, s.end, content=s.text_of(text).upper()) for s in super().spans(text)]


class Named(Shouting):
    """Another one, which is registered."""


class NamedNodeParser(Named, rag_splitters.llama_index.ChunkerNodeParser):
    """Its front end."""


class OwnSplitter(rag_splitters.langchain.RecursiveTextSplitter):
    """A front end that cuts in another way must not pass for its base."""

    def spans(self, text: str) -> list[Span]:
        return [Span(0, len(text))] if text.strip() else []


class OwnTexts(RecursiveNodeParser):
    """A front end whose `split_text` cuts in another way."""

    def split_text(self, text: str) -> list[str]:
        return text.split()


class RegisteredParser(OwnTexts):
    """Another one, which is registered."""

    def split_text(self, text: str) -> list[str]:
        return super().split_text(text.upper())


class LikeRegistered(RegisteredParser):
    """Cuts in another way than the class that is registered."""

    def split_text(self, text: str) -> list[str]:
        return super().split_text(text)[:1]


register("named", Named)
register("registered_parser", RegisteredParser)


def test_strategy_of_a_users_own_is_registered() -> None:
    for inner in (Named(chunk_size=30), NamedNodeParser(chunk_size=30)):
        written = TitledChunker(chunker=inner).model_dump()
        assert written["chunker"]["strategy"] == "named"
        assert TitledChunker(**written).chunker == Named(chunk_size=30)
    parser = RegisteredParser(chunk_size=30)
    written = TitledChunker(chunker=parser).model_dump()
    assert written["chunker"]["strategy"] == "registered_parser"
    assert TitledChunker(**written).chunker == parser


@pytest.mark.parametrize("inner", [Shouting(), OwnSplitter(), OwnTexts(), LikeRegistered()])
def test_strategy_that_is_not_registered_is_written_but_not_read(inner: Chunker) -> None:
    written = TitledNodeParser(chunker=inner).to_dict()
    assert written != TitledNodeParser(chunker=RecursiveChunker()).to_dict()
    assert "rag_splitters.register(name, class)" in refused(TitledNodeParser, written)
    assert TitledNodeParser.from_dict(written, chunker=inner).to_dict() == written


def my_length(text: str) -> int:
    return len(text.split())


also_my_length = my_length


def other_length(text: str) -> int:
    return len(text)


def test_function_that_is_not_registered_is_passed_again() -> None:
    written = RecursiveNodeParser(length_function=my_length, chunk_size=9).to_dict()
    assert written["length_function"] == f"function:{__name__}:my_length"
    assert "length_function=" in refused(RecursiveNodeParser, written)
    again = RecursiveNodeParser.from_dict(written, length_function=my_length)
    assert again.to_dict() == written
    other = RecursiveNodeParser(length_function=other_length, chunk_size=9)
    assert other.to_dict() != written


def test_registered_function_is_read_by_either_name() -> None:
    for name in ("function:letters", "function:tests.support.cases:letters"):
        assert RecursiveChunker(length_function=name).length_function is letters
    assert RecursiveChunker(length_function=letters).model_dump()["length_function"] == (
        "function:letters"
    )
    nested = HybridNodeParser(stages=[SentenceChunker(length_function=letters)])
    assert HybridNodeParser.from_dict(nested.to_dict()).stages == nested.stages


def test_lambda_is_written_only_if_it_is_registered() -> None:
    function: Callable[[str], int] = lambda text: len(text)  # noqa: E731
    chunker = RecursiveChunker(length_function=function)
    with pytest.raises(ValueError, match="no other process could find it by name"):
        chunker.model_dump()
    register("test_configuration.length", function)
    written = chunker.model_dump()
    assert written["length_function"] == "function:test_configuration.length"
    assert RecursiveChunker(**written) == chunker


def test_function_is_found_by_its_own_name_only_if_that_leads_to_it() -> None:
    def other(text: str) -> int:
        return 1

    name = f"{__name__}:my_length"
    assert look_up({"own": my_length}, name) is my_length
    other.__module__, other.__qualname__ = my_length.__module__, my_length.__qualname__
    assert look_up({"own": other}, name) is None
    assert look_up({"own": my_length}, f"{__name__}:also_my_length") is None


def test_register_refuses_what_would_be_ambiguous() -> None:
    register("named", Named)  # the same again
    for name, value in (("recursive", Shouting), ("named", Shouting), ("letters", my_length)):
        with pytest.raises(ValueError, match="is already registered, for"):
            register(name, value)
    with pytest.raises(ValueError, match="is already registered, as 'recursive'"):
        register("mine", RecursiveChunker)
    for name in ("os:system", "", "a b", "function:x", "1", 3):
        with pytest.raises(ValueError, match="a registered name consists of letters"):
            register(name, Shouting)  # type: ignore[arg-type]
    for value in (Path, BaseModel, int):
        with pytest.raises(TypeError, match="register takes a subclass of Chunker, got the class"):
            register("mine", value)
    with pytest.raises(TypeError, match="a subclass of Chunker or a function, got str"):
        register("mine", "os:system")  # type: ignore[arg-type]


# Everything that is stored


def test_ingestion_cache_and_docstore_hold_no_names_to_import(tmp_path: Path) -> None:
    stage = {"strategy": "recursive", "chunk_size": 20}
    parser = HybridNodeParser(stages=[stage], count_metadata=False)
    pipeline = IngestionPipeline(transformations=[parser])
    metadata = {"strategy": "function:planted:bait", "class_name": "planted.Bait"}
    nodes = pipeline.run(documents=[Document(text=TEXT, metadata=metadata)])
    pipeline.persist(str(tmp_path / "pipeline"))
    again = IngestionPipeline(transformations=[parser])
    again.load(str(tmp_path / "pipeline"))
    documents = [Document(text=TEXT, metadata=metadata)]
    assert [n.metadata for n in again.run(documents=documents)] == [n.metadata for n in nodes]


def test_parent_child_index_with_such_metadata_imports_nothing(tmp_path: Path) -> None:
    from langchain_core.documents import Document as LangChainDocument

    from rag_splitters.langchain import parent_document_retriever
    from rag_splitters.models import HashingEmbeddings

    metadata = {
        "strategy": "function:planted:bait",
        "lc": 1,
        "type": "constructor",
        "id": ["planted", "Bait"],
        "nested": {"strategy": "function:planted:Bait"},
    }
    for _ in range(2):  # written, then read by another retriever
        retriever = parent_document_retriever(
            path=tmp_path / "index", embeddings=HashingEmbeddings(dimensions=64)
        )
        try:
            retriever.add_documents([LangChainDocument(TEXT, metadata=metadata, id="one")])
            found = retriever.invoke("sentence")
        finally:
            retriever.close()
        assert found[0].metadata["id"] == ["planted", "Bait"]


def test_table_splitter_of_ray_and_spark_carries_chunkers_and_no_names() -> None:
    from rag_splitters.distributed import TableSplitter
    from rag_splitters.distributed.columns import load

    chunker = TitledChunker(chunker=RecursiveChunker(chunk_size=20, length_function=my_length))
    payload = pickle.dumps(TableSplitter(chunker))
    assert isinstance(load(payload), TableSplitter)
    assert b"function:" not in payload
