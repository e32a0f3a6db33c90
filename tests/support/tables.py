"""Documents in tables, and what the LangChain front end makes of the same documents."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from langchain_core.documents import Document

from rag_splitters import CATALOGUE, Chunker, Span
from rag_splitters.chunkers.by_name import required_models
from rag_splitters.distributed.columns import TYPED, chunk_fields
from rag_splitters.models import HashingEmbeddings
from tests.support.cases import CASES

__all__ = [
    "DOCUMENTS",
    "RAIN",
    "WITHOUT_MODEL",
    "Given",
    "NotedEmbeddings",
    "by_chunk",
    "expected",
    "fail_on_boom",
    "of_documents",
    "of_rows",
    "own_chunker",
    "table_of",
]

Row = dict[str, Any]


class Given(NamedTuple):
    """A document as a test gives it."""

    key: str | None
    text: str | None
    title: str | None = None
    page: int | None = None

    @property
    def document(self) -> Document:
        metadata = {"title": self.title, "page": self.page}
        return Document(self.text or "", id=self.key, metadata=metadata)


SCHEMA = pa.schema(
    [("key", pa.string()), ("text", pa.string()), ("title", pa.string()), ("page", pa.int64())]
)

DOCUMENTS = [
    Given("a", "# Tea\n\nBoil water. Dr. No waits.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n", "Tea", 3),
    Given("b", "The same passage again. " * 12, None, None),
    Given("c", None, "no text", 1),
    Given("d", " \n\t\f ", "blank", 2),
    Given(None, "first page\fsecond page: \u0647\u0644. \u4ed6\u8bf4\u3002" * 4, "no id", 9),
    Given("e", "\x00<|endoftext|>\r\n\r\ncafe\u0301 👩‍👩‍👧 🇩🇪🇫🇷\u2028" * 3, "odd", None),
    Given(
        "f", "```python\ndef f():\n    return 1\n```\n\nA word. Another Word, and the end.", "", 0
    ),
    *(Given(f"g{n}", f"Line {n}. A word of it.\n\nThe end of {n}.", None, n) for n in range(20)),
]
"""Texts of many kinds, with and without an id; one is null, one is blank."""

RAIN = (
    "Rain fell on the long road that leads to the house by the river. Nobody came along it for "
    "three days, nor did anybody leave. The river rose until it stood in the lower meadows."
)
"""Sentences that are long enough for a strategy to compare them."""

WITHOUT_MODEL = {
    name: CASES[name][1] for name in sorted(CASES) if not required_models(CATALOGUE[name])
}
"""A chunker of small chunks for every strategy that needs no model, by its name."""


def table_of(documents: Sequence[Given]) -> pa.Table:
    """The documents as a table."""
    return pa.Table.from_pylist([document._asdict() for document in documents], SCHEMA)


def of_documents(chunks: Sequence[Document]) -> list[Row]:
    """Chunks of the LangChain front end as rows that can be compared."""
    return [
        {"id": chunk.id, "text": chunk.page_content, **json.loads(json.dumps(chunk.metadata))}
        for chunk in chunks
    ]


def of_rows(rows: Sequence[Row]) -> list[Row]:
    """Rows of a table of chunks, the same way."""
    own = {field.name for field in chunk_fields(with_error=False)}
    found = []
    for row in rows:
        known = {key: row[key] for key in TYPED if row[key] is not None}
        told = json.loads(row["chunk_metadata"])
        assert not known.keys() & told.keys(), "what has a column is not in the JSON too"
        carried = {key: value for key, value in row.items() if key not in own | {"key"}}
        places = {key: row[key] for key in ("start_index", "end_index", "chunk_index", "text")}
        found.append({"id": row["chunk_id"], **carried, **told, **known, **places})
    return found


def by_chunk(rows: Sequence[Row]) -> list[Row]:
    """The rows in an order that no partition changes."""
    return sorted(rows, key=lambda row: row["id"])


def expected(splitter: Any, documents: Sequence[Given] = DOCUMENTS) -> list[Row]:
    """What the LangChain front end gives for each of the documents."""
    chunks = [each for given in documents for each in splitter.split_documents([given.document])]
    return of_documents(chunks)


class NotedEmbeddings:
    """Vectors like those of `HashingEmbeddings`; a folder tells of every load and every call."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        self.model = HashingEmbeddings(dimensions=64)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._note("loads")

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        self._note("calls")
        return self.model.embed_documents(texts)

    def _note(self, what: str) -> None:
        with (Path(self.folder) / what).open("a") as file:
            file.write(f"{os.getpid()}\n")

    def noted(self, what: str) -> list[str]:
        """The process of each load or call."""
        return (Path(self.folder) / what).read_text().split()


def fail_on_boom(text: str) -> int:
    """A length function that one document breaks."""
    if "boom" in text:
        raise RuntimeError("it went boom")
    return len(text)


def own_chunker() -> Chunker:
    """A strategy and a function that no other process can import."""

    class Halves(Chunker):
        length: Any

        def spans(self, text: str) -> list[Span]:
            middle = self.length(text) // 2
            return [Span(0, middle), Span(middle, len(text))]

    return Halves(length=lambda text: len(text))
