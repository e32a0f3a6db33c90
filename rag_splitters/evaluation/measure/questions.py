"""Questions with the positions of their answers, and reading them from files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from operator import index
from pathlib import Path
from typing import Any, TypeVar

from rag_splitters.errors import InputError, MissingFileError
from rag_splitters.parameters.checks import check_has
from rag_splitters.parameters.messages import describe_value
from rag_splitters.reading.files import read_text
from rag_splitters.text.quotations import QuotableText
from rag_splitters.text.structure import Range

T = TypeVar("T")

_MIN_LIKENESS = 0.4  # of the nearest text that is suggested
_MAX_SHOWN = 200
_REFERENCE_KEYS = {"text": "content", "start": "start_index", "end": "end_index"}
"""The keys of a reference, here and in the format of Chroma's report."""


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
    """Documents by name, questions about them, and metadata of documents by their names."""

    documents: Mapping[str, str]
    questions: Sequence[Question]
    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def check_texts(documents: Any) -> None:
    """Raise a TypeError if these are not texts by name."""
    expected = 'texts by name, such as {"a.md": text}'
    check_has(documents, "values", expected)
    for text in documents.values():
        check_has(text, "isalnum", expected)


def check_question(question: Question, documents: Mapping[str, str]) -> None:
    """Raise a ValueError if a question does not fit the documents.

    >>> check_question(Question("Who?", "tale", ((0, 9),)), {"tale": "Ann."})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rag_splitters.errors.InputError: question 'Who?': a reference is at 0 to 9, ...
    """
    check_has(question, "references", "a Question")
    name = f"question {describe_value(question.text)}"
    if not question.text.strip():
        raise InputError("a question is blank")
    if question.document not in documents:
        raise InputError(f"{name}: {_unknown(question.document, documents)}")
    if not question.references:
        raise InputError(f"{name} has no references: name the passages that answer it")
    length = len(documents[question.document])
    for reference in question.references:
        try:
            start, end = map(index, reference)
        except (TypeError, ValueError):
            raise InputError(
                f"{name}: a reference is its start and end, got {reference!r}; read_questions "
                "finds the positions of quotations"
            ) from None
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

    Raises: OSError if a file cannot be read; ValueError that names all lines that are wrong.
    """
    corpora = Path(folder) / "corpora"
    files = sorted(path for path in corpora.glob("*") if path.suffix in (".md", ".txt"))
    if not files:
        raise MissingFileError(f"{corpora} holds no .md or .txt files: put the documents there")
    documents = _Documents({path.stem: read_text(path) for path in files})
    lines = _Lines(Path(folder) / "questions.csv")
    questions = lines.read(_csv_rows(lines.path), partial(_csv_question, documents))
    lines.check()
    return Benchmark(documents, [question for _, question in questions])


def read_questions(path: str | Path, documents: Mapping[str, str] | None = None) -> Benchmark:
    """Read questions of your own, one JSON object per line.

    A line is a question, or a document that has no file of its own:

        {"document": "note", "text": "The lamp is in the hall. It is old."}
        {"question": "Where is the lamp?", "document": "note", "references": ["in the hall"]}
        {"question": "Is it old?", "document": "note", "references": [{"start": 25, "end": 35}]}

    A reference is a quotation, which must occur in the document exactly once, but may differ from
    it in white space, markup, punctuation and capitals; or a position in code points, which must
    match if a `text` is given as well. Blank lines are skipped.

    Parameters:
        path: the file.
        documents: texts by name. A question may shorten a name to its last part ("note.md" for
            "notes/note.md") if only one document has it.

    Raises: OSError if a file cannot be read; ValueError that names all lines that are wrong, with
    the nearest text to a quotation that is not in its document.
    """
    check_texts(documents or {})
    if Path(path).suffix.lower() == ".csv":
        raise InputError(
            f"{path} is a table, and questions are read as one JSON object per line: pass the "
            "folder that holds questions.csv and corpora/ in place of the documents"
        )
    lines, texts = _Lines(Path(path)), _Documents(documents or {})
    rows = lines.read(lines.numbered_lines(), _json_object)
    rows = [(number, row) for number, row in rows if row]
    lines.read([row for row in rows if "question" not in row[1]], partial(_add_document, texts))
    question_rows = [row for row in rows if "question" in row[1]]
    questions = lines.read(question_rows, partial(_json_question, texts))
    lines.check()
    if not questions:
        raise InputError(f'{path} has no questions: a question is a line with a "question"')
    return Benchmark(texts, [question for _, question in questions])


def read_lines(path: str | Path, function: Callable[[str], T]) -> list[T]:
    """Return what a function makes of each line of a file that is not blank.

    Raises: ValueError that names all lines for which the function raises one.
    """
    lines = _Lines(Path(path))
    rows = ((number, line) for number, line in lines.numbered_lines() if line.strip())
    items = lines.read(rows, function)
    lines.check()
    return [item for _, item in items]


class _Documents(dict[str, str]):
    """Documents by name, each of which is prepared for quotations only once."""

    @cached_property
    def quotable(self) -> Callable[[str], QuotableText]:
        return cache(lambda name: QuotableText(self[name]))


class _Lines:
    """Reads the lines of a file, and reports all that are wrong at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._errors: list[tuple[int, str]] = []

    def numbered_lines(self) -> Iterator[tuple[int, str]]:
        """Yield the lines of the file with their numbers."""
        return enumerate(read_text(self.path).split("\n"), 1)

    def read(
        self, lines: Iterable[tuple[int, Any]], function: Callable[[Any], T]
    ) -> list[tuple[int, T]]:
        """Return what a function makes of each line, with its number; `check` raises the errors."""
        items = []
        for number, line in lines:
            try:
                items.append((number, function(line)))
            except InputError as error:
                self._errors.append((number, str(error)))
        return items

    def check(self) -> None:
        """Raise an error if any line was wrong."""
        errors = [f"line {number}: {message}" for number, message in sorted(self._errors)]
        if len(errors) == 1:
            raise InputError(f"{self.path}, {errors[0]}")
        if errors:
            heading = f"{self.path}: {len(errors)} lines cannot be used"
            raise InputError("\n  ".join([heading, *errors]))


