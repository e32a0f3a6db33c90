"""The texts that the page can show: those of the start, and the last ones that users sent."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rag_splitters.errors import InputError
from rag_splitters.playground.recent import Recent
from rag_splitters.reading.files import join_sources, read_bytes
from rag_splitters.reading.samples import sample_texts

OWN_TEXTS = 8
"""How many texts of users are kept in memory."""

_OWN = "own-"


@dataclass(frozen=True, eq=False)
class Text:
    """A text; `key` identifies it in the page's URL, and `pdf` is the PDF that it was read from.

    The metadata of a file has what its reader found, such as the headings of a PDF.
    """

    key: str
    name: str
    text: str
    pdf: bytes = b""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, content: str | bytes) -> Text:
        """Return a text, or the text of a file from its bytes."""
        if isinstance(content, str):
            return cls(name, name, content, metadata={"source": name} if name else {})
        text, metadata = join_sources(read_bytes(content, name), name)
        return cls(name, name, text, content if content.startswith(b"%PDF-") else b"", metadata)


class Texts:
    """Texts by their keys. The key of a user's text is a hash, which nobody can guess."""

    def __init__(self, texts: Mapping[str, str | bytes]) -> None:
        samples = {name: text for name, text in sample_texts().items() if name not in texts}
        self._texts = {name: Text.of(name, each) for name, each in {**texts, **samples}.items()}
        self._own: Recent[str, Text] = Recent(OWN_TEXTS)

    @property
    def first(self) -> Text:
        """The text that the page shows first."""
        return next(iter(self._texts.values()))

    def add(self, name: str, content: str | bytes) -> Text:
        """Keep a user's text in memory."""
        text = Text.of(name, content)
        identity = f"{name}\0{text.text}".encode("utf-8", "surrogatepass")
        added = replace(text, key=f"{_OWN}{hashlib.sha256(identity).hexdigest()[:20]}")
        self._own.put(added.key, added)
        return added

    def get(self, key: str) -> Text:
        """Return a text. Raises RagSplittersError if there is none with this key."""
        if text := self._texts.get(key) or self._own.get(key):
            return text
        if key.startswith(_OWN):
            raise InputError("your text is no longer in the playground's memory: paste it again")
        raise InputError(f"there is no text {key!r}: choose one of {', '.join(self._texts)}")

    def options(self, chosen: Text) -> Sequence[tuple[str, str]]:
        """Return the keys of the texts to choose from, each with a short name."""
        names = list(self._texts)
        own = [] if chosen.key in self._texts else [(chosen.key, chosen.name)]
        return own + [(name, short_name(name, names)) for name in names]


def short_name(name: str, names: Sequence[str]) -> str:
    """Return a path without the folders that do not tell it from the others.

    >>> short_name("a/b/c.md", ["a/b/c.md", "a/d/c.md", "e.md"])
    'b/c.md'
    """
    parts = name.split("/")
    for count in range(1, len(parts)):
        short = "/".join(parts[-count:])
        if not any(f"/{each}".endswith(f"/{short}") for each in names if each != name):
            return short
    return name
