"""What becomes of the documents that a model failed on, and of the others."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

from rag_splitters.models.errors import ModelError
from rag_splitters.span import Source, Span

Failure: TypeAlias = tuple[int, str, ModelError]
"""The index of a source in a plan, the place in it that the model failed on, and the error."""

_LOG = logging.getLogger("rag_splitters")
_failures: ContextVar[list[ModelError] | None] = ContextVar("_failures", default=None)


@contextmanager
def collect_failures() -> Iterator[list[ModelError]]:
    """Collect the errors of documents in this block in place of raising the first one.

    A document that a model failed on has no chunks then. The `index` of an error is the number of
    its document among those that were split. What concerns every document, such as a key that is
    refused, is raised nevertheless.

    >>> from rag_splitters import AgenticChunker
    >>> from rag_splitters.langchain import AgenticTextSplitter
    >>> def llm(prompt):
    ...     return "1" if "Tea" in prompt else "no number"
    >>> splitter = AgenticTextSplitter(llm=llm, max_retries=0)
    >>> with collect_failures() as failures:
    ...     documents = splitter.create_documents(["Tea is hot. It is.", "Rain fell. It did."])
    >>> len(documents), [failure.index for failure in failures]
    (1, [1])
    """
    failures: list[ModelError] = []
    token = _failures.set(failures)
    try:
        yield failures
    finally:
        _failures.reset(token)


def settle(
    chunker: type,
    on_error: object,
    sources: Sequence[Source],
    failures: Sequence[Failure],
    results: Sequence[list[Span]],
) -> list[list[Span]]:
    """The spans of each source at the end of a plan, after all has been asked.

    With "raise", a source that the model failed on has none, and the error is raised; or collected,
    if other strategies are still at work. With "skip" it has none, and a warning is logged. With
    anything else the strategy has spans for it already, and a warning is logged, too.

    Raises ModelError, always for an error that concerns every source.
    """
    if not failures:
        return list(results)
    failed = {index for index, _, _ in failures}
    errors = [_named(chunker, sources[index], place, error) for index, place, error in failures]
    whole = [None if index in failed else spans for index, spans in enumerate(results)]
    collected = _failures.get()
    if any(error.fatal for error in errors) or (on_error == "raise" and collected is None):
        raise joined(errors, whole)
    if on_error == "raise" and collected is not None:
        collected.extend(errors)
    else:
        for error in errors:
            action = "it has no chunks" if on_error == "skip" else "its fallback was used"
            _LOG.warning("%s: %s", error, action)
    return [spans or [] for spans in whole] if on_error in ("raise", "skip") else list(results)


def joined(errors: Sequence[ModelError], results: Sequence[list[Span] | None]) -> ModelError:
    """The error to raise for several, with the spans of the sources that did not fail."""
    first = next((error for error in errors if error.fatal), errors[0])
    others = f" (and {len(errors) - 1} more failed)" if len(errors) > 1 else ""
    error = first.about(f"{first}{others}")
    error.results, error.failures = results, list(errors)
    return error


def raise_or_collect(
    errors: Sequence[ModelError], sources: Sequence[Source], results: Sequence[list[Span]]
) -> None:
    """Raise the errors of a plan with all that it contains, or pass them on to who collects them.

    Raises ModelError if nobody does.
    """
    if not errors:
        return
    outer = _failures.get()
    if outer is not None:
        outer.extend(errors)
        return
    failed = {error.index for error in errors}
    pairs = zip(sources, results, strict=True)
    raise joined(errors, [None if source.number in failed else spans for source, spans in pairs])


def _named(chunker: type, source: Source, place: str, error: ModelError) -> ModelError:
    name = f"document {source.number}" + ("" if source.id is None else f" ({source.id[:80]})")
    return error.about(f"{chunker.__name__}: {name}, {place}: {error}", source.number)
