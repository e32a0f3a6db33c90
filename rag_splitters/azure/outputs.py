"""The outputs of a record: those of the Text Split skill, headings, pages and tables."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rag_splitters.span import Span
from rag_splitters.structure.blocks import read_blocks
from rag_splitters.structure.kinds import detect_format
from rag_splitters.structure.outline import Outline
from rag_splitters.structure.tables.model import Table
from rag_splitters.structure.text_tables import find_tables
from rag_splitters.text.pages import first_page, known_page, page_breaks, with_pages

_OWN_OUTPUTS = ("headings", "page_start", "page_end")


def outputs(text: str, metadata: Mapping[str, Any], spans: Sequence[Span]) -> dict[str, Any]:
    """Return the outputs of a record; each list except `tables` has one member for each span.

    `textItems`, `offsets`, `lengths` and `ordinalPositions` are those of the Text Split skill. If a
    strategy rewrote a text item, offset and length are those of the part of the text that it comes
    from. `headings` holds the headings above each item, `pages` the numbers of its pages (empty if
    unknown), `tables` the tables of the document with the ordinal positions of the items that hold
    them, and `chunks` all of this as one object for each item.

    >>> record = outputs("Tea ☕ is hot.", {}, [Span(0, 5), Span(6, 13)])
    >>> record["textItems"], record["offsets"][1]
    (['Tea ☕', 'is hot.'], {'utf8': 8, 'utf16': 6, 'codePoint': 6})
    """
    text_format = detect_format(text, metadata)
    blocks = read_blocks(text, text_format, metadata=metadata)
    outline = Outline.of(text, text_format, metadata=metadata, blocks=blocks)
    tables = find_tables(text, text_format, blocks)
    parts: list[Span | Table] = [*spans, *tables]
    edges = {edge for part in parts for edge in (part.start, part.end)}
    offsets = encoded_offsets(text, edges)
    tables_of = _tables_of(spans, tables)
    chunks: list[dict[str, Any]] = [
        {
            "text": span.text_of(text),
            "ordinalPosition": ordinal,
            "offset": offsets[span.start],
            "length": _difference(offsets[span.start], offsets[span.end]),
            "headings": list(span.headings or outline.above(span.start, span.end)),
            "pages": list(range(span.pages[0], span.pages[1] + 1)) if span.pages else [],
            "tables": tables_of[ordinal - 1],
            "metadata": _details(span),
        }
        for ordinal, span in enumerate(_with_pages_if_known(spans, text, metadata), 1)
    ]
    items_of: dict[int, list[int]] = {ordinal: [] for ordinal in range(1, len(tables) + 1)}
    for chunk in chunks:
        for ordinal in chunk["tables"]:
            items_of[ordinal].append(chunk["ordinalPosition"])
    return {
        "textItems": [chunk["text"] for chunk in chunks],
        "offsets": [chunk["offset"] for chunk in chunks],
        "lengths": [chunk["length"] for chunk in chunks],
        "ordinalPositions": [chunk["ordinalPosition"] for chunk in chunks],
        "headings": [chunk["headings"] for chunk in chunks],
        "pages": [chunk["pages"] for chunk in chunks],
        "tables": [
            {
                "ordinalPosition": ordinal,
                "caption": table.caption,
                "columns": table.labels,
                "rows": len(table.rows),
                "offset": offsets[table.start],
                "length": _difference(offsets[table.start], offsets[table.end]),
                "textItems": items_of[ordinal],
            }
            for ordinal, table in enumerate(tables, 1)
        ],
        "chunks": chunks,
    }


def encoded_offsets(text: str, positions: Iterable[int]) -> dict[int, dict[str, int]]:
    """Convert positions in code points to offsets in UTF-8 bytes, UTF-16 units and code points.

    A lone surrogate counts as three bytes in UTF-8, as the character does that .NET writes for it.

    >>> encoded_offsets("a😀b", [2])
    {2: {'utf8': 5, 'utf16': 3, 'codePoint': 2}}
    """
    offsets: dict[int, dict[str, int]] = {}
    last = utf8 = utf16 = 0
    for position in sorted(positions):
        part = text[last:position]
        utf8 += len(part) if part.isascii() else len(part.encode("utf-8", "surrogatepass"))
        utf16 += utf16_length(part)
        offsets[position] = {"utf8": utf8, "utf16": utf16, "codePoint": position}
        last = position
    return offsets


def utf16_length(text: str) -> int:
    """Return the length of a text in UTF-16 code units, as .NET's `String.Length`.

    >>> utf16_length("a😀")
    3
    """
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _difference(start: Mapping[str, int], end: Mapping[str, int]) -> dict[str, int]:
    return {encoding: end[encoding] - start[encoding] for encoding in start}


def _tables_of(spans: Sequence[Span], tables: Sequence[Table]) -> list[list[int]]:
    """Return the ordinal positions of the tables that each span overlaps."""
    starts, ends = [table.start for table in tables], [table.end for table in tables]
    return [
        list(range(bisect_right(ends, span.start) + 1, bisect_left(starts, span.end) + 1))
        for span in spans
    ]


def _details(span: Span) -> dict[str, Any]:
    """Return the other metadata of a span."""
    details = span.to_metadata()
    return {key: value for key, value in details.items() if key not in _OWN_OUTPUTS}


def _with_pages_if_known(
    spans: Sequence[Span], text: str, metadata: Mapping[str, Any]
) -> Sequence[Span]:
    """Add pages to the spans, if strategy, form feeds or the record's inputs define them."""
    breaks = page_breaks(text, "\f")
    if not breaks and known_page(metadata) is None:
        return spans
    paged = with_pages(spans, breaks, first_page(metadata))
    return [own if own.pages else each for own, each in zip(spans, paged, strict=True)]
