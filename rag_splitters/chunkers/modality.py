"""ModalityChunker: a separate chunker each for text, tables, images, code and formulas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from rag_splitters.chunkers.parts import Part, Parts, plan_parts
from rag_splitters.chunkers.recursive import RecursiveChunker
from rag_splitters.chunkers.table import TableChunker
from rag_splitters.contract.chunker import Chunker
from rag_splitters.contract.registry import Nested
from rag_splitters.contract.sized import CompositeChunker
from rag_splitters.span import Source, Span
from rag_splitters.structure.block import clipped, outermost, without_dropped
from rag_splitters.structure.blocks import Block, Format, TextFormat, detect_format, read_blocks
from rag_splitters.structure.html.blocks import html_blocks
from rag_splitters.structure.html.content import read_page
from rag_splitters.structure.html.tags import plain_html
from rag_splitters.structure.html.text import strip_tags
from rag_splitters.structure.html.tree import Tag, Tree
from rag_splitters.structure.images import Image, definitions, find_images
from rag_splitters.structure.tables.model import Table
from rag_splitters.structure.text_tables import find_tables
from rag_splitters.text.boundaries import boundary_after, boundary_before, skip_space
from rag_splitters.text.excerpt import Excerpt, Replacement, data_in, without_data

Handling: TypeAlias = Nested | Literal["keep", "drop"]
"""A field that says how to handle a modality: a chunker, "keep" or "drop"."""

_MIN_DATA = 32  # characters; shorter data is kept in code
_MODALITIES = ("text", "table", "image", "code", "formula")


class _Region(NamedTuple):
    """A part of a text that is not prose."""

    start: int
    end: int
    modality: str
    block: Block | None = None
    table: Table | None = None


class _Source:
    """A text, with the information that all of its parts need."""

    def __init__(
        self, text: str, text_format: TextFormat, blocks: Sequence[Block], page: Tree | None
    ) -> None:
        self.text = text
        self.is_html = page is not None
        self.blocks = blocks
        self._references = definitions(text) if text_format == "markdown" else {}
        self._page = page
        visible = [(block.start, block.end) for block in blocks if block.kind != "dropped"]
        tags = (tag for part in visible if page for tag in page.tags_between(*part))
        self._tags = {tag.start for tag in tags}

    def images(self, start: int, end: int) -> list[Image]:
        """Return the images in a part of the text."""
        images = find_images(self.text, start, end, self._references, not self.is_html)
        return [each for each in images if not self.is_html or each.start in self._tags]

    def excerpt(
        self, start: int, end: int, replacements: Sequence[Replacement], least: int = 1
    ) -> Excerpt:
        """Return a part of the text, without the data of data URIs from `least` characters on.

        HTML becomes plain text; in any other text, these replacements are made.
        """
        data = data_in(self.text, start, end, least)
        if self._page is None:
            return Excerpt.of(self.text, start, end, [*replacements, *data])
        page = _without_data(self._page, start, end, data) if data else self._page
        return strip_tags(page, clipped(self.text, self.blocks, start, end)).excerpt


def _table_chunker(chunker: TableChunker, source: _Source) -> TableChunker:
    """Return the chunker for tables; it writes HTML tables in Markdown."""
    if source.is_html and chunker.render == "source":
        return chunker.model_copy(update={"render": "markdown"})
    return chunker


def _without_data(page: Tree, start: int, end: int, data: Sequence[Replacement]) -> Tree:
    """Return a part of a page in which the data outside of tags are dropped."""
    parts = [Tag("dropped", low, high, "data", page.element_at(low)) for low, high, _ in data]
    tags = [*page.tags_between(start, end), *parts]
    return replace(page, tags=list(outermost(tags)))


class ModalityChunker(CompositeChunker):
    """Separates text, tables, images, code and formulas, and cuts each kind with its own chunker.

    Use it if the kinds are embedded or shown in different ways, such as tables as records, images
    by an image model and code by a code model. It reads Markdown and HTML. Each field takes a
    chunker, "keep" (one unchanged chunk, however large) or "drop" (no chunk).

    Only display formulas (`$$`, `\\[`) count as formulas; `$x$` and short code in a sentence are
    text. An image alone in its paragraph becomes a chunk and leaves the text around it. An image in
    a sentence becomes a chunk too, and its alternative text replaces its markup in the sentence;
    "drop" drops only the chunk. The text of an image's chunk is its alternative text, its caption
    and its address. The data of an image that is embedded as a data URI is only in the metadata.

    Rewrites: images, sentences with images, and whatever the chunkers rewrite. HTML becomes plain
    text, as in `ContentAwareChunker`, and its tables become Markdown unless the chunker for tables
    renders them in another way.

    Metadata: `modality` ("text", "table", "image", "code", "formula"); for images `image_url`, or
    `image_data` (base64) and `image_mimetype`, and `alt` and `caption`; for code `language`.

    Dropped: the modalities with "drop"; the markup of images; the base64 data of data URIs outside
    of images (in code only if it has at least 32 characters, and never if it is percent-encoded or
    continues after white space); and, in HTML, whatever `ContentAwareChunker` drops.

    Raises ValueError if the format is unknown, or if a field is not a chunker, "keep" or "drop".

    >>> text = "A cat:\\n\\n![Tom](tom.png)\\n\\n```\\nprint()\\n```\\n"
    >>> [(c.metadata["modality"], c.text) for c in ModalityChunker(code="drop").chunk(text)]
    [('text', 'A cat:'), ('image', 'Tom\\ntom.png')]
    """

    strategy: ClassVar[str] = "modality"

    text: Handling = RecursiveChunker()
    """Chunker for prose, with its headings, lists and quotes; or "keep" or "drop"."""

    table: Handling = TableChunker(text=None)
    """Chunker for tables; or "keep" or "drop"."""

    image: Handling = "keep"
    """Chunker for the texts and addresses of images; or "keep" or "drop"."""

    code: Handling = RecursiveChunker(separators=("\n\n", "\n"))
    """Chunker for code blocks, including their fences; or "keep" or "drop"."""

    formula: Handling = "keep"
    """Chunker for display formulas; or "keep" or "drop"."""

    format: Format = "auto"
    """Format of the text, such as "markdown", "html", "rst" or "text"; "auto" detects it from the
    metadata and the text."""

    main_content_only: bool = True
    """Whether to drop the menus, sidebars, banners and footers of an HTML page."""

    def fits(self, content: str) -> bool:
        return any(getattr(self, name) == "keep" for name in _MODALITIES) or super().fits(content)

    async def plan(self, sources: Sequence[Source]) -> list[list[Span]]:
        resized = self.resized()
        return await plan_parts(sources, [resized._parts(source) for source in sources])

    def _parts(self, source: Source) -> Parts:
        """Return the finished chunks, and the parts for other chunkers, in order."""
        text = source.text
        text_format = detect_format(text, source.metadata, self.format)
        page = read_page(text, self.main_content_only) if text_format == "html" else None
        if page:
            blocks = html_blocks(page)
        else:
            blocks = read_blocks(text, text_format, metadata=source.metadata)
        parsed = _Source(text, text_format, blocks, page)
        parts: Parts = []
        position = 0
        regions = _regions(text, text_format, blocks)
        for region in (*regions, _Region(len(text), len(text), "text")):
            parts += self._prose(parsed, position, region.start)
            if region.modality == "image" and region.block:
                images = parsed.images(region.start, region.end)
                parts += self._block_images(parsed, region, region.block.title, images)
            elif region.table and isinstance(self.table, TableChunker):
                parts += _table_chunker(self.table, parsed).table_spans(region.table, source.prefix)
            elif region.modality != "text":
                parts += self._region(parsed, region)
            position = max(position, region.end)
        return parts

    def _region(self, source: _Source, region: _Region) -> Parts:
        """Handle a table, code or a formula."""
        start, end, block = region.start, region.end, region.block
        language = block.title if block and region.modality == "code" else ""
        metadata = {"language": language} if language else {}
        least = _MIN_DATA if region.modality == "code" else 1
        excerpt = source.excerpt(start, end, (), least)
        span = Span(start, end, metadata, modality=region.modality)
        return self._handle(source.text, excerpt, span)

    def _block_images(
        self, source: _Source, region: _Region, title: str, images: Sequence[Image]
    ) -> Parts:
        """Handle the images of a block without text, each with the markup around it."""
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
        captioned = Image(start, end, 0, 0, image.alt, caption, image.url)
        excerpt = Excerpt.of(text, start, end, [(start, end, without_data(captioned.content))])
        return self._handle(text, excerpt, Span(start, end, captioned.metadata, modality="image"))

    def _prose(self, source: _Source, start: int, end: int) -> Parts:
        """Handle prose and the images in it."""
        text = source.text
        blocks = clipped(text, source.blocks, start, end)
        if not blocks:
            return []
        begin, stop = blocks[0].start, blocks[-1].end
        images = source.images(begin, stop)
        holes = [hole for image in images for hole in _markup(image)]
        excerpt = source.excerpt(begin, stop, [*holes, *without_dropped(text, blocks)])
        parts = self._handle(text, excerpt, Span(begin, stop, modality="text"))
        for image in images:
            low, high = boundary_before(text, image.start), boundary_after(text, image.end)
            parts += self._image(text, low, high, image, image.caption)
        return parts

    def _handle(self, text: str, excerpt: Excerpt, span: Span) -> Parts:
        """Handle a part of the text as the field of its modality says."""
        handling: Chunker | str = getattr(self, str(span.modality))
        if handling == "drop" or not excerpt.text.strip():
            return []
        if isinstance(handling, Chunker):
            return [Part(handling, excerpt, span)]
        content = excerpt.text.strip()
        return [span if content == text[span.start : span.end] else replace(span, content=content)]


def _regions(text: str, text_format: TextFormat, blocks: Sequence[Block]) -> Iterator[_Region]:
    """Yield the tables, images, code and formulas of a text, in order and without overlap."""
    tables = find_tables(text, text_format, blocks)
    regions = [_Region(table.start, table.end, "table", None, table) for table in tables]
    for block in blocks:
        is_text = text_format == "text" and block.kind == "paragraph"
        may_be_images = is_text or block.kind == "html"
        only_images = may_be_images and _only_images(text, block, markdown=is_text)
        kind = "image" if only_images else block.kind
        if kind in ("image", "code", "formula"):
            regions.append(_Region(block.start, block.end, kind, block))
    position = 0
    for region in sorted(regions, key=lambda each: (each.start, each.table is None)):
        if region.start >= position:
            position = boundary_after(text, region.end)
            start = boundary_before(text, region.start)
            yield region._replace(start=start, end=position)


def _only_images(text: str, block: Block, markdown: bool) -> bool:
    """Whether this block contains images, their captions, and nothing else."""
    images = find_images(text, block.start, block.end, {}, markdown)
    edges = [block.start, *(edge for each in images for edge in (each.start, each.end)), block.end]
    between = zip(edges[::2], edges[1::2], strict=True)
    return bool(images) and not any(plain_html(text, *gap).text.strip() for gap in between)


def _markup(image: Image) -> list[Replacement]:
    """Return the markup of an image before and after its alternative text."""
    if image.alt_start == image.alt_end:
        return [(image.start, image.end, "")]
    return [(image.start, image.alt_start, ""), (image.alt_end, image.end, "")]
