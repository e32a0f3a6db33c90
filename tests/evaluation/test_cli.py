"""`rag-splitters compare`: from files to figures, and one line for everything that is wrong."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from langchain_core.documents import Document
from typer.testing import CliRunner, Result

from rag_splitters import ContentAwareChunker
from rag_splitters.cli import app
from rag_splitters.evaluation import compare, read_benchmark
from rag_splitters.langchain import parent_document_retriever
from rag_splitters.reading.files import read_file
from tests.reading.test_pdf_headings import REPORT, make_pdf

FOLDER = Path(__file__).parents[1] / "data" / "evaluation"
SMALL = """sentence:{"chunk_size": 30, "length_function": "tokens"}"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with two documents and questions about them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "docs").mkdir()
    for path in (FOLDER / "corpora").iterdir():
        (tmp_path / "docs" / path.name).write_bytes(path.read_bytes())
    asked = [
        ("Where does salt come from?", "bakery.md", "Salt comes from a mine near Hallein."),
        ("What did the lamp burn?", "docs/lighthouse.md", "whale oil, then paraffin"),
        ("Who lent the ladder?", "note", {"start": 0, "end": 4}),
    ]
    lines: list[dict[str, object]] = [{"document": "note", "text": "Mary lent the ladder."}]
    for question, document, reference in asked:
        lines.append({"question": question, "document": document, "references": [reference]})
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return tmp_path


def run(*args: str) -> Result:
    return CliRunner().invoke(app, ["compare", *args])


def refused(*args: str) -> str:
    """The one line that a call with something wrong prints."""
    result = run(*args)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    return result.stderr.removeprefix("Error: ").rstrip("\n")


def test_compare_shows_figures_and_what_to_take_offline() -> None:
    result = run("docs", "-q", "q.jsonl", "-s", SMALL, "-s", "recursive", "--budget", "60")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    assert "3 questions about 3 of 3 documents" in result.stdout
    assert "HashingEmbeddings(dimensions=1024)" in result.stdout
    assert "at 60" in result.stdout
    assert "Clear winner: " in result.stdout or "No clear winner: " in result.stdout
    assert result.stdout.index("winner: ") < result.stdout.index("strategy"), "the verdict first"


def test_compare_reads_a_folder_in_the_form_of_the_report_and_has_candidates() -> None:
    result = run(str(FOLDER))
    assert result.exit_code == 0, result.stderr
    assert "16 questions about 2 of 2 documents" in result.stdout
    names = [f"{kind} 200" for kind in ("auto", "content_aware", "recursive", "sentence")]
    assert all(name in result.stdout for name in [*names, "parent_child"])


def test_compare_writes_every_form(folder: Path) -> None:
    result = run("docs", "-q", "q.jsonl", "-s", SMALL, "-k", "2", "--html", "r.html", "--json")
    assert result.exit_code == 0, result.stderr
    read = json.loads(result.stdout)
    assert read["settings"]["k"] == 2
    assert [each["name"] for each in read["strategies"]] == [SMALL]
    assert [question["document"] for question in read["questions"]] == [
        "docs/bakery.md",
        "docs/lighthouse.md",
        "note",
    ]
    assert (folder / "r.html").read_text("utf-8").startswith("<!doctype html>")
    assert "Written: r.html" in result.stderr


COUNTED = """
asked = []

def embed(texts):
    asked.extend(texts)
    with open("asked.txt", "a") as file:
        file.writelines("asked\\n" for text in texts)
    return [[float(len(text)), float(text.count("e")), 1.0] for text in texts]
"""


def test_compare_keeps_embeddings_for_the_next_run_and_for_semantic_strategies(
    folder: Path,
) -> None:
    (folder / "counted_model.py").write_text(COUNTED, encoding="utf-8")
    options = ("docs", "-q", "q.jsonl", "--embeddings", "function:counted_model:embed")
    counts = []
    for strategies in (["semantic"], ["semantic"], ["semantic", "cluster"]):
        named = [part for strategy in strategies for part in ("-s", strategy)]
        result = run(*options, "--cache", "kept", *named)
        assert result.exit_code == 0, result.stderr
        counts.append(len((folder / "asked.txt").read_text("utf-8").splitlines()))
    assert counts[0] == counts[1] > 0, "the second run asks for nothing"
    assert counts[2] > counts[1]


def test_parameters_of_a_strategy_are_json_with_commas(folder: Path) -> None:
    keyword = """keyword:{"keywords": ["a, b", "Salt, "], "chunk_size": 90}"""
    parent_child = """parent_child:{"retrieve": "children", "search_type": "similarity"}"""
    options = ("-s", keyword, "-s", parent_child, "--json")
    result = run("docs", "-q", "q.jsonl", *options)
    assert result.exit_code == 0, result.stderr
    first, second = json.loads(result.stdout)["strategies"]
    assert (first["name"], second["name"]) == (keyword, parent_child)
    assert first["strategy"]["parameters"]["keywords"] == ["a, b", "Salt, "]
    assert second["metrics"]["recall"]["mean"] > 0


def test_parent_child_searches_as_in_python_without_a_model() -> None:
    benchmark = read_benchmark(FOLDER)
    documents = [Document(text, id=name) for name, text in benchmark.documents.items()]
    retrievers = {"parent_child": parent_document_retriever(documents)}
    expected = compare(retrievers, benchmark.documents, benchmark.questions, budgets=[400])
    result = run(str(FOLDER), "-s", "parent_child", "--budget", "400", "--json")
    (row,) = json.loads(result.stdout)["strategies"]
    for name in ("recall@400", "precision", "retrieved"):
        assert row["values"][name] == expected.values("parent_child", name).tolist()


