"""The blocks of a text: headings, paragraphs, lists, tables and code, with exact positions.

This folder has the readers of Markdown and plain text, and code that works on blocks: packing them
into chunks, and the tree of sections.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rag_splitters.structure.block import Block, Kind, TextFormat, outermost
from rag_splitters.structure.blocks.markdown import markdown_blocks
from rag_splitters.structure.blocks.plain import plain_headings, with_anchors, with_paragraphs
from rag_splitters.structure.contents import find_contents
from rag_splitters.structure.html.blocks import html_blocks
from rag_splitters.structure.html.content import read_page
from rag_splitters.structure.kinds import Format, detect_format
from rag_splitters.structure.markup import BREAKS, MARKUP, marked_parts
from rag_splitters.structure.stored_outline import stored_headings
from rag_splitters.structure.xml import parse_xml

__all__ = [
    "Block",
    "Format",
    "Kind",
    "TextFormat",
    "detect_format",
    "read_blocks",
    "read_headings",
]

# Without any of these, a Markdown text has no headings, however it is parsed: most prose.
_MAY_BE_HEADING = re.compile(r"[#<=]|(?:\A|[\r\n])[ \t]*-")


def read_blocks(
    text: str,
    format: Format = "auto",
    *,
    keywords: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
    drop_contents: bool = False,
) -> list[Block]:
    """Find the blocks of a text. Source code is a single block.

    The blocks do not overlap, and there is only white space between them. Broken markup never
    raises, and the time is linear in the length of the text.

    Parameters:
        text: any text.
        format: the format of the text; "auto" detects it.
        keywords: words that begin a heading in plain text, in addition to "Chapter", "Section" and
            so on.
        metadata: the metadata of the document, which may list the headings of plain text.
        drop_contents: whether the tables of contents and indexes of a plain text are "dropped",
            unless there is nothing else; see `find_contents`.

    Returns: the blocks in order; none for blank text.

    Raises ValueError if the format is unknown.

    >>> text = "# Tea\\n\\nBoil water.\\n\\n- green\\n"
    >>> [(block.kind, text[block.start : block.end]) for block in read_blocks(text)]
    [('heading', '# Tea'), ('paragraph', 'Boil water.'), ('list_item', '- green')]
    """
    text_format = detect_format(text, metadata, format)
    if text_format == "markdown":
        return markdown_blocks(text)
    if text_format == "html":
        return html_blocks(read_page(text, main_content_only=False))
    if text_format == "xml":
        return html_blocks(parse_xml(text))
    if text_format in MARKUP:
        parts = with_anchors(text, marked_parts(text, text_format))
        return with_paragraphs(text, parts, BREAKS.get(text_format))
    headings = read_headings(text, "text", keywords=keywords, metadata=metadata)
    contents = find_contents(text) if drop_contents else []
    dropped = [Block("dropped", *part) for part in contents]
    blocks = with_paragraphs(text, list(outermost([*headings, *dropped])))
    return blocks if len(blocks) > len(dropped) else with_paragraphs(text, headings)


def read_headings(
    text: str,
    format: TextFormat,
    *,
    keywords: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
) -> list[Block]:
    """Return the headings among the blocks of a text and, for Markdown, its HTML blocks.

    In HTML, only the main content is read.

    Parameters: those of `read_blocks`; `format` is not "auto".
    """
    if format == "text":
        return stored_headings(text, metadata) or plain_headings(text, keywords)
    if format in MARKUP:
        parts = with_anchors(text, marked_parts(text, format))
        return [block for block in parts if block.kind == "heading"]
    if format == "markdown" and not _MAY_BE_HEADING.search(text):
        return []
    blocks = html_blocks(read_page(text)) if format == "html" else read_blocks(text, format)
    return [block for block in blocks if block.kind in ("heading", "html")]
