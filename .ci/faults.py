#!/usr/bin/env python3
"""Puts one fault at a time into the package, and reports those that no test notices.

Usage: .ci/faults.py [--number 100] [--seed N] [--only FOLDER] [--part 2/5] [--own] [--workers 2]

A fault changes one operator, number, condition or argument. Every folder of the package gets some,
large ones more. A fault is tried by the tests that are named after its module, then by those of its
folder, then by all tests that run by default, unless --own ends after its folder. --part tries a
share of the sample, so that several runs with the same seed try all of it. It works on a copy, so
the checkout stays as it is. Exits with 1 if more than 15 % survive.
"""

from __future__ import annotations

import argparse
import ast
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST_SURVIVORS = 0.15
SECONDS = 900  # a run of the tests that takes longer has met an endless loop
TESTS_OF_FOLDER = {"": "contract", "parameters": "contract", "meaning": "chunkers", "web": "cli"}
"""The folders of tests for folders of the package whose tests have another name."""
NO_TESTS = 5  # how pytest exits if it finds no test
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
Fault = tuple[Path, int, str, str]
"""A file, the index of a line, and the line before and after."""


def faults_in(path: Path) -> Iterator[Fault]:
    """Yield the faults that a file can have."""
    source = path.read_text(encoding="utf-8")
    lines = source.split("\n")
    tree = ast.parse(source)
    ignored = {id(inner) for node in ast.walk(tree) for inner in _without_effect(node)}

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
            yield from fault(node.left, node.comparators[0], *SWAPS[type(node.ops[0])])
        elif isinstance(node, ast.BinOp) and type(node.op) in SWAPS:
            yield from fault(node.left, node.right, *SWAPS[type(node.op)])
        elif isinstance(node, ast.BoolOp):
            yield from fault(node.values[0], node.values[1], *SWAPS[type(node.op)])
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield from whole(node, f"bool({ast.unparse(node.operand)})")
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield from whole(node, str(not node.value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):
            yield from whole(node, str(node.value + 1))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("min", "max"):
            yield from whole(node.func, "max" if ast.unparse(node.func) == "min" else "min")


def _without_effect(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a statement in which a fault changes no behaviour: types, messages."""
    parts: list[ast.AST | None] = []
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        parts = [
            node.returns,
            *(each.annotation for each in ast.walk(node.args) if hasattr(each, "annotation")),
        ]
    elif isinstance(node, ast.AnnAssign):
        parts = [node.annotation]
    elif isinstance(node, (ast.Raise, ast.Assert, ast.JoinedStr)):
        parts = [node]
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


def is_noticed(fault: Fault, copy: Path, options: argparse.Namespace) -> bool:
    """Whether a test fails with the fault."""
    path, number, _, changed = fault
    target = copy / path.relative_to(ROOT)
    source = target.read_text(encoding="utf-8")
    lines = source.split("\n")
    lines[number] = changed
    target.write_text("\n".join(lines), encoding="utf-8")
    try:
        return not all(
            passes(copy, tests, options.workers) for tests in rounds(target, copy, options)
        )
    finally:
        target.write_text(source, encoding="utf-8")


def rounds(target: Path, copy: Path, options: argparse.Namespace) -> Iterator[list[str]]:
    """Yield the tests to run for a file, those that notice its faults most probably first."""
    parts = target.relative_to(copy / "rag_splitters").parts
    folder = parts[0] if len(parts) > 1 else ""
    own = copy / "tests" / TESTS_OF_FOLDER.get(folder, folder)
    yield [str(target), *map(str, sorted(own.rglob(f"test_{target.stem.strip('_')}*.py")))]
    yield [str(own)]
    if not options.own:
        yield []


def passes(copy: Path, tests: list[str], workers: str) -> bool:
    """Whether the tests pass, up to the first that fails."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-n", workers]
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        run = subprocess.run(
            [*command, *tests],
            cwd=copy,
            env=environment,
            timeout=SECONDS,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return run.returncode in (0, NO_TESTS)


def main() -> int:
    """Try the faults, and print what survives."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--number", type=int, default=100, help="how many faults to try")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--only", default="", help="one folder of the package")
    parser.add_argument("--part", default="1/1", help="which share of the sample to try: 2/5")
    parser.add_argument("--own", action="store_true", help="run only the tests of a fault's folder")
    parser.add_argument("--workers", default="auto", help="processes of pytest-xdist")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    faults = sample(options.number, random.Random(options.seed), options.only)[part - 1 :: parts]
    print(f"{len(faults)} faults, seed {options.seed}", flush=True)
    survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "checkout"
        ignored = shutil.ignore_patterns(".git", ".venv", ".*cache*", "__pycache__")
        shutil.copytree(ROOT, copy, ignore=ignored)
        for count, fault in enumerate(faults, 1):
            noticed = is_noticed(fault, copy, options)
            survivors += not noticed
            path, number, line, changed = fault
            if not noticed:
                print(f"{path.relative_to(ROOT)}:{number + 1}")
                print(f"  - {line.strip()}\n  + {changed.strip()}")
            print(f"{count}: {survivors} survived", flush=True)
    print(f"{survivors} of {len(faults)} faults survived")
    return survivors > MOST_SURVIVORS * len(faults)


if __name__ == "__main__":
    raise SystemExit(main())
