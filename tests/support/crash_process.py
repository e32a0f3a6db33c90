"""A process that forks one for each job on an index, so that a test can kill it at any moment.

What takes long to import is imported once. Nothing is opened before the fork: Chroma's threads do
not survive one. Jobs are lines of JSON on stdin; a job's process answers with lines on stdout, and
when it has ended, however it did, another line tells how.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from contextlib import closing
from string import ascii_lowercase
from typing import Any

import chromadb
from langchain_chroma import Chroma  # noqa: F401  (for the jobs)
from langchain_core.documents import Document

from rag_splitters.langchain import (
    ParentDocumentRetriever,
    PostgresStore,
    RecursiveTextSplitter,
    parent_document_retriever,
)
from rag_splitters.models import HashingEmbeddings
from rag_splitters.parent_child import consistency, indexing
from tests.support.processes import do_jobs, tell
from tests.support.stores import stored

__all__ = ["DOCUMENTS", "document", "main", "opened"]

DOCUMENTS = 6
_ALL = 5000  # more than there are
_QUESTION = "which lamp was lit"


def _paragraph(name: str) -> str:
    """Words of its own: Chroma's index loses some of vectors that are all much alike."""
    chance = random.Random(name)
    words = ("".join(chance.choices(ascii_lowercase, k=6)) for _ in range(14))
    return f"The lamp. {' '.join(words)}."


def document(number: int, version: int) -> Document:
    """A document of which every third stays as it is, and others grow, shrink or change inside."""
    version = 1 if number % 3 == 0 else version
    kept, length = 5, 6 + (number * version) % 5
    topics = [0] * kept + [version] * (length - kept)
    paragraphs = [_paragraph(f"{number} {n} {topic}") for n, topic in enumerate(topics)]
    text = "\n\n".join(paragraphs)
    metadata = {"source": f"{number}.md", "version": version, f"key{version}": True}
    return Document(page_content=text, metadata=metadata, id=f"document-{number}")


def summaries(text: str) -> list[str]:
    """Two representations of a parent."""
    return [f"Of {text[10:40]}", f"Which words end in {text[-20:]}?"]


def opened(place: dict[str, Any], search_type: str = "hybrid") -> ParentDocumentRetriever:
    """The index at a place: a folder, or a Chroma server's collection and a table of PostgreSQL."""
    where: dict[str, Any] = {"path": place.get("folder")}
    if "url" in place:
        where["client"] = chromadb.HttpClient(host=place["host"], port=place["port"])
        where["docstore"] = PostgresStore(place["url"], timeout=20)
        where["collection_name"] = place["collection"]
    retriever = parent_document_retriever(
        **where,
        embeddings=HashingEmbeddings(dimensions=64),
        child_splitter=RecursiveTextSplitter(chunk_size=100),
        parent_splitter=RecursiveTextSplitter(chunk_size=300),
        search_type=search_type,
        representations=summaries,
        k=_ALL,
    )
    retriever.batch_size = 12
    return retriever


def _add(retriever: ParentDocumentRetriever, version: int) -> None:
    retriever.add_documents([document(number, version) for number in range(DOCUMENTS)])


_OPERATIONS: dict[str, Callable[[ParentDocumentRetriever], object]] = {
    "fill": lambda retriever: retriever.add_documents([document(n, 1) for n in range(100, 102)]),
    "add": lambda retriever: _add(retriever, 1),
    "replace": lambda retriever: _add(retriever, 2),
    "delete": lambda retriever: retriever.delete([document(n, 1).id for n in range(DOCUMENTS)]),
}


def _found(retriever: ParentDocumentRetriever, retrieve: str) -> dict[str, str]:
    asked = retriever.model_copy(update={"retrieve": retrieve})
    return {found.id or "": found.page_content for found in asked.invoke(_QUESTION)}


def _state(retriever: ParentDocumentRetriever) -> dict[str, Any]:
    """All that the stores hold, and all that a query gives."""
    children, rows = stored(retriever.vectorstore._collection, retriever.docstore)  # type: ignore[attr-defined]
    is_hybrid = retriever.search_type == "hybrid"
    return {
        "children": children,
        "rows": {key: [row.page_content, row.metadata] for key, row in rows.items()},
        "keywords": retriever.shared.keywords.list_ids() if is_hybrid else None,
        "found": {kind: _found(retriever, kind) for kind in ("parents", "children")},
    }


def _do(job: dict[str, Any]) -> None:
    """Do one operation, telling when it begins; one that is to be killed waits for that."""
    retriever = opened(job["place"], job["search_type"])
    with closing(retriever):
        retriever.get(["nothing"])  # the docstore's connection is open
        tell(began=True)
        _OPERATIONS[job["operation"]](retriever)
        tell(finished=True)
        if job["killed"]:
            signal.pause()


def _look(job: dict[str, Any]) -> None:
    """See what is there, mend it if told to, do the operation again, and see again."""
    with closing(opened(job["place"], job["search_type"])) as retriever:
        found = {kind: _found(retriever, kind) for kind in ("parents", "children")}
        seen = {"between": _state(retriever), "unsound": not retriever.verify().is_sound}
        seen["between"]["found"] = found  # what the very first query gave
        if job["repair"]:
            retriever.verify(repair=True)
            seen |= {"repaired": _state(retriever), "mended": retriever.verify().is_sound}
        if job["operation"] is not None:
            _OPERATIONS[job["operation"]](retriever)
        tell(**seen, end=_state(retriever), sound=retriever.verify().is_sound)


def main() -> None:
    """Do the jobs, one after the other."""
    for module in (indexing, consistency):
        module.DOCUMENTS_AT_ONCE = 2  # an operation of several groups of documents
    do_jobs(lambda job: {"do": _do, "look": _look}[job["job"]](job))


if __name__ == "__main__":
    main()
