"""Checks of what the `spans` or `plan` of a user's own strategy returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import wraps
from inspect import isawaitable
from operator import index
from typing import Any

from rag_splitters.errors import InputTypeError
from rag_splitters.parameters.messages import describe_value
from rag_splitters.span import Source, Span


def checked_plan(plan: Any, method: str) -> Any:
    """Return the `plan` of a user's strategy with its result checked.

    Parameters:
        plan: the user's own, or one that calls the user's `spans`, which may be a generator.
        method: the name of the method that the user has written.
    """

    @wraps(plan)
    async def checked(self: Any, sources: Sequence[Source]) -> list[list[Span]]:
        name = f"{type(self).__name__}.{method}"
        promise = plan.__get__(self, type(self))(sources)
        if not isawaitable(promise):
            raise InputTypeError(f"{name} must be defined with async def")
        plans = await promise
        if not isinstance(plans, (list, tuple)) or len(plans) != len(sources):
            expected = f"a list of spans for each source ({len(sources)})"
            got = len(plans) if isinstance(plans, (list, tuple)) else describe_value(plans)
            raise InputTypeError(f"{name} must return {expected}, got {got}")
        return [_check_spans(spans, name) for spans in plans]

    return checked


def _check_spans(spans: Any, name: str) -> list[Span]:
    listed: list[Any] = list(spans) if isinstance(spans, Iterable) else [None]
    for span in listed:
        if not isinstance(span, Span):
            expected = "a list of spans, such as [Span(0, 5)]"
            raise InputTypeError(f"{name} must return {expected}, got {describe_value(spans)}")
        try:  # JSON cannot hold the whole numbers of NumPy
            span.start, span.end = index(span.start), index(span.end)
        except TypeError:
            place = f"from {span.start!r} to {span.end!r}"
            message = f"{name} returned a span {place}: positions must be whole numbers"
            raise InputTypeError(message) from None
    return listed