def test_each_bad_question_is_told_in_a_line_of_its_own(folder: Path) -> None:
    question = {"question": "Where?", "document": "docs/bakery.md", "references": ["nobody\nknows"]}
    (folder / "bad.jsonl").write_text("{\n" + json.dumps(question))
    result = run("docs", "-q", "bad.jsonl")
    assert result.exit_code == 2
    heading, first, second = result.stderr.splitlines()
    assert heading == "Error: bad.jsonl: 2 lines cannot be used"
    assert first.startswith("  line 1: not JSON: ")
    assert second.startswith("  line 2: 'nobody\\nknows' is not in the document")


def test_compare_without_questions_counts_faults(folder: Path) -> None:
    result = run("docs", "--html", "r.html")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("No verdict: without questions")
    assert "Written: r.html" in result.stderr
    values = json.loads(run("docs", "--json").stdout)
    assert len(values["strategies"]) == 8
    assert all(each["faults"]["leaked_markup"] == 0 for each in values["strategies"])
    page = (folder / "r.html").read_text("utf-8")
    assert "mid-sentence" in page
    assert all(each["name"] in page for each in values["strategies"])


def test_the_last_report_is_no_document(folder: Path) -> None:
    reports = [run("docs", "--html", "docs/r.html").stdout for _ in range(2)]
    assert reports[0] == reports[1]


def test_compare_measures_the_others_before_it_fails(folder: Path) -> None:
    expected = run("docs", "-q", "q.jsonl", "-s", SMALL).stdout
    (folder / "docs" / "broken.pdf").write_bytes(b"%PDF-1.4 broken")
    result = run("docs", "-q", "q.jsonl", "-s", SMALL)
    assert (result.exit_code, result.stdout) == (2, expected)
    assert result.stderr.startswith("Error: docs/broken.pdf cannot be read as PDF: ")
    (folder / "docs" / "bakery.md").write_bytes(b"\0")
    result = run("docs", "-q", "q.jsonl", "-s", SMALL)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "q.jsonl, line 2: there is no document 'bakery.md'" in result.stderr
    assert "\n  docs/bakery.md is not a text file: " in result.stderr, "why it is none"
    assert "there are no documents" in run("docs/bakery.md").stderr


def test_compare_cuts_files_with_what_their_readers_found(folder: Path) -> None:
    (source,) = read_file(make_pdf(folder / "docs" / "clocks.pdf", REPORT))
    chunker = ContentAwareChunker(chunk_size=900)
    expected = len(chunker.chunk(source.text, metadata=source.metadata))
    assert expected > len(chunker.chunk(source.text)), "its headings are in the metadata"
    for options in ([], ["-q", "q.jsonl"]):
        name = """content_aware:{"chunk_size": 900}"""
        result = run("docs", *options, "-s", name, "--json")
        own = len(chunker.chunk((folder / "docs" / "bakery.md").read_text("utf-8")))
        own += len(chunker.chunk((folder / "docs" / "lighthouse.md").read_text("utf-8")))
        own += len(options) // 2  # the note
        assert json.loads(result.stdout)["strategies"][0]["chunks"] == expected + own


def test_any_number_of_chunks_can_be_asked_for() -> None:
    assert run("docs", "-q", "q.jsonl", "-s", SMALL, "-k", str(10**30)).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("atlas -q q.jsonl", "atlas: no such file or folder"),
        ("docs -q none.jsonl", "none.jsonl: no such file"),
        ("docs/bakery.md -q q.jsonl", "q.jsonl, line 3: there is no document 'docs/light"),
        ("docs -q q.jsonl -s parent-chil", "did you mean 'parent_child'?"),
        ("docs -q q.jsonl -s zzzz", ", parent_child"),
        ("docs -s parent_child", "parent_child needs questions: pass --questions, or "),
        ("docs -s page -s parent_child", "parent_child needs questions: pass --que"),
        (
            """docs -q q.jsonl -s 'parent_child:{"max_tokens": 90}'""",
            "parent_child is asked for each budget: pass --budget, not max_tokens",
        ),
        ("docs -q q.jsonl -s page -s page", "'page' is given twice"),
        (
            "docs -q q.jsonl -s sentence:chunk_size=3",
            """must be a JSON object, such as 'sentence:{"chunk_size": 300}', got 'chunk_size=3'""",
        ),
        ("docs -q q.jsonl -k 0", "Invalid value for '-k': "),
        ("docs -q q.jsonl --embeddings word2vec", "embeddings must be hashing, "),
        ("docs -q q.jsonl --embeddings openai:m", "needs OPENAI_API_KEY in the env"),
        (
            f"docs -q {FOLDER}/questions.csv",
            "is a table, and questions are read as one JSON object",
        ),
        ("docs -q q.jsonl --html no/r.html", "no/r.html cannot be written: name a"),
        ("docs -q q.jsonl --html docs", "docs cannot be written: name a file"),
        ("docs -q q.jsonl --html ./q.jsonl", "q.jsonl is a file to read: write to "),
        ("docs/bakery.md --html docs/bakery.md", "bakery.md is a file to read: write to "),
        ("docs --html docs/bakery.md", "bakery.md is a file to read: write to "),
        (f"{FOLDER} --html {FOLDER}/questions.csv", "questions.csv is a file to read: write to"),
        ("docs -q q.jsonl --cache q.jsonl", "q.jsonl/answers.sqlite cannot be used"),
    ],
)
def test_compare_tells_in_one_line_what_is_wrong(arguments: str, message: str) -> None:
    assert message in refused(*shlex.split(arguments))
