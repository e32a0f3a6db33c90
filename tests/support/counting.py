"""How much work something is, in function calls, and which calls: no machine changes that."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

__all__ = ["count_calls", "record_arguments", "record_calls"]


def count_calls(work: Callable[[], object]) -> int:
    """Return how many functions are called, and returned from, on this thread."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


def record_calls(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[tuple[Any, ...]]:
    """The positional arguments of each call of a function from now on; of a method, self too."""
    function = getattr(owner, name)
    calls: list[tuple[Any, ...]] = []

    def recording(*args: Any, **options: Any) -> Any:
        calls.append(args)
        return function(*args, **options)

    monkeypatch.setattr(owner, name, recording)
    return calls


def record_arguments(
    monkeypatch: pytest.MonkeyPatch, owner: Any, *names: str
) -> dict[str, list[Any]]:
    """What methods are asked for from now on, by their names: the first argument, or the others."""
    calls: dict[str, list[Any]] = {name: [] for name in names}

    def record(name: str) -> None:
        method = getattr(owner, name)

        def recording(self: Any, *rows: Any, **arguments: Any) -> Any:
            calls[name].append(list(rows[0]) if rows else arguments)
            return method(self, *rows, **arguments)

        monkeypatch.setattr(owner, name, recording)

    for name in names:
        record(name)
    return calls
