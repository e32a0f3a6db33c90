"""A process that forks one for each job on an index on servers, so that several write at once.

What takes long to import is imported once, and nothing is opened before the fork. Jobs are lines of
JSON on stdin. A job's process opens the index, says that it is ready, waits until the file `go`
exists, and does what it was told.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import chromadb
import chromadb.api.fastapi  # for the jobs, which would each import it
from langchain_chroma import Chroma  # noqa: F401  (for the jobs)
from langchain_core.documents import Document

from rag_splitters.langchain import (
    ParentDocumentRetriever,
    PostgresStore,
    RecursiveTextSplitter,
    RedisStore,
    parent_document_retriever,
)
from rag_splitters.models import HashingEmbeddings
from tests.support.processes import do_jobs, tell

__all__ = ["document", "main", "opened"]

_STORES: dict[str, Callable[..., Any]] = {"postgres": PostgresStore, "redis": RedisStore}


def document(name: str, version: str, paragraphs: int = 12) -> Document:
    """A document whose every paragraph says its version."""
    lines = [f"Lamp {n} of {name} was lit on day {version}{n}." for n in range(paragraphs)]
    text = "\n\n".join(lines)
    return Document(page_content=text, metadata={"source": version}, id=name)


def opened(place: dict[str, Any]) -> ParentDocumentRetriever:
    """Open the index at a place: a Chroma server's collection, and a docstore on a server."""
    retriever = parent_document_retriever(
        client=chromadb.HttpClient(host=place["host"], port=place["port"]),
        docstore=_STORES[place["kind"]](place["url"], timeout=20),
        collection_name=place["collection"],
        embeddings=HashingEmbeddings(dimensions=64),
        child_splitter=RecursiveTextSplitter(chunk_size=60),
        parent_splitter=RecursiveTextSplitter(chunk_size=150),
        search_type=place.get("search_type", "similarity"),
    )
    retriever.batch_size = 12
    return retriever


def _add(retriever: ParentDocumentRetriever, names: list[str], version: str) -> None:
    retriever.add_documents([document(name, version) for name in names])


def _add_singly(retriever: ParentDocumentRetriever, names: list[str], version: str) -> None:
    for name in names:
        retriever.add_documents([document(name, version)])


def _sync(retriever: ParentDocumentRetriever, names: list[str], version: str) -> None:
    retriever.sync([document(name, version) for name in names], scope={"source": version})


_OPERATIONS: dict[str, Callable[..., object]] = {
    "add": _add,
    "add singly": _add_singly,
    "sync": _sync,
    "delete": lambda retriever, names, version: retriever.delete(names),
    "repair": lambda retriever, names, version: retriever.verify(repair=True),
}


def _do(job: dict[str, Any]) -> None:
    with closing(opened(job["place"])) as retriever:
        retriever.get(["nothing"])  # the docstore's connection is open
        tell(ready=True)
        while not Path(job["go"]).exists():
            time.sleep(0.0005)
        time.sleep(job["delay"])
        _OPERATIONS[job["operation"]](retriever, job["names"], job["version"])


def main() -> None:
    """Do the jobs, one after the other."""
    do_jobs(_do)


if __name__ == "__main__":
    main()
