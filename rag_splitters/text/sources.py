"""What the two front ends share: identities, metadata copies, positions in the first source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from rag_splitters.chunker import Chunker
from rag_splitters.span import Span
from rag_splitters.text.ids import ChunkIds

__all__ = [
    "TREE_KEYS",
    "Identities",
    "added_metadata",
    "copier",
    "offset_in_source",
    "spans_in_turn",
]

TREE_KEYS = frozenset(("node", "parent"))
"""Metadata of a span that tell its number in a tree and its parent's, which become ids."""

_EMPTY: tuple[Any, ...] = ([], {}, "", None)
_IMMUTABLE = frozenset((str, int, float, bool, type(None), bytes))


class Identities:
    """Tells the documents of one call apart, also where two are the same.

    >>> identities = Identities()
    >>> first, again = (identities.ids_of("text", {}, "a") for _ in range(2))
    >>> first.of(0, 4) == again.of(0, 4)
    False
    """

    def __init__(self) -> None:
        self._seen: dict[bytes, int] = {}

    def ids_of(self, text: str, metadata: Mapping[str, Any], given: str | None) -> ChunkIds:
        """Makes the ids of the next document's chunks."""
        ids = ChunkIds(text, metadata, given)
        source = ids.source()
        count = self._seen[source] = self._seen.get(source, 0) + 1
        if count > 1:
            ids.repeat(count)
        return ids


def spans_in_turn(
    chunker: Chunker, texts: Iterable[str], metadatas: Sequence[Mapping[str, Any]]
) -> Iterable[list[Span]]:
    """The spans of each document, when it is its turn, unless the strategy takes all at once.

    Spans that are used up need not be kept, nor looked through by the garbage collector.
    """
    kind = type(chunker)
    takes_all = kind.spans_many is not Chunker.spans_many
    if takes_all or kind.spans_of_documents is not Chunker.spans_of_documents:
        return chunker.spans_of_documents(texts, metadatas)
    return map(chunker.spans, texts)


def copier(metadata: Mapping[str, Any]) -> Callable[[], dict[str, Any]]:
    """Makes copies of a document's metadata that share nothing that could be changed.

    >>> make = copier({"tags": ["a"]})
    >>> make()["tags"] is make()["tags"]
    False
    """
    if _IMMUTABLE.issuperset(map(type, metadata.values())):
        return dict(metadata).copy
    return lambda: {
        key: value if type(value) in _IMMUTABLE else deepcopy(value)
        for key, value in metadata.items()
    }


def added_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What a chunk takes of its span's metadata: what says something, which stores can keep.

    >>> added_metadata({"headings": [], "level": 1, "node": 3})
    {'level': 1}
    """
    return {
        key: value
        for key, value in metadata.items()
        if key not in TREE_KEYS and not any(value == empty for empty in _EMPTY)
    }


def offset_in_source(start: Any, end: Any, text: str) -> tuple[int, int | None]:
    """Where a chunk's text begins in the source that the chunk was cut from.

    Parameters:
        start: the chunk's own start in its source, or None.
        end: the chunk's own end.
        text: the chunk's text.

    Returns: (offset, None) where positions in the text can be counted on from `offset`; (start,
    end) where the chunk was rewritten, and its evidence is all that is known; (0, None) for a
    text that is no chunk.

    >>> offset_in_source(10, 14, "four")
    (10, None)
    """
    if not _is_offset(start) or not _is_offset(end) or start > end:
        return 0, None
    return (start, None) if end - start == len(text) else (start, end)


def _is_offset(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
