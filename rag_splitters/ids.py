"""Ids that are the same in any process, on any machine and in both frameworks: UUID version 5."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping
from typing import Any

__all__ = ["chunk_id", "source_identity", "stable_uuid"]

NAMESPACE = uuid.UUID("6f1c1e0a-50f5-5c5e-9a0b-7d3f7f9f2d11")


def stable_uuid(*parts: str) -> str:
    """UUIDv5 of some strings, as text; lone surrogates are allowed.

    The parts are joined by their lengths, so that ("ab", "c") and ("a", "bc") differ.

    >>> stable_uuid("a", "b") == stable_uuid("a", "b") != stable_uuid("ab")
    True
    """
    name = "".join([f"{len(part)}:{part}" for part in parts]).encode("utf-8", "surrogatepass")
    digest = bytearray(hashlib.sha1(NAMESPACE.bytes + name, usedforsecurity=False).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def source_identity(text: str, metadata: Mapping[str, Any], given: str | None = None) -> str:
    """What tells one document from another.

    The id that the user gave it; else a UUID of its text and metadata, so that two documents that
    begin alike do not share chunk ids.

    >>> source_identity("text", {"page": 1}, given="report.pdf")
    'report.pdf'
    """
    if given is not None:
        return given
    described = json.dumps(metadata, sort_keys=True, default=_type_name) if metadata else ""
    return stable_uuid(described, text)


def chunk_id(identity: str, start: int, end: int, content: str) -> str:
    """The id of a chunk: of its document's identity, its position in it (code points), its text."""
    return stable_uuid(identity, f"{start}:{end}", content)


def _type_name(value: object) -> str:
    """Stand-in for a metadata value that JSON lacks: its text if that is stable, else its type."""
    shown = str(value)
    return type(value).__qualname__ if " at 0x" in shown else shown
