"""The command line: what it prints, what it keeps, and one line for everything that is wrong."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from typer.testing import CliRunner, Result

import rag_splitters
from rag_splitters import CATALOGUE, __version__
from rag_splitters.chunkers.by_name import parameter_docs
from rag_splitters.cli import app
from rag_splitters.cli.demo import positions
from rag_splitters.cli.views import excerpt
from rag_splitters.reading.files import read_file, read_text
from rag_splitters.reading.samples import SAMPLE_QUESTIONS, sample_texts
from rag_splitters.text.coloured import printable
from tests.support.pdfs import make_pdf
from tests.support.processes import ROOT

FILES = ("a.txt", "b.py", "c.json")
TEXT = "One sentence here. Another one there.\r\n\r\nA second paragraph \U0001f600 ends it.\n" * 3


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder with one text in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    (tmp_path / "a.txt").write_bytes(TEXT.encode())
    return tmp_path


def run(*args: str, input: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, list(args), input=input)


def rows(*args: str, input: str | bytes | None = None) -> list[dict[str, Any]]:
    result = run(*args, "--json", input=input)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    assert result.stdout.isascii()
    return [json.loads(line) for line in result.stdout.splitlines()]


def refused(*args: str, input: str | bytes | None = None) -> str:
    """The one line that a call with something wrong prints."""
    result = run(*args, input=input)
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit)
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("Error: ").rstrip("\n")


def process(*args: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rag_splitters", *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


# --- split ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "more"),
    [
        ("sliding_window", ["--chunk-size", "40", "--chunk-overlap", "10"]),
        ("token", ["--chunk-size", "10", "--chunk-overlap", "0.2"]),
        ("recursive", ["--chunk-size", "9", "--length-function", "words"]),
        ("sentence", ["--chunk-size", "50", "-p", "overlap_sentences=1"]),
        ("keyword", ["-p", "keywords=Another", "-p", "keywords=second"]),
        ("hybrid", ["-p", 'stages=["page", {"strategy": "sentence", "chunk_size": 30}]']),
    ],
)
def test_split_jsonl_round_trips(strategy: str, more: list[str]) -> None:
    found = rows("split", "a.txt", "--strategy", strategy, *more)
    assert len(found) > 1
    for index, row in enumerate(found):
        assert list(row) == ["source", "text", "start", "end", "id", "metadata"]
        assert TEXT[row["start"] : row["end"]] == row["text"]
        assert row["source"] == "a.txt"
        assert row["metadata"]["chunk_index"] == index
    assert len({row["id"] for row in found}) == len(found)


def test_split_takes_the_strategy_for_each_file(folder: Path) -> None:
    (folder / "b.py").write_text("def f():\n    return 1\n")
    (folder / "c.json").write_text('{"a": 1}')
    strategies = {row["source"]: row["metadata"]["strategy"] for row in rows("split", *FILES)}
    assert strategies == {"a.txt": "content_aware", "b.py": "code", "c.json": "json"}
    rules = 'rules={"*.py": "token", "json": {"strategy": "sentence", "chunk_size": 9}}'
    found = rows("split", *FILES, "-p", rules)
    strategies = {row["source"]: row["metadata"]["strategy"] for row in found}
    assert strategies == {"a.txt": "content_aware", "b.py": "token", "c.json": "sentence"}
    assert "rules['*.py']: unknown strategy 'tokn'" in refused(
        "split", "b.py", "-p", 'rules={"*.py": "tokn"}'
    )


def test_split_and_index_take_every_known_kind_from_a_folder(folder: Path) -> None:
    source = folder / "src"
    (source / "lib").mkdir(parents=True)
    texts = {"a.py": "x = 1", "lib/b.sql": "select 1;", "Makefile": "all:", "c.yaml": "a: 1"}
    for name, text in {**texts, "d.json": "{}", "e.csv": "a,b\n1,2", "f.log": "x"}.items():
        (source / name).write_text(text)
    for name in ("i.png", "j.png", "k.pyc"):
        (source / name).write_bytes(b"\0")
    result = run("split", "src", "--json")
    found = {json.loads(line)["source"] for line in result.stdout.splitlines()}
    assert len(found) == 7
    assert {f"src/{name}" for name in texts} < found
    note = "Skipped 3 files: 2 .png, 1 .pyc (src/i.png, src/j.png, src/k.pyc)."
    assert note in " ".join(result.stderr.split())
    result = run("index", "idx", "src")
    assert "7 files (7 new" in result.stdout
    assert note in " ".join(result.stderr.split())


def test_split_reads_standard_input() -> None:
    found = rows("split", "-", "--chunk-size", "40", input=b"\xef\xbb\xbf" + TEXT.encode())
    assert {row["source"] for row in found} == {"-"}
    assert found == rows("split", "--chunk-size", "40", input=TEXT.encode())
    assert all(TEXT[row["start"] : row["end"]] == row["text"] for row in found)


def test_pages_of_a_pdf_are_shown_and_cited(folder: Path) -> None:
    make_pdf(folder / "report.pdf", ["First page about cats.", "Second page about dogs."])
    found = rows("split", "report.pdf", "--chunk-size", "30")
    assert [row["metadata"]["page_start"] for row in found] == [1, 2]
    assert "page" in run("split", "report.pdf").stdout.splitlines()[2]
    sizes = ("--parent-size", "30", "--child-size", "30")
    assert run("index", "idx", "report.pdf", *sizes).exit_code == 0
    alone = ("--retrieve", "children")
    assert "1. report.pdf  page 2  " in run("query", "idx", "dogs", "-k", "1", *alone).stdout
    assert rows("query", "idx", "dogs", "-k", "1", *alone)[0]["metadata"]["page_start"] == 2
    data = (folder / "report.pdf").read_bytes()
    assert len(rows("split", "-", "-s", "page", input=data)) == 2


def test_split_table_shows_positions_and_no_markup(folder: Path) -> None:
    (folder / "m.txt").write_text("[bold]x[/bold] [/nope] :smile: \x1b[31mred\n")
    result = run("split", "m.txt", "a.txt", "--chunk-size", "60")
    assert result.exit_code == 0
    assert "[bold]x[/bold] [/nope] :smile:" in result.stdout
    assert "\x1b" not in result.stdout
    assert "m.txt" in result.stdout
    assert "length in characters" in result.stdout


@pytest.mark.parametrize("width", ["12", "30", "200"])
def test_split_table_fits_the_terminal(width: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", width)
    result = run("split", "a.txt", "--chunk-size", "30")
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= int(width)


@pytest.mark.parametrize("name", ["ContentAware", "contentaware", "content-aware", "CONTENT_AWARE"])
def test_split_takes_names_in_any_case(name: str) -> None:
    assert rows("split", "a.txt", "-s", name) == rows("split", "a.txt", "-s", "content_aware")


@pytest.mark.parametrize("name", ["hybrid", "titled", "modality"])
def test_split_hands_sizes_to_the_strategies_inside(name: str) -> None:
    found = rows("split", "a.txt", "-s", name, "--chunk-size", "6", "--length-function", "words")
    assert max(len(row["text"].split()) for row in found) <= 6
    assert len(found) > len(rows("split", "a.txt", "-s", name))


def test_split_reads_the_others_before_it_fails(folder: Path) -> None:
    for name in ("b.txt", "d.txt"):
        (folder / name).write_bytes(b"\0")
    (folder / "c.txt").write_text("The last one.")
    names = ("a.txt", "b.txt", "no.txt", "c.txt", "d.txt")
    result = run("split", *names, "--json")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: 3 files cannot be read: no.txt: no such file or folder")
    assert "; b.txt is not a text file: " in result.stderr
    assert "; d.txt is not a text file: " in result.stderr
    found = {json.loads(line)["source"] for line in result.stdout.splitlines()}
    assert found == {"a.txt", "c.txt"}


def test_split_writes_a_file_and_does_not_read_it(folder: Path) -> None:
    expected = rows("split", "a.txt")
    for _ in range(2):
        result = run("split", ".", "-o", "chunks.jsonl")
        assert len(expected) == 1
        assert (result.stdout, result.stderr) == ("", "chunks.jsonl: 1 chunk of 1 text written\n")
        lines = (folder / "chunks.jsonl").read_text().splitlines()
        assert [json.loads(line) for line in lines] == expected
    run("split", "a.txt", "-o", "chunks.txt", "--show")
    assert (folder / "chunks.txt").read_text(encoding="utf-8").startswith("a.txt: ")
    text = (folder / "a.txt").read_text()
    assert (
        refused("split", "./a.txt", "-o", "a.txt")
        == "a.txt is a file to read: write to another one"
    )
    assert refused("split", ".", "-o", "a.txt").startswith("a.txt is a file to read")
    assert refused("split", "chunks.jsonl", "-o", "chunks.jsonl").startswith("chunks.jsonl is a f")
    assert (folder / "a.txt").read_text() == text


def test_split_reads_an_encoding(folder: Path) -> None:
    (folder / "l.txt").write_bytes("caf\u00e9".encode("cp1252"))
    (found,) = rows("split", "l.txt", "--encoding", "cp1252")
    assert found["text"] == "caf\u00e9"
    assert refused("split", "l.txt", "--encoding", "utf-8").startswith("l.txt is not in utf-8: ")
    (found,) = rows("split", "--encoding", "utf-16", input="caf\u00e9".encode("utf-16"))
    assert found["text"] == "caf\u00e9"
    make_pdf(folder / "report.pdf", ["About cats."])
    assert "cats" in rows("split", "report.pdf", "--encoding", "utf-16")[0]["text"]


def test_split_shows_the_text_in_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "One is here. Two is here. Three is here. Four is here. \x1b[0m"
    sizes = ("-s", "sentence", "--chunk-size", "27", "--chunk-overlap", "13")
    plain = run("split", "--show", *sizes, input=text).stdout
    assert "|One is here. |>>Two is here.<< Three" in plain
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    shown = run("split", "--show", *sizes, input=text).stdout
    assert "One is here. \x1b[0m\x1b[4;30;105mTwo is here.\x1b[0m" in shown
    assert "\ufffd[0m" in shown


def test_split_blank_text_gives_no_chunks() -> None:
    assert rows("split", "-", input=" \n ") == []
    assert "0 chunks" in run("split", "-", input="").stdout


@pytest.mark.parametrize(
    "args", [[], *([each] for each in ("demo", "split", "strategies", "index", "query", "compare"))]
)
def test_h_is_help(args: list[str]) -> None:
    shown = run(*args, "-h").stdout
    assert shown == run(*args, "--help").stdout
    assert "Usage: " in shown
    assert not re.search(r"<\w+>|\{\w+|\.\.\.\}|INTEGER", shown)


def test_help_of_query_speaks_of_what_the_command_line_has() -> None:
    shown = " ".join(run("query", "--help").stdout.replace("│", " ").split())
    assert "Default: 4; with --max-tokens, as many as" in shown
    assert not re.search(r"None|max_\w+|`k`", shown)


def test_the_shell_completes_commands_and_strategies() -> None:
    assert "--install-completion" in run("--help").stdout
    variables = {
        "_RAG_SPLITTERS_COMPLETE": "complete_bash",
        "COMP_WORDS": "rag-splitters split -s cont",
        "COMP_CWORD": "3",
    }
    assert process(env={**os.environ, **variables}).stdout.split() == [
        "content_aware",
        "contextual",
    ]


# --- what is wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("split no.txt", "no.txt: no such file"),
        ("split a.txt -s qqq", "choose one of auto, separator,"),
        ("split a.txt -p chunk_sise=1", "unknown parameter 'chunk_sise': did you mean '"),
        ("split a.txt -p chunk_size", "given as name=value, got 'chunk_size'"),
        ("split a.txt -p chunk_size=5 --chunk-size 6", "chunk_size is given twice"),
        ("split a.txt --chunk-size x", "'--chunk-size'"),
        ("split a.txt --chunk-overlap x", "chunk_overlap must be a whole number"),
        ("split a.txt -s recursive -p min_chunk_size=-1", "min_chunk_size must be a whole number"),
        ("""split a.txt -s hybrid -p 'stages=[{"a": 1}]'""", 'does not name its "strat'),
        ("split a.txt --length-function miles", "length_function must be "),
        ("split a.txt --length-function function:no:no", "No module named 'no'"),
        ("split - -", "standard input (-) can be read only once"),
        ("split a.txt --nope", "No such option: --nope"),
        ("split", "nothing to split: name files or folders, or pipe a text in"),
        ("split a.txt --encoding nope", "unknown encoding 'nope'"),
        ("split a.txt --show --json", "--show and --json cannot be used"),
        ("split a.txt -o no/such/file", "cannot be written: No such file"),
        (f"split {'a' * 300}", "aaa cannot be read: File name too long"),
        (f"index {'a' * 300} a.txt", "aaa: File name too long"),
        ("split a.txt --encoding undefined", "unknown encoding 'undefined'"),
        ("splt", "unknown command 'splt': choose demo, split, "),
        ("split ''", "an argument is empty"),
        ("index idx '' --sync", "an argument is empty"),
        ("split no\x1b[31m.txt", "no\N{REPLACEMENT CHARACTER}[31m.txt: no such file"),
        (f"split a.txt -s hybrid -p stages={'[' * 9999}", "unknown strategy '[[["),
        (f"compare a.txt -s recursive:{'[' * 9999}", "must be a JSON object, such as"),
        ("""compare a.txt -s 'parent_child:{"documents": []}'""", "pass none to it"),
        ("strategies pages", "did you mean 'page'?"),
        ("query no question", "no holds no index: make one with rag-splitters index no"),
        ("mcp no", "no holds no index: make one with rag-splitters index no"),
        ("query no '  '", "the question is blank"),
        ("query no question -k 0", "'-k'"),
        ("index idx no.txt", "no.txt: no such file or folder"),
        ("index a.txt a.txt", "a.txt is a file: name a folder for the index"),
        ("index . a.txt", ". holds other files and no index: name a new folder"),
    ],
    ids=lambda text: text[:40],
)
def test_bad_input_gives_one_line(folder: Path, command: str, told: str) -> None:
    message = refused(*shlex.split(command))
    assert told in message
    assert "https://" not in message
    assert "Value error" not in message
    assert [path.name for path in folder.iterdir()] == ["a.txt"]  # nothing is created


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("b.txt", b"ab\0c", "b.txt is not a text file: it has a NUL byte at offset 2"),
        (
            "b.txt",
            b"\xff\xfeA",
            "b.txt is not a text file: its byte order mark says utf",
        ),
        ("b.pdf", b"%PDF-1.7 broken", "b.pdf cannot be read as PDF: "),
        ("b.pdf", b"", "b.pdf cannot be read as PDF: "),
    ],
)
def test_unreadable_file_gives_one_line(folder: Path, name: str, data: bytes, told: str) -> None:
    (folder / name).write_bytes(data)
    assert told in refused("split", name)
    assert told in refused("index", "idx", name)
    if name.endswith(".txt"):
        assert told.replace(name, "-") in refused("split", "-", input=data)


def test_query_writes_the_pages_with_the_results_marked(folder: Path) -> None:
    pypdfium2 = pytest.importorskip("pypdfium2")
    make_pdf(folder / "tea.pdf", ["Green tea wants cool water.", "Black tea wants boiling water."])
    assert run("index", "idx", "tea.pdf").exit_code == 0
    result = run("query", "idx", "boiling water", "--pages", "out")
    assert result.exit_code == 0
    assert "Wrote out/1_tea.pdf." in result.stderr
    marked = pypdfium2.PdfDocument(folder / "out" / "1_tea.pdf")
    assert "Black tea" in marked[len(marked) - 1].get_textpage().get_text_bounded()
    assert pypdfium2.raw.FPDFPage_GetAnnotCount(marked[len(marked) - 1]) == 1


def test_query_says_which_pages_it_cannot_write(folder: Path) -> None:
    make_pdf(folder / "tea.pdf", ["Green tea wants cool water."])
    (folder / "notes.txt").write_text("Coffee wants hot water.")
    run("index", "idx", "tea.pdf", "notes.txt")
    told = refused("query", "idx", "green tea", "--pages", "notes.txt")
    assert told == "notes.txt is a file: name a folder for the pages"
    (folder / "tea.pdf").unlink()
    told = run("query", "idx", "green tea", "--pages", "out").stderr
    assert "tea.pdf is not there any more, so its pages were not written." in told
    told = run("query", "idx", "coffee", "--pages", "out", "--min-score", "0.5").stderr
    assert "None of the results comes from a PDF" in told


def test_pdf_that_holds_no_text_to_read_gives_one_line(folder: Path) -> None:
    make_pdf(folder / "locked.pdf", ["A secret."], encrypt="secret")
    told = "locked.pdf cannot be read: it is protected by a password. Save a copy without one"
    assert refused("split", "locked.pdf") == told
    make_pdf(folder / "scan.pdf", [""])
    assert "scan.pdf holds no text: its pages are probably scanned" in refused("split", "scan.pdf")


# --- strategies, demo ----------------------------------------------------------------------------


def test_strategies_lists_the_catalogue() -> None:
    result = run("strategies")
    assert result.exit_code == 0
    for name, kind in CATALOGUE.items():
        assert name in result.stdout
        assert (kind.__doc__ or "").split()[0] in result.stdout


@pytest.mark.parametrize("name", CATALOGUE)
def test_strategies_documents_every_parameter(name: str) -> None:
    result = run("strategies", name)
    assert result.exit_code == 0
    docs = parameter_docs(CATALOGUE[name])
    assert set(docs) == set(CATALOGUE[name].model_fields)
    assert "Undefined" not in result.stdout
    for parameter, (_, meaning) in docs.items():
        assert parameter in result.stdout
        assert meaning
        assert meaning.split()[0] in result.stdout


def test_strategies_prints_defaults_as_python_and_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    shown = run("strategies", "Table").stdout
    assert shown.startswith("table (TableChunker)\n")
    assert max(map(len, shown.splitlines())) <= 50
    assert "None" in shown
    assert "null" not in shown
    assert "'characters'" in shown


def test_demo_shows_each_answer_inside_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    result = run("demo")
    assert result.exit_code == 0
    assert result.stderr == ""
    shown = result.stdout
    assert "matches words, not meaning" in shown
    marked = [part.split("<<")[0] for part in shown.split(">>")[1:]]
    assert len(marked) == len(SAMPLE_QUESTIONS) == 3
    assert "first Saturday of each month at noon" in marked[0]
    assert "painted dark green because" in marked[1]
    assert "bake for fifty-five minutes" in marked[2]


def test_demo_fits_one_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("demo").stdout.splitlines()
    assert 24 <= len(lines) <= 40
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("1. One text")
    assert any("The w|alls are granite" in line for line in lines), "fixed_size cuts a word"
    assert any("at least once. |The walls are" in line for line in lines)


def test_demo_positions_are_those_of_the_frameworks() -> None:
    ours, langchain, llama_index = positions()
    assert (ours.missing, ours.coverage) == (0, 1)
    assert langchain.splitter == "LangChain RecursiveCharacterTextSplitter"
    assert langchain.missing
    assert langchain.coverage < 0.9
    assert llama_index.splitter == "LlamaIndex SentenceSplitter"
    assert llama_index.coverage < 0.5


# --- index and query -----------------------------------------------------------------------------


def stored(folder: str) -> dict[str, str]:
    """The texts of all children in an index, by their ids."""
    from rag_splitters.langchain import parent_document_retriever

    with closing(parent_document_retriever(path=folder)) as retriever:
        kept = retriever.vectorstore.get()  # type: ignore[attr-defined]
    return dict(zip(kept["ids"], kept["documents"], strict=True))


@pytest.fixture
def docs(folder: Path) -> Path:
    """A folder with the demo's texts and some files that are not to be read."""
    docs = folder / "docs"
    (docs / "deep").mkdir(parents=True)
    (docs / ".hidden").mkdir()
    for name, text in sample_texts().items():
        (docs / "deep" / name).write_text(text, encoding="utf-8")
    (docs / ".hidden" / "secret.md").write_text("a zeppelin")
    (docs / ".secret.md").write_text("a zeppelin")
    (docs / "program.bin").write_bytes(b"\0zeppelin")
    return docs


