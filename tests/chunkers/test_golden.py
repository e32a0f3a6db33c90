"""Golden files: for every strategy inputs, parameters and the chunks that a user would want.

A file in `tests/golden` is Markdown. A case is a `## title`, a line with the chunker in back quotes
(and ` with ` the document's metadata), a `~~~~text` block and a `~~~~chunks` block. Models and
functions are names of `tests/support/cases.py`. Chunks stand between lines of `----`; a chunk's
metadata stand before it in a line that begins with `@ `. What cannot be seen is written as
a symbol:
␍ carriage return, ␌ form feed, ␉ tab, ␠ space.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rag_splitters
import tests.support.cases
from rag_splitters import (
    CATALOGUE,
    Chunker,
    ModalityChunker,
    PropositionChunker,
    Span,
    TableChunker,
)
from tests.support.checks import check_chunker, dropped_of_html
from tests.support.splitting import split_texts

FOLDER = Path(__file__).parents[1] / "golden"
_CASE = re.compile(
    r"^## (?P<title>.+)\n(?:(?!## |`).*\n)*"
    r"`(?P<call>\w+\(.*\))`(?: with `(?P<metadata>\{.*\})`)?\n\n"
    r"~~~~text\n(?P<text>(?s:.*?))\n~~~~\n\n~~~~chunks\n(?P<chunks>(?s:.*?))\n?~~~~$",
    re.MULTILINE,
)
_SYMBOLS = str.maketrans({"␍": "\r", "␌": "\f", "␉": "\t", "␠": " "})


class Case(NamedTuple):
    """One case of a golden file."""

    name: str
    chunker: Chunker
    metadata: dict[str, Any]
    text: str
    chunks: list[tuple[str, dict[str, Any]]]


def read_cases(path: Path) -> list[Case]:
    """The cases of a golden file."""
    return [
        Case(
            f"{path.stem}: {match['title']}",
            build(ast.parse(match["call"], mode="eval").body),
            ast.literal_eval(match["metadata"] or "{}"),
            match["text"].translate(_SYMBOLS),
            [read_chunk(part) for part in match["chunks"].split("\n----\n") if part],
        )
        for match in _CASE.finditer(path.read_text(encoding="utf-8"))
    ]


def read_chunk(part: str) -> tuple[str, dict[str, Any]]:
    metadata, _, text = part.partition("\n") if part.startswith("@ ") else ("", "", part)
    return text.translate(_SYMBOLS), ast.literal_eval(metadata[2:] or "{}")


def build(node: ast.expr) -> Any:
    """The value of a literal, of a name of `tests.support.cases`, or of a call of one."""
    if isinstance(node, ast.Call):
        parameters = {str(each.arg): build(each.value) for each in node.keywords}
        return build(node.func)(*map(build, node.args), **parameters)
    if isinstance(node, ast.Name):
        owner = rag_splitters if node.id in rag_splitters.__all__ else tests.support.cases
        return getattr(owner, node.id)
    if isinstance(node, ast.Dict):
        return dict(zip(map(build, filter(None, node.keys)), map(build, node.values), strict=True))
    if isinstance(node, (ast.Tuple, ast.List)):
        return tuple(build(each) for each in node.elts)
    return ast.literal_eval(node)


CASES = [case for path in sorted(FOLDER.glob("*.md")) for case in read_cases(path)]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_golden_case_is_cut_as_a_user_wants(case: Case) -> None:
    spans = split_texts(case.chunker, [case.text], [case.metadata])[0]
    assert [(span.text_of(case.text), details(span)) for span in spans] == case.chunks
    evidence = [Span(span.start, span.end).text_of(case.text) for span in spans]
    dropped = dropped_of_html(case.chunker, case.text)
    if not renders(case.chunker) and not dropped:
        assert all(
            text.endswith(part) for part, (text, _) in zip(evidence, case.chunks, strict=True)
        ), evidence
    if not drops_text(case.chunker):
        check_chunker(case.chunker, case.text, dropped)


def details(span: Span) -> dict[str, Any]:
    """What a span says, with the number of its parent in a tree."""
    return span.to_metadata() | ({} if span.parent is None else {"parent": span.parent})


def renders(chunker: Chunker) -> bool:
    """Does the chunker write its chunks anew, rather than put something before them?"""
    return isinstance(chunker, (TableChunker, ModalityChunker, PropositionChunker))


def drops_text(chunker: Chunker) -> bool:
    """Does the chunker's docstring say that it drops more than white space?"""
    # Propositions share their evidence (test_proposition), and images overlap their sentences
    # (test_modality).
    if isinstance(chunker, (ModalityChunker, PropositionChunker)):
        return True
    separators = getattr(chunker, "separators", None) or ()
    is_none = getattr(chunker, "keep_separator", "") in ("none", False)
    return (is_none and any(separator.strip() for separator in separators)) or any(
        drops_text(stage) for stage in getattr(chunker, "stages", ())
    )


@pytest.mark.parametrize("name", CATALOGUE)
def test_golden_file_has_cases_of_every_strategy(name: str) -> None:
    path = FOLDER / f"{name}.md"
    assert path.exists(), f"write {path}"
    text = path.read_text(encoding="utf-8")
    cases = read_cases(path)
    assert len(cases) == text.count("~~~~text\n") >= 3, "a case is not written in the format"
    assert all(type(case.chunker) is CATALOGUE[name] for case in cases)
