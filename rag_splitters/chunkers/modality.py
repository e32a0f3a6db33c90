"""ModalityChunker: text, tables, images, code and formulas, each in its own way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Literal, NamedTuple, TypeAlias

from pydantic import BeforeValidator, PlainSerializer, TypeAdapter

from rag_splitters.chunker import Chunker, Nested
from rag_splitters.chunkers.parts import Part, Parts, plan_parts
from rag_splitters.chunkers.recursive import RecursiveChunker
from rag_splitters.chunkers.table import TableChunker
from rag_splitters.span import Source, Span
from rag_splitters.structure.blocks import Block, Format, TextFormat, detect_format, read_blocks
from rag_splitters.structure.blocks.dropped import Dropped
from rag_splitters.structure.images import Image, definitions, find_images
from rag_splitters.structure.tables import Excerpt, Table, find_tables
from rag_splitters.structure.tables.html_tables import plain_html
from rag_splitters.text.boundaries import boundary_after, boundary_before, skip_space
from rag_splitters.text.excerpt import (
    Replacement,
    data_in,
    without_data,
)

__all__ = ["Handling", "ModalityChunker"]

_NESTED: TypeAdapter[Chunker] = TypeAdapter(Nested)

Handling: TypeAlias = Annotated[
    Chunker | Literal["keep", "drop"],
    BeforeValidator(lambda v: _NESTED.validate_python(v) if isinstance(v, Mapping) else v),
    PlainSerializer(lambda v: v if isinstance(v, str) else _NESTED.dump_python(v)),
]
"""A field that says what becomes of a modality: a chunker, "keep" or "drop"."""

_LEAST_DATA = 32  # characters: what is shorter is left in code
_MODALITIES = ("text", "table", "image", "code", "formula")


class _Region(NamedTuple):
    """A part of a text that is not prose."""

    start: int
    end: int
    modality: str
    block: Block | None = None
    table: Table | None = None


class _Source(NamedTuple):
    """A text, with what is known of all of it."""

    text: str
    known: Mapping[str, tuple[int, int, str, str]]  # its reference definitions
    markdown: bool
    dropped: Dropped

    def images(self, start: int, end: int) -> list[Image]:
        """The images in a part of it."""
        return find_images(self.text, start, end, self.known, self.markdown)


class ModalityChunker(Chunker):
    """Parts text, tables, images, code and formulas, and hands each kind to its own chunker.

    Reads Markdown and HTML. Use it where kinds are embedded or shown in different ways: tables as
    records, images by an image model, code by a code model. Each field takes a chunker, "keep" (a
    chunk of its own, as it is, however large) or "drop" (left out).

    Formulas are those that stand alone (`$$`, `\\[`); `$x$` and short code in a sentence are text.
    An image alone in its paragraph is a chunk that the text around it does not hold. One in the
    middle of a sentence is a chunk too, and its alternative text stays in the sentence in place of
    its markup: the two overlap, and "drop" drops only the former. The content of an image's chunk
    is its alternative text, caption and address. The image itself, where the document holds it
    (data URI), is in the metadata and in no text.

    Rewrites images, sentences with images, and what the chunkers rewrite. Metadata: `modality`
    ("text", "table", "image", "code", "formula"); of images `image_url`, or `image_data` (base64)
    and `image_mimetype`, and `alt` and `caption`; of code `language`.

    Dropped: what "drop" says; an image's markup; the base64 data of data URIs outside of images (in
    code blocks only those of 32 characters or more; data that are percent-encoded, or go on behind
    white space, are left); of HTML the head, and between its blocks scripts, styles, declarations
    and comments.

    Raises: ValueError for an unknown format, or a field that is neither chunker, "keep" nor "drop".

    >>> text = "A cat:\\n\\n![Tom](tom.png)\\n\\n```\\nprint()\\n```\\n"
    >>> [(c.metadata["modality"], c.text) for c in ModalityChunker(code="drop").chunk(text)]
    [('text', 'A cat:'), ('image', 'Tom\\ntom.png')]
    """

    text: Handling = RecursiveChunker()
    """What becomes of prose, with its headings, lists and quotes."""

    table: Handling = TableChunker(text=None)
    """What becomes of tables; a `TableChunker` is handed each one as it was found."""

    image: Handling = "keep"
    """What becomes of images; a chunker is handed the content of each one's chunk."""

    code: Handling = RecursiveChunker(separators=("\n\n", "\n"))
    """What becomes of code blocks, their fences included."""

    formula: Handling = "keep"
    """What becomes of formulas that stand alone."""

    format: Format = "auto"
    """How the text is written: "auto", "markdown", "html" or "text"."""

    def fits(self, content: str) -> bool:
        handlings = [getattr(self, name) for name in _MODALITIES]
        return any(each == "keep" for each in handlings) or any(
            each.fits(content) for each in handlings if isinstance(each, Chunker)
        )

    def narrowed(self, prefix: str) -> ModalityChunker:
        handlings = {name: getattr(self, name) for name in _MODALITIES}
        narrow = {k: v.narrowed(prefix) for k, v in handlings.items() if isinstance(v, Chunker)}
        return self.model_copy(update=narrow)

    async def plan(self, sources: Sequence[Source]) -> list[list[Span]]:
        return await plan_parts(sources, [self._parts(source.text) for source in sources])

    def _parts(self, text: str) -> Parts:
        """The chunks that are finished, and the parts that other chunkers cut."""
        written = detect_format(text) if self.format == "auto" else self.format
        blocks = read_blocks(text, written)
        source = _Source(
            text,
            definitions(text) if written == "markdown" else {},
            written != "html",
            Dropped(text, blocks),
        )
        parts: Parts = []
        position = 0
        regions = _regions(text, written, blocks)
        for region in (*regions, _Region(len(text), len(text), "text")):
            parts += self._prose(source, position, region.start)
            if region.modality == "image" and region.block:
                images = source.images(region.start, region.end)
                parts += self._block_images(source, region, region.block.title, images)
            elif region.table and isinstance(self.table, TableChunker):
                parts += self.table.table_spans(region.table)
            elif region.modality != "text":
                parts += self._region(text, region)
            position = max(position, region.end)
        return parts

    def _region(self, text: str, region: _Region) -> Parts:
        """A table, code or a formula."""
        start, end, block = region.start, region.end, region.block
        language = block.title if block and region.modality == "code" else ""
        metadata = {"language": language} if language else {}
        least = _LEAST_DATA if region.modality == "code" else 1
        excerpt = Excerpt.of(text, start, end, data_in(text, start, end, least))
        return self._handled(text, excerpt, Span(start, end, metadata, modality=region.modality))

    def _block_images(
        self, source: _Source, region: _Region, title: str, images: Sequence[Image]
    ) -> Parts:
        """The images of a block that holds nothing else: each with the markup before it."""
        if not images:
            return self._prose(source, region.start, region.end)
        parts: Parts = []
        start = region.start
        for image in images:
            is_last = image is images[-1]
            end = region.end if is_last else boundary_after(source.text, image.end)
            caption = image.caption or (title if title != image.alt else "")
            parts += self._image(source.text, start, end, image, caption)
            start = skip_space(source.text, end)
        return parts

    def _image(self, text: str, start: int, end: int, image: Image, caption: str) -> Parts:
        named = Image(start, end, 0, 0, image.alt, caption, image.url)
        excerpt = Excerpt.of(text, start, end, [(start, end, without_data(named.content))])
        return self._handled(text, excerpt, Span(start, end, named.metadata, modality="image"))

    def _prose(self, source: _Source, start: int, end: int) -> Parts:
        """Prose, and the images in it."""
        text, dropped = source.text, source.dropped
        begin, stop = dropped.around(start, end)
        if begin >= stop:
            return []
        images = [each for each in source.images(begin, stop) if not dropped.holds(each.start)]
        holes = [hole for image in images for hole in _markup(image)]
        holes += data_in(text, begin, stop) + dropped.within(begin, stop)
        excerpt = Excerpt.of(text, begin, stop, _apart(holes))
        parts = self._handled(text, excerpt, Span(begin, stop, modality="text"))
        for image in images:
            low, high = boundary_before(text, image.start), boundary_after(text, image.end)
            parts += self._image(text, low, high, image, image.caption)
        return parts

    def _handled(self, text: str, excerpt: Excerpt, span: Span) -> Parts:
        """One part of the text, handled as its modality's field says."""
        handling: Chunker | str = getattr(self, str(span.modality))
        if handling == "drop" or not excerpt.text.strip():
            return []
        if isinstance(handling, Chunker):
            return [Part(handling, excerpt, span)]
        content = excerpt.text.strip()
        return [span if content == text[span.start : span.end] else replace(span, content=content)]


