"""KeywordChunker: sections that begin at keywords."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import ClassVar

from rag_splitters.contract.sized import SizedChunker
from rag_splitters.errors import InputError
from rag_splitters.parameters.checks import compile_pattern
from rag_splitters.parameters.fields import Texts
from rag_splitters.span import Span
from rag_splitters.text.boundaries import whole_words
from rag_splitters.text.lines import LINE_BREAK
from rag_splitters.text.packing import pack
from rag_splitters.text.structure import recursive_structure

_LINE = re.compile(r"[^\S\r\n]*([^\s](?:[^\r\n]*[^\s])?)")


class KeywordChunker(SizedChunker):
    """Starts a new chunk at every line that contains a keyword or matches a pattern.

    Use it for texts whose parts begin with certain words, such as "Article", "WARRANTY" or "Q:".
    The text before the first such line is a chunk of its own. A section that is too big is cut as
    in `RecursiveChunker`.

    Metadata: `keyword`, the keyword of the section, or the text that the pattern matched.

    Raises ValueError if there are neither keywords nor patterns, if a keyword is blank, or if a
    pattern is not a valid regular expression.

    >>> chunker = KeywordChunker(keywords=["Article"])
    >>> [chunk.text for chunk in chunker.chunk("Preamble\\nArticle 1\\nText\\nArticle 2")]
    ['Preamble', 'Article 1\\nText', 'Article 2']
    """

    strategy: ClassVar[str] = "keyword"

    keywords: Texts = ()
    """Words or phrases: a chunk begins at each line with one of them, as a whole word."""

    patterns: Texts = ()
    """Regular expressions: a chunk begins at the line of each match."""

    whole_line: bool = False
    """Whether the keyword or the match must fill the whole line."""

    ignore_case: bool = False
    """Whether to ignore the case of letters."""

    def check_parameters(self) -> None:
        super().check_parameters()
        if not self.keywords and not self.patterns:
            raise InputError("KeywordChunker needs keywords or patterns")
        if not all(keyword.strip() for keyword in self.keywords):
            raise InputError(f"keywords must not be blank, got {list(self.keywords)}")
        for pattern in self.patterns:
            compile_pattern(pattern, "pattern")

    def spans(self, text: str) -> list[Span]:
        marks: dict[int, str] = {}
        for start, keyword in self._marks(text):
            marks.setdefault(start, keyword)
        starts = sorted(marks)
        spans = pack(recursive_structure(text, starts), self.sizes)
        for span in spans:
            section = bisect_right(starts, span.end - 1) - 1  # in which the span ends
            if section >= 0:
                span.metadata = {"keyword": marks[starts[section]]}
        return spans

    def _marks(self, text: str) -> Iterator[tuple[int, str]]:
        """Yield the start and the keyword of every line at which a section begins."""
        flags = re.MULTILINE | (re.IGNORECASE if self.ignore_case else 0)
        expressions = [
            (whole_words(re.escape(keyword), keyword), keyword) for keyword in self.keywords
        ]
        expressions += [(pattern, "") for pattern in self.patterns]
        for expression, keyword in expressions:
            pattern = re.compile(expression, flags)
            for start, match in (
                _whole_lines(text, pattern) if self.whole_line else _lines(text, pattern)
            ):
                yield start, keyword or match.group().strip()


def _lines(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield the start of each line with a match, and its first match."""
    position = 0
    while match := pattern.search(text, position):
        start = max(text.rfind(end, position, match.start()) for end in "\r\n") + 1
        yield max(start, position), match
        line_end = LINE_BREAK.search(text, match.end())
        if line_end is None:
            return
        position = line_end.end()


def _whole_lines(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield the start of each line that the pattern fills, and the match."""
    for line in _LINE.finditer(text):
        if match := pattern.fullmatch(text, *line.span(1)):
            yield line.start(), match
