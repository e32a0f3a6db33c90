#!/usr/bin/env python3
"""Puts one fault at a time into the package, and reports those that no test notices.

Usage: .ci/faults.py [--number 100] [--seed N] [--only FOLDER] [--calls FILE ...]

A fault changes one operator, number, condition or argument. It is one that a user could notice: a
number above 9 is doubled, and a comparison with it turned round, because one more or less of it
does the same; if it has a name, such as _TIMEOUT, it stays, because a test that noticed it would
only repeat it. Every folder of the package gets some, large ones more.

A first run of all tests, also of those that do not run by default, records which functions each of
them calls; --calls reads such a record instead (see record_calls.py). A fault is then tried by the
tests that call its function, the most specific ones first, up to --seconds of their time. What no
recorded test calls is left out, and counted. It works on a copy, so the checkout stays as it is.
Exits with 1 if more than 15 % survive.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from record_calls import PROCESS

ROOT = Path(__file__).resolve().parents[1]
MOST_SURVIVORS = 0.15
SECONDS = 600  # tests that take longer wait for something that never happens
STARTING = 60  # seconds until the first test runs, on a busy machine
SWAPS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: (" in ", " not in "),
    ast.NotIn: (" not in ", " in "),
    ast.Is: (" is ", " is not "),
    ast.IsNot: (" is not ", " is "),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.And: (" and ", " or "),
    ast.Or: (" or ", " and "),
}
TURNED = {"<=": ">=", "<": ">", ">=": "<=", ">": "<"}
ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_SILENT = ("frozen", "maxsize", "repr", "slots", "strict", "total")  # of classes, caches, zip
Fault = tuple[Path, int, str, str]
"""A file, the index of a line, and the line before and after."""


def faults_in(path: Path) -> Iterator[Fault]:
    """Yield the faults that a file can have."""
    source = path.read_text(encoding="utf-8")
    lines = source.split("\n")
    tree = ast.parse(source)
    ignored = {id(inner) for node in ast.walk(tree) for inner in _without_effect(node)}
    limits = {id(node.test) for node in ast.walk(tree) if _is_limit(node)}

    def fault(start: ast.AST, end: ast.AST, old: str, new: str) -> Iterator[Fault]:
        """Replace text between the end of one expression and the beginning of the next."""
        number, first, last = start.end_lineno - 1, start.end_col_offset, end.col_offset
        line = lines[number].encode()
        between = line[first:last].decode()
        if end.lineno == start.end_lineno and between.count(old) == 1:
            changed = line[:first].decode() + between.replace(old, new) + line[last:].decode()
            yield path, number, lines[number], changed

    def whole(node: ast.AST, new: str) -> Iterator[Fault]:
        """Replace a whole expression that stands on one line."""
        if node.lineno == node.end_lineno:
            line = lines[node.lineno - 1].encode()
            changed = line[: node.col_offset] + new.encode() + line[node.end_col_offset :]
            yield path, node.lineno - 1, lines[node.lineno - 1], changed.decode()

    for node in ast.walk(tree):
        if id(node) in ignored:
            continue
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            old, new = SWAPS[type(node.ops[0])]
            if new in TURNED and (id(node) in limits or any(map(_is_tuning, ast.walk(node)))):
                new = TURNED[new]
            yield from fault(node.left, node.comparators[0], old, new)
        elif isinstance(node, ast.BinOp) and type(node.op) in SWAPS:
            yield from fault(node.left, node.right, *SWAPS[type(node.op)])
        elif isinstance(node, ast.BoolOp):
            yield from fault(node.values[0], node.values[1], *SWAPS[type(node.op)])
        elif isinstance(node, ast.UnaryOp) and ast.unparse(node) == "-1":
            yield from whole(node, "0")  # -2 often says the same: nothing
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield from whole(node, f"bool({ast.unparse(node.operand)})")
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield from whole(node, str(not node.value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):
            more = node.value + 1 if node.value < 10 else 2 * node.value  # 101 does what 100 does
            yield from whole(node, str(more))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("min", "max"):
            yield from whole(node.func, "max" if ast.unparse(node.func) == "min" else "min")


def _is_limit(node: ast.AST) -> bool:
    """Whether it is `x if x < y else y`, which means the same for equal values."""
    if not isinstance(node, ast.IfExp) or not isinstance(node.test, ast.Compare):
        return False
    compared = {ast.unparse(each) for each in (node.test.left, *node.test.comparators)}
    return compared == {ast.unparse(node.body), ast.unparse(node.orelse)}


def _is_tuning(node: ast.AST) -> bool:
    """Whether a comparison with this depends on a constant, where one more or less is no fault."""
    if isinstance(node, ast.Constant):
        is_number = isinstance(node.value, (int, float))
        return is_number and (node.value > 9 or isinstance(node.value, float))
    return isinstance(node, ast.Mult) or (isinstance(node, ast.Name) and node.id.isupper())


def _is_small(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value < 10


def _without_effect(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts in which a fault changes no behaviour: types, messages, sizes, waits."""
    parts: list[ast.AST | None] = []
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        parts = [
            node.returns,
            *(each.annotation for each in ast.walk(node.args) if hasattr(each, "annotation")),
        ]
    elif isinstance(node, ast.AnnAssign):
        parts = [node.annotation]
    elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).isupper():
        parts = [node.value] if _is_tuning(node.value) else []
    elif isinstance(node, (ast.Raise, ast.Assert, ast.JoinedStr)):
        parts = [node]
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ORDERS):
        parts = [each for each in (node.left, *node.comparators) if _is_small(each)]  # twice
    elif isinstance(node, ast.UnaryOp) and ast.unparse(node) == "-1":
        parts = [node.operand]
    elif isinstance(node, ast.keyword):
        is_ignored = node.arg in _SILENT
        parts = [node] if is_ignored else []
    elif isinstance(node, ast.If):
        parts = [node] if ast.unparse(node.test) == "TYPE_CHECKING" else []
    for part in filter(None, parts):
        yield from ast.walk(part)


