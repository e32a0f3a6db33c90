"""The defaults of every strategy: the page docs/defaults.md, our classes and the frameworks'."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import langchain_text_splitters
import llama_index.core.node_parser
import pytest
from langchain_text_splitters import TextSplitter

from rag_splitters import CATALOGUE, Chunker, RecursiveChunker, SizedChunker
from rag_splitters.chunkers.by_name import changed_parameters
from rag_splitters.langchain import RecursiveTextSplitter
from tests.support.cases import CASES
from tests.support.forms import classes, required

PAGE = Path(__file__).parents[2].joinpath("docs", "defaults.md").read_text(encoding="utf-8")
FIELDS = {name: kind.model_fields for name, kind in CATALOGUE.items()}
NAMES = [
    name
    for name, fields in FIELDS.items()
    if "chunk_size" in fields and fields["length_function"].default is not None
]
"""The strategies with sizes of their own, which ModalityChunker only passes on."""
NESTED = ("chunker", "text", "table", "code", "stages")


def table(heading: str) -> dict[str, list[str]]:
    """The rows of the table under a heading of the page, by their first cell."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0].strip("`"): row[1:] for row in rows}


def default_of(kind: type[Chunker], name: str) -> Any:
    return kind.model_fields[name].default


def sizes(values: Any) -> str:
    """A chunker's sizes, as the page writes them."""
    if values["chunk_size"] is None:
        return "no size"
    return f"{values['chunk_size']} {values['length_function']}, {values['chunk_overlap']}"


def sizes_of(kind: type[Chunker]) -> str:
    fields = ("chunk_size", "chunk_overlap", "length_function")
    return sizes({name: default_of(kind, name) for name in fields})


def described(value: Any) -> str:
    """A nested default, as the page writes it."""
    if isinstance(value, tuple):
        return "; ".join(map(described, value))
    return f"`{type(value).__name__}`, {sizes(value.__dict__)}"


# The page and our classes


def test_page_has_every_strategy_with_a_size() -> None:
    assert list(table("Sizes")) == NAMES
    assert all(name in NAMES or not issubclass(CATALOGUE[name], SizedChunker) for name in CATALOGUE)


@pytest.mark.parametrize("name", NAMES)
def test_sizes_are_those_of_the_page(name: str) -> None:
    core, _, langchain, _, llama_index = table("Sizes")[name]
    assert [core, langchain, llama_index] == [sizes_of(kind) for kind in classes(name)]


def nested_fields() -> dict[str, list[str]]:
    rows = {}
    for name in CATALOGUE:
        for field in NESTED:
            if field in CATALOGUE[name].model_fields:
                values = [default_of(kind, field) for kind in classes(name)]
                if not isinstance(values[0], str):
                    rows[f"{name}.{field}"] = [described(value) for value in values]
    return rows


def test_nested_defaults_are_those_of_the_page() -> None:
    assert table("Chunkers inside chunkers") == nested_fields()


def test_no_other_default_differs_but_those_on_the_page() -> None:
    on_the_page = table("Other defaults that differ")
    for name in CATALOGUE:
        core, *front_ends = classes(name)
        fields = set(core.model_fields) - {"chunk_size", "chunk_overlap", "length_function"}
        for field in sorted(fields - set(NESTED)):
            defaults = [default_of(kind, field) for kind in (core, *front_ends)]
            cells = [f"`{default!r}`" for default in defaults]
            assert on_the_page.pop(f"{name}.{field}", cells[:1] * 3) == cells
    assert not on_the_page


# The frameworks' own classes


LANGCHAIN = {name: row[1].strip("`") for name, row in table("Sizes").items() if row[1].strip("`")}
LLAMA_INDEX = {name: row[3].strip("`") for name, row in table("Sizes").items() if row[3].strip("`")}


def parameter(function: Any, name: str) -> Any:
    return inspect.signature(function).parameters[name].default


@pytest.mark.parametrize("name", LANGCHAIN)
def test_sizes_are_those_of_langchain(name: str) -> None:
    counterpart = getattr(langchain_text_splitters, LANGCHAIN[name])
    ours = classes(name)[1]
    if issubclass(counterpart, TextSplitter):
        assert "chunk_size" not in inspect.signature(counterpart.__init__).parameters
        size = parameter(TextSplitter.__init__, "chunk_size")
        overlap = parameter(TextSplitter.__init__, "chunk_overlap")
    else:
        size = parameter(counterpart.__init__, "max_chunk_size")
        overlap = parameter(counterpart.__init__, "chunk_overlap")
    if name == "token":  # bad for retrieval, as the page says
        assert (size, overlap) == (4000, 200)
        assert "`TokenTextSplitter` has 4000 tokens" in PAGE
        return
    assert (default_of(ours, "chunk_size"), default_of(ours, "chunk_overlap")) == (size, overlap)


@pytest.mark.parametrize("name", LLAMA_INDEX)
def test_sizes_are_those_of_llama_index(name: str) -> None:
    counterpart = getattr(llama_index.core.node_parser, LLAMA_INDEX[name])
    ours = classes(name)[2]
    size = default_of(ours, "chunk_size")
    if name == "hierarchical":
        assert default_of(ours, "chunk_sizes") == tuple(counterpart.from_defaults().chunk_sizes)
        assert default_of(ours, "chunk_overlap") == parameter(
            counterpart.from_defaults, "chunk_overlap"
        )
    elif name == "code":
        assert size == parameter(counterpart.__init__, "max_tokens")
    elif name == "semantic":
        buffer_size = parameter(counterpart.from_defaults, "buffer_size")
        assert default_of(ours, "buffer_size") == buffer_size == 1
        assert parameter(counterpart.from_defaults, "breakpoint_percentile_threshold") == 95
    else:
        overlap = default_of(ours, "chunk_overlap")
        assert size == parameter(counterpart.__init__, "chunk_size")
        assert overlap == parameter(counterpart.__init__, "chunk_overlap")


# The rules


@pytest.mark.parametrize("name", NAMES)
def test_a_size_alone_has_no_default_overlap(name: str) -> None:
    kinds: list[Any] = classes(name)
    for kind in kinds:
        default = default_of(kind, "chunk_overlap")
        for size in (1, 5000):
            chunker = kind(**required(name), chunk_size=size)
            chunker.check_parameters()
            assert chunker.chunk_overlap == (default if isinstance(default, float) else 0)
        assert kind(**required(name)).chunk_overlap == default


@pytest.mark.parametrize("name", CATALOGUE)
def test_changed_parameters_give_the_same_front_end(name: str) -> None:
    """The playground shows them as code to copy."""
    for chunker in CASES[name]:
        for kind in classes(name):
            built = kind(**changed_parameters(chunker, kind))
            assert {name: built.__dict__[name] for name in chunker.__dict__} == chunker.__dict__


def test_changed_parameters_hold_an_overlap_that_is_the_default_without_a_size() -> None:
    chunker = RecursiveChunker(chunk_size=500, chunk_overlap=200)
    parameters = changed_parameters(chunker, RecursiveTextSplitter)
    assert parameters == {"chunk_size": 500, "chunk_overlap": 200}
