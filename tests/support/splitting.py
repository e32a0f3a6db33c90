"""Splitting several texts at once, as lists, and telling whether that blocks an event loop."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rag_splitters import Chunker, Source, Span

__all__ = ["Gate", "asplit_texts", "split_texts"]


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


class Gate:
    """A length function that waits until the event loop has had a turn."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.loop_turned = threading.Event()
        self.is_loop_blocked = False

    def __call__(self, text: str) -> int:
        self.asked.set()
        if not self.loop_turned.wait(2):
            self.is_loop_blocked = True
            self.loop_turned.set()
        return len(text)
