"""LangChain's documents and splitters as parent-child retrieval asks for them."""

from __future__ import annotations

import inspect
from collections.abc import (
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import run_in_executor
from langchain_text_splitters import TextSplitter

from rag_splitters.parent_child.passages import Passage, copied
from rag_splitters.parent_child.stores import Level, Split

__all__ = ["Call", "caller", "named_passages", "splitting", "to_document", "to_passage"]

_MARK = "_rag_splitters_passage"


Call = Callable[..., Awaitable[Any]]


def caller(asynchronous: bool) -> Call:
    """Calls a method of LangChain's or, for an asynchronous operation, its twin named with an a."""

    async def call(target: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        if not asynchronous:
            return getattr(target, name)(*args, **kwargs)
        method = getattr(target, f"a{name}", None)
        if method is None or not inspect.iscoroutinefunction(method):
            return await run_in_executor(None, getattr(target, name), *args, **kwargs)
        return await method(*args, **kwargs)

    return call


def splitting(splitters: Mapping[Level, TextSplitter | None], call: Call) -> Split:
    """Cuts passages with LangChain's splitters; a model that one asks is asked for all at once."""

    async def split(level: Level, passages: list[Passage]) -> list[list[Passage]] | None:
        splitter = splitters.get(level)
        if splitter is None:
            return None
        marked = [
            Document(page_content=p.text, metadata={**copied(p.metadata), _MARK: number})
            for number, p in enumerate(passages)
        ]
        chunks: list[list[Passage]] = [[] for _ in passages]
        for document in await call(splitter, "transform_documents", marked):
            metadata = dict(document.metadata)
            chunks[metadata.pop(_MARK)].append(Passage(document.page_content, metadata))
        return chunks

    return split


def to_passage(document: Document) -> Passage:
    """A document of LangChain as a passage; the metadata is shared."""
    return Passage(document.page_content, document.metadata, document.id)


def to_document(passage: Passage) -> Document:
    """A passage as a document of LangChain that shares nothing with it."""
    return Document(page_content=passage.text, metadata=copied(passage.metadata), id=passage.id)


def named_passages(documents: Iterable[Document], ids: Sequence[str] | None) -> Iterable[Passage]:
    """Documents of LangChain as passages, under the ids if there are any."""
    if ids is None:
        return map(to_passage, documents)
    documents = list(documents)
    if len(ids) != len(documents):
        raise ValueError(f"ids must be one for each of {len(documents)} documents, got {len(ids)}")
    pairs = zip(documents, ids, strict=True)
    return [Passage(document.page_content, document.metadata, i) for document, i in pairs]
