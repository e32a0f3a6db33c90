"""Tables with models: failures as rows, ids that last, and no key in what is sent."""

from __future__ import annotations

import pickle
import re
from typing import Any

import pyarrow as pa
import pytest
from langchain_openai import ChatOpenAI

from rag_splitters import AgenticChunker, Chunker, PageChunker, RecursiveChunker, Span
from rag_splitters.distributed import TableSplitter
from tests.support.chat_doubles import sentences_in
from tests.support.openai_server import OpenAIServer
from tests.support.tables import Given, fail_on_boom, table_of

SECRET = "sk-very-secret-0123456789"
OWN = TableSplitter(RecursiveChunker()).output_schema(table_of([]).schema).names
FINE = [Given(f"fine-{number}", f"Tea {number} is hot. I like it.", "Tea") for number in range(4)]
BAD = Given("bad", "One more. And then boom.", "Bad", 7)
DOCUMENTS = [*FINE[:2], BAD, *FINE[2:]]


def half(prompt: str) -> str:
    """An answer that is of no use if the sentences say "boom"."""
    return '{"starts": []}' if "boom" in " ".join(sentences_in(prompt)) else '{"starts": [1, 2]}'


class BadMetadata(Chunker):
    """Says something about a document that no table can hold."""

    def spans(self, text: str) -> list[Span]:
        return [Span(0, len(text), {"tags": {1, 2} if "boom" in text else []})]


def check_rows(rows: list[dict[str, Any]], message: str) -> None:
    """The bad document has a row that says why, and the others have their chunks."""
    (bad,) = [row for row in rows if row["error"] is not None]
    assert re.search(message, bad["error"])
    assert "'bad'" in bad["error"]
    values = {name: value for name, value in bad.items() if value is not None}
    values.pop("error")
    assert values == {"document_id": "bad", "key": "bad", "title": "Bad", "page": 7}
    chunks = [row for row in rows if row["error"] is None]
    assert {row["document_id"] for row in chunks} == {each.key for each in FINE}
    assert all(row["chunk_id"] and row["text"] for row in chunks)


@pytest.mark.parametrize("batch_size", [1, 2, 100])
@pytest.mark.parametrize(
    ("chunker", "message"),
    [
        (
            RecursiveChunker(chunk_size=9, length_function=fail_on_boom),
            "RuntimeError: it went boom",
        ),
        (BadMetadata(), "TypeError: Object of type set is not JSON serializable"),
    ],
)
def test_document_that_fails_is_a_row(chunker: Chunker, message: str, batch_size: int) -> None:
    splitter = TableSplitter(chunker, id_column="key", on_error="row", batch_size=batch_size)
    chunks = splitter.split_table(table_of(DOCUMENTS))
    check_rows(chunks.to_pylist(), message)
    assert chunks.schema == splitter.output_schema(table_of([]).schema)
    without = TableSplitter(chunker, id_column="key").split_table(table_of(FINE))
    fine = chunks.filter(pa.compute.is_null(chunks["error"])).drop_columns(["error"])
    assert fine.combine_chunks() == without.combine_chunks()


def test_document_that_a_model_fails_on_is_a_row() -> None:
    with OpenAIServer(half) as server:
        llm = ChatOpenAI(model="gpt-4o", base_url=server.url, api_key=SECRET, max_retries=0)
        chunker = AgenticChunker(llm=llm, max_retries=0)
        splitter = TableSplitter(chunker, id_column="key", on_error="row")
        rows = splitter.split_table(table_of(DOCUMENTS)).to_pylist()
        requests = len(server.requests)
    check_rows(rows, "AgenticChunker: document 2.* window 0 .*it names no sentence")
    assert requests == len(DOCUMENTS)


def lacking(text: str) -> int:
    """A length function whose package is not there."""
    raise ImportError("pip install one")


@pytest.mark.parametrize("on_error", ["raise", "row"])
@pytest.mark.parametrize("kind", [RecursiveChunker, PageChunker])
def test_missing_package_fails_the_table(kind: type[Chunker], on_error: Any) -> None:
    splitter = TableSplitter(kind(length_function=lacking), on_error=on_error)
    with pytest.raises(ImportError, match="pip install one"):
        splitter.split_table(table_of(FINE))


def test_options_about_errors_are_checked() -> None:
    with pytest.raises(ValueError, match="on_error must be 'raise' or 'row', got 'skip'"):
        TableSplitter(RecursiveChunker(), on_error="skip")  # type: ignore[arg-type]
    table = pa.table({"text": ["Tea."], "error": ["none"]})
    with pytest.raises(ValueError, match=r"columns \['error'\]: rename"):
        TableSplitter(RecursiveChunker(), on_error="row").split_table(table)
    assert "error" in TableSplitter(RecursiveChunker()).split_table(table).column_names


# Ids


def test_id_column_keeps_its_name_and_type() -> None:
    table = pa.table({"key": pa.array([7, 8], pa.int32()), "text": ["Tea.", "Rain."], "n": [1, 2]})
    chunks = TableSplitter(RecursiveChunker(), id_column="key").split_table(table)
    assert chunks.column_names == [*OWN[: OWN.index("chunk_metadata") + 1], "key", "n"]
    assert chunks.schema.field("key").type == pa.int32()
    assert chunks.column("key").to_pylist() == [7, 8]
    assert chunks.column("document_id").to_pylist() == ["7", "8"]


@pytest.mark.parametrize("name", ["document_id", "Chunk_ID"])
def test_id_column_with_the_name_of_a_column_of_chunks_is_not_repeated(name: str) -> None:
    table = pa.table({name: ["a"], "text": ["Tea."]})
    chunks = TableSplitter(RecursiveChunker(), id_column=name).split_table(table)
    assert len(chunks.column_names) == len(set(map(str.lower, chunks.column_names)))
    assert chunks.column("document_id").to_pylist() == ["a"]


def test_id_column_may_be_named_among_the_metadata() -> None:
    table = table_of(FINE)
    splitter = TableSplitter(RecursiveChunker(), id_column="key", metadata_columns=["title", "key"])
    assert splitter.split_table(table).column_names[-2:] == ["title", "key"]


# What is sent to the workers


def make_llm() -> ChatOpenAI:
    return ChatOpenAI(model="gpt-4o")


def test_model_with_a_key_is_not_sent_to_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match="pass a factory") as caught:
        pickle.dumps(TableSplitter(AgenticChunker(llm=ChatOpenAI(model="gpt-4o", api_key=SECRET))))
    assert SECRET not in str(caught.value)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    assert SECRET.encode() not in pickle.dumps(TableSplitter(AgenticChunker(llm=make_llm)))
