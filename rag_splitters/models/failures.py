"""Handling of documents that a model failed on, without losing the others."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

from rag_splitters.calls import with_value
from rag_splitters.models.errors import ModelError
from rag_splitters.span import Source, Span

Failure: TypeAlias = tuple[int, str, ModelError]
"""The index of a source in a plan, the place in it that the model failed on, and the error."""

_LOG = logging.getLogger("rag_splitters")
_failures: ContextVar[list[ModelError] | None] = ContextVar("_failures", default=None)


@contextmanager
def collect_failures() -> Iterator[list[ModelError]]:
    """Collect the errors of documents in this block instead of raising the first one.

    A document that a model failed on then has no chunks. The `index` of an error is the number of
    its document among those that were split. An error that affects every document, such as a
    rejected key, is raised nevertheless.

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
    with with_value(_failures, failures):
        yield failures


def apply_on_error(
    chunker: type,
    on_error: object,
    sources: Sequence[Source],
    failures: Sequence[Failure],
    results: Sequence[list[Span]],
) -> list[list[Span]]:
    """Apply `on_error` at the end of a plan, and return the spans of each source.

    With "raise", a source that the model failed on has no spans, and the error is raised, or
    collected if other strategies are still running. With "skip", it has no spans, and a warning is
    logged. With anything else, `results` holds its spans already, and a warning is logged.

    Raises ModelError; an error that affects every source is raised in any case.
    """
    errors = [
        _with_place(chunker, sources[index], place, error) for index, place, error in failures
    ]
    if on_error in ("raise", "skip"):
        failed = {index for index, _, _ in failures}
        results = [[] if index in failed else spans for index, spans in enumerate(results)]
    if on_error == "raise" or any(error.fatal for error in errors):
        raise_or_collect(errors, sources, results)
        return list(results)
    for error in errors:
        action = "it has no chunks" if on_error == "skip" else "its fallback was used"
        _LOG.warning("%s: %s", error, action)
    return list(results)


def raise_or_collect(
    errors: Sequence[ModelError], sources: Sequence[Source], results: Sequence[list[Span]]
) -> None:
    """Pass on the errors of a plan to the `collect_failures` around it.

    Raises ModelError, with the spans of the sources that did not fail, if there is none, or if an
    error affects every source.
    """
    if not errors:
        return
    collected = _failures.get()
    first = next((error for error in errors if error.fatal), errors[0])
    if collected is not None and not first.fatal:
        collected.extend(errors)
        return
    others = f" (and {len(errors) - 1} more failed)" if len(errors) > 1 else ""
    error = first.about(f"{first}{others}")
    failed = {each.index for each in errors}
    pairs = zip(sources, results, strict=True)
    error.results = [None if source.number in failed else spans for source, spans in pairs]
    error.failures = list(errors)
    raise error


def _with_place(chunker: type, source: Source, place: str, error: ModelError) -> ModelError:
    name = f"document {source.number}" + ("" if source.id is None else f" ({source.id[:80]})")
    return error.about(f"{chunker.__name__}: {name}, {place}: {error}", source.number)
