"""Ids that are the same in any process, on any machine and in both frameworks: UUID version 5."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from hashlib import sha1
from typing import Any

__all__ = ["ChunkIds", "chunk_id", "source_identity", "stable_uuid"]

_NAMESPACE = uuid.UUID("6f1c1e0a-50f5-5c5e-9a0b-7d3f7f9f2d11").bytes


def stable_uuid(*parts: str) -> str:
    """UUIDv5 of some strings, as text; lone surrogates are allowed.

    Each part is preceded by its length, so that ("ab", "c") and ("a", "bc") differ.

    >>> stable_uuid("a", "b") == stable_uuid("a", "b") != stable_uuid("ab")
    True
    """
    return ChunkIds(*parts).uuid()


class ChunkIds:
    """Makes the ids of the chunks of one document.

    >>> ChunkIds("report.pdf").of(0, 4, "text") == chunk_id("report.pdf", 0, 4, "text")
    True
    """

    def __init__(self, *parts: str) -> None:
        name = "".join([f"{len(part)}:{part}" for part in parts])
        self._hash = sha1(_NAMESPACE + _bytes(name), usedforsecurity=False)

    def of(self, start: int, end: int, content: str) -> str:
        """The id of the chunk from `start` to `end` (code points) with this text."""
        digest = self._hash.copy()
        digest.update(_bytes(f"{start}:{end}:{content}"))
        return _as_uuid(digest.hexdigest())

    def uuid(self) -> str:
        """The id of the parts themselves."""
        return _as_uuid(self._hash.hexdigest())


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _as_uuid(digest: str) -> str:
    """The SHA-1 digest as UUID version 5, RFC 9562."""
    variant = "89ab"[int(digest[16], 16) & 3]
    return f"{digest[:8]}-{digest[8:12]}-5{digest[13:16]}-{variant}{digest[17:20]}-{digest[20:32]}"


def source_identity(text: str, metadata: Mapping[str, Any], given: str | None = None) -> str:
    """What tells one document from another.

    The id that the user gave it; else a UUID of its text and metadata, so that two documents that
    begin alike do not share chunk ids.

    >>> source_identity("text", {"page": 1}, given="report.pdf")
    'report.pdf'
    """
    if given is not None:
        return given
    return stable_uuid(_describe(metadata) if metadata else "", text)


def chunk_id(identity: str, start: int, end: int, content: str) -> str:
    """The id of a chunk: of its document's identity, its position in it (code points), its text."""
    return ChunkIds(identity).of(start, end, content)


def _plain(value: object) -> Any:
    """A stand-in for a metadata value that JSON lacks: the same in every process."""
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    shown = str(value)
    return type(value).__qualname__ if " at 0x" in shown else shown


_encode = json.JSONEncoder(sort_keys=True, default=_plain).encode


def _describe(metadata: Mapping[str, Any]) -> str:
    try:
        return _encode(metadata)
    except TypeError:  # keys that JSON lacks or that cannot be sorted
        return _encode(_sortable(metadata))


def _sortable(value: Any) -> Any:
    """The value with lists of pairs, sorted by their JSON, in the place of dictionaries."""
    if isinstance(value, Mapping):
        pairs = [[_plain(key), _sortable(each)] for key, each in value.items()]
        return sorted(pairs, key=_encode)
    return [_sortable(each) for each in value] if isinstance(value, (list, tuple)) else value