def test_index_is_durable_and_idempotent(docs: Path) -> None:
    assert "3 files (3 new, 0 changed, 0 unchanged)" in run("index", "idx", "docs").stdout
    before = stored("idx")
    again = run("index", "idx", "docs", str(docs / "deep" / "tram.md"))
    assert "3 files (0 new, 0 changed, 3 unchanged)" in again.stdout
    assert stored("idx") == before

    tram = docs / "deep" / "tram.md"
    tram.write_text(sample_texts()["tram.md"].replace("dark green", "deep khaki"), encoding="utf-8")
    assert "(0 new, 1 changed, 2 unchanged)" in run("index", "idx", "docs").stdout
    after = stored("idx")
    assert not any("dark green" in text for text in after.values())
    assert any("deep khaki" in text for text in after.values())
    assert len(before.keys() - after.keys()) <= 5  # the children of one parent
    assert len(after) == len(before)


def test_an_index_that_was_made_with_another_strategy_keeps_it(docs: Path) -> None:
    """As one that Python made, or a version of the command line that had another default."""
    from rag_splitters.langchain import FileLoader, parent_document_retriever

    paths = [Path("docs", "deep", name) for name in sample_texts()]
    documents = [each for path in paths for each in FileLoader(path).load()]
    with closing(parent_document_retriever(documents, path="idx")):
        pass
    before = stored("idx")
    assert "3 files (0 new, 0 changed, 3 unchanged)" in run("index", "idx", "docs").stdout
    assert stored("idx") == before


