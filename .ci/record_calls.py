"""A plugin of pytest that records which functions of the package each test calls.

Usage: PYTHONPATH=.ci pytest -p record_calls, with the file to write in $RECORDED_CALLS. With
pytest-xdist, each worker adds its name to that of the file. A line is a JSON array: the test, its
seconds of CPU, the functions that no earlier line names, and the numbers of all that it called.
A function is named `file:qualified name`. What a test calls in a process that it starts is not
seen; instead it "calls" PROCESS. Needs Python 3.11.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

_PACKAGE = str(Path(__file__).resolve().parents[1] / "rag_splitters") + os.sep
PROCESS = "a process"
_codes: set[CodeType | str] = set()
_shared: dict[str, set[CodeType | str]] = {}
_numbers: dict[str, int] = {}


def _trace(frame: FrameType, event: str, argument: object) -> None:
    _codes.add(frame.f_code)


def _audit(event: str, arguments: object) -> None:
    if event == "subprocess.Popen":
        _codes.add(PROCESS)


def pytest_configure() -> None:
    """Begin to record."""
    sys.addaudithook(_audit)
    threading.settrace(_trace)
    sys.settrace(_trace)


def pytest_unconfigure() -> None:
    """End before the interpreter does."""
    threading.settrace(None)  # type: ignore[arg-type]
    sys.settrace(None)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any) -> Iterator[None]:
    """Note what the setup of a fixture calls that several tests share."""
    before = set(_codes)
    _codes.clear()
    try:
        return (yield)
    finally:
        if fixturedef.scope != "function":
            _shared[fixturedef.argname] = _shared.get(fixturedef.argname, set()) | _codes
        _codes.update(before)


def _name(code: CodeType | str) -> str:
    if isinstance(code, str):
        return code
    file = code.co_filename.removeprefix(_PACKAGE)
    return f"{file}:{code.co_qualname}" if file != code.co_filename else ""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Write a line for a test."""
    sys.settrace(_trace)  # an error in the last test, such as a RecursionError, may have ended it
    _codes.clear()
    start = sum(os.times()[:4])
    result = yield
    seconds = sum(os.times()[:4]) - start
    codes = _codes.union(*(_shared.get(name, ()) for name in getattr(item, "fixturenames", ())))
    names = sorted(filter(None, map(_name, codes)))
    new = [name for name in dict.fromkeys(names) if name not in _numbers]
    for name in new:
        _numbers[name] = len(_numbers)
    line = [item.nodeid, round(seconds, 3), new, sorted({_numbers[name] for name in names})]
    path = os.environ["RECORDED_CALLS"] + os.environ.get("PYTEST_XDIST_WORKER", "")
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    return result
