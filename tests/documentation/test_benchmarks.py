"""What docs/benchmarks.md says of our structure strategies, and the README repeats of it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

import benchmarks
from benchmarks import cuts
from benchmarks.structures import HTML_CASES, MARKDOWN_CASES, Case, of_ours


@pytest.mark.parametrize(
    "name", sorted(each.stem for each in Path(benchmarks.__path__[0]).glob("*.py"))
)
def test_every_benchmark_finds_what_it_imports_of_the_package(name: str) -> None:
    try:
        import_module(f"benchmarks.{name}")
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] in ("rag_splitters", "tests", "benchmarks"):
            raise
        pytest.skip(f"measures {error.name} beside ours")


@pytest.mark.parametrize("case", MARKDOWN_CASES + HTML_CASES, ids=lambda case: case.title)
def test_difficult_case_is_right_in_ours(case: Case) -> None:
    assert case.judge(case.text, of_ours(case.chunker)(case.text)) == "right"


@pytest.mark.parametrize("name", ["Recursive", "Sentence", "ContentAware", "Auto"])
def test_the_table_of_cuts_is_what_is_measured(name: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` | "))
    split, measured = cuts.splitters(size=800, overlap=0)[name], cuts.Count(800)
    for document in cuts.labelled("prose"):
        measured.add(document, split(document.name, document.text))
    expected = [cell.strip().replace(" %", "%") for cell in row.strip("|").split("|")[1:]]
    assert measured.row()[:6] == expected, "\n".join(measured.cuts)


def test_the_evidence_of_the_readme_stands_among_the_benchmarks() -> None:
    root = Path(__file__).parents[2]
    benchmarks = (root / "docs" / "benchmarks.md").read_text(encoding="utf-8").splitlines()
    readme = (root / "README.md").read_text(encoding="utf-8")
    evidence = readme.partition("\n## Evidence\n")[2].partition("\n## ")[0]
    rows = [line for line in evidence.splitlines() if line.startswith("|")]
    assert len(rows) > 8
    assert [row for row in rows if row not in benchmarks] == []
