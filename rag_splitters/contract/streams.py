"""Cuts a huge text from a file handle, block by block, into the chunks that the whole text has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Protocol

from rag_splitters.contract.line_breaks import view_with_line_feeds
from rag_splitters.errors import InputError, InputTypeError
from rag_splitters.ids import chunk_id
from rag_splitters.span import Chunk, Source, Span
from rag_splitters.text.origin import add_places, line_breaks, line_range
from rag_splitters.text.wrapping import window_start

STREAMING = ("fixed_size", "recursive", "separator", "sliding_window", "token")
"""The strategies whose rules look at a bounded part of the text around a chunk."""

REACH = 4000
"""No rule of these strategies looks further than this many characters before the last chunk, or
after the end of the text that might fit into the next one."""


class Handle(Protocol):
    """A file that is open for reading text."""

    def read(self, size: int, /) -> str:
        """Return at most `size` characters; "" at the end."""


def check_streams(chunker: Any, problem: str | None) -> None:
    """Raise ValueError if a strategy cannot cut a stream, for the reason that `problem` says."""
    if problem:
        raise InputError(
            f"{type(chunker).__name__} cannot cut a stream {problem}: pass the whole text to "
            f"chunk(), or use one of {', '.join(STREAMING)}"
        )


def check_unit(chunker: Any) -> None:
    """Raise ValueError for a unit whose lengths depend on more than the part that is measured."""
    unit = chunker.length_function
    is_local = isinstance(unit, str) or unit is len or hasattr(unit, "encode_ordinary")
    check_streams(chunker, None if is_local else "with a length_function or tokenizer of your own")


def stream_chunks(chunker: Any, handle: Handle, id: str, block_size: int) -> Iterator[Chunk]:
    """Yield the chunks of the text that a handle returns; see `Chunker.chunk_stream`.

    Each step cuts one window: the text after the last chunk that is certain, and before it as much
    as rules may look at. A chunk is certain if all text that rules looked at is in the window.
    """
    text, offset, line, index = "", 0, 1, 0
    last: Span | None = None
    while True:
        size = max(block_size, len(text))
        block = _read(handle, size)
        text += block
        is_end = len(block) < size
        view = view_with_line_feeds(chunker, Source(text))
        spans = chunker.spans_after(view.text, last)
        if not is_end:
            spans = spans[: _certain(chunker, view.text, spans)]
        if view.text != text and not chunker.spans_fit(spans, text):
            raise InputError(
                "a chunk or an overlap is too big with carriage returns as line breaks: open the "
                "file with newline=None, so that they are read as line feeds"
            )
        for span in add_places(spans, text, line_range(text, line)):
            content, start, end = span.text_of(text), span.start + offset, span.end + offset
            metadata = {**span.to_metadata(), "chunk_index": index}
            yield Chunk(content, start, end, metadata, chunk_id(id, start, end, content))
            index += 1
        if is_end:
            return
        last = spans[-1] if spans else last
        begin = window_start(view.text, last.start - REACH) if last else 0
        line += len(line_breaks(text[:begin]))
        text, offset = text[begin:], offset + begin
        last = last and replace(last, start=last.start - begin, end=last.end - begin)


def _read(handle: Handle, size: int) -> str:
    """Read this many characters, or fewer at the end, from a handle that may return fewer."""
    parts, missing = list[str](), size
    while missing > 0 and (part := handle.read(missing)):
        if not isinstance(part, str):
            raise InputTypeError(
                'chunk_stream needs a file that is open for reading text: open(path, newline="")'
            )
        parts.append(part)
        missing -= len(part)
    return "".join(parts)


def _certain(chunker: Any, text: str, spans: list[Span]) -> int:
    """Return how many of the first chunks of a window do not depend on what follows it."""
    horizon = len(text[: max(0, len(text) - REACH)].rstrip())
    for count in range(len(spans), 0, -1):
        span = spans[count - 1]
        is_unsized = chunker.chunk_size is None
        if span.end <= horizon and (is_unsized or not chunker.fits(text[span.own : horizon])):
            return count
    return 0
