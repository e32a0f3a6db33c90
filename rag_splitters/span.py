"""Source, Span and Chunk: a text to cut, a piece of it by position, and the finished chunk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

from rag_splitters.errors import InputTypeError


@dataclass(slots=True)
class Source:
    """A text to cut, with its metadata and id.

    Parameters:
        text: the text.
        metadata: its metadata, for strategies that read it (a title, a page number, a file name).
        id: its id, if it has one.
        number: its position among the texts of a call, counted from 0, for error messages.
        offset: the offset at which it begins in a larger document, for error messages.
        prefix: text that will be put before each of its chunks, such as a title; chunks are small
            enough that both fit into the maximum size.

    Raises TypeError if the text or the id is not a string, or if the metadata is not a dictionary.
    """

    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None
    number: int = 0
    offset: int = 0
    prefix: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            kind = type(self.text).__name__
            raise InputTypeError(f"the text must be a string, got {kind}: {self.text!r:.40}")
        if self.id is not None and not isinstance(self.id, str):
            raise InputTypeError(f"the id of a text must be a string, got {self.id!r}")
        if not isinstance(self.metadata, Mapping):
            got = f"{self.metadata!r:.40}"
            raise InputTypeError(f"the metadata of a text must be a dictionary, got {got}")

    def part(self, text: str, start: int, metadata: Mapping[str, Any]) -> Source:
        """Return a part of this source, which begins at `start`, as a source of its own."""
        return Source(text, metadata, self.id, self.number, self.offset + start, self.prefix)


@dataclass(slots=True)
class Span:
    """A piece of a text, by its code-point offsets.

    Parameters:
        start: offset of its first code point.
        end: offset after its last code point.
        metadata: what only this strategy says about the piece; its docstring lists the keys.
        content: the chunk's text if the strategy rewrote it; None if it is `text[start:end]`.
        headings: the headings above the piece, the outermost first.
        level: its depth in a tree of chunks, 0 for the whole document.
        parent: the index of its parent's span in the same list.
        pages: the pages on which it begins and ends, counted from 1.
        modality: "text", "table", "image", "code" or "formula".
        context: a sentence by a model, or headings, about the piece; `content` begins with it.
        own_start: offset at which its own text begins, after an overlap; None if it has no overlap.

    >>> span = Span(4, 7)
    >>> span.text_of("one two three")
    'two'
    """

    start: int
    end: int
    metadata: Mapping[str, Any] = field(default_factory=dict)
    content: str | None = None
    _: KW_ONLY
    headings: tuple[str, ...] = ()
    level: int | None = None
    parent: int | None = None
    pages: tuple[int, int] | None = None
    modality: str | None = None
    context: str | None = None
    own_start: int | None = field(default=None, repr=False, compare=False)

    @property
    def own(self) -> int:
        """The offset at which its own text begins, after an overlap."""
        return self.start if self.own_start is None else self.own_start

    @property
    def is_rewritten(self) -> bool:
        """Whether the chunk's text differs from `text[start:end]`."""
        return self.content is not None

    def text_of(self, text: str) -> str:
        """Return the chunk's text: `content` if the strategy rewrote it, else a slice of `text`."""
        return text[self.start : self.end] if self.content is None else self.content

    def to_metadata(self) -> dict[str, Any]:
        """Return what the chunk's metadata says about the piece, without empty values.

        >>> Span(0, 6, {"keyword": ""}, headings=("Tea",), pages=(1, 2)).to_metadata()
        {'headings': ['Tea'], 'page_start': 1, 'page_end': 2}
        """
        metadata: dict[str, Any] = {}
        if self.headings:
            metadata["headings"] = list(self.headings)
        if self.level is not None:
            metadata["level"] = self.level
        if self.pages is not None:
            metadata["page_start"], metadata["page_end"] = self.pages
        if self.modality is not None:
            metadata["modality"] = self.modality
        if self.context is not None:
            metadata["context"] = self.context
        if self.metadata:
            own = self.metadata.items()
            metadata.update((key, value) for key, value in own if not _is_empty(value))
        return metadata

    def moved(self, offset: int) -> Span:
        """Return the span with its positions shifted by `offset` code points."""
        own_start = None if self.own_start is None else self.own_start + offset
        return replace(self, start=self.start + offset, end=self.end + offset, own_start=own_start)

    def within(self, outer: Span, first: int) -> Span:
        """Return the span with the properties of `outer` where it has none of its own.

        Parameters:
            outer: the span of the part that this piece was cut from.
            first: the index in the list of all pieces of the first piece of this part.
        """
        metadata = {**outer.metadata, **self.metadata} if outer.metadata else self.metadata
        return Span(
            self.start,
            self.end,
            metadata,
            self.content,
            headings=self.headings or outer.headings,
            level=outer.level if self.level is None else self.level,
            parent=None if self.parent is None else self.parent + first,
            pages=self.pages or outer.pages,
            modality=self.modality or outer.modality,
            context=self.context or outer.context,
            own_start=self.own_start,
        )


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, (str, list, tuple, dict)) and not value)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk for use without a framework.

    Parameters:
        text: its text.
        start: offset of its first code point in the source.
        end: offset after its last code point in the source.
        metadata: `chunk_index`, and what the strategy says about the chunk.
        id: a UUIDv5, which is the same in every process for the same source, position and text.
    """

    text: str
    start: int
    end: int
    metadata: Mapping[str, Any]
    id: str