def sample(number: int, chance: random.Random, only: str) -> list[Fault]:
    """Choose faults from every folder, more from those with more code."""
    folders: dict[str, list[Fault]] = {}
    for path in sorted((ROOT / "rag_splitters").rglob("*.py")):
        parts = path.relative_to(ROOT / "rag_splitters").parts
        if not only or parts[0] == only:
            folders.setdefault(parts[0] if len(parts) > 1 else "", []).extend(faults_in(path))
    weights = {name: math.sqrt(len(faults)) for name, faults in folders.items()}
    share = number / sum(weights.values())
    chosen = [
        fault
        for name, faults in folders.items()
        for fault in chance.sample(faults, min(len(faults), math.ceil(share * weights[name])))
    ]
    return chance.sample(chosen, min(number, len(chosen)))


class RecordedTest(NamedTuple):
    """A test, its seconds of CPU, and the functions that it calls, as `file:name`."""

    name: str
    seconds: float
    functions: frozenset[str]


def record(copy: Path, workers: str) -> list[Path]:
    """Run all tests, but those that take a minute, and record which functions they call."""
    path = copy.parent / "calls"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "record_calls", "-n", workers]
    command += ["-m", "not nightly"]
    environment = {**os.environ, "PYTHONPATH": f"{copy}:{copy}/.ci", "RECORDED_CALLS": str(path)}
    result = subprocess.run(command, cwd=copy, env=environment, stdout=subprocess.PIPE, text=True)
    if result.returncode == pytest.ExitCode.TESTS_FAILED:  # they will notice no fault
        print(f"tests fail without a fault:\n{result.stdout[-3000:]}", flush=True)
    elif result.returncode:
        raise SystemExit(f"the tests cannot be recorded:\n{result.stdout[-3000:]}")
    return sorted(copy.parent.glob("calls*"))


def read_calls(paths: Iterable[Path]) -> list[RecordedTest]:
    """Read what `record_calls` wrote; of two records of a test, the last counts."""
    tests = {}
    for path in paths:
        functions: list[str] = []
        for line in path.read_text(encoding="utf-8").splitlines():
            name, seconds, new, numbers = json.loads(line)
            functions += new
            called = frozenset(functions[number] for number in numbers)
            tests[name] = RecordedTest(name, seconds, called)
    return list(tests.values())


def tests_of(
    fault: Fault, tests: Sequence[RecordedTest], most_seconds: float
) -> tuple[list[str], float]:
    """Choose the tests to run for a fault, and say how many seconds of CPU they take.

    First come those that are named after the file, then those that call the fewest other functions.
    Many values of one parameter notice the same, so they come later the longer they take.

    Outside of functions a fault concerns all tests that call something in its file, and those of
    the contract, which read what a class declares; the shortest come first, so that many are run.
    Tests of the same folder that start a process may call the function there.
    """
    path, number, _, _ = fault
    file = path.relative_to(ROOT / "rag_splitters").as_posix()
    namesake, folder = f"/test_{path.stem.strip('_')}", f"tests/{file.partition('/')[0]}/"
    function = _function_of(path, number + 1)

    def may_call(test: RecordedTest) -> bool:
        if PROCESS in test.functions and test.name.startswith(folder):
            return True
        if function:
            return f"{file}:{function}" in test.functions
        calls_file = any(each.startswith(f"{file}:") for each in test.functions)
        return calls_file or test.name.startswith("tests/contract/")

    callers = list(filter(may_call, tests))
    callers.sort(key=lambda test: (namesake not in test.name, len(test.functions), test.seconds))
    rounds: Counter[str] = Counter()
    costs = []
    for test in callers:
        function_of_test = test.name.partition("[")[0]
        factor = rounds[function_of_test] if function else 1
        costs.append((factor * test.seconds, test))
        rounds[function_of_test] += 1
    chosen, seconds = [], 0.0
    for _, test in sorted(costs, key=lambda each: each[0]):
        if not chosen or seconds + test.seconds <= most_seconds:
            chosen.append(test.name)
            seconds += test.seconds
    return chosen, seconds


