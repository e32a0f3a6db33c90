"""Citations: labels for what a retriever returned, and where an answer's quotations come from.

No model is asked. The results of both frameworks are accepted, and chunks of ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_splitters.errors import InputTypeError
from rag_splitters.parameters.checks import check_has, check_list
from rag_splitters.parameters.messages import describe_value
from rag_splitters.text.quotations import Occurrence, QuotableText, word_differences
from rag_splitters.text.results import read_result

__all__ = ["Citation", "Quotation", "cite", "quoted"]

_QUOTATION = re.compile(
    r"“(?P<a>[^“”]+)”|„(?P<b>[^„“”]+)[“”]|«(?P<c>[^«»]+)»|「(?P<d>[^「」]+)」|『(?P<e>[^『』]+)』"
    r"|(?<!\w)\"(?P<f>[^\"\n]+)\"(?!\w)|(?P<g>(?:^[ \t]*>[^\n]*(?:\n|\Z))+)",
    re.MULTILINE,
)
_BLOCK_MARK = re.compile(r"^[ \t]*>[ \t]?", re.MULTILINE)
_FEWEST_LETTERS = 12  # a shorter quotation is a name or a word in quotation marks
_NOWHERE = Occurrence(0, 0, 0.0)
_LEAST_LIKENESS = 0.6  # below it, a passage only shares some words with a quotation


@dataclass(frozen=True, slots=True)
class Citation:
    """A result, with what a prompt and a reader need to refer to it.

    Parameters:
        number: its number, counted from 1.
        label: where it stands: title or file, headings, and pages or lines.
        text: its text.
    """

    number: int
    label: str
    text: str

    @property
    def marker(self) -> str:
        """The mark that an answer cites it by, such as "[1]"."""
        return f"[{self.number}]"

    def __str__(self) -> str:
        """The text as a prompt shows it, after its marker and label."""
        return f"{f'{self.marker} {self.label}'.rstrip()}\n{self.text}"


@dataclass(frozen=True, slots=True)
class Quotation:
    """A quotation in an answer, and the passage that it comes from.

    Parameters:
        text: the quotation, without its quotation marks.
        start: where it begins in the answer, in code points, with its quotation mark.
        end: where it ends.
        citation: the passage that has it; None if no passage has it, or anything like it.
        place: start and end of the same words in the passage's text.
        differences: how it differs from the passage, as `[-only quoted-]` and `{+only there+}`;
            "" if it has the same words.
    """

    text: str
    start: int
    end: int
    citation: Citation | None = None
    place: tuple[int, int] | None = None
    differences: str = ""

    @property
    def is_exact(self) -> bool:
        """Whether the passage has the same words in the same order."""
        return self.citation is not None and not self.differences


def cite(results: Iterable[Any]) -> list[Citation]:
    """Return a citation for each result: a marker for the prompt and a short label for the reader.

    Parameters:
        results: what a retriever returned (LangChain documents or LlamaIndex nodes), or chunks.

    >>> from rag_splitters import ContentAwareChunker
    >>> chunks = ContentAwareChunker().chunk("# Tea\\n\\nCool the water.")
    >>> print(cite(chunks)[0])
    [1] Tea
    # Tea
    <BLANKLINE>
    Cool the water.
    """
    check_list(results, "results")
    listed = list(results)
    for each in listed:
        check_has(each, "metadata", "a LangChain Document, a LlamaIndex node or a chunk")
    return [
        Citation(number, _label(each.metadata), each.text)
        for number, each in enumerate(map(read_result, listed), 1)
    ]


def quoted(answer: str, results: Iterable[Any]) -> list[Quotation]:
    """Find the passage that each quotation in an answer comes from.

    Quotations are in quotation marks, or in lines that begin with ">". They may differ from
    the passage in white space, markup and capitals; what else differs is shown.

    Parameters:
        answer: what a model, or a person, wrote.
        results: what it was written from; see `cite`. Citations are accepted, too.

    >>> from rag_splitters import SentenceChunker
    >>> chunks = SentenceChunker().chunk("The lamp was lit at four.")
    >>> for each in quoted('It says "the lamp was lit at five" and "the moon was green".', chunks):
    ...     print(each.citation and each.citation.marker, each.differences or each.text)
    [1] The lamp was lit at [-five-] {+four+}
    None the moon was green
    """
    if not isinstance(answer, str):
        raise InputTypeError(f"the answer must be a string, got {describe_value(answer)}")
    check_list(results, "results")
    listed = list(results)
    citations = listed if all(isinstance(each, Citation) for each in listed) else cite(listed)
    passages = [QuotableText(citation.text) for citation in citations]
    return [
        _find_passage(text, start, end, citations, passages)
        for text, start, end in _quotations_in(answer)
    ]


def _quotations_in(answer: str) -> Iterable[tuple[str, int, int]]:
    """Yield the quotations in an answer that are more than a name, with their positions."""
    for match in _QUOTATION.finditer(answer):
        text = match[str(match.lastgroup)]
        text = _BLOCK_MARK.sub("", text) if match.lastgroup == "g" else text
        if sum(map(str.isalnum, text)) >= _FEWEST_LETTERS or match.lastgroup in ("d", "e"):
            yield text.strip(), *match.span()


def _find_passage(
    text: str, start: int, end: int, citations: Sequence[Citation], passages: Sequence[QuotableText]
) -> Quotation:
    for citation, passage in zip(citations, passages, strict=True):
        if occurrences := passage.find(text):
            place = occurrences[0].start, occurrences[0].end
            return Quotation(text, start, end, citation, place)
    nearest = [
        (passage.nearest(text) or _NOWHERE, citation, passage)
        for citation, passage in zip(citations, passages, strict=True)
    ]
    if not nearest:
        return Quotation(text, start, end)
    occurrence, citation, passage = max(nearest, key=lambda each: each[0].likeness)
    if occurrence.likeness < _LEAST_LIKENESS:
        return Quotation(text, start, end)
    place = occurrence.start, occurrence.end
    differences = word_differences(text, passage.text[slice(*place)])
    return Quotation(text, start, end, citation, place, differences)


def _label(metadata: Mapping[str, Any]) -> str:
    """Return title or file, headings, and pages or lines, as far as they are known."""
    names = map(metadata.get, ("title", "source", "file_name", "file_path"))
    title = next((str(name) for name in names if name), "")
    headings = metadata.get("headings", ())
    if isinstance(headings, str):  # as LlamaIndex's nodes have them
        headings = headings.split(" > ")
    path = " > ".join(dict.fromkeys(map(str, filter(None, [title, *headings]))))
    parts = [path, _range("p.", "pp.", metadata.get("page_start"), metadata.get("page_end"))]
    parts.append(_range("line", "lines", metadata.get("line_start"), metadata.get("line_end")))
    return ", ".join(filter(None, parts))


def _range(one: str, many: str, first: Any, last: Any) -> str:
    if first is None:
        return ""
    return f"{one} {first}" if last in (None, first) else f"{many} {first}–{last}"
