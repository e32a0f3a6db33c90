"""No text between the blocks is lost, and captions go with what they name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from rag_splitters.structure.blocks.block import Block
from rag_splitters.text.boundaries import skip_space, trim_space

__all__ = ["fill_gaps", "pair_captions"]

_CAPTION = re.compile(
    r"[\s*_:>-]{0,6}(?:(?P<image>fig(?:ure)?|image|photo|abb(?:ildung)?)|"
    r"(?P<table>tab(?:le|elle)?))\b\.?\s?(?:[A-Z]?\d|[IVX]{1,5}\b|:)",
    re.IGNORECASE,
)
_LONGEST_CAPTION = 500  # characters


def fill_gaps(text: str, blocks: Sequence[Block]) -> list[Block]:
    """The blocks, with the text between them as paragraphs, or as part of a quote."""
    filled: list[Block] = []
    position = 0
    for block in [*blocks, Block("paragraph", len(text), len(text))]:
        start = skip_space(text, position)
        if start < block.start:
            end = trim_space(text, start, block.start)
            _fill(text, filled, start, end, block)
        if block.end > block.start:
            filled.append(block)
            position = block.end
    return filled


def _fill(text: str, filled: list[Block], start: int, end: int, following: Block) -> None:
    last = filled[-1] if filled else None
    if last and last.kind in ("quote", "list_item") and not text[start:end].strip("> \t\r\n"):
        filled[-1] = replace(last, end=end, content_end=end)
        return
    group = last.group if last and last.group == following.group else 0
    filled.append(Block("paragraph", start, end, group=group))


def pair_captions(text: str, blocks: Sequence[Block]) -> list[Block]:
    """The blocks, with a group for each image or table and the paragraph that names it.

    Such a paragraph is short, stands right before or behind, and begins like "Figure 3" or
    "Table 2:". It becomes the table's title.
    """
    paired = list(blocks)
    group = max((block.group for block in blocks), default=0)
    for index, block in enumerate(paired):
        if block.kind not in ("image", "table") or block.group:
            continue
        for other in (index + 1, index - 1):
            if 0 <= other < len(paired) and _names(text, paired[other], block.kind):
                group += 1
                caption = " ".join(text[paired[other].start : paired[other].end].split())
                title = block.title or caption.strip("*_: ")
                paired[index] = replace(block, group=group, title=title)
                paired[other] = replace(paired[other], group=group)
                break
    return paired


def _names(text: str, block: Block, kind: str) -> bool:
    """Is this paragraph the caption of an image, or of a table?"""
    if block.kind != "paragraph" or block.group or block.end - block.start > _LONGEST_CAPTION:
        return False
    match = _CAPTION.match(text, block.start, block.end)
    return match is not None and match.group(kind) is not None