def _csv_rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    csv.field_size_limit(1 << 30)  # csv's default of 131,072 is too small for long references
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""))
    missing = {"question", "references", "corpus_id"} - set(reader.fieldnames or ())
    if missing:
        raise InputError(f"{path}: the first line names no column {sorted(missing)[0]!r}")
    for row in reader:
        yield reader.line_num, row


def _csv_question(documents: _Documents, row: Mapping[str, str]) -> Question:
    try:
        references = json.loads(row["references"])
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(f"references is not JSON: {error}") from None
    return _question(row["question"], row["corpus_id"], references, documents)


def _json_object(line: str) -> dict[str, Any]:
    """Return the object of a line; nothing for a blank line."""
    try:
        value = json.loads(line) if line.strip() else {}
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}") from None
    if not isinstance(value, dict) or (line.strip() and not {"question", "text"} & set(value)):
        raise InputError(
            'expected {"question", "document", "references"} or {"document", "text"}, got '
            f"{describe_value(line)}"
        )
    return value


def _add_document(documents: _Documents, line: Mapping[str, Any]) -> None:
    name, text = line.get("document"), line["text"]
    if not isinstance(name, str) or not isinstance(text, str):
        raise InputError('"document" (its name) and "text" must be strings')
    if name in documents:
        raise InputError(f"there is already a document {name!r}: choose another name")
    documents[name] = text


def _json_question(documents: _Documents, line: Mapping[str, Any]) -> Question:
    text, name = line["question"], line.get("document")
    if name is None and len(documents) == 1:
        name = next(iter(documents))
    if not isinstance(text, str) or not isinstance(name, str):
        raise InputError('"question" and "document" must be strings')
    matches = [each for each in documents if each == name or each.endswith(f"/{name}")]
    name = matches[0] if len(matches) == 1 else name
    return _question(text, name, line.get("references"), documents)


def _question(text: str, name: str, references: Any, documents: _Documents) -> Question:
    """Return the question, with its references located or checked."""
    if name not in documents:
        raise InputError(_unknown(name, documents))
    if not isinstance(references, list):
        raise InputError(f"references must be a list, got {describe_value(references)}")
    positions = tuple(_reference(part, documents, name) for part in references)
    question = Question(text, name, positions)
    check_question(question, documents)
    return question


def _reference(part: Any, documents: _Documents, name: str) -> Range:
    """Return the position of a reference in a document."""
    fields = {"text": part} if isinstance(part, str) else part
    fields = fields if isinstance(fields, Mapping) else {}
    quotation, start, end = (
        fields.get(key, fields.get(other)) for key, other in _REFERENCE_KEYS.items()
    )
    if start is None and end is None:
        if not isinstance(quotation, str) or not quotation.strip():
            raise InputError(f"a reference is a quotation, or start and end, got {part!r}")
        return _only_position(quotation, documents.quotable(name))
    if type(start) is not int or type(end) is not int:
        raise InputError(f"start and end must be whole numbers, got {start!r} and {end!r}")
    text = documents[name][max(start, 0) : max(end, 0)]
    if quotation is not None and text != quotation:
        raise InputError(
            f"the document has {describe_value(text)} at {start} to {end}, not "
            f"{describe_value(str(quotation))}: offsets count code points; has the document "
            "changed?"
        )
    return start, end


def _only_position(quotation: str, text: QuotableText) -> Range:
    places = text.find(quotation)
    if not places:
        nearest = text.nearest(quotation)
        hint = "quote it exactly"
        if nearest and nearest.likeness >= _MIN_LIKENESS:
            passage = text.text[nearest.start : nearest.end][:_MAX_SHOWN]
            hint = f"the nearest text is {passage!r}"
        raise InputError(f"{describe_value(quotation)} is not in the document: {hint}")
    if len(places) > 1:
        raise InputError(
            f"{describe_value(quotation)} is in the document more than once: quote more of it, or "
            "give start and end"
        )
    return places[0].start, places[0].end


def _unknown(name: str, documents: Mapping[str, str]) -> str:
    names = ", ".join(map(repr, list(documents)[:5])) or "none"
    return f"there is no document {name!r}: there are {names}" + (
        f" and {len(documents) - 5} more" if len(documents) > 5 else ""
    )
