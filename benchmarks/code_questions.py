"""Questions about code, made of Python packages that are installed.

    python benchmarks/code_questions.py FOLDER

Each module becomes a document, from which docstrings are removed. A question is the first sentence
of the docstring of a function or method; what answers it is the whole function. FOLDER gets
`corpora/*.md` and `questions.csv`, as `benchmarks/retrieval.py` reads them, and `PACKAGES.md`,
which names the packages with their versions.
"""

from __future__ import annotations

import ast
import csv
import json
import random
import sys
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("click", "httpx", "jinja2", "requests", "rich", "starlette")
"""Packages under the MIT, BSD or Apache licence, which played no part in the development."""
SIZES = (300, 2000)
"""Characters that a function must have."""
QUESTIONS = 300
_LEAST_WORDS = 4

Row = tuple[str, str, int, int]
"""Question, document, and where the function stands in it."""


def without_docstrings(source: str) -> tuple[str, list[tuple[str, int, int]]]:
    """Return a module without docstrings, and the question about each function and its place."""
    tree = ast.parse(source)
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    removed: list[tuple[int, int]] = []
    functions: list[tuple[str, int, int]] = []
    for node in ast.walk(tree):
        if not isinstance(node, kinds) or ast.get_docstring(node) is None:
            continue
        text = node.body[0]
        removed.append((starts[text.lineno - 1], starts[text.end_lineno or 0]))
        if isinstance(node, kinds[2:]) and len(node.body) > 1:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            question = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
            functions.append((question, starts[first - 1], starts[node.end_lineno or 0]))
    removed.sort()

    def moved(position: int) -> int:
        return position - sum(end - start for start, end in removed if end <= position)

    kept, last = [], 0
    for start, end in removed:
        kept.append(source[last:start])
        last = end
    text = "".join([*kept, source[last:]])
    return text, [(question, moved(start), moved(end)) for question, start, end in functions]


def modules(package: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the source of each module of a package."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{package} is not installed: pip install {package}")
    folder = Path(spec.submodule_search_locations[0])
    for path in sorted(folder.rglob("*.py")):
        name = ".".join([package, *path.relative_to(folder).with_suffix("").parts])
        yield name, path.read_text(encoding="utf-8")


def main(folder: Path) -> None:
    rows: list[Row] = []
    (folder / "corpora").mkdir(parents=True, exist_ok=True)
    for package in PACKAGES:
        for name, source in modules(package):
            text, functions = without_docstrings(source)
            if text.strip():
                (folder / "corpora" / f"{name}.md").write_text(text, encoding="utf-8", newline="")
            rows += [(question, name, start, end) for question, start, end in functions]
    asked: dict[str, Row] = {}
    for row in rows:
        is_long = len(row[0].split()) >= _LEAST_WORDS
        if is_long and SIZES[0] <= row[3] - row[2] <= SIZES[1]:
            asked.setdefault(row[0], row)
    chosen = random.Random(0).sample(list(asked.values()), min(QUESTIONS, len(asked)))
    with (folder / "questions.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["question", "references", "corpus_id"])
        for question, name, start, end in chosen:
            text = (folder / "corpora" / f"{name}.md").read_bytes().decode()
            reference = {"content": text[start:end], "start_index": start, "end_index": end}
            writer.writerow([question, json.dumps([reference]), name])
    lines = [f"- {each} {metadata.version(each)}" for each in PACKAGES]
    (folder / "PACKAGES.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    mean = sum(end - start for _, _, start, end in chosen) / len(chosen)
    print(f"{len(chosen)} questions, evidence of {mean:.0f} characters on average")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
