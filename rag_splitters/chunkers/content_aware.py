"""ContentAwareChunker: keeps the blocks of a text whole, in any format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from rag_splitters.contract.sized import MergingChunker
from rag_splitters.parameters.fields import Least
from rag_splitters.span import Source, Span
from rag_splitters.structure.document import read_document
from rag_splitters.structure.html.text import Links
from rag_splitters.structure.kinds import Format
from rag_splitters.structure.text_tables import pack_with_headers


class ContentAwareChunker(MergingChunker):
    """Packs the blocks of a text, and keeps each block whole if it fits.

    Use it for documentation, web pages and notes: Markdown, HTML, XML, RST, AsciiDoc, Org, LaTeX,
    man pages, mail and plain text. A section that fits is one chunk, with its subsections. If it
    does not fit, each subsection is cut on its own, so a chunk never continues past a heading at or
    above its level, except one that would be smaller than `min_chunk_size`. A heading stays with
    the text under it, a lead-in such as "You need:" with what follows it, and a few words before a
    first subsection with that. Code, tables, list items and quotes that fit are never cut, and no
    overlap begins inside code, a row, an item or a quote that fits. A block that is too big is cut
    at blank lines and lines (code), rows and cells (tables), items (lists) or sentences (prose). A
    chunk that begins inside a list or code keeps the indentation of its first line, unless that
    fills half of the chunk. A chunk that begins inside a Markdown or HTML table repeats the header
    of the table.

    Metadata: `headings`, the headings over the chunk's own text, the outermost first. Overlap does
    not count as its own text. A chunk that begins with a heading and holds several sections has
    the headings that are over all of them.

    Rewrites: a repeated header has no position. HTML becomes plain text. Entities are decoded,
    white space outside `pre` is collapsed, the items of lists begin with "- " or their number,
    tables are written in Markdown, and images are replaced by their alternative text. `start` and
    `end` bound the HTML that a chunk was made from. XML becomes plain text, too: an element with a
    title is a section, and values beside each other become lines such as "price: 4"; if nothing has
    a title, elements that contain records are sections under their names.

    Dropped from the rows under a repeated header: the base64 data of data URIs.

    Dropped from HTML: the tags; the head, scripts, styles, templates, drawings (`svg`), the source
    of MathML, the hidden facts of a financial report (XBRL), declarations and comments; and, unless
    `main_content_only=False`, whatever surrounds the main content. If the page has a `main`
    element, that is everything outside of it, except an `h1` before it if it has none inside.
    Otherwise it is every `header` (but not one with the page's only `h1`), `footer`, `aside` and
    element of a class such as "footer" or "sphinxsidebar" that is not inside `article`, `section`
    or `blockquote`; and if there is no `article`, lists of links before the first and after the
    last text of some length. In both cases it is also all `nav` and `search` elements, menus of
    wikis, cookie banners, buttons (but not one with the whole text of a heading), links that are
    only a mark (the pilcrow after a heading, "[edit]"), line numbers beside code, and formulas
    beside the same formula. `role="navigation"` and the like count as these elements. If this would
    drop the whole text, the surroundings are kept.

    Dropped from plain text, unless `drop_contents=False`: tables of contents and indexes, which are
    three or more lines with dot leaders and page numbers that go up, and their title. They are kept
    if there is nothing else. No chunk continues past them, so each is a part of the text.

    Dropped from XML: the tags, with their attributes unless the element is a record or a value;
    comments, processing instructions and the document type. Nothing that it refers to is opened.

    Raises ValueError if `min_chunk_size` is above `chunk_size`, or if the sizes are inconsistent.

    >>> text = "# Tea\\n\\nBoil water. Wait.\\n\\n## Green\\n\\nCool it down."
    >>> [(c.text, c.metadata["headings"]) for c in ContentAwareChunker(chunk_size=30).chunk(text)]
    [('# Tea\\n\\nBoil water. Wait.', ['Tea']), ('## Green\\n\\nCool it down.', ['Tea', 'Green'])]
    """

    strategy: ClassVar[str] = "content_aware"

    format: Format = "auto"
    """Format of the text, such as "markdown", "html", "rst" or "text"; "auto" detects it from the
    metadata and the text."""

    min_chunk_size: Least = 0.1
    """Chunks smaller than this are merged with a neighbour, even across headings, if the result
    fits: a number of units (an int), or a share of `chunk_size` (a float)."""

    main_content_only: bool = True
    """Whether to drop the menus, sidebars, banners and footers of an HTML page."""

    links: Links = "text"
    """What becomes of a link in HTML: its "text", or "markdown", which keeps its address in
    parentheses; links inside the page are always text."""

    drop_contents: bool = True
    """Whether to drop tables of contents and indexes in plain text, such as that of a PDF: lines
    with dot leaders and page numbers."""

    async def plan(self, sources: Sequence[Source]) -> list[list[Span]]:
        return [self._spans(source.text, source.metadata) for source in sources]

    def _spans(self, text: str, metadata: Mapping[str, Any]) -> list[Span]:
        document = read_document(
            text,
            self.format,
            metadata,
            main_content_only=self.main_content_only,
            links=self.links,
            drop_contents=self.drop_contents,
        )
        packed = pack_with_headers(document.text, document.blocks, self.sizes)
        spans = [span for span in packed if document.holds_text(span)]
        for span in spans:
            span.headings = document.outline.above(span.own, span.end)
        return document.in_source(spans)
