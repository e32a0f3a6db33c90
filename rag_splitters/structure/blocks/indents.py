"""A packer whose chunks keep the indentation of their first line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rag_splitters.text.boundaries import Finder
from rag_splitters.text.overlaps import tail_overlap
from rag_splitters.text.packing import Packer
from rag_splitters.text.sizing import Measure


class IndentPacker(Packer):
    """A packer that includes the indentation of a chunk's first line in the chunk.

    Indentation that would fill more than half of the chunk is left out.

    Parameters: those of `Packer`, and
        repeated: maximum overlap, including indentation, in the units of the measure.
        overlap: defaults to `tail_overlap` of that size.
    """

    def __init__(
        self,
        text: str,
        measure: Measure,
        size: int,
        levels: Sequence[Finder],
        *,
        repeated: int,
        **options: Any,
    ) -> None:
        if repeated:
            options.setdefault("overlap", tail_overlap(text, measure, repeated, size))
        super().__init__(text, measure, size, levels, **options)
        self.repeated = repeated

    def pack(self) -> list[tuple[int, int]]:
        measure, chunks = self.measure, list[tuple[int, int]]()
        for start, end in super().pack():
            line, (first, last) = self.indented(start), chunks[-1] if chunks else (0, 0)
            again = measure.length(line, last) if line < last else 0
            keeps = line >= first and again <= self.repeated
            keeps = keeps and measure.length(line, end) <= self.size
            chunks.append((line if keeps else start, end))
        return chunks

    def indented(self, start: int) -> int:
        """Return the start of the chunk at `start` with its indentation."""
        line = line_start(self.text, start)
        return line if self.measure.length(line, start) * 2 <= self.size else start

    def find_cut(self, start: int, begin: int, text_end: int) -> int:
        if start == begin and (line := self.indented(begin)) < begin:
            cut = super().find_cut(line, begin, text_end)
            if cut > begin:
                return cut
        return super().find_cut(start, begin, text_end)


def line_start(text: str, position: int) -> int:
    """Return the start of the indentation before `position`, or `position` after other text.

    >>> line_start("a\\n  b", 4), line_start("a b", 2)
    (2, 2)
    """
    start = position
    while start and text[start - 1].isspace() and text[start - 1] not in "\r\n":
        start -= 1
    return start if not start or text[start - 1] in "\r\n" else position