def test_index_remembers_its_sizes(docs: Path) -> None:
    run("index", "indexes/tea", "docs", "--child-size", "90", "--parent-size", "300")
    before = stored("indexes/tea")
    run("index", "indexes/tea", "docs")
    assert stored("indexes/tea") == before
    run("index", "indexes/tea", "docs", "--child-size", "60")
    assert max(map(len, stored("indexes/tea").values())) <= 60
    settings = Path("indexes/tea/settings.json").read_text()
    refused("index", "indexes/tea", "docs", "--child-size", "70", "--embeddings", "hashing:32")
    assert Path("indexes/tea/settings.json").read_text() == settings
    told = refused("index", "indexes/tea", "docs", "--parent-size", "50")
    assert told == "--child-size must not be above --parent-size (50), got 60"
    refused("index", "new", "docs", "--child-size", "300", "--parent-size", "200")
    assert not Path("new").exists()


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"strategy": "agentic"}',
        '{"strategy": "function:os:system"}',
        '{"child_size": "9"}',
        '{"parent_size": 0}',
        '{"more": 1}',
    ],
)
def test_damaged_settings_of_an_index_give_one_line(folder: Path, text: str) -> None:
    run("index", "idx", "a.txt")
    (folder / "idx" / "settings.json").write_text(text)
    assert "settings.json is damaged: " in refused("index", "idx", "a.txt")


