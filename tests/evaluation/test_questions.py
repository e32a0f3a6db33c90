"""Questions with positions, read from both forms of file; errors say where and what to do."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rag_splitters.evaluation import Question, read_benchmark, read_questions
from rag_splitters.evaluation.measure.questions import check_question

FOLDER = Path(__file__).parents[1] / "data" / "evaluation"
TALE = "The lamp is in the hall. It is old. 🐦 It is old."


def lines(path: Path, *rows: Any) -> Path:
    file = path / "questions.jsonl"
    written = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    file.write_text("\n".join(written), encoding="utf-8")
    return file


def benchmark(path: Path, references: str, text: str = TALE, name: str = "tale") -> Path:
    (path / "corpora").mkdir()
    (path / "corpora" / "tale.md").write_text(text, encoding="utf-8", newline="")
    quoted = references.replace('"', '""')
    rows = f'question,references,corpus_id\n"Is it\nold?","{quoted}",{name}\n'
    (path / "questions.csv").write_text(rows, encoding="utf-8")
    return path


def test_read_benchmark_gives_documents_and_questions_whose_references_are_in_place() -> None:
    read = read_benchmark(FOLDER)
    assert set(read.documents) == {"lighthouse", "bakery"}
    assert len(read.questions) == 16
    quotes = {
        read.documents[question.document][start:end]
        for question in read.questions
        for start, end in question.references
    }
    assert "Nesting gulls close the path in May." in quotes  # behind an emoji
    assert "Crème brûlée was tried once, and given up." in quotes


def test_read_benchmark_keeps_line_breaks_so_that_positions_stay(tmp_path: Path) -> None:
    references = '[{"content": "old", "start_index": 6, "end_index": 9}]'
    read = read_benchmark(benchmark(tmp_path, references, text="It is\nold"))
    assert read.questions == [Question("Is it\nold?", "tale", ((6, 9),))]
    (tmp_path / "corpora" / "tale.md").write_bytes(b"\r\nIs old")
    with pytest.raises(ValueError, match=r"questions\.csv, line 3: .*'ld' at 6 to 9, not 'old'"):
        read_benchmark(tmp_path)


@pytest.mark.parametrize(
    ("references", "name", "message"),
    [
        ("[{", "tale", "references is not JSON"),
        ('{"a": 1}', "tale", "references must be a list"),
        ("[]", "tale", "question 'Is it\\nold?' has no references: name the passages"),
        ("[3]", "tale", "a reference is a quotation, or start and end, got 3"),
        ('[" "]', "tale", "a reference is a quotation, or start and end, got ' '"),
        ('[{"content": "old"}]', "tale", "'old' is in the document more than once"),
        ('[{"start_index": 1.5, "end_index": 3}]', "tale", "must be whole numbers, got 1.5 and 3"),
        ('[{"start_index": 3, "end_index": 99}]', "tale", "is at 3 to 99, but 'tale' has 48"),
        ('[{"start_index": -2, "end_index": 3}]', "tale", "is at -2 to 3"),
        ('[{"content": "", "start_index": 3, "end_index": 3}]', "tale", "is at 3 to 3"),
        ('[{"start_index": 0, "end_index": 3}]', "tail", "no document 'tail': there are 'tale'"),
    ],
)
def test_read_benchmark_names_the_line_of_what_does_not_fit(
    tmp_path: Path, references: str, name: str, message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        read_benchmark(benchmark(tmp_path, references, name=name))
    assert str(caught.value).startswith(f"{tmp_path / 'questions.csv'}, line 3: ")


def test_read_benchmark_names_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"corpora holds no \.md or \.txt files"):
        read_benchmark(tmp_path)
    benchmark(tmp_path, "[]")
    (tmp_path / "questions.csv").write_text("question,references\n", encoding="utf-8")
    with pytest.raises(ValueError, match="the first line names no column 'corpus_id'"):
        read_benchmark(tmp_path)
    (tmp_path / "questions.csv").unlink()
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_benchmark(tmp_path)


def test_read_questions_takes_quotations_positions_and_inline_documents(tmp_path: Path) -> None:
    file = lines(
        tmp_path,
        {"question": "Where?", "document": "note", "references": ["in the hall"]},
        {"question": "Old?", "document": "note", "references": [{"start": 25, "end": 35}]},
        "",
        {
            "question": "Who?",
            "document": "note.md",
            "references": [{"text": "Ann", "start": 0, "end": 3}],
        },
        {"document": "note", "text": TALE},
    )
    read = read_questions(file, {"notes/note.md": "Ann did."})
    assert read.documents == {"notes/note.md": "Ann did.", "note": TALE}
    assert read.questions == [
        Question("Where?", "note", ((12, 23),)),
        Question("Old?", "note", ((25, 35),)),
        Question("Who?", "notes/note.md", ((0, 3),)),
    ]


def test_read_questions_needs_no_document_where_there_is_but_one(tmp_path: Path) -> None:
    file = lines(tmp_path, {"question": "Where?", "references": ["in the hall"]})
    assert read_questions(file, {"tale": TALE}).questions[0].document == "tale"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", "not JSON"),
        ("[]", 'expected {"question", "document", "references"} or {"document", "text"}'),
        ({"document": "tale", "text": "again"}, "there is already a document 'tale'"),
        ({"document": 3, "text": "one"}, '"document" (its name) and "text" must be strings'),
        ({"question": 3, "document": "tale"}, '"question" and "document" must be strings'),
        ({"question": "Q"}, '"question" and "document" must be strings'),
        ({"question": "Q", "document": "tale"}, "references must be a list, got None"),
        ({"question": "Q", "document": "tale", "references": "It"}, "references must be a list"),
        (
            {"question": "Q", "document": "tale", "references": ["new"]},
            "'new' is not in the document",
        ),
        (
            {"question": "Q", "document": "tale", "references": ["old"]},
            "old' is in the document more",
        ),
        ({"question": " ", "document": "tale", "references": ["hall"]}, "a question is blank"),
        (
            {"question": "Q", "document": "le", "references": ["hall"]},
            "no document 'le': there are 't",
        ),
    ],
)
def test_read_questions_names_the_line_of_what_does_not_fit(
    tmp_path: Path, row: Any, message: str
) -> None:
    good = {"question": "Where?", "document": "tale", "references": ["in the hall"]}
    file = lines(tmp_path, good, row)
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        read_questions(file, {"tale": TALE, "other": "text"})
    assert str(caught.value).startswith(f"{file}, line 2")


@pytest.mark.parametrize(
    ("text", "quotation", "passage"),
    [
        ("It is\r\n  very old.", "It is very old.", "It is\r\n  very old."),
        ("It is **very old**, they say.", "is very old, they", "is **very old**, they"),
        ("It is very old.", "It is **very** `old`.", "It is very old."),
        (
            "See [the old lamp](lamp.md) there.",
            "See the old lamp there",
            "See [the old lamp](lamp.md) there",
        ),
        ("- Rinse it.\n- Dry it.", "Rinse it. Dry it.", "Rinse it.\n- Dry it."),
        ("> A quote\n> goes on.", "A quote goes on.", "A quote\n> goes on."),
        (
            "| lid | 3 |\n|---|---|\n| spout | 4 |",
            "lid 3 spout 4",
            "lid | 3 |\n|---|---|\n| spout | 4",
        ),
        ("a \\*star\\*", "a *star*", "a \\*star"),
        (
            "<html><body><p>It is <b>very</b> old &amp; tall.</p></body></html>",
            "It is very old & tall.",
            "It is <b>very</b> old &amp; tall.",
        ),
        (
            "<html><body><p>It is <b>very</b> old.</p></body></html>",
            "<p>It is <i>very</i> old.</p>",
            "It is <b>very</b> old.",
        ),
    ],
)
def test_quotations_may_differ_in_white_space_and_markup(
    tmp_path: Path, text: str, quotation: str, passage: str
) -> None:
    file = lines(tmp_path, {"question": "Q?", "references": [quotation]})
    ((start, end),) = read_questions(file, {"doc": text}).questions[0].references
    assert text[start:end] == passage


def test_a_quotation_that_occurs_letter_by_letter_is_taken_there(tmp_path: Path) -> None:
    text = "It is *old*. It is old."
    file = lines(tmp_path, {"question": "Q?", "references": ["It is old."]})
    assert read_questions(file, {"doc": text}).questions[0].references == ((13, 23),)


def test_all_bad_lines_are_reported_at_once_with_the_nearest_text(tmp_path: Path) -> None:
    file = lines(
        tmp_path,
        {"question": "Where?", "references": ["the lamp was in the big hall"]},
        {"question": "Is it old?", "references": ["It is old. \U0001f426"]},
        "{",
        {"question": "Who?", "references": ["nobody knows anything at all"]},
        {"question": "What?", "references": ["It is old"]},
    )
    with pytest.raises(ValueError, match="lines cannot be used") as caught:
        read_questions(file, {"tale": TALE})
    message = str(caught.value).split("\n  ")
    assert message[0] == f"{file}: 4 lines cannot be used"
    assert message[1] == (
        "line 1: 'the lamp was in the big hall' is not in the document: the nearest text is "
        "'The lamp is in the hall'"
    )
    assert message[2].startswith("line 3: not JSON")
    assert message[3].endswith("is not in the document: quote it exactly")
    assert message[4].startswith("line 5: 'It is old' is in the document more than once")


def test_of_a_long_nearest_text_the_beginning_is_shown(tmp_path: Path) -> None:
    text = " ".join(f"word{number}" for number in range(60))
    quotation = text.replace("word30 ", "wort30 ")
    file = lines(tmp_path, {"question": "Which?", "references": [quotation]})
    with pytest.raises(ValueError, match="the nearest text is 'word0 word1 ") as caught:
        read_questions(file, {"tale": text})
    assert str(caught.value).endswith(f"is {text[:200]!r}")


def test_read_questions_refuses_a_file_without_questions(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no questions"):
        read_questions(lines(tmp_path, {"document": "tale", "text": TALE}))
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_questions(tmp_path / "missing.jsonl")


def test_check_question_lists_a_few_of_many_documents() -> None:
    documents = {f"d{number}": "text" for number in range(9)}
    with pytest.raises(ValueError, match="there are 'd0', 'd1', 'd2', 'd3', 'd4' and 4 more"):
        check_question(Question("Q", "e", ((0, 1),)), documents)
