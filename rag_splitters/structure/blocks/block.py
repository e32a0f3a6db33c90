"""Block: what a document is made of, by its position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Block", "Kind"]

Kind: TypeAlias = Literal[
    "heading",
    "paragraph",
    "list_item",
    "quote",
    "code",
    "table",
    "formula",
    "image",
    "html",
    "rule",
    "front_matter",
    "dropped",
]
"""What a block is. "html" is a Markdown text's HTML block, "dropped" is script, style, comments."""


@dataclass(frozen=True, slots=True)
class Block:
    """A heading, a paragraph, a list item, a table ... of a text, by its code-point offsets.

    Blocks ascend and do not overlap. Every character that is no white space is in one of them.

    Parameters:
        kind: what it is.
        start: offset of its first code point. Markdown blocks begin at the beginning of a line, but
            for white space; HTML blocks with their opening tags.
        end: offset after its last code point, without the line break and the white space behind.
        level: of a heading 1 to 6; of a list item or a quote how deep it is nested, from 1.
        title: a heading's plain text, a code block's language, an image's alternative text, a
            table's caption.
        group: blocks that belong to one list, quote or figure share a number above 0.
        content_start: offset of the content inside its marks: a code block's first line of code
            behind the fence, a table's header row. Equal to `start` where there are none.
        content_end: offset after the content; equal to `end` where there are no closing marks.

    >>> Block("heading", 0, 7, level=1, title="Title").level
    1
    """

    kind: Kind
    start: int
    end: int
    level: int = 0
    title: str = ""
    group: int = 0
    content_start: int = -1
    content_end: int = -1

    def __post_init__(self) -> None:
        if self.content_start < 0:
            object.__setattr__(self, "content_start", self.start)
        if self.content_end < 0:
            object.__setattr__(self, "content_end", self.end)
