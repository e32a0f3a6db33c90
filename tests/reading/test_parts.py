"""Huge logs, tables and JSON lines, which are read, cut and indexed in parts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rag_splitters import AutoChunker
from rag_splitters.cli import app
from rag_splitters.errors import InputError
from rag_splitters.langchain import parent_document_retriever
from rag_splitters.reading import parts
from rag_splitters.reading.files import read_sources
from rag_splitters.span import Source


@pytest.fixture(autouse=True)
def small_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "HUGE", 2_000)
    monkeypatch.setattr(parts, "_PART", 1_000)
    monkeypatch.chdir(tmp_path)


def read(name: str, text: str) -> list[Source]:
    Path(name).write_bytes(text.encode())
    return list(read_sources(name))


def entries(first: int, last: int) -> str:
    return "".join(
        f"2026-11-24T02:{number % 60:02}:00 INFO request {number} failed\n  at main.py\n"
        for number in range(first, last)
    )


def records(count: int) -> str:
    rows = [f'{number},"tea, green\nand {number} black"\n' for number in range(count)]
    return "".join(['id,"what\nit is"\n', *rows])


def test_parts_of_a_log_are_whole_entries_that_cover_the_file() -> None:
    text = entries(0, 90)
    sources = read("app.log", text)
    assert len(sources) > 3
    assert "".join(source.text for source in sources) == text
    assert all(source.text.startswith("2026") for source in sources)
    assert sources[0].id == f"app.log#L1-L{sources[0].text.count(chr(10))}"
    assert sources[-1].id.endswith("-L180")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.log", entries(0, 90)),
        ("a.csv", records(90)),
        ("a.csv", "\ufeff" + records(90)),
        (
            "a.jsonl",
            "".join(f'{{"id": {n}, "text": "{"Tea. " * (n % 40)}"}}\r\n' for n in range(60)),
        ),
        ("a.jsonl", '{"text": "' + "long " * 1_000 + '"}'),
    ],
)
def test_chunks_of_parts_know_their_lines_and_positions_in_the_file(name: str, text: str) -> None:
    text_in_file = text.removeprefix("\ufeff")
    lines = text_in_file.splitlines()
    for source in read(name, text):
        for chunk in AutoChunker(chunk_size=300).chunk(source.text, metadata=source.metadata):
            start, end = chunk.metadata["file_start"], chunk.metadata["file_end"]
            own = source.text[chunk.start : chunk.end]
            assert own.endswith(text_in_file[start:end]) or text_in_file[start:end].endswith(own)
            first, last = chunk.metadata["line_start"], chunk.metadata["line_end"]
            evidence = "\n".join(lines[max(first, 1) - 1 : last])
            assert own.splitlines()[-1] in evidence


def test_every_part_of_a_table_has_its_header() -> None:
    sources = read("a.csv", records(90))
    assert len(sources) == 3
    for source in sources:
        assert source.text.startswith('id,"what\nit is"\n')
        for chunk in AutoChunker(chunk_size=100).chunk(source.text, metadata=source.metadata):
            assert chunk.text.startswith('id,"what\nit is"\n')
            assert chunk.metadata["strategy"] == "table"


@pytest.mark.parametrize(
    ("data", "problem"), [(b"\xff" * 3_000, "needs UTF-8"), (b"a\0\n" * 999, "NUL byte")]
)
def test_what_is_no_utf_8_is_refused(data: bytes, problem: str) -> None:
    Path("app.log").write_bytes(data)
    with pytest.raises(InputError, match=f"app.log .*{problem}"):
        list(read_sources("app.log"))


def run(*args: str) -> str:
    result = CliRunner().invoke(app, list(args))
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("flags", [(), ("--sync",)])
def test_index_writes_only_the_last_part_when_a_log_grows(flags: tuple[str, ...]) -> None:
    log = Path("app.log")
    log.write_text(entries(0, 60))
    ids = [str(source.id) for source in read_sources("app.log")]
    assert json.loads(run("index", "idx", "app.log", "--json", *flags))["new"] == 1
    assert json.loads(run("index", "idx", "app.log", "--json", *flags))["unchanged"] == 1
    log.write_text(entries(0, 65))
    later = [str(source.id) for source in read_sources("app.log")]
    assert later[: len(ids) - 1] == ids[:-1]
    assert json.loads(run("index", "idx", "app.log", "--json", *flags))["changed"] == 1
    assert documents_in("idx", [*ids, *later]) == set(later)
    log.write_text(entries(0, 2))  # a small file again: one document
    run("index", "idx", "app.log", *flags)
    assert documents_in("idx", [*ids, *later, "app.log"]) == {"app.log"}
    log.write_text(entries(0, 60))
    run("index", "idx", "app.log", *flags)
    assert documents_in("idx", [*ids, *later, "app.log"]) == set(ids)


def documents_in(folder: str, ids: list[str]) -> set[str]:
    """Which of these documents are in an index."""
    with parent_document_retriever(path=folder) as retriever:
        return {str(each.id) for each in retriever.get(ids)}


def test_a_log_that_cannot_be_read_to_its_end_loses_nothing_and_stops_no_other_file() -> None:
    log = Path("app.log")
    log.write_text(entries(0, 60))
    ids = {str(source.id) for source in read_sources("app.log")}
    run("index", "idx", "app.log")
    log.write_bytes(entries(0, 40).encode() + b"\xff\xff")
    Path("b.md").write_text("The ferry leaves at seven.")
    result = CliRunner().invoke(app, ["index", "idx", "app.log", "b.md", "--sync"])
    assert result.exit_code != 0
    assert documents_in("idx", [*ids, "b.md"]) == {*ids, "b.md"}