def test_index_says_which_files_it_wrote_again(docs: Path) -> None:
    """Also those of which only the cuts or the metadata have changed."""
    subtitles = "1\n00:00:0{}.000 --> 00:00:09.000\nA zeppelin.\n"
    (docs / "a.srt").write_text(subtitles.format(1))
    run("index", "idx", "docs")
    before = stored("idx")
    (docs / "a.srt").write_text(subtitles.format(2))
    assert "4 files (0 new, 1 changed, 3 unchanged)" in run("index", "idx", "docs").stdout
    assert "4 files (0 new, 0 changed, 4 unchanged)" in run("index", "idx", "docs").stdout
    assert stored("idx").keys() == before.keys()
    result = run("index", "idx", "docs", "--child-size", "60", "--json")
    assert len(stored("idx")) > len(before)
    counts = json.loads(result.stdout)
    assert (counts["new"], counts["changed"], counts["unchanged"]) == (0, 3, 1)


def test_index_leaves_itself_out(docs: Path) -> None:
    run("index", "docs/idx", "docs")
    (docs / "idx" / "note.md").write_text("never read")
    assert "3 files" in run("index", "docs/idx", "docs").stdout


def test_index_says_which_files_of_a_folder_it_does_not_read(docs: Path) -> None:
    (docs / "deep" / "LICENCE").write_text("Anybody may use it.")
    told = " ".join(run("index", "idx", "docs").stderr.split())
    assert told == (
        "Skipped 2 files: 1 .bin, 1 without a suffix (docs/program.bin, docs/deep/LICENCE). "
        "Name a file to read it, whatever its kind."
    )
    assert "secret" not in told
    named = run("index", "idx", "docs/deep/LICENCE")
    assert named.stdout.startswith("idx: 1 file (1 new")
    assert named.stderr == ""


