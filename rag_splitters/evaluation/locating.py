"""Where chunks stand in their documents, whichever library cut them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rag_splitters.chunker import Chunker
from rag_splitters.evaluation.figures import Interval

__all__ = ["LocatedChunk", "Places", "located_chunks"]


@dataclass(frozen=True, slots=True)
class LocatedChunk:
    """A chunk, its document's name, and its position; None where it could not be located."""

    text: str
    document: str
    position: Interval | None


def located_chunks(
    chunker: Any, documents: Mapping[str, str], track: Callable[[Any], Iterable[Any]] = iter
) -> list[LocatedChunk]:
    """Cut documents into chunks with their positions; blank chunks are left out.

    Ours carry their positions. Of other people's chunks, a stated start is believed where the text
    there is the chunk's, but for LlamaIndex's, which is always that of the first repetition. The
    rest are looked for behind the chunk before, with all white space passed over, which many
    libraries change. What is not found has no position.

    Parameters:
        chunker: a `Chunker`, LangChain `TextSplitter`, LlamaIndex `NodeParser`, an object with
            `split_text`, or a function from a text to chunks: strings, or objects with a text and,
            if they know it, a start.
        documents: texts by name.
        track: what to iterate over the documents with, for a progress bar.

    Raises: TypeError for what is no chunker, or for chunks that have no text.

    >>> located_chunks(str.splitlines, {"tale": "Once.\\nOnce."})[1].position
    (6, 11)
    """
    chunks: list[LocatedChunk] = []
    if isinstance(chunker, Chunker):
        texts = list(documents.values())
        for name, spans in zip(documents, track(chunker.spans_many(texts)), strict=True):
            for span in spans:
                content = span.text_of(documents[name])
                chunks.append(LocatedChunk(content, name, (span.start, span.end)))
    else:
        split = _splitter(chunker)
        for name, text in track(documents.items()):
            places = Places(text)
            for part in split(text):
                content, start = _content(part)
                chunks.append(LocatedChunk(content, name, places.place(content, start)))
    return [chunk for chunk in chunks if chunk.text.strip()]


class Places:
    """Finds the chunks of one text, one after the other.

    >>> places = Places("one  two one two")
    >>> places.place("one two"), places.place("one two"), places.place("three")
    ((0, 8), (9, 16), None)
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._last: Interval | None = None

    def place(self, chunk: str, start: int | None = None) -> Interval | None:
        """Where the next chunk stands; `start` is where it is said to."""
        if start is not None and start >= 0 and self.text.startswith(chunk, start):
            found: Interval | None = (start, start + len(chunk))
        else:
            found = self._behind(chunk) or self._elsewhere(chunk)
        self._last = found or self._last
        return found

    @cached_property
    def _offsets(self) -> list[int]:
        """Where the characters stand that are not white space."""
        return [offset for offset, letter in enumerate(self.text) if not letter.isspace()]

    @cached_property
    def _bare(self) -> str:
        return "".join(self.text.split())

    def _behind(self, chunk: str) -> Interval | None:
        """The place right behind the chunk before, if it stands there."""
        wanted = "".join(chunk.split())
        start = bisect_left(self._offsets, self._last[1]) if self._last else 0
        if not wanted or not self._bare.startswith(wanted, start):
            return None
        return self._with_edges(chunk, start, start + len(wanted))

    def _elsewhere(self, chunk: str) -> Interval | None:
        """The first place behind the start of the chunk before, else the first of all.

        Overlapping chunks begin before the end of the one before; some libraries list sections
        before or after what is in them.
        """
        wanted = "".join(chunk.split())
        first = bisect_left(self._offsets, self._last[0]) + 1 if self._last else 0
        start = self._bare.find(wanted, first) if wanted else -1
        if wanted and start < 0:
            start = self._bare.find(wanted)
        return None if start < 0 else self._with_edges(chunk, start, start + len(wanted))

    def _with_edges(self, chunk: str, first: int, after: int) -> Interval:
        """Offsets in the bare text as those in the text.

        With the white space at the chunk's edges, where the text has the same.
        """
        start, end = self._offsets[first], self._offsets[after - 1] + 1
        leading = chunk[: len(chunk) - len(chunk.lstrip())]
        trailing = chunk[len(chunk.rstrip()) :]
        start -= len(leading) if self.text.endswith(leading, 0, start) else 0
        end += len(trailing) if self.text.startswith(trailing, end) else 0
        return start, end


def _splitter(chunker: Any) -> Callable[[str], Iterable[Any]]:
    """A function from a text to chunks, from another library's object."""
    if callable(getattr(chunker, "create_documents", None)):
        return lambda text: chunker.create_documents([text])
    if callable(getattr(chunker, "get_nodes_from_documents", None)):
        from llama_index.core import Document

        return lambda text: chunker.get_nodes_from_documents([Document(text=text)])
    if callable(getattr(chunker, "split_text", None)):
        return chunker.split_text  # type: ignore[no-any-return]
    if callable(chunker) and not isinstance(chunker, type):
        return chunker  # type: ignore[no-any-return]
    raise TypeError(
        "a chunker is a Chunker, a LangChain TextSplitter, a LlamaIndex NodeParser or a function "
        f"from a text to chunks, got {chunker!r}"
    )


_TEXTS = ("text", "page_content")
_STARTS = ("start_index", "start")


def _content(part: Any) -> tuple[str, int | None]:
    """A chunk's text and the start that it states."""
    if isinstance(part, str):
        return part, None
    text = next((getattr(part, name) for name in _TEXTS if hasattr(part, name)), None)
    if not isinstance(text, str):
        raise TypeError(f"a chunk is a string or an object with a text, got {part!r}")
    starts = [getattr(part, name, None) for name in _STARTS]
    metadata = getattr(part, "metadata", None)
    if isinstance(metadata, Mapping):
        starts.append(metadata.get("start_index"))
    return text, next((start for start in starts if type(start) is int), None)