def _function_of(path: Path, line: int) -> str:
    """Return the qualified name of the innermost function around a line, or an empty string."""
    name, scope = "", ""
    node: ast.AST | None = ast.parse(path.read_text(encoding="utf-8"))
    while node is not None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            name = scope + node.name
            scope = f"{name}.<locals>."
        elif isinstance(node, ast.ClassDef):
            scope += f"{node.name}."
        inner = (each for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt))
        node = next((each for each in inner if each.lineno <= line <= each.end_lineno), None)
    return name


def run_tests(copy: Path, tests: Sequence[str], seconds: float) -> str:
    """Run tests, and return the first that fails, or an empty string.

    If a file cannot be imported, that is returned. What was recorded includes the recording, so
    tests that take much longer have met an endless loop.
    """
    names = copy.parent / "names"
    names.write_text("\n".join(tests), encoding="utf-8")
    options = ["-qx", "-rfE", "--all", "-pno:xdist"]
    files = ["tests/conftest.py", f"@{names}"]  # doctests alone would not load its options
    command = [sys.executable, "-m", "pytest", *options, *files]
    limit = min(STARTING + 5 * seconds, SECONDS)
    with subprocess.Popen(
        command, cwd=copy, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            output = ""
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # also what tests have started and not ended
    if process.returncode == pytest.ExitCode.OK:
        return ""
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)
    return failed[1] if failed else "no test can be collected, or they do not end"


def first_to_notice(fault: Fault, copy: Path, tests: list[str], seconds: float) -> str:
    """Return the first test that fails with the fault and passes without it."""
    path, number, _, changed = fault
    target = copy / path.relative_to(ROOT)
    source = target.read_bytes()
    lines = source.decode().split("\n")
    lines[number] = changed
    while tests:
        target.write_text("\n".join(lines), encoding="utf-8")
        try:
            failed = run_tests(copy, tests, seconds)
        finally:
            target.write_bytes(source)
        own = [test for test in tests if failed in (test, test.partition("::")[0])]
        if not failed or not run_tests(copy, own[:1] or tests, seconds):
            return failed
        tests = [test for test in tests if test not in own] if own else []
    return ""


def main() -> int:
    """Try the faults, and print what survives."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--number", type=int, default=100, help="how many faults to try")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--only", default="", help="one folder of the package")
    parser.add_argument("--calls", nargs="*", type=Path, default=[], help="records of the tests")
    parser.add_argument("--seconds", type=float, default=150, help="of tests for each fault")
    parser.add_argument("--workers", default="auto", help="processes of the recording run")
    options = parser.parse_args()
    faults = sample(options.number, random.Random(options.seed), options.only)
    print(f"{len(faults)} faults, seed {options.seed}", flush=True)
    noticed = survivors = 0
    calls = [path.resolve() for path in options.calls]
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "checkout"
        ignored = shutil.ignore_patterns(".venv", ".*cache*")  # tests ask git for the files
        shutil.copytree(ROOT, copy, ignore=ignored)
        os.environ.update(PYTHONPATH=str(copy), PYTHONDONTWRITEBYTECODE="1")
        tests = read_calls(calls or record(copy, options.workers))
        for count, fault in enumerate(faults, 1):
            path, number, line, changed = fault
            print(f"{count}: {path.relative_to(ROOT)}:{number + 1}")
            print(f"  - {line.strip()}\n  + {changed.strip()}")
            chosen, seconds = tests_of(fault, tests, options.seconds)
            if not chosen:
                print("  left out: no recorded test calls it")
                continue
            failed = first_to_notice(fault, copy, chosen, seconds)
            noticed += bool(failed)
            survivors += not failed
            print(f"  {failed or f'SURVIVED {len(chosen)} tests'}", flush=True)
    left_out = len(faults) - noticed - survivors
    print(f"{survivors} of {noticed + survivors} faults survived; {left_out} left out")
    return survivors > MOST_SURVIVORS * (noticed + survivors)


if __name__ == "__main__":
    raise SystemExit(main())