def test_index_of_a_folder_with_nothing_to_read_is_an_error(folder: Path) -> None:
    (folder / "empty").mkdir()
    assert refused("index", "idx", "empty") == "empty holds no files of a known kind"
    (folder / "empty" / "a.png").write_bytes(b"x")
    (folder / "empty" / "b.PNG").write_bytes(b"x")
    assert refused("index", "idx", "empty") == (
        "empty holds no files of a known kind: there are only 2 files: 2 .png"
    )
    assert not (folder / "idx").exists()


def test_query_marks_the_match_inside_the_passage(docs: Path) -> None:
    run("index", "idx", "./docs")
    result = run("query", "idx", "When does the last ferry leave in strong wind?", "-k", "1")
    assert result.exit_code == 0
    marked = result.stdout.split(">>")[1].split("<<")[0]
    assert "The last ferry leaves" in marked
    assert "1. docs/deep/lighthouse.md  " in result.stdout, "the path is a relative one"
    assert "score 0." in result.stdout


@pytest.mark.parametrize(
    ("limit", "match", "expected"),
    [
        (8, "Ee ff gg hh.", "... >>Ee ff ...<< ..."),
        (16, "Ee ff gg hh.", "... . >>Ee ff gg hh.<< I ..."),
        (20, "ff", "... dd. Ee >>ff<< gg hh. ..."),
        (24, "Aa bb", ">>Aa bb<< cc dd. ..."),
        (60, "ff", "Aa bb cc dd. Ee >>ff<< gg hh. Ii jj kk ll."),
        (12, None, "Aa bb cc ..."),
        (13, None, "Aa bb cc dd. ..."),
        (38, None, "Aa bb cc dd. Ee ff gg hh. Ii jj kk ll."),
    ],
)
def test_excerpt_shows_words_around_the_match(limit: int, match: str | None, expected: str) -> None:
    text = "Aa bb cc dd. Ee ff gg hh. Ii jj kk ll."
    document = Document(text, metadata={"source": "a.md", "start_index": 2, "end_index": 40})
    if match:
        start = text.index(match) + 2
        own = [{"start_index": start, "end_index": start + len(match)}]
        document.metadata["matches"] = json.dumps(own)
    assert str(excerpt(document, limit)) == f"a.md 2-40: {expected}"


