"""A DoclingDocument as Markdown, with the positions of its items, headings and pages."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from docling_core.transforms.serializer.base import SerializationResult
from docling_core.transforms.serializer.markdown import MarkdownDocSerializer, MarkdownParams
from docling_core.types.doc.document import (
    CodeItem,
    DocItem,
    DoclingDocument,
    GroupItem,
    InlineGroup,
    ListGroup,
    NodeItem,
    SectionHeaderItem,
    TitleItem,
)

from rag_splitters.parameters.checks import check_kind
from rag_splitters.span import Source
from rag_splitters.structure.block import Block

_PAGE_BREAK = "\f"
_LIKE_HEADING = re.compile(r"^(?=#{1,6}[ \t])", re.MULTILINE)
_REACH = 1000  # characters within which the text of an item is searched for in its list


@dataclass(frozen=True, slots=True)
class ItemRange:
    """An item of a document, by its code-point offsets in the document's Markdown."""

    start: int
    end: int
    item: DocItem


@dataclass
class DoclingText:
    """A document as Markdown, in reading order, without page headers and footers.

    Tables are pipe tables, and a form feed marks the end of a page. If an item's page is before
    that of an earlier item, as that of a footnote may be, it counts as the later page. A line that
    only looks like a heading gets a backslash.

    Parameters:
        text: the Markdown.
        items: the positions of the items, in order; a caption and its table have separate ranges.
        headings: the titles and section headers.
        pages: the first and the last page, counted from 1; None if the document has no pages.

    >>> from docling_core.types.doc.document import DocItemLabel, DoclingDocument
    >>> document = DoclingDocument(name="note")
    >>> _ = document.add_heading("Tea", level=1)
    >>> _ = document.add_text(DocItemLabel.TEXT, "Boil water.")
    >>> DoclingText.of(document).text
    '## Tea\\n\\nBoil water.'
    """

    text: str = ""
    items: list[ItemRange] = field(default_factory=list)
    headings: list[Block] = field(default_factory=list)
    pages: tuple[int, int] | None = None

    @classmethod
    def of(cls, document: DoclingDocument) -> DoclingText:
        """Write a document as Markdown, in linear time.

        Raises TypeError if `document` is not a DoclingDocument.
        """
        check_kind(document, DoclingDocument, "document")
        whole = cls()
        parts: list[str] = []
        length = 0
        for node, result in _serialize(document):
            text = _clean(result.text, node)
            items = [span.item for span in result.spans]
            starts = _starts_of(text, items)
            text, starts = whole._with_breaks(text, starts, items)
            lead = starts[0] if starts else 0
            begin = length + (2 if parts and not lead else 0)
            parts.append(text if lead or not parts else f"\n\n{text}")
            for start, end, item in zip(starts, [*starts[1:], len(text)], items, strict=True):
                whole.items.append(ItemRange(begin + start, begin + end, item))
            if isinstance(node, DocItem) and all(item is not node for item in items):
                # a picture, of which Markdown holds only the caption
                whole.items.append(ItemRange(begin + lead, begin + len(text), node))
            if isinstance(node, (TitleItem, SectionHeaderItem)):
                whole._add_heading(node, begin + lead, begin + len(text))
            length += len(parts[-1])
        whole.text = "".join(parts)
        return whole

    def items_between(self, start: int, end: int) -> list[DocItem]:
        """Return the items that overlap a part of the text, else the one before it."""
        first = bisect_right(self.items, start, key=lambda each: each.end)
        items: list[DocItem] = []
        for each in self.items[first:]:
            if each.start >= end:
                break
            items.append(each.item)
        return items or [each.item for each in self.items[max(first - 1, 0) :][:1]]

    def _add_heading(self, node: TitleItem | SectionHeaderItem, start: int, end: int) -> None:
        level = 1 if isinstance(node, TitleItem) else node.level + 1
        self.headings.append(Block("heading", start, end, level, " ".join(node.text.split())))

    def _with_breaks(
        self, text: str, starts: list[int], items: Sequence[DocItem]
    ) -> tuple[str, list[int]]:
        """Add a form feed before each item that begins a page to the text of a part.

        Breaks before the part are on lines of their own. Those inside a list are at the end of a
        line, where they do not change the meaning of the Markdown.
        """
        pieces: list[str] = []
        new_starts: list[int] = []
        last = added = 0
        for number, (start, item) in enumerate(zip(starts, items, strict=True)):
            breaks = _PAGE_BREAK * self._breaks_before(item)
            if breaks and number == 0:
                breaks = f"\n\n{breaks}\n\n"
                pieces.append(breaks)
            elif breaks:
                line_end = text.rfind("\n", last, start)
                cut = line_end if line_end >= 0 else start
                pieces += [text[last:cut], breaks]
                last = cut
            added += len(breaks)
            new_starts.append(start + added)
        return "".join([*pieces, text[last:]]), new_starts

    def _breaks_before(self, item: DocItem) -> int:
        """Return the number of pages that end before an item."""
        page = item.prov[0].page_no if item.prov else None
        if page is None:
            return 0
        if self.pages is None:
            self.pages = (page, page)
        first, last = self.pages
        self.pages = (first, max(page, last))
        return self.pages[1] - last


