"""Ids (UUID version 5) that are the same in any process, on any machine and in both frameworks."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from hashlib import sha1
from typing import Any

_NAMESPACE = uuid.UUID("6f1c1e0a-50f5-5c5e-9a0b-7d3f7f9f2d11").bytes
_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


def stable_uuid(*parts: str) -> str:
    """Return the UUIDv5 of some strings, which may contain lone surrogates.

    The length of each part counts, so that ("ab", "c") and ("a", "bc") differ.

    >>> stable_uuid("a", "b") == stable_uuid("a", "b") != stable_uuid("ab")
    True
    """
    return _as_uuid(_hash(*parts).hexdigest())


class ChunkIds:
    """Makes the ids of the chunks of one document, which are all different.

    A strategy that rewrites text may give several chunks the same place and the same text. They are
    numbered, in their order; the first has the id that it would have alone.

    Parameters:
        text: the document's text.
        metadata: its metadata.
        document_id: the user's id; without one, text and metadata identify the document.

    >>> ids = ChunkIds("some text", {}, "report.pdf")
    >>> ids.of(0, 4) == chunk_id("report.pdf", 0, 4, "some")
    True
    >>> ids.of(0, 4) == chunk_id("report.pdf", 0, 4, "some")
    False
    """

    def __init__(
        self, text: str, metadata: Mapping[str, Any], document_id: str | None = None
    ) -> None:
        if document_id is None:
            self._hash, self._text = _hash(_describe(metadata), text), None
        else:  # the user's id does not identify the text, so the ids include the text of the chunks
            self._hash, self._text = _hash(document_id), text
        self._counts: dict[str, int] = {}

    def source(self) -> bytes:
        """Return a hash that identifies the document."""
        digest: bytes = self._hash.digest()
        return digest

    def repeat(self, number: int) -> None:
        """Make other ids, for the occurrence of the document with this number in a list."""
        self._hash.update(b"%d;" % number)

    def of(self, start: int, end: int, content: str | None = None) -> str:
        """Return the id of the next chunk.

        Parameters:
            start: its offset in the document, in code points.
            end: the offset after its end.
            content: its text, if it differs from the document's slice.
        """
        if content is None and self._text is not None:
            content = self._text[start:end]
        name = f"{start}:{end}" if content is None else f"{start}:{end}:{content}"
        new_id = self._id_of(name)
        count = self._counts[new_id] = self._counts.get(new_id, 0) + 1
        return new_id if count == 1 else self._id_of(f"{count}#{name}")

    def _id_of(self, name: str) -> str:
        digest = self._hash.copy()
        digest.update(name.encode("utf-8", "surrogatepass"))
        return _as_uuid(digest.hexdigest())


def _hash(*parts: str) -> Any:
    name = "".join([f"{len(part)}:{part}" for part in parts])
    return sha1(_NAMESPACE + name.encode("utf-8", "surrogatepass"), usedforsecurity=False)


def _as_uuid(digest: str) -> str:
    """Format a SHA-1 digest as a UUID of version 5 (RFC 9562)."""
    fourth = f"{_VARIANT[digest[16]]}{digest[17:20]}"
    return f"{digest[:8]}-{digest[8:12]}-5{digest[13:16]}-{fourth}-{digest[20:32]}"


def source_identity(text: str, metadata: Mapping[str, Any], document_id: str | None = None) -> str:
    """Return the identity of a document: the user's id, or a UUID of its text and metadata.

    So two documents that begin alike do not share chunk ids.

    >>> source_identity("text", {"page": 1}, "report.pdf")
    'report.pdf'
    """
    return stable_uuid(_describe(metadata), text) if document_id is None else document_id


def chunk_id(identity: str, start: int, end: int, content: str) -> str:
    """Return the id of a chunk of a document, by its position (code points) and text."""
    return ChunkIds("", {}, identity).of(start, end, content)


def _plain(value: object) -> Any:
    """Convert a metadata value that JSON lacks to a form that is the same in every process."""
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    representation = str(value)
    has_address = " at 0x" in representation
    return type(value).__qualname__ if has_address else representation


_encode = json.JSONEncoder(sort_keys=True, default=_plain).encode


def _describe(metadata: Mapping[str, Any]) -> str:
    if not metadata:
        return ""
    try:
        return _encode(metadata)
    except TypeError:  # keys that JSON lacks or that cannot be sorted
        return _encode(_sortable(metadata))
    except ValueError:  # a value that contains itself
        return _encode(_plain(metadata))


def _sortable(value: Any) -> Any:
    """Replace each dictionary in a value by a list of pairs, sorted by their JSON."""
    if isinstance(value, Mapping):
        pairs = [[_plain(key), _sortable(each)] for key, each in value.items()]
        return sorted(pairs, key=_encode)
    return [_sortable(each) for each in value] if isinstance(value, (list, tuple)) else value