@pytest.mark.parametrize("more", [[], ["--retrieve=children"], ["--retrieve=parents"]])
def test_query_rows_stand_where_they_say(docs: Path, more: list[str]) -> None:
    run("index", "idx", "docs")
    found = rows("query", "idx", "rye flour", "-k", "3", *more)
    assert len(found) == 3 if more else 1 <= len(found) <= 3
    assert [row["score"] for row in found] == sorted((r["score"] for r in found), reverse=True)
    for row in found:
        source = read_text(row["source"])
        assert source[row["start"] : row["end"]] == row["text"]
        assert row["matches"][0]["score"] == row["score"]
    assert len(rows("query", "idx", "rye flour", "--max-tokens", "100", *more)) in (1, 2)


def test_index_refuses_a_folder_whose_name_is_not_in_utf_8(folder: Path) -> None:
    assert refused("index", "\udcff", "a.txt").endswith("Chroma opens no such folder")


def test_query_of_an_empty_index_says_so(folder: Path) -> None:
    (folder / "blank.txt").write_text(" ")
    run("index", "idx", "blank.txt")
    result = run("query", "idx", "anything")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "No results" in result.stderr


@pytest.mark.slow
def test_query_of_an_index_that_another_process_has_open_gives_one_line(docs: Path) -> None:
    assert run("index", "idx", "docs").exit_code == 0
    code = (
        "from rag_splitters.langchain import parent_document_retriever as open_index\n"
        "index = open_index(path='idx')\nprint('open', flush=True)\ninput()"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"open\n"
        line = refused("query", "idx", "anything")
        owner.kill()
    assert line.startswith(f"{Path('idx').resolve()} is open in process {owner.pid} on ")
    assert f"chroma run --path {Path('idx').resolve()}" in line
    assert run("query", "idx", "anything").exit_code == 0, "its lock ended with it"


def test_query_of_a_damaged_index_gives_one_line(folder: Path) -> None:
    (folder / "idx" / "chroma").mkdir(parents=True)
    (folder / "idx" / "parents").mkdir()
    (folder / "idx" / "parents" / "rag_splitters.sqlite").write_text(
        "this is no database, however long it may be"
    )
    assert refused("query", "idx", "x").startswith("the index in idx cannot be used: ")


def test_query_leaves_out_what_has_nothing_to_do_with_the_question(docs: Path) -> None:
    run("index", "idx", "docs")
    result = run("query", "idx", "quantum chromodynamics lagrangian")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith("No results with a score of at least 0.15: --min-score 0")
    assert len(rows("query", "idx", "quantum chromodynamics lagrangian", "--min-score", "0")) > 0
    assert run("query", "idx", "volcano").stdout == "", "a word whose hash collides"
    for row in rows("query", "idx", "When is the foghorn sounded?"):
        assert row["score"] >= 0.15


def test_query_shows_short_passages_with_their_titles(docs: Path) -> None:
    (docs / "long.md").write_text("# Book\n\n## Zeppelins\n\n" + "The zeppelin flew on. " * 40)
    run("index", "idx", "docs", "--child-size", "1000")
    shown = run("query", "idx", "zeppelin", "-k", "1").stdout
    assert "1. docs/long.md  " in shown
    assert "\n   Book > Zeppelins\n" in shown
    assert shown.count("zeppelin flew") < 20
    assert " ...<<" in shown
    assert run("query", "idx", "zeppelin", "-k", "1", "--full").stdout.count("zeppelin flew") > 30


def test_json_means_the_same_in_every_command(docs: Path) -> None:
    """Each prints JSON lines on standard output, and nothing else there."""
    (written,) = rows("index", "idx", "docs/deep")
    counts = {"new": 3, "changed": 0, "unchanged": 0, "removed": 0, "errors": []}
    assert written == {"index": "idx", **counts}
    assert {"source", "text", "start", "end"} <= rows("split", "docs/deep")[0].keys()
    assert {"text", "score", "matches"} <= rows("query", "idx", "rye flour")[0].keys()
    strategies = rows("strategies")
    assert [row["strategy"] for row in strategies] == list(CATALOGUE)
    (page,) = rows("strategies", "page")
    assert page == next(row for row in strategies if row["strategy"] == "page")
    assert page["parameters"]["chunk_size"]["default"] == "1000"
    (removed,) = rows("delete", "idx", "docs/deep/tram.md")
    assert removed == {"index": "idx", "removed": 1, "unknown": []}


def test_index_sync_removes_what_is_gone(docs: Path) -> None:
    run("index", "idx", "docs", "a.txt")
    (docs / "deep" / "tram.md").unlink()
    result = run("index", "idx", "docs", "--sync")
    assert "2 files (0 new, 0 changed, 2 unchanged), 2 documents removed" in result.stdout
    assert "removed" not in run("index", "idx", "docs", "--sync").stdout
    sources = {row["source"] for row in rows("query", "idx", "tram paragraph", "--min-score", "0")}
    assert sources <= {"docs/deep/lighthouse.md", "docs/deep/bakery.md"}


def test_a_folder_that_cannot_be_read_is_an_error_and_its_documents_stay(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("index", "idx", "docs", "a.txt")
    before, list_folder = stored("idx"), os.scandir

    def list_some(path: Any) -> Any:
        if Path(path).name == "deep":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return list_folder(path)

    monkeypatch.setattr(os, "scandir", list_some)
    for args in (["index", "idx", "docs", "a.txt", "--sync"], ["split", "docs"]):
        result = run(*args)
        assert result.exit_code == 2
        assert "docs/deep is a folder" in result.stderr
    monkeypatch.setattr(os, "scandir", list_folder)
    assert stored("idx") == before


def test_index_sync_with_an_unreadable_file_applies_the_rest_and_removes_nothing(
    docs: Path,
) -> None:
    run("index", "idx", "docs", "a.txt")
    before = stored("idx")
    (docs / "deep" / "tram.md").write_bytes(b"\0")
    (docs / "deep" / "bakery.md").write_text("The bakery burned down.")
    (docs / "new.md").write_text("A new file.")
    result = run("index", "idx", "docs", "--sync")
    assert result.exit_code == 2
    assert result.stdout == "idx: 3 files (1 new, 1 changed, 1 unchanged)\n"
    told = "Error: nothing was removed, because these files cannot be read: docs/deep/tram.md"
    assert told in result.stderr
    after = stored("idx")
    assert "A new file." in after.values()
    assert "The bakery burned down." in after.values()
    gone = [text for text in before.values() if text not in after.values()]
    assert gone, "the old version of the changed file is replaced"
    trams = [text for text in before.values() if "tram" in text]
    assert trams
    assert all(text in after.values() for text in trams), "the unreadable file's text stays"
    assert rows("query", "idx", "trams painted green", "--retrieve", "parents")


def test_delete_removes_files_that_need_not_exist(docs: Path) -> None:
    run("index", "idx", "docs", "a.txt")
    (docs / "deep" / "tram.md").unlink()
    assert run("delete", "idx", "./docs/deep/tram.md").stdout == "idx: 1 document removed\n"
    assert "dark green" not in " ".join(stored("idx").values())
    result = run("delete", "idx", "a.txt", "docs/deep/tram.md", "./a.txt")
    assert result.stdout == "idx: 1 document removed\n"
    assert result.stderr == "Error: not in the index: docs/deep/tram.md\n"
    assert refused("delete", "no", "a.txt").startswith("no holds no index")


def test_index_can_be_interrupted(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:

        def interrupted(path: Path) -> Any:
            if path.name == "tram.md":
                raise KeyboardInterrupt
            return iter(read_file(path))

        patch.setattr("rag_splitters.cli.index.read_sources", interrupted)
        result = run("index", "idx", "docs")
    assert result.exit_code == 130
    assert result.stderr.startswith("Interrupted. idx is sound: run the same command again")
    assert "3 files (" in run("index", "idx", "docs").stdout
    assert rows("query", "idx", "foghorn")[0]["source"] == "docs/deep/lighthouse.md"


# --- as a process --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT for one process")
@pytest.mark.parametrize(
    ("program", "module", "args"),
    [
        ("module", "pydantic", []),
        ("script", "typer", []),
        ("script", "langchain_core", ["index", "idx", "a.txt"]),
    ],
)
def test_an_interrupt_gives_130_without_a_traceback_also_while_modules_are_loaded(
    folder: Path, program: str, module: str, args: list[str]
) -> None:
    slow = folder / "slow"
    slow.mkdir()
    (slow / f"{module}.py").write_text("import time\nprint('loading', flush=True)\ntime.sleep(60)")
    (folder / "rag-splitters").write_text("from rag_splitters.cli import main\nmain()\n")
    command = ["-m", "rag_splitters"] if program == "module" else ["rag-splitters"]
    path = os.pathsep.join([str(slow), str(Path(rag_splitters.__file__).parents[1])])
    with subprocess.Popen(
        [sys.executable, *command, *args],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "loading\n"
        running.send_signal(signal.SIGINT)
        _, told = running.communicate(timeout=60)
    assert (running.returncode, told) == (130, "")


def test_a_bug_keeps_its_traceback(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **options: Any) -> Any:
        raise ValueError("a bug of ours")

    monkeypatch.setattr("rag_splitters.cli.split.chunk_row", broken)
    result = run("split", "a.txt", "--json")
    assert isinstance(result.exception, ValueError)
    assert result.exit_code == 1
    assert "Error:" not in result.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_gives_one_line(folder: Path) -> None:
    told = refused("split", "a.txt", "-o", "/dev/full")
    assert told == "/dev/full cannot be written: No space left on device"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_in_a_folder_is_skipped(folder: Path) -> None:
    os.mkfifo(folder / "b.txt")
    assert "Skipped 1 file: 1 .txt (b.txt)" in run("split", ".").stderr


def test_a_file_that_holds_no_tokenizer_gives_one_line(folder: Path) -> None:
    (folder / "t.json").write_text("")
    told = refused("split", "a.txt", "--length-function", "t.json")
    assert told.startswith("length_function: t.json holds no tokenizer: EOF while parsing")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no sh")
@pytest.mark.parametrize(
    ("command", "status", "told"),
    [("split a.txt >&-", 0, ""), ("split <&-", 2, "nothing to split"), ("split b 2>&-", 2, "")],
)
def test_a_closed_stream_is_an_empty_one(command: str, status: int, told: str) -> None:
    shell = f'exec "$0" -m rag_splitters {command}'
    done = subprocess.run(
        ["sh", "-c", shell, sys.executable], capture_output=True, text=True, check=False
    )
    assert done.returncode == status
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_a_terminal_of_unknown_width_is_not_one_of_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "0")
    assert "length in characters" in run("split", "a.txt").stdout


def test_process_shows_help_and_version() -> None:
    assert run("--version").stdout == f"rag-splitters {__version__}\n"
    done = process()
    assert (done.returncode, done.stderr) == (0, "")
    assert all(name in done.stdout for name in ("demo", "split", "strategies", "index", "query"))


@pytest.mark.slow
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["table", "json"])
def test_process_is_quiet_when_the_pipe_breaks(folder: Path, form: list[str]) -> None:
    (folder / "long.txt").write_text("word " * 20_000)
    command = [sys.executable, "-m", "rag_splitters", "split", "long.txt", *form]
    with subprocess.Popen(
        [*command, "--chunk-size", "100"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == b""


def test_process_prints_what_the_encoding_lacks_as_escapes() -> None:
    done = process("split", "a.txt", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")


# --- pieces --------------------------------------------------------------------------------------


def test_printable_keeps_every_position() -> None:
    text = "".join(map(chr, range(0x200))) + "\ud800\U0001f600"
    assert len(printable(text)) == len(text)
    assert "\x1b" not in printable(text)
    assert "\x9b" not in printable(text)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_split_shows_its_progress_at_a_terminal_only(docs: Path) -> None:
    import pty

    parent, child = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "rag_splitters", "split", "docs", "--json"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=child,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "80"},
        check=True,
    )
    os.close(child)
    shown = os.read(parent, 1 << 16).decode()
    os.close(parent)
    assert "Splitting" in shown
    assert "/3" in shown
    elsewhere = run("split", "docs", "--json")
    assert elsewhere.stdout == done.stdout.decode()
    assert "Splitting" not in elsewhere.stderr
