"""Opening an index on servers in the workers of Ray and Spark, and documents to write there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.documents import Document

from rag_splitters.models import HashingEmbeddings

__all__ = [
    "MortalEmbeddings",
    "Place",
    "as_documents",
    "document",
    "documents",
    "open_index",
]


class Place(NamedTuple):
    """Where an index is, and a folder in which its model leaves notes."""

    url: str
    host: str
    port: int
    name: str
    folder: str


class MortalEmbeddings:
    """Vectors like those of `HashingEmbeddings`; once, a text about the end ends its process."""

    description = "mortal"

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self.model = HashingEmbeddings(dimensions=16)
        self._note("loads", [""])

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        grave = self.folder / "grave"
        if any("The end" in text for text in texts) and (self.folder / "mortal").exists():
            (self.folder / "mortal").unlink()
            grave.touch()
            os._exit(1)
        self._note("texts", texts)
        return self.model.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        return self.model.embed_query(text)

    def _note(self, what: str, lines: Sequence[str]) -> None:
        with (self.folder / what).open("a") as file:
            file.writelines(f"{os.getpid()} {line!r}\n" for line in lines)

    def noted(self, what: str) -> list[str]:
        """What all processes have noted."""
        path = self.folder / what
        return path.read_text().splitlines() if path.exists() else []


def open_index(place: Place) -> Any:
    """Open the index of a place."""
    import chromadb

    from rag_splitters.langchain import (
        PostgresStore,
        RecursiveTextSplitter,
        parent_document_retriever,
    )

    return parent_document_retriever(
        client=chromadb.HttpClient(host=place.host, port=place.port),
        docstore=PostgresStore(place.url, table=place.name),
        collection_name=place.name,
        embeddings=MortalEmbeddings(place.folder),
        child_splitter=RecursiveTextSplitter(chunk_size=60),
        parent_splitter=RecursiveTextSplitter(chunk_size=150),
    )


def document(number: int, note: str = "") -> dict[str, Any]:
    """A small document; every fiftieth has several parents."""
    text = f"Lamp {number} of tower {number % 7} was lit on day {number * number}."
    if number % 50 == 0:
        text += "".join(f"\n\nOn day {day} the keeper of lamp {number} slept." for day in range(8))
    team = "red" if number % 2 else "blue"
    return {"id": f"lamp-{number}", "text": text + note, "team": team, "tower": number % 7}


def documents(count: int) -> list[dict[str, Any]]:
    """So many documents, the tenth last of which is the end."""
    rows = [document(number) for number in range(count)]
    rows[-10]["text"] += "\n\nThe end."
    return rows


def as_documents(rows: Sequence[dict[str, Any]]) -> list[Document]:
    """The same for LangChain's retriever."""
    return [
        Document(row["text"], id=row["id"], metadata={"team": row["team"], "tower": row["tower"]})
        for row in rows
    ]