def read_docling(document: DoclingDocument, metadata: Mapping[str, Any] | None = None) -> Source:
    """Convert a `DoclingDocument` to a source for any strategy.

    The text is the Markdown of `DoclingText`, in which strategies find headings, lists, tables and
    code. The metadata is `source` (the name of the file), `mimetype` (that of Markdown), `title`,
    and `page_start` and `page_end`, from which chunks get their pages.

    Parameters:
        document: what Docling's `DocumentConverter` returns in `.document`.
        metadata: more metadata to add; it wins over what Docling says.

    Raises TypeError if `document` is not a DoclingDocument.

    >>> document = DoclingDocument(name="note")
    >>> _ = document.add_title("Tea")
    >>> read_docling(document).metadata
    {'source': 'note', 'mimetype': 'text/markdown', 'title': 'Tea'}
    """
    return source_of(DoclingText.of(document), document, metadata)


def source_of(
    whole: DoclingText, document: DoclingDocument, metadata: Mapping[str, Any] | None = None
) -> Source:
    """Return what `read_docling` does of a document that was written as Markdown already."""
    name = document.origin.filename if document.origin else document.name
    title = next((each.title for each in whole.headings if each.level == 1), None)
    details: dict[str, Any] = {"source": name, "mimetype": "text/markdown"}
    if title:
        details["title"] = title
    if whole.pages:
        details["page_start"], details["page_end"] = whole.pages
    return Source(whole.text, {**details, **(metadata or {})}, name)


def _serialize(document: DoclingDocument) -> Iterator[tuple[NodeItem, SerializationResult]]:
    """Yield each item of a document with its Markdown; lists and runs of text as a whole."""
    params = MarkdownParams(
        image_placeholder="", escape_underscores=False, escape_html=False, compact_tables=True
    )
    serializer = MarkdownDocSerializer(doc=document, params=params)
    visited: set[str] = set()
    for node, _ in document.iterate_items(with_groups=True):
        is_whole = isinstance(node, (ListGroup, InlineGroup)) or not isinstance(node, GroupItem)
        if is_whole and node.self_ref not in visited:
            result = serializer.serialize(item=node, visited=visited)
            if result.text.strip():
                yield node, result


def _clean(text: str, node: NodeItem) -> str:
    """Remove form feeds from the Markdown of an item, and escape false headings."""
    text = text.replace(_PAGE_BREAK, " ").strip("\n")
    if isinstance(node, (TitleItem, SectionHeaderItem)):
        return " ".join(text.split())
    return text if isinstance(node, CodeItem) else _LIKE_HEADING.sub(r"\\", text)


def _starts_of(text: str, items: Sequence[DocItem]) -> list[int]:
    """Return the starts of items in the Markdown of a list, a run of text or a captioned table.

    Items are in order, and each is searched for only near the end of the one before it.
    """
    starts: list[int] = []
    after = 0
    for item in items:
        own = str(getattr(item, "text", "")).strip()
        reach = after + len(own) + _REACH
        place = text.find(own, after, reach)
        line = text.rfind("\n", after, place) + 1 if place > 0 else 0
        starts.append(max(line, after) if place >= 0 else after)
        after = place + len(own) if place >= 0 else after
    return [0, *starts[1:]]
