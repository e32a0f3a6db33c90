"""Chunks from a `split_text` that a user's subclass overrides, with the positions that are certain.

Both frameworks let a subclass override `split_text`, which returns strings. A string's position is
certain if it is the text of one of our own chunks, which the subclass got from
`super().split_text`, or if it occurs only once in the text. Any other is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any

from rag_splitters.calls import call, with_value
from rag_splitters.errors import InputTypeError
from rag_splitters.parameters.checks import check_list
from rag_splitters.parameters.messages import describe_value
from rag_splitters.span import Source, Span


@dataclass(slots=True)
class LooseSpan(Span):
    """A chunk whose position is unknown: start and end are those of the whole text."""


def chunk_key(span: Span, index: int) -> tuple[int, int, str | None]:
    """Return what the id of a chunk is made from; loose chunks differ by their number."""
    return (index if isinstance(span, LooseSpan) else span.start), span.end, span.content


@dataclass(slots=True)
class _Cutting:
    """A source that a front end cuts by its `split_text`, and our own chunks of it."""

    kind: type[Any]
    source: Source
    spans: list[Span] = field(default_factory=list)


_cutting: ContextVar[_Cutting | None] = ContextVar("_cutting", default=None)


def _current(front_end: Any) -> _Cutting | None:
    """Return what this front end, or the one that it is a copy of, is cutting."""
    cutting = _cutting.get()
    return cutting if cutting is not None and cutting.kind is type(front_end) else None


def own_spans(
    front_end: Any, source: Source, split_text: Callable[[str], Sequence[str]]
) -> list[Span]:
    """Cut a source with a subclass's `split_text`."""
    cutting = _Cutting(type(front_end), source)
    with with_value(_cutting, cutting):
        result = split_text(source.text)
        expected = f"texts from {type(front_end).__name__}"
        check_list(result, expected)
        texts = list(result)
    if not all(isinstance(each, str) for each in texts):
        raise InputTypeError(f"expected a list of {expected}, got {describe_value(texts)}")
    if texts == [span.text_of(source.text) for span in cutting.spans]:
        return cutting.spans
    return list(_locate(texts, source.text, cutting.spans))


def base_texts(front_end: Any, text: str, cut: Callable[[Source], list[Span]]) -> list[str]:
    """Return the texts of our own chunks of a text, and remember them for `own_spans`."""
    cutting = _current(front_end)
    if cutting is None or cutting.source.text != text:
        cutting = _Cutting(type(front_end), Source(text))
    with with_value(_cutting, cutting):
        cutting.spans = cut(cutting.source)
    return [span.text_of(text) for span in cutting.spans]


def plan_by_split_text(plan: Any) -> Any:
    """Return the `plan` of a class that overrides `split_text`, for strategies around it.

    Parameters:
        plan: the strategy's own, which `super().split_text` uses.
    """

    @wraps(plan)
    async def plan_sources(self: Any, sources: Sequence[Source]) -> list[list[Span]]:
        if _current(self) is not None:
            return await plan(self, sources)  # type: ignore[no-any-return]
        return await call(lambda: [own_spans(self, each, self.split_text) for each in sources])

    plan_sources.by_split_text = True  # type: ignore[attr-defined]
    return plan_sources


def _locate(texts: Sequence[str], text: str, spans: Sequence[Span]) -> Iterator[Span]:
    """Yield the span of each text; equal ones are ambiguous unless all of our chunks are there."""
    counts = Counter(texts)
    by_text: dict[str, list[Span]] = {}
    for span in reversed(spans):
        by_text.setdefault(span.text_of(text), []).append(replace(span, parent=None))
    certain = {each for each, own in by_text.items() if len(own) == counts[each]}
    for each in texts:
        start = text.find(each)
        if each in certain:
            yield by_text[each].pop()
        elif 0 <= start == text.rfind(each):
            yield Span(start, start + len(each))
        else:
            yield LooseSpan(0, len(text), content=each)
