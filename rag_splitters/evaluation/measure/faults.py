"""Faults of chunks that need no questions: cuts that a reader would call wrong.

They are counted on what a reader sees, so that a tag of HTML neither makes nor hides one. They say
nothing about what a search finds, so they are shown, and not summed.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from rag_splitters.evaluation.measure.chunks import LocatedChunk
from rag_splitters.structure.blocks import TextFormat, detect_format
from rag_splitters.structure.html.text import plain_page
from rag_splitters.structure.outline import Outline
from rag_splitters.structure.text_tables import find_tables
from rag_splitters.text.boundaries import skip_space
from rag_splitters.text.excerpt import Excerpt
from rag_splitters.text.sentences import sentence_spans
from rag_splitters.text.structure import Range

FAULTS = {
    "mid_sentence": ("mid-sentence", "chunks that begin inside a sentence"),
    "orphan_headings": (
        "orphan headings",
        "chunks that end with a heading, which belongs to what follows",
    ),
    "tables_without_header": ("no header", "chunks with rows of a table but without its header"),
    "leaked_markup": ("tags, scripts", "chunks of HTML with tags, scripts or styles in their text"),
    "tiny": ("tiny", "chunks smaller than a tenth of the strategy's largest one"),
}
"""The title and the meaning of each fault by its name."""

_MARK = re.compile(r"\s*(?:[-*+•]|\d{1,9}[.)])\s*")
_WORD = re.compile(r"\w")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>|<!--")
_SCRIPT = re.compile(r"<(script|style)\b[^<>]*>(.*?)(?:</\1\b|\Z)", re.IGNORECASE | re.DOTALL)
_CODE = re.compile(r"[(){}\[\];=]")
_GAP = re.compile(r"[\W_]+")


class VisibleText:
    """The text that a reader sees, with the way there from the source, and back.

    For all formats but HTML, that is the source itself.

    Parameters:
        metadata: that of the document, from which its format may be known.

    >>> visible = VisibleText("<p>Tea is <b>hot</b>.</p>")
    >>> low, high = visible.range_of((0, 16))
    >>> visible.text, visible.text[low:high], visible.excerpt.bounds(7, 10)
    ('Tea is hot.', 'Tea is hot', (13, 16))
    """

    def __init__(self, source: str, metadata: Mapping[str, Any] | None = None) -> None:
        self.format: TextFormat = detect_format(source, metadata)
        if self.format == "html":
            self.excerpt = plain_page(source, main_content_only=False).excerpt
        else:
            self.excerpt = Excerpt.of(source, 0, len(source))
        self.text = self.excerpt.text

    def range_of(self, position: Range) -> Range:
        """Return the visible text of a part of the source, trimmed; empty if there is none."""
        low, high = map(self.excerpt.offset, position)
        part = self.text[low:high]
        low += len(part) - len(part.lstrip())
        return low, low + len(part.strip())


class DocumentFaults:
    """Finds the faults of chunks of one document; what belongs to the text is computed once.

    Parameters:
        metadata: that of the document, from which its format and its headings may be known.

    >>> faults = DocumentFaults("# Tea\\n\\nBoil the water. It sings.")
    >>> faults.sentence_cuts([(0, 11), (12, 22), (23, 32)])
    [(False, True), (True, False), (False, False)]
    """

    def __init__(self, text: str, metadata: Mapping[str, Any] | None = None) -> None:
        self._source, self._metadata = text, metadata
        self._visible = VisibleText(text, metadata)

    def flags(self, chunks: Sequence[LocatedChunk]) -> dict[str, list[bool]]:
        """Return, for each fault but `tiny`, whether each of the chunks of this document has it.

        A chunk whose position is unknown has only the faults that its text shows.
        """
        positions = [chunk.position or (0, 0) for chunk in chunks]
        return {
            "mid_sentence": [begins for begins, _ in self.sentence_cuts(positions)],
            "orphan_headings": list(map(self._ends_with_heading, positions)),
            "tables_without_header": [self._lacks_header(each) for each in chunks],
            "leaked_markup": [self._shows_markup(chunk.text) for chunk in chunks],
        }

    def sentence_cuts(self, positions: Sequence[Range]) -> list[tuple[bool, bool]]:
        """Return, for each position, whether it begins and whether it ends inside a sentence."""
        cuts = []
        for low, high in map(self._visible.range_of, positions):
            is_blank = low == high
            cuts.append((not is_blank and self._cuts(low), not is_blank and self._cuts(high)))
        return cuts

    @cached_property
    def _sentences(self) -> list[Range]:
        return list(sentence_spans(self._visible.text))

    def _cuts(self, place: int) -> bool:
        """Whether words of one sentence stand before and after a place of the visible text."""
        index = bisect_left(self._sentences, (place, 0)) - 1
        if index < 0 or self._sentences[index][1] <= place:
            return False
        start, end = self._sentences[index]
        if mark := _MARK.match(self._visible.text, start, end):
            start = mark.end()
        has_words = _WORD.search(self._visible.text, start, place) is not None
        return has_words and _WORD.search(self._visible.text, place, end) is not None

    @cached_property
    def _headings(self) -> list[Range]:
        outline = Outline.of(self._source, self._visible.format, metadata=self._metadata)
        return [self._visible.range_of((each.start, each.end)) for each in outline.headings]

    def _ends_with_heading(self, position: Range) -> bool:
        low, high = self._visible.range_of(position)
        index = bisect_left(self._headings, (high, 0)) - 1
        is_last = skip_space(self._visible.text, high) >= len(self._visible.text)
        is_heading = low < high and index >= 0 and high <= self._headings[index][1]
        return is_heading and not is_last

    @cached_property
    def _tables(self) -> list[tuple[Range, list[str]]]:
        """Where the rows of each table with a header are, and the labels in its header."""
        tables = []
        for table in find_tables(self._source, self._visible.format):
            parts = [part for label in table.labels for part in label.split(" / ")]
            labels = [_words(part) for part in parts if part.strip()]
            if table.rows and labels:
                tables.append(((table.rows[0].start, table.rows[-1].end), labels))
        return tables

    def _lacks_header(self, chunk: LocatedChunk) -> bool:
        if chunk.position is None:
            return False
        start, end = chunk.position
        first = bisect_right(self._tables, start, key=lambda table: table[0][1])
        for (low, high), labels in self._tables[first:]:
            if low >= end:
                break
            rows = self._visible.range_of((max(low, start), min(high, end)))
            words = _words(chunk.text)
            if rows[0] < rows[1] and not all(label in words for label in labels):
                return True
        return False

    @cached_property
    def _visible_tags(self) -> frozenset[str]:
        return frozenset(_TAG.findall(self._visible.text))

    @cached_property
    def _script_words(self) -> frozenset[str]:
        """The words of scripts and styles that look like code and are not visible elsewhere."""
        bodies = (body for _, body in _SCRIPT.findall(self._source))
        words = {word for body in bodies for word in body.split() if _CODE.search(word)}
        return frozenset(words.difference(self._visible.text.split()))

    def _shows_markup(self, text: str) -> bool:
        """Whether the text of a chunk holds markup of HTML that a reader does not see."""
        if self._visible.format != "html":
            return False
        tags = (tag not in self._visible_tags for tag in _TAG.findall(text))
        return any(tags) or not self._script_words.isdisjoint(text.split())


def count_faults(
    documents: Mapping[str, DocumentFaults], chunks: Sequence[LocatedChunk], sizes: Sequence[int]
) -> dict[str, int]:
    """Return how many chunks of a strategy have each fault.

    >>> documents = {"tea": DocumentFaults("# Tea\\n\\nBoil the water. It sings.")}
    >>> chunks = [LocatedChunk("# Tea", "tea", (0, 5)), LocatedChunk("water", "tea", (16, 21))]
    >>> counts = count_faults(documents, chunks, [5, 5])
    >>> {name: count for name, count in counts.items() if count}
    {'mid_sentence': 1, 'orphan_headings': 1}
    """
    groups: dict[str, list[LocatedChunk]] = {}
    for chunk in chunks:
        groups.setdefault(chunk.document, []).append(chunk)
    counts = dict.fromkeys(FAULTS, 0)
    for name, own_chunks in groups.items():
        for fault, flags in documents[name].flags(own_chunks).items():
            counts[fault] += sum(flags)
    largest = max(sizes, default=0)
    return counts | {"tiny": sum(10 * size < largest for size in sizes)}


def _words(text: str) -> str:
    """Return the words of a text, without punctuation and case, each between spaces."""
    return f" {' '.join(_GAP.split(text.casefold())).strip()} "
