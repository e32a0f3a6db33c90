"""One view of line breaks: our strategies read a carriage return alone as a line feed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import wraps
from typing import Any

from rag_splitters.span import Source, Span
from rag_splitters.text.lines import with_line_feeds


def plan_with_line_feeds(plan: Any) -> Any:
    """Return a `plan` that sees line feeds where its sources have carriage returns alone.

    So a text has the same chunks with either. A source is cut as it is if a parameter of the
    strategy, such as a separator, names the carriage return, or if a chunk or an overlap would be
    too big in its own form: a tokenizer may need more tokens for carriage returns.
    """

    @wraps(plan)
    async def plan_views(self: Any, sources: Sequence[Source]) -> list[list[Span]]:
        results: list[list[Span]]
        if not any("\r" in source.text for source in sources):
            results = await plan(self, sources)
            return results
        views = [view_with_line_feeds(self, source) for source in sources]
        results = await plan(self, views)
        too_big = []
        for number, (source, view) in enumerate(zip(sources, views, strict=True)):
            if view is not source:
                results[number] = [in_source(span, view, source) for span in results[number]]
                if not _fit(self, results[number], source):
                    too_big.append(number)
        if too_big:
            originals = await plan(self, [sources[number] for number in too_big])
            for number, spans in zip(too_big, originals, strict=True):
                results[number] = spans
        return results

    return plan_views


def _fit(chunker: Any, spans: Sequence[Span], source: Source) -> bool:
    """Whether all of these spans of a source are within their maximum size, after its prefix."""
    prefix, text = source.prefix, source.text
    if prefix and not all(chunker.fits(prefix + span.text_of(text)) for span in spans):
        return False
    fit: bool = chunker.spans_fit(spans, text)
    return fit


def in_source(span: Span, view: Source, source: Source) -> Span:
    """Return a rewritten span whose text, after its prefix, has the source's own line breaks."""
    own = view.text[span.start : span.end]
    if not own or span.content is None or not span.content.endswith(own):
        return span
    return replace(span, content=span.content[: -len(own)] + source.text[span.start : span.end])


def view_with_line_feeds(chunker: Any, source: Source) -> Source:
    """Return the source with line feeds, or the source itself if it stays the same."""
    text = with_line_feeds(source.text)
    if text == source.text or any(map(_names_return, vars(chunker).values())):
        return source
    return replace(source, text=text)


def _names_return(parameter: Any) -> bool:
    """Whether a parameter is, or holds, a text or a pattern with a carriage return."""
    if isinstance(parameter, (list, tuple)):
        return any(map(_names_return, parameter))
    return isinstance(parameter, str) and ("\r" in parameter or r"\r" in parameter)
