"""Splitting several texts at once, as lists."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rag_splitters import Chunker, Source, Span

__all__ = ["asplit_texts", "split_either", "split_texts"]


def sources_of(
    texts: Iterable[str], metadatas: Sequence[Mapping[str, Any]] | None
) -> Iterable[Source]:
    for number, text in enumerate(texts):
        yield Source(text, metadatas[number] if metadatas else {}, number=number)


def split_texts(
    chunker: Chunker, texts: Iterable[str], metadatas: Sequence[Mapping[str, Any]] | None = None
) -> list[list[Span]]:
    """The spans of each text."""
    return list(chunker.split(sources_of(texts, metadatas)))


async def asplit_texts(
    chunker: Chunker, texts: Iterable[str], metadatas: Sequence[Mapping[str, Any]] | None = None
) -> list[list[Span]]:
    """The spans of each text, from an event loop."""
    return [spans async for spans in chunker.asplit(sources_of(texts, metadatas))]


def split_either(
    chunker: Chunker,
    texts: Iterable[str],
    is_async: bool,
    metadatas: Sequence[Mapping[str, Any]] | None = None,
) -> list[list[Span]]:
    """The spans of each text, from an event loop or without one."""
    if is_async:
        return asyncio.run(asplit_texts(chunker, texts, metadatas))
    return split_texts(chunker, texts, metadatas)
