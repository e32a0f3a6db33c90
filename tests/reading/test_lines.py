"""The lines of the file on which chunks and matches stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import MetadataMode

from rag_splitters import RecursiveChunker
from rag_splitters.langchain import FileLoader, RecursiveTextSplitter, parent_document_retriever
from rag_splitters.llama_index import FileReader, RecursiveNodeParser
from rag_splitters.reading import line_range
from rag_splitters.reading.files import read_bytes, read_file
from rag_splitters.testing import hostile_texts

CODE = """import os


def first():
    return 1


def second():
    return 2
""".replace("\n", "\r\n")


def check_lines(text: str, start: int, end: int, metadata: dict[str, Any]) -> None:
    """Check that the lines in the metadata are those of the text between two offsets."""
    breaks = text.replace("\r\n", " \n").replace("\r", "\n")
    assert metadata["line_start"] == 1 + breaks.count("\n", 0, start)
    assert metadata["line_end"] == 1 + breaks.count("\n", 0, max(start, end - 1))


@pytest.fixture
def code(tmp_path: Path) -> Path:
    path = tmp_path / "two.py"
    path.write_bytes(CODE.encode())
    return path


@given(hostile_texts(), st.integers(1, 40))
def test_the_lines_of_every_chunk_are_those_of_an_editor(text: str, size: int) -> None:
    chunker = RecursiveChunker(chunk_size=size, chunk_overlap=size // 4)
    for chunk in chunker.chunk(text, metadata=line_range(text)):
        check_lines(text, chunk.start, chunk.end, dict(chunk.metadata))


def test_both_loaders_give_lines(code: Path) -> None:
    documents = RecursiveTextSplitter(chunk_size=40).split_documents(FileLoader(code).load())
    parser = RecursiveNodeParser(chunk_size=40, length_function="characters", count_metadata=False)
    nodes = parser(FileReader().load_data(code))
    assert "line_start" not in nodes[0].get_content(MetadataMode.EMBED)
    for metadata in ([each.metadata for each in documents], [each.metadata for each in nodes]):
        assert [(each["line_start"], each["line_end"]) for each in metadata] == [
            (1, 1),
            (4, 5),
            (8, 9),
        ]


def test_matches_say_on_which_lines_they_stand(code: Path) -> None:
    with parent_document_retriever(
        parent_splitter=RecursiveTextSplitter(chunk_size=60),
        child_splitter=RecursiveTextSplitter(chunk_size=40, chunk_overlap=0),
    ) as retriever:
        retriever.add_documents(FileLoader(code).load())
        result = retriever.invoke("return 2 second", k=1)[0]
    best = result.matches[0]
    check_lines(CODE, best["start_index"], best["end_index"], best)
    assert (best["line_start"], best["line_end"]) == (8, 9)
    assert result.metadata["line_start"] <= 8
    assert result.metadata["line_end"] == 9


def test_texts_without_lines_of_their_own_have_none(tmp_path: Path) -> None:
    mail = b"From: a@b.c\nSubject: Tea\n\nCool the water.\n"
    assert "line_start" not in read_bytes(mail, "tea.eml")[0].metadata
    assert read_bytes(b"a\nb", "tea.txt")[0].metadata["line_end"] == 2
    path = tmp_path / "empty.txt"
    path.write_text("")
    assert read_file(path)[0].metadata["line_end"] == 1


@pytest.mark.parametrize(
    "metadata", [{"line_start": 3}, {"line_start": 3, "line_end": 9}, {"line_start": "a"}]
)
def test_other_values_under_these_keys_stay(metadata: dict[str, Any]) -> None:
    splitter = RecursiveTextSplitter(chunk_size=10, chunk_overlap=0)
    for document in splitter.create_documents(["one two\nthree four"], [metadata]):
        assert metadata.items() <= document.metadata.items()
