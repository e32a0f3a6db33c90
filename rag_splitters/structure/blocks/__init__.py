"""What is a text made of? Headings, paragraphs, lists, tables, code ... with exact positions.

from rag_splitters.structure.blocks import read_blocks

for block in read_blocks(text):
    print(block.kind, text[block.start : block.end])
"""

from __future__ import annotations

from collections.abc import Sequence

from rag_splitters.structure.blocks.block import Block, Kind
from rag_splitters.structure.blocks.formats import Format, TextFormat, detect_format
from rag_splitters.structure.blocks.html import html_blocks
from rag_splitters.structure.blocks.markdown import markdown_blocks
from rag_splitters.structure.blocks.plain import plain_blocks
from rag_splitters.text.boundaries import skip_space, trim_space

__all__ = ["Block", "Format", "Kind", "TextFormat", "detect_format", "read_blocks"]


def read_blocks(
    text: str, format: TextFormat = "auto", *, keywords: Sequence[str] = ()
) -> list[Block]:
    """Finds the blocks of a text: Markdown, HTML, plain text, or source code as one block.

    Blocks ascend, do not overlap, and hold every character that is no white space; what stands
    between two of them is white space. Broken markup never raises, and time is linear.

    Parameters:
        text: any text.
        format: how it is written; "auto" asks `detect_format`.
        keywords: words that open a heading in plain text, besides Chapter, Section and the like.

    Returns: the blocks, in order; blank text gives none.

    Raises: ValueError for an unknown format.

    >>> text = "# Tea\\n\\nBoil water.\\n\\n- green\\n"
    >>> [(block.kind, text[block.start : block.end]) for block in read_blocks(text)]
    [('heading', '# Tea'), ('paragraph', 'Boil water.'), ('list_item', '- green')]
    """
    if format not in ("auto", "markdown", "html", "text", "code"):
        raise ValueError(f'format must be "auto", "markdown", "html" or "text", got {format!r}')
    known = detect_format(text) if format == "auto" else format
    if known == "markdown":
        return markdown_blocks(text)
    if known == "html":
        return html_blocks(text)
    if known == "code":
        start = skip_space(text, 0)
        end = trim_space(text, start, len(text))
        return [Block("code", start, end)] if end > start else []
    return plain_blocks(text, keywords)
