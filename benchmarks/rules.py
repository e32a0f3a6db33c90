"""Which rules about text change any cut?

    python -m benchmarks.rules [FOLDER ...] [--most 12] [--only leads sentences]

Takes one regular expression of `text` and `structure` away at a time, cuts the documents again, and
prints how many chunks change without it, the fewest first, with the documents. The documents are
those of tests/data, and the text files of other folders if you name them. A rule that changes
nothing there is one for texts of another kind, one for speed, or one that can go.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

import rag_splitters as rs
from benchmarks.equal_cuts import documents, rows
from rag_splitters import structure, text

CHUNKERS = (
    rs.RecursiveChunker(chunk_size=500, chunk_overlap=60),
    rs.AutoChunker(chunk_size=800),
    rs.SentenceChunker(chunk_size=300, chunk_overlap=60),
)
NEVER = re.compile(r"(?!)")
Chunks: TypeAlias = set[tuple[int, ...]]


def cut(texts: dict[str, str]) -> Iterator[tuple[str, Chunks]]:
    """Yield the name and the chunks of each document, for each chunker."""
    for module in _modules():
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()
    for chunker in CHUNKERS:
        for name, content in texts.items():
            yield name, set(map(tuple, rows(chunker, name, content)))


def patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    """Yield the name of each regular expression, and the expression."""
    seen: set[int] = set()
    for package in (text, structure):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for name, value in vars(importlib.import_module(found.name)).items():
                if isinstance(value, re.Pattern) and id(value) not in seen:
                    seen.add(id(value))
                    yield f"{found.name.removeprefix('rag_splitters.')}.{name}", value


def without(pattern: re.Pattern[str], texts: dict[str, str]) -> Iterator[tuple[str, Chunks]]:
    """Cut the documents without a pattern; see `cut`."""
    places = [
        (module, name)
        for module in _modules()
        for name, value in vars(module).items()
        if value is pattern
    ]
    try:
        for module, name in places:
            setattr(module, name, NEVER)
        yield from list(cut(texts))
    finally:
        for module, name in places:
            setattr(module, name, pattern)


def _modules() -> list[ModuleType]:
    return [module for name, module in sys.modules.items() if name.startswith("rag_splitters")]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="*", help="folders with more documents")
    parser.add_argument("--most", type=int, default=12, help="chunks that change, to be printed")
    parser.add_argument("--only", nargs="+", default=[], help="parts of the names of modules")
    arguments = parser.parse_args()
    texts = documents(arguments.folders)
    before = list(cut(texts))
    found: list[tuple[int, str, str]] = []
    for name, pattern in patterns():
        if arguments.only and not any(each in name for each in arguments.only):
            continue
        try:
            pairs = zip(before, without(pattern, texts), strict=True)
            lost = [(document, len(old - new)) for (document, old), (_, new) in pairs]
        except (AttributeError, IndexError, TypeError, ValueError):
            continue  # nothing works without it
        names = ", ".join(sorted({document for document, count in lost if count})[:3])
        found.append((sum(count for _, count in lost), name, names))
    for count, name, names in sorted(found):
        if count <= arguments.most:
            print(f"{count:4} {name}  {names}")
    idle = sum(count == 0 for count, *_ in found)
    chunks = sum(len(chunks) for _, chunks in before)
    print(f"{idle} of {len(found)} patterns change none of {chunks:,} chunks")


if __name__ == "__main__":
    main()
