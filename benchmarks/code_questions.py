"""Questions about code: of a public set, or made of Python packages that are installed.

    python benchmarks/code_questions.py FOLDER [--set DATA]

FOLDER gets `corpora/*.md` and `questions.csv`, as `benchmarks/retrieval.py` reads them.

DATA is the folder skills/contextual-embeddings/data in the repository anthropics/anthropic-cookbook
(commit 4b36a1e): 248 questions about 90 files of Rust and other code, each answered by one or more
of 737 chunks. The command prints the budgets of as many tokens as 5, 10 and 20 chunks have.

Without it, each module of the packages becomes a document, from which docstrings are removed. A
question is the first sentence of the docstring of a function or method; what answers it is the
whole function. `PACKAGES.md` names the packages with their versions.
"""

from __future__ import annotations

import argparse
import ast
import csv
import json
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from rag_splitters.text.sizing import text_length

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


def write_set(folder: Path, data: Path) -> None:
    """Write the public set, whose chunks are known by their file and their number there."""
    chunks: dict[tuple[str, int], dict[str, object]] = {}
    names: dict[str, str] = {}
    sizes = []
    for file in json.loads((data / "codebase_chunks.json").read_text(encoding="utf-8")):
        text, position = file["content"], 0
        names[file["original_uuid"]] = file["doc_id"]
        write_document(folder, file["doc_id"], text)
        for chunk in file["chunks"]:
            content = chunk["content"]
            position = text.index(content, position)
            chunks[file["original_uuid"], chunk["original_index"]] = {
                "content": content,
                "start_index": position,
                "end_index": position + len(content),
            }
            sizes.append(text_length(content, "tokens"))
    questions = []
    for line in (data / "evaluation_set.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        places = sorted(map(tuple, entry["golden_chunk_uuids"]))
        references = [chunks[place] for place in places]
        questions.append([entry["query"], json.dumps(references), names[places[0][0]]])
    write_questions(folder, questions)
    budgets = (round(count * sum(sizes) / len(sizes)) for count in (5, 10, 20))
    print(f"{len(questions)} questions; 5, 10 and 20 chunks: --budgets", *budgets)


def write_document(folder: Path, name: str, text: str) -> None:
    (folder / "corpora" / f"{name}.md").write_text(text, encoding="utf-8", newline="")


def write_questions(folder: Path, rows: Iterable[Sequence[str]]) -> None:
    with (folder / "questions.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["question", "references", "corpus_id"])
        writer.writerows(rows)


def write_packages(folder: Path) -> None:
    """Write documents and questions made of the packages."""
    rows: list[Row] = []
    for package in PACKAGES:
        for name, source in modules(package):
            text, functions = without_docstrings(source)
            if text.strip():
                write_document(folder, name, text)
            rows += [(question, name, start, end) for question, start, end in functions]
    asked: dict[str, Row] = {}
    for row in rows:
        is_long = len(row[0].split()) >= _LEAST_WORDS
        if is_long and SIZES[0] <= row[3] - row[2] <= SIZES[1]:
            asked.setdefault(row[0], row)
    chosen = random.Random(0).sample(list(asked.values()), min(QUESTIONS, len(asked)))
    questions = []
    for question, name, start, end in chosen:
        text = (folder / "corpora" / f"{name}.md").read_bytes().decode()
        reference = {"content": text[start:end], "start_index": start, "end_index": end}
        questions.append([question, json.dumps([reference]), name])
    write_questions(folder, questions)
    lines = [f"- {each} {metadata.version(each)}" for each in PACKAGES]
    (folder / "PACKAGES.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    mean = sum(end - start for _, _, start, end in chosen) / len(chosen)
    print(f"{len(chosen)} questions, evidence of {mean:.0f} characters on average")


def main() -> None:
    parser = argparse.ArgumentParser(description="make questions about code")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--set", type=Path, metavar="DATA", help="data of the public set")
    options = parser.parse_args()
    (options.folder / "corpora").mkdir(parents=True, exist_ok=True)
    if options.set is None:
        write_packages(options.folder)
    else:
        write_set(options.folder, options.set)


if __name__ == "__main__":
    main()
