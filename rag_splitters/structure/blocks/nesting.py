"""What an HTML tag stands in, in constant time for each tag."""

from __future__ import annotations

from collections.abc import Sequence

from rag_splitters.structure.blocks.block import Kind
from rag_splitters.structure.blocks.tags import Tag

__all__ = ["Nesting", "closed_elements"]

_LISTS = frozenset(("ul", "ol", "dl", "menu", "dir"))
_ITEMS = frozenset(("li", "dt", "dd"))
_WHOLE = frozenset(("head", "table", "pre", "figure"))


class Nesting:
    """The open lists, items and quotes; an item that is never closed ends with its list."""

    def __init__(self) -> None:
        self._lists = 0
        self._items: list[tuple[int, int]] = []  # (number, how many lists are around it)
        self._quotes: list[int] = []
        self._count = 0
        self._groups = 0

    @property
    def group(self) -> int:
        """The number of the outermost list or quote, or 0 outside."""
        return self._groups if self._lists or self._quotes or self._items else 0

    def innermost(self) -> Kind | None:
        """Is what comes next in an item, in a quote, or in neither?"""
        item = self._items[-1][0] if self._items else -1
        quote = self._quotes[-1] if self._quotes else -1
        if item == quote:
            return None
        return "list_item" if item > quote else "quote"

    def depth(self, kind: Kind) -> int:
        """How many of this kind are open."""
        return max(self._lists, 1) if kind == "list_item" else len(self._quotes)

    def open(self, name: str) -> None:
        """Take an opening tag."""
        self._count += 1
        if not self.group and name in _LISTS | _ITEMS | {"blockquote"}:
            self._groups += 1
        if name in _LISTS:
            self._lists += 1
        elif name in _ITEMS:
            self._leave_items(self._lists)
            self._items.append((self._count, self._lists))
        elif name == "blockquote":
            self._quotes.append(self._count)

    def close(self, name: str) -> None:
        """Take a closing tag; one that closes nothing changes nothing."""
        if name in _LISTS and self._lists:
            self._leave_items(self._lists)
            self._lists -= 1
        elif name in _ITEMS and self._items:
            self._leave_items(self._lists)
        elif name == "blockquote" and self._quotes:
            self._quotes.pop()

    def _leave_items(self, lists: int) -> None:
        while self._items and self._items[-1][1] >= lists:
            self._items.pop()


def closed_elements(tags: Sequence[Tag]) -> dict[int, int]:
    """The outermost elements that are one block, by the indices of their opening and closing tags.

    Only those that are closed. A figure is one only if it holds an image, a table or code.
    """
    pairs: dict[int, int] = {}
    opened: dict[str, list[int]] = {name: [] for name in _WHOLE}
    special: list[int] = []  # indices of the tags that make a figure one block
    for index, (kind, _, _, name) in enumerate(tags):
        if name in ("img", "table", "pre"):
            special.append(index)
        if name not in _WHOLE or kind == "dropped":
            continue
        if kind == "open":
            opened[name].append(index)
        elif opened[name]:
            start = opened[name].pop()
            if name != "figure" or (special and special[-1] > start):
                pairs[start] = index
    outermost: dict[int, int] = {}
    last = -1
    for start in sorted(pairs):
        if start > last:
            last = pairs[start]
            outermost[start] = last
    return outermost
