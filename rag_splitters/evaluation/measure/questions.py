"""Questions with the positions of their answers, and reading them from files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_splitters.errors import InputError, MissingFileError
from rag_splitters.evaluation.measure.metrics import Range
from rag_splitters.reading.files import read_text


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the passages of a document that answer it.

    Parameters:
        text: the question.
        document: the name of the document.
        references: start and end of each passage, in code points.
    """

    text: str
    document: str
    references: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Documents by name, and questions about them."""

    documents: Mapping[str, str]
    questions: Sequence[Question]


def check_question(question: Question, documents: Mapping[str, str]) -> None:
    """Raise a ValueError if a question does not fit the documents.

    >>> check_question(Question("Who?", "tale", ((0, 9),)), {"tale": "Ann."})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rag_splitters.errors.InputError: question 'Who?': a reference is at 0 to 9, ...
    """
    name = f"question {_shortened(question.text)}"
    if not question.text.strip():
        raise InputError("a question is blank")
    if question.document not in documents:
        raise InputError(f"{name}: {_unknown(question.document, documents)}")
    if not question.references:
        raise InputError(f"{name} has no references: name the passages that answer it")
    length = len(documents[question.document])
    for start, end in question.references:
        if not 0 <= start < end <= length:
            raise InputError(
                f"{name}: a reference is at {start} to {end}, but {question.document!r} has "
                f"{length} characters"
            )


def read_benchmark(folder: str | Path) -> Benchmark:
    """Read the benchmark of Chroma's report, or another one in its format.

    The format: `corpora/*.md` or `*.txt`, each named like its `corpus_id`; `questions.csv` with the
    columns `question`, `references` (a JSON list of `content`, `start_index`, `end_index`) and
    `corpus_id`. Every `content` must equal the text at its position.

    Raises: OSError if a file cannot be read; ValueError with file and line if its content is wrong.
    """
    corpora = Path(folder) / "corpora"
    files = sorted(path for path in corpora.glob("*") if path.suffix in (".md", ".txt"))
    if not files:
        raise MissingFileError(f"{corpora} holds no .md or .txt files: put the documents there")
    documents = {path.stem: read_text(path) for path in files}
    path = Path(folder) / "questions.csv"
    return Benchmark(documents, [_csv_question(*row, documents) for row in _csv_rows(path)])


def read_questions(path: str | Path, documents: Mapping[str, str] | None = None) -> Benchmark:
    """Read questions of your own, one JSON object per line.

    A line is a question, or a document that has no file of its own:

        {"document": "note", "text": "The lamp is in the hall. It is old."}
        {"question": "Where is the lamp?", "document": "note", "references": ["in the hall"]}
        {"question": "Is it old?", "document": "note", "references": [{"start": 25, "end": 35}]}

    A reference is a quotation, which must occur in the document exactly once, or a position in code
    points, which must match if a `text` is given as well. Blank lines are skipped.

    Parameters:
        path: the file.
        documents: texts by name. A question may shorten a name to its last part ("note.md" for
            "notes/note.md") if only one document has it.

    Raises: OSError if a file cannot be read; ValueError with file and line if its content is wrong.
    """
    lines = list(_json_lines(Path(path)))
    texts = dict(documents or {})
    for where, line in lines:
        if "question" not in line:
            texts.update([_inline_document(where, line, texts)])
    questions = [_json_question(where, line, texts) for where, line in lines if "question" in line]
    if not questions:
        raise InputError(f'{path} has no questions: a question is a line with a "question"')
    return Benchmark(texts, questions)


def _csv_rows(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    csv.field_size_limit(1 << 30)  # csv's default of 131,072 is too small for long references
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""))
    missing = {"question", "references", "corpus_id"} - set(reader.fieldnames or ())
    if missing:
        raise InputError(f"{path}: the first line names no column {sorted(missing)[0]!r}")
    for row in reader:
        yield f"{path}, line {reader.line_num}", row


def _csv_question(where: str, row: Mapping[str, str], documents: Mapping[str, str]) -> Question:
    try:
        references = json.loads(row["references"])
    except (json.JSONDecodeError, TypeError) as error:
        raise InputError(f"{where}: references is not JSON: {error}") from None
    renamed = {"content": "text", "start_index": "start", "end_index": "end"}
    parts = [
        {renamed.get(key, key): value for key, value in part.items()}
        if isinstance(part, Mapping)
        else part
        for part in _as_list(where, references)
    ]
    return _question(where, row["question"], row["corpus_id"], parts, documents)


def _json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"{where} is not JSON: {error}") from None
        if not isinstance(value, dict) or not {"question", "text"} & set(value):
            raise InputError(
                f'{where}: expected {{"question", "document", "references"}} or '
                '{"document", "text"}'
            )
        yield where, value


def _inline_document(
    where: str, line: Mapping[str, Any], documents: Mapping[str, str]
) -> tuple[str, str]:
    name, text = line.get("document"), line["text"]
    if not isinstance(name, str) or not isinstance(text, str):
        raise InputError(f'{where}: "document" (its name) and "text" must be strings')
    if name in documents:
        raise InputError(f"{where}: there is already a document {name!r}: choose another name")
    return name, text


def _json_question(where: str, line: Mapping[str, Any], documents: Mapping[str, str]) -> Question:
    text, name = line["question"], line.get("document")
    if name is None and len(documents) == 1:
        name = next(iter(documents))
    if not isinstance(text, str) or not isinstance(name, str):
        raise InputError(f'{where}: "question" and "document" must be strings')
    matches = [each for each in documents if each == name or each.endswith(f"/{name}")]
    name = matches[0] if len(matches) == 1 else name
    references = _as_list(where, line.get("references"))
    return _question(where, text, name, references, documents)


def _question(
    where: str, text: str, name: str, references: Iterable[Any], documents: Mapping[str, str]
) -> Question:
    """The question, with its references located or checked."""
    if name not in documents:
        raise InputError(f"{where}: {_unknown(name, documents)}")
    try:
        positions = tuple(_reference(part, documents[name]) for part in references)
        question = Question(text, name, positions)
        check_question(question, documents)
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None
    return question


def _reference(part: Any, text: str) -> Range:
    """The position of a reference in the text."""
    fields = {"text": part} if isinstance(part, str) else part
    if not isinstance(fields, Mapping):
        raise InputError(f"a reference is a quotation, or start and end, got {part!r}")
    quotation, start, end = (fields.get(key) for key in ("text", "start", "end"))
    if start is None and end is None and isinstance(quotation, str) and quotation:
        return _only_position(quotation, text)
    if type(start) is not int or type(end) is not int:
        raise InputError(f"start and end must be whole numbers, got {start!r} and {end!r}")
    if quotation is not None and text[max(start, 0) : max(end, 0)] != quotation:
        raise InputError(
            f"the document has {_shortened(text[max(start, 0) : max(end, 0)])} at {start} to "
            f"{end}, not {_shortened(str(quotation))}: offsets count code points; has the document "
            "changed?"
        )
    return start, end


def _only_position(quotation: str, text: str) -> Range:
    start = text.find(quotation)
    if start < 0:
        raise InputError(f"{_shortened(quotation)} is not in the document: quote it exactly")
    if text.find(quotation, start + 1) >= 0:
        raise InputError(
            f"{_shortened(quotation)} is in the document more than once: quote more of it, or give "
            "start and end"
        )
    return start, start + len(quotation)


def _as_list(where: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"{where}: references must be a list, got {_shortened(str(value))}")
    return value


def _unknown(name: str, documents: Mapping[str, str]) -> str:
    names = ", ".join(map(repr, list(documents)[:5])) or "none"
    return f"there is no document {name!r}: there are {names}" + (
        f" and {len(documents) - 5} more" if len(documents) > 5 else ""
    )


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
