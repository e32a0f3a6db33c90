"""Chunks and retrieved texts with their positions in the documents, whichever library made them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from rag_splitters.contract.chunker import Chunker
from rag_splitters.contract.own_texts import LooseSpan
from rag_splitters.errors import InputTypeError
from rag_splitters.models.clients import first_method
from rag_splitters.models.describing import describe_model
from rag_splitters.parameters.checks import check_list
from rag_splitters.parent_child.index import ParentChildIndex
from rag_splitters.parent_child.records import SOURCE_KEY
from rag_splitters.span import Source
from rag_splitters.text.results import read_result
from rag_splitters.text.structure import Range

_SPLIT_METHODS = ("create_documents", "get_nodes_from_documents", "split_text")


@dataclass(frozen=True, slots=True)
class LocatedChunk:
    """A chunk, its document's name and its position; None if the position is unknown."""

    text: str
    document: str
    position: Range | None

    @property
    def characters(self) -> int:
        """The number of characters that it covers; its length if its position is unknown."""
        if self.position is None:
            return len(self.text)
        return self.position[1] - self.position[0]


def locate_chunks(
    chunker: Any,
    documents: Mapping[str, str],
    track: Callable[[Any], Iterable[Any]] = iter,
    metadata: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[LocatedChunk]:
    """Cut documents into chunks with positions; blank chunks are left out.

    Our own chunks carry their positions, unless a subclass's `split_text` rewrote them. If a chunk
    of another library states its start, that start is used where the text there matches, except for
    LlamaIndex, which always states the first occurrence. Other chunks are searched for after the
    previous chunk, without regard to white space, which many libraries change. A chunk that is not
    found has no position.

    Parameters:
        chunker: a `Chunker`, LangChain `TextSplitter`, LlamaIndex `NodeParser`, an object with
            `split_text`, or a function from a text to chunks: strings, or objects with a text and
            perhaps a start.
        documents: texts by name.
        track: wraps the documents while they are iterated, for a progress bar.
        metadata: metadata of documents by their names, for our own chunkers.

    Raises: TypeError if `chunker` is not a chunker, or if its chunks have no text.

    >>> locate_chunks(str.splitlines, {"tale": "Once.\\nOnce."})[1].position
    (6, 11)
    """
    chunks: list[LocatedChunk] = []
    if isinstance(chunker, Chunker):
        sources = [
            Source(text, {"source": name, **(metadata or {}).get(name, {})}, number=number)
            for number, (name, text) in enumerate(documents.items())
        ]
        for name, spans in zip(documents, track(chunker.split(sources)), strict=True):
            locator = ChunkLocator(documents[name])
            for span in spans:
                content = span.text_of(documents[name])
                position: Range | None = (span.start, span.end)
                if isinstance(span, LooseSpan):
                    position = locator.locate(content)
                chunks.append(LocatedChunk(content, name, position))
    else:
        split = _splitter(chunker)
        for name, text in track(documents.items()):
            locator, parts = ChunkLocator(text), split(text)
            check_list(parts, f"chunks from {describe_model(chunker)}")
            for part in parts:
                content, _, start, _, _ = read_result(part)
                if hasattr(part, "start_char_idx"):  # of LlamaIndex: the first occurrence
                    start = None
                chunks.append(LocatedChunk(content, name, locator.locate(content, start)))
    return [chunk for chunk in chunks if chunk.text.strip()]


def search_method(strategy: Any) -> Callable[..., Any] | None:
    """Return the method with which a retriever searches; None for anything that cuts texts."""
    is_splitter = isinstance(strategy, Chunker) or first_method(strategy, *_SPLIT_METHODS)
    return None if is_splitter else first_method(strategy, "invoke", "retrieve")


def budget_search(strategy: Any, max_tokens: int) -> Callable[[str], Any] | None:
    """Return the method with which a parent-child retriever searches for at most so many tokens.

    None for any other retriever, which cannot be told how many.
    """
    if not isinstance(strategy, ParentChildIndex):
        return None
    if invoke := first_method(strategy, "invoke"):
        return partial(invoke, max_tokens=max_tokens)
    strategy = copy(strategy)  # LlamaIndex's method takes only the question
    strategy.max_tokens = max_tokens
    return first_method(strategy, "retrieve")


class ChunkLocator:
    """Finds the chunks of one text, one after the other.

    >>> locator = ChunkLocator("one  two one two")
    >>> locator.locate("one two"), locator.locate("one two"), locator.locate("three")
    ((0, 8), (9, 16), None)
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._last: Range = (0, 0)

    def locate(self, chunk: str, start: int | None = None) -> Range | None:
        """Return the position of the next chunk, which may state its start."""
        if start is not None and start >= 0 and self.text.startswith(chunk, start):
            position: Range | None = (start, start + len(chunk))
        else:
            position = self._search(chunk)
        self._last = position or self._last
        return position

    def find(self, chunk: str, start: int | None = None) -> Range | None:
        """Return the position of a chunk, wherever it stands; it may state its start."""
        self._last = (0, 0)
        return self.locate(chunk, start)

    @cached_property
    def _offsets(self) -> list[int]:
        """The offsets of the characters that are not white space."""
        return [offset for offset, letter in enumerate(self.text) if not letter.isspace()]

    @cached_property
    def _bare(self) -> str:
        return "".join(self.text.split())

    def _search(self, chunk: str) -> Range | None:
        """Return the position right after the previous chunk, or the next after its start, or any.

        Overlapping chunks begin before the end of the previous one, and some libraries list a
        section before or after its parts.
        """
        bare = "".join(chunk.split())
        before, start = (bisect_left(self._offsets, place) for place in self._last)
        if not bare:
            return None
        if not self._bare.startswith(bare, start):
            start = self._bare.find(bare, before + 1)
        if start < 0:
            start = self._bare.find(bare)
        return None if start < 0 else self._with_edges(chunk, start, start + len(bare))

    def _with_edges(self, chunk: str, first: int, after: int) -> Range:
        """Return the position in the text, from offsets in the bare text.

        Includes the white space at the chunk's edges where the text has the same.
        """
        start, end = self._offsets[first], self._offsets[after - 1] + 1
        leading = chunk[: len(chunk) - len(chunk.lstrip())]
        trailing = chunk[len(chunk.rstrip()) :]
        start -= len(leading) if self.text.endswith(leading, 0, start) else 0
        end += len(trailing) if self.text.startswith(trailing, end) else 0
        return start, end


def _splitter(chunker: Any) -> Callable[[str], Iterable[Any]]:
    """Return a function from a text to chunks, made from another library's splitter."""
    if convert := first_method(chunker, "create_documents"):
        return lambda text: convert([text])
    if parse := first_method(chunker, "get_nodes_from_documents"):
        from llama_index.core import Document

        return lambda text: parse([Document(text=text)])
    if split := first_method(chunker, "split_text"):
        return split
    if callable(chunker) and not isinstance(chunker, type):
        return chunker  # type: ignore[no-any-return]
    raise InputTypeError(
        "a chunker is a Chunker, a LangChain TextSplitter, a LlamaIndex NodeParser or a function "
        f"from a text to chunks, got {chunker!r}"
    )


def locate_results(
    results: Iterable[Any], locators: Mapping[str, ChunkLocator]
) -> list[LocatedChunk]:
    """Return what a retriever returned, with documents and positions as far as they are known.

    A result names its document in its metadata ("source_id" or "source"), or by the document's id
    in LlamaIndex. Without a stated position it is searched for, and without a document in all of
    them.

    Parameters:
        results: texts, LangChain documents or LlamaIndex nodes.
    """
    located = []
    for text, metadata, start, end, document_id in map(read_result, results):
        names = (metadata.get(SOURCE_KEY), metadata.get("source"), document_id)
        name = next((each for each in names if each in locators), None)
        position = None if start is None or end is None or name is None else (start, end)
        for candidate in () if position else (name,) if name else locators:
            name, position = candidate, locators[candidate].find(text, start)
            if position:
                break
        located.append(LocatedChunk(text, name or "", position))
    return located
