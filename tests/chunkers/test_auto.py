"""AutoChunker: which strategy it takes, rules, and what happens without tree-sitter."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document as LangChainDocument
from llama_index.core import SimpleDirectoryReader

from rag_splitters import (
    AutoChunker,
    Chunker,
    CodeChunker,
    ContentAwareChunker,
    RecursiveChunker,
    SentenceChunker,
    Source,
    Span,
    TitledChunker,
)
from rag_splitters.chunkers import auto
from rag_splitters.langchain import AutoTextSplitter, FileLoader
from rag_splitters.llama_index import AutoNodeParser
from rag_splitters.models import HashingEmbeddings
from tests.support.counting import record_calls
from tests.support.embedding_doubles import CountingEmbeddings
from tests.support.front_ends import sentence
from tests.support.splitting import split_texts

DOCUMENTS = Path(__file__).parents[1] / "data" / "documents"
EXPECTED = {
    "agua_es.html": "content_aware",
    "attrs_readme.md": "content_aware",
    "docutils_security.rst": "content_aware",
    "kettle_manual.adoc": "content_aware",
    "reservoir.tex": "content_aware",
    "http.1": "content_aware",
    "harbour_list.mbox": "content_aware",
    "lecture.vtt": "content_aware",
    "dialogue.srt": "content_aware",
    "scheduler.log": "content_aware",
    "gpl_2.txt": "content_aware",
    "tide_essay.txt": "content_aware",
    "uhrmacher_de.txt": "content_aware",
    "events.py": "code",
    "lease.go": "code",
    "pipeline.yaml": "code",
    "harbour.toml": "code",
    "loans.csv": "table",
    "gold.json": "json",
    "trams.ipynb": "content_aware",
}
PROSE = " ".join(sentence(number) for number in range(12))
PYTHON = "import os\n\n\ndef f(path):\n    return os.stat(path)\n\n\ndef g():\n    return f('.')\n"


def strategy_of(chunker: Chunker, text: str, **metadata: Any) -> str:
    (strategy,) = {chunk.metadata["strategy"] for chunk in chunker.chunk(text, metadata=metadata)}
    return str(strategy)


def test_every_kind_of_file_goes_to_its_strategy() -> None:
    splitter = AutoTextSplitter(chunk_size=500)
    for name, strategy in EXPECTED.items():
        loaded = FileLoader(DOCUMENTS / name).load()
        chunks = splitter.split_documents(loaded)
        assert {chunk.metadata["strategy"] for chunk in chunks} == set(strategy.split()), name
        assert max(len(chunk.page_content) for chunk in chunks) <= 500


def test_files_of_llama_index_are_told_apart_by_their_metadata() -> None:
    files = [str(DOCUMENTS / name) for name in ("events.py", "loans.csv", "tide_essay.txt")]
    documents = SimpleDirectoryReader(input_files=files).load_data()
    nodes = asyncio.run(AutoNodeParser().aget_nodes_from_documents(documents))
    found = {node.metadata["file_name"]: node.metadata["strategy"] for node in nodes}
    assert found == {"events.py": "code", "loans.csv": "table", "tide_essay.txt": "content_aware"}
    assert all("strategy" in node.excluded_embed_metadata_keys for node in nodes)


def test_chunks_are_those_of_the_strategy_in_the_same_size() -> None:
    sizes: dict[str, Any] = {"chunk_size": 40, "chunk_overlap": 8, "length_function": "tokens"}
    text = (DOCUMENTS / "attrs_readme.md").read_text(encoding="utf-8")
    for metadata, chunker in (
        ({"source": "a.md"}, ContentAwareChunker(**sizes)),
        ({"source": "a.py"}, CodeChunker(**sizes)),
        ({"source": "a.pdf", "page_start": 1}, ContentAwareChunker(format="text", **sizes)),
    ):
        (expected,) = chunker.split([Source(text, metadata)])
        (found,) = AutoChunker(**sizes).split([Source(text, metadata)])
        assert [(s.start, s.end) for s in found] == [(s.start, s.end) for s in expected]


def test_many_documents_keep_their_order() -> None:
    texts = [PROSE, PYTHON, "# Tea\n\nHot.", '{"a": 1}', PROSE + PROSE, "a\tb\nc\td\n"]
    documents = [LangChainDocument(text, id=str(n)) for n, text in enumerate(texts)]
    splitter = AutoTextSplitter(chunk_size=120)
    together = splitter.split_documents(documents)
    assert together == [c for each in documents for c in splitter.split_documents([each])]


def test_texts_without_structure_are_embedded_in_one_request() -> None:
    model = CountingEmbeddings()
    documents = [LangChainDocument(text) for text in (PROSE, PYTHON, PROSE[50:], "# Tea\n\nHot.")]
    chunks = AutoTextSplitter(chunk_size=150, embeddings=model).split_documents(documents)
    assert [c.metadata["strategy"] for c in chunks].count("cluster") > 4
    assert len(model.calls) == 1
    assert not any("import" in text or "Tea" in text for text in model.texts)


@pytest.mark.parametrize(
    ("rules", "metadata", "strategy"),
    [
        ({"*.py": "sentence"}, {"source": "src/a.py"}, "sentence"),
        ({"*.py": "sentence"}, {"source": "https://host/src/a.py?raw=1"}, "sentence"),
        ({"*.PY": "sentence"}, {"file_path": "C:\\src\\A.py"}, "sentence"),
        ({"src/*": "page"}, {"file_path": "/home/src/a.py"}, "page"),
        ({"src/*": "page"}, {"file_path": "/home/lib/a.py"}, "code"),
        ({"src/*": "page"}, {"file_path": "src/a.py"}, "page"),
        ({"a*.py": "page"}, {"file_path": "/home/src/a.py"}, "page"),
        ({"src*": "page"}, {"file_path": "src/a.py"}, "code"),
        ({"python": "token"}, {}, "token"),
        ({"text/x-python": "token"}, {}, "token"),
        ({"text/x-python": "token"}, {"file_type": "text/x-python; charset=utf-8"}, "token"),
        ({"*.md": "page", "*": "paragraph"}, {}, "code"),
        ({"*.md": "page", "*": "paragraph"}, {"source": "a.py"}, "paragraph"),
        ({"*.md": "page"}, {"source": "a.py"}, "code"),
        ({"*.py": TitledChunker()}, {"source": "a.py"}, "titled"),
        ({"*.py": {"strategy": "page", "chunk_size": 9}}, {"source": "a.py"}, "page"),
    ],
)
def test_rules(rules: Any, metadata: dict[str, str], strategy: str) -> None:
    assert strategy_of(AutoChunker(rules=rules), PYTHON, **metadata) == strategy


def test_a_name_in_a_rule_gets_the_sizes_and_a_chunker_keeps_its_own() -> None:
    rules = {"*.a": "sentence", "*.b": SentenceChunker(chunk_size=30)}
    chunker = AutoChunker(chunk_size=80, rules=rules)
    longest = {
        name: max(len(c.text) for c in chunker.chunk(PROSE, metadata={"source": f"x.{name}"}))
        for name in "ab"
    }
    assert longest["b"] <= 30 < longest["a"] <= 80


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("sentense", r"rules\['\*.x'\]: unknown strategy 'sentense': did you mean 'sentence'\?"),
        ("keyword", r"rules\['\*.x'\]: KeywordChunker needs keywords or patterns"),
        ("semantic", r"rules\['\*.x'\]: SemanticChunker needs the parameter 'embeddings'"),
        (7, "rules"),
    ],
)
def test_a_rule_that_cannot_be_followed_is_refused_at_once(rule: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AutoChunker(rules={"*.x": rule})


def test_rules_with_embeddings_may_name_strategies_that_need_them() -> None:
    chunker = AutoChunker(rules={"text": "semantic"}, embeddings=HashingEmbeddings())
    assert strategy_of(chunker, PROSE) == "semantic"


@pytest.mark.parametrize("language", ["python", "go", "css"])
def test_code_is_cut_by_presets_without_tree_sitter(
    monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    monkeypatch.setattr(auto, "find_spec", lambda name: None)
    chunker = AutoChunker(chunk_size=60)
    (spans,) = chunker.split([Source(PYTHON, {"language": language})])
    preset = None if language == "css" else language
    expected = RecursiveChunker(chunk_size=60, language=preset).spans(PYTHON)
    assert [(s.start, s.end) for s in spans] == [(s.start, s.end) for s in expected]
    assert {span.metadata["strategy"] for span in spans} == {"recursive"}


def test_a_pdf_is_prose_with_pages_whatever_it_looks_like() -> None:
    text = "# One\n\n## Two\n\n" + PROSE + "\n\f" + PROSE
    pages = {"source": "report.pdf", "page_start": 1, "page_end": 2}
    chunks = AutoChunker(chunk_size=200).chunk(text, metadata=pages)
    assert {chunk.metadata["strategy"] for chunk in chunks} == {"content_aware"}
    assert chunks[-1].metadata["page_start"] == 2


def test_rules_survive_configurations_copies_and_pickles() -> None:
    rules = {"*.sql": "recursive", "text/html": ContentAwareChunker(chunk_size=99)}
    parser = AutoNodeParser(rules=rules)
    for other in (AutoNodeParser.from_dict(parser.to_dict()), pickle.loads(pickle.dumps(parser))):
        assert other.rules == parser.rules
        assert other.rules["text/html"].chunk_size == 99  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="rules"):
        AutoNodeParser.from_dict({**parser.to_dict(), "rules": {"*": "function:os:system"}})


def test_spans_that_a_chunker_in_a_rule_keeps_are_not_changed() -> None:
    kept = [Span(0, 8)]

    class Kept(Chunker):
        def spans(self, text: str) -> list[Span]:
            return kept

    spans = AutoChunker(rules={"text": Kept()}).spans("Tea. Hot")
    assert [span.metadata for span in spans] == [{"strategy": "Kept"}]
    assert kept[0].metadata == {}


def test_own_fits_counts_the_chunkers_in_rules() -> None:
    chunker = AutoChunker(chunk_size=10, rules={"*.x": SentenceChunker(chunk_size=50)})
    assert chunker.fits("x" * 50)
    assert not chunker.fits("x" * 51)


def test_the_kind_of_a_document_is_detected_once(monkeypatch: pytest.MonkeyPatch) -> None:
    detected = record_calls(monkeypatch, auto, "detect_kind")
    documents = ["# Tea\n\nHot.", "Just text.", "<p>One.</p><p>Two.</p>", "a,b,c\n1,2,3\n4,5,6\n"]
    split_texts(AutoChunker(), documents)
    assert [text for text, *_ in detected] == documents