def _regions(text: str, written: TextFormat, blocks: Sequence[Block]) -> Iterator[_Region]:
    """The tables, images, code and formulas of a text, in order; none overlap."""
    tables = find_tables(text, written, blocks)
    found = [_Region(table.start, table.end, "table", None, table) for table in tables]
    for block in blocks:
        is_text = written == "text" and block.kind == "paragraph"
        may_be_images = is_text or block.kind == "html"
        only_images = may_be_images and _only_images(text, block, markdown=is_text)
        kind = "image" if only_images else block.kind
        if kind in ("image", "code", "formula"):
            found.append(_Region(block.start, block.end, kind, block))
    position = 0
    for region in sorted(found, key=lambda each: (each.start, each.table is None)):
        if region.start >= position:
            position = boundary_after(text, region.end)
            start = boundary_before(text, region.start)
            yield region._replace(start=start, end=position)


def _only_images(text: str, block: Block, markdown: bool) -> bool:
    """Does this block hold images, their captions, and nothing else?"""
    images = find_images(text, block.start, block.end, {}, markdown)
    edges = [block.start, *(edge for each in images for edge in (each.start, each.end)), block.end]
    between = zip(edges[::2], edges[1::2], strict=True)
    return bool(images) and not any(plain_html(text, *gap).text.strip() for gap in between)


def _markup(image: Image) -> list[Replacement]:
    """An image's markup on either side of its alternative text."""
    if image.alt_start == image.alt_end:
        return [(image.start, image.end, "")]
    return [(image.start, image.alt_start, ""), (image.alt_end, image.end, "")]


def _apart(replacements: Sequence[Replacement]) -> Iterator[Replacement]:
    """The replacements in order, without those inside others."""
    position = 0
    for replacement in sorted(replacements):
        if replacement[0] >= position:
            yield replacement
            position = replacement[1]
