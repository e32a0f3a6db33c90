"""Source, Span and Chunk: a text to cut, a piece of it by position, and the piece as delivered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, TypedDict


class Details(TypedDict, total=False):
    """What single strategies say about a chunk, in `Span.metadata`, by key.

    A strategy of your own may add keys. What other parts of the package read has a field of its
    own in `Span` instead.
    """

    alt: str
    """The alternative text of an image."""
    caption: str
    """The caption of an image or a table."""
    cell_end: int
    """The last cell of a notebook that a chunk stands in, counted from 1."""
    cell_start: int
    """The first cell of a notebook that a chunk stands in, counted from 1."""
    columns: list[str]
    """The labels of a table's columns."""
    definitions: list[str]
    """The classes and functions that a piece of code stands in, the outermost first."""
    end_time: float
    """When the last words of subtitles end, in seconds."""
    entities: list[dict[str, Any]]
    """The entities that a chunk mentions: text, label, start and end of each."""
    fallback: str
    """What was done instead, or why, where a strategy could not do its usual work."""
    file_end: int
    """Where a chunk's evidence ends in the file that its text was read from."""
    file_start: int
    """Where a chunk's evidence begins in the file that its text was read from."""
    image_data: str
    """An image itself, in base64."""
    image_mimetype: str
    """The type of `image_data`."""
    image_url: str
    """The address of an image."""
    json_path: str
    """The path of the JSON that a chunk is."""
    keyword: str
    """The keyword that a section begins with."""
    language: str
    """The programming language of code."""
    proposition: bool
    """Whether a chunk is a proposition or a sentence that no proposition was made from."""
    row_end: int
    """The last row of a table's chunk, counted from 1."""
    row_start: int
    """The first row of a table's chunk, counted from 1."""
    start_time: float
    """When the first words of subtitles begin, in seconds."""
    strategy: str
    """The strategy that `AutoChunker` took."""
    topic: int
    """The number of a chunk's topic."""
    topic_terms: list[str]
    """The strongest terms of a chunk's topic."""
    window: str
    """The text around a sentence, with the sentence itself."""


@dataclass(frozen=True, slots=True)
class Source:
    """A text to cut, with what is known about it.

    Parameters:
        text: the text.
        metadata: its metadata, for strategies that read them (a title, a page number, a file name).
        id: its id, if it has one.
        number: its number among the texts of a call, for error messages.
        offset: where it begins in the document that it is a part of, for error messages.
    """

    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None
    number: int = 0
    offset: int = 0

    def part(self, text: str, start: int, metadata: Mapping[str, Any]) -> Source:
        """A part of this source that begins at `start`, as a source for another chunker."""
        return Source(text, metadata, self.id, self.number, self.offset + start)


@dataclass(slots=True)
class Span:
    """A piece of a text, by its code-point offsets.

    Parameters:
        start: offset of its first code point.
        end: offset after its last code point.
        metadata: what only this strategy says about the piece; see `Details`.
        content: the text to deliver if it differs from `text[start:end]`; None if it does not.
        headings: the headings that the piece stands under, the outermost first.
        level: its depth in a tree of chunks, 0 for the whole document.
        parent: the index of its parent's span in the same list.
        pages: the pages that it begins and ends on, counted from 1.
        modality: "text", "table", "image", "code" or "formula".
        context: what a model or the headings say about it; `content` begins with it.

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

    @property
    def is_rewritten(self) -> bool:
        """Whether the piece is delivered with another text than `text[start:end]`."""
        return self.content is not None

    def text_of(self, text: str) -> str:
        """The text to deliver: `content` if the strategy rewrote it, else the slice of `text`."""
        return text[self.start : self.end] if self.content is None else self.content

    def to_metadata(self) -> dict[str, Any]:
        """What a chunk's metadata says about the piece; empty values are left out.

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
        """The same piece in a text in which it stands `offset` code points further on."""
        return replace(self, start=self.start + offset, end=self.end + offset)

    def within(self, outer: Span, first: int) -> Span:
        """The same piece with what `outer` says added, where it says nothing itself.

        Parameters:
            outer: the span of the part that this piece was cut from.
            first: the index that the first piece of this part has in the list of all pieces.
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
        )


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, (str, list, tuple, dict)) and not value)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk for use without a framework: its text, where it stands, and what is known about it.

    Parameters:
        text: the text as delivered.
        start: code-point offset of its beginning in the source.
        end: code-point offset after its end in the source.
        metadata: `chunk_index` and what the strategy says about it.
        id: UUIDv5, the same for the same source and position in any process.
    """

    text: str
    start: int
    end: int
    metadata: Mapping[str, Any]
    id: str
