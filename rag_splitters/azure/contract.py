"""The contract of the Custom Web API skill: a request with records, an answer for each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import islice
from typing import Any, TypeAlias

from rag_splitters.azure.outputs import outputs, utf16_length
from rag_splitters.azure.parameters import PARAMETERS, SplitParameters
from rag_splitters.contract.chunker import Chunker
from rag_splitters.contract.each import split_each
from rag_splitters.contract.sized import SizedChunker
from rag_splitters.errors import InputError, RagSplittersError
from rag_splitters.parameters.messages import describe_value
from rag_splitters.span import Source, Span
from rag_splitters.text.sentences import sentence_spans
from rag_splitters.web.http import log_failure, one_line

MAX_RECORDS = 10_000
"""Maximum number of records in a request; Azure AI Search sends 1,000 by default."""

MAX_ITEMS = 100_000
"""Maximum number of text items of a record."""

Answer: TypeAlias = dict[str, Any]


def answer_records(body: bytes, query: Mapping[str, str], chunker: Chunker) -> Answer:
    """Answer a request to a Web API skill.

    Parameters:
        body: the request's JSON, `{"values": [{"recordId": ..., "data": {...}}, ...]}`.
        query: parameters from the query string, for records without parameters of their own.

    Returns: `{"values": [...]}` with `recordId`, `data`, `errors` and `warnings` for each record,
    in the order of the request. A problem with one record is reported in its errors.

    Raises ValueError if the body is not such JSON, or if a parameter in the query is wrong.

    >>> from rag_splitters import SentenceChunker
    >>> body = b'{"values": [{"recordId": "1", "data": {"text": "It rains."}}]}'
    >>> answer = answer_records(body, {}, SentenceChunker())["values"][0]
    >>> answer["recordId"], answer["data"]["textItems"], answer["errors"]
    ('1', ['It rains.'], None)
    """
    SplitParameters.read(query)
    records = list(map(_Record, _values_of(body)))
    groups: dict[tuple[SplitParameters, bool], list[_Record]] = {}
    ids: set[str] = set()
    for record in records:
        with record.own_errors():
            record.parse(query, ids)
        if record.is_open:
            has_pairs = utf16_length(record.text) != len(record.text)
            groups.setdefault((record.parameters, has_pairs), []).append(record)
    for (parameters, has_pairs), group in groups.items():
        results = _split_group(group, parameters, has_pairs, chunker)
        for record, result in zip(group, results, strict=True):
            with record.own_errors():
                if isinstance(result, Exception):
                    raise result
                record.finish(result)
    return {"values": [record.answer for record in records]}


class _Record:
    """A record of a request, and its answer."""

    def __init__(self, value: Any) -> None:
        self.value, self.text = value, ""
        self.metadata: dict[str, Any] = {}
        self.parameters = SplitParameters()
        record_id = value.get("recordId") if isinstance(value, dict) else None
        record_id = record_id if isinstance(record_id, str) else None
        self.answer: Answer = {"recordId": record_id, "data": {}, "errors": None, "warnings": None}

    @property
    def is_open(self) -> bool:
        """Whether the text still has to be split."""
        return not self.answer["errors"] and not self.answer["data"]

    @contextmanager
    def own_errors(self) -> Iterator[None]:
        """Answer with an error that is raised, so that only this record fails.

        The details of a bug go to the log.
        """
        try:
            yield
        except Exception as error:
            is_ours = isinstance(error, RagSplittersError)
            what = "the skill's work on a record"
            message = one_line(error if is_ours else log_failure(what, error))
            self.answer["data"], self.answer["errors"] = {}, [{"message": message}]

    def parse(self, query: Mapping[str, str], ids: set[str]) -> None:
        """Read the record's inputs. Raises ValueError if they are invalid."""
        if not isinstance(self.value, dict):
            raise InputError(f"a record must be an object, got {describe_value(self.value)}")
        record_id, data = self.value.get("recordId"), self.value.get("data")
        if not isinstance(record_id, str):
            raise InputError(f"recordId must be a string, got {describe_value(record_id)}")
        if record_id in ids:
            raise InputError(f"recordId {describe_value(record_id)} occurs more than once")
        ids.add(record_id)
        if not isinstance(data, dict):
            raise InputError(f"data must be an object, got {describe_value(data)}")
        own = {name: data[name] for name in PARAMETERS if data.get(name) is not None}
        self.parameters = SplitParameters.read({**query, **own})
        self.metadata = _metadata_of(data)
        text, language = data.get("text"), data.get("languageCode")
        if language is not None and not isinstance(language, str):
            raise InputError(f"languageCode must be a string, got {describe_value(language)}")
        if text is None:
            self.warn("the input text is missing or null: there is nothing to split")
            self.answer["data"] = outputs("", {}, [])
        elif isinstance(text, str):
            self.text = text
        else:
            raise InputError(f"text must be a string, got {describe_value(text)}")

    def warn(self, message: str) -> None:
        """Add a warning to the answer."""
        self.answer["warnings"] = [*(self.answer["warnings"] or ()), {"message": one_line(message)}]

    def finish(self, spans: Sequence[Span]) -> None:
        """Answer with the outputs for these spans."""
        limit = self.parameters.maximum_pages_to_take
        if limit and self.parameters.text_split_mode == "pages":
            spans = spans[:limit]
        if len(spans) > MAX_ITEMS:
            raise InputError(f"more than {MAX_ITEMS} text items: raise maximumPageLength")
        self.answer["data"] = outputs(self.text, self.metadata, spans)
        for note in dict.fromkeys(span.metadata.get("fallback") for span in spans):
            if note:
                self.warn(str(note))


def _split_group(
    records: Sequence[_Record], parameters: SplitParameters, has_pairs: bool, chunker: Chunker
) -> Sequence[list[Span] | Exception]:
    """Return the spans of each of the records that have the same parameters, or an error."""
    if parameters.text_split_mode == "sentences":
        return [
            [Span(*ends) for ends in islice(sentence_spans(record.text), MAX_ITEMS + 1)]
            for record in records
        ]
    sources = [
        Source(record.text, record.metadata, number=number) for number, record in enumerate(records)
    ]
    try:
        chunker = parameters.apply_to(chunker)
        if (
            has_pairs
            and isinstance(chunker, SizedChunker)
            and chunker.length_function == "characters"
        ):
            chunker = chunker.model_copy(update={"length_function": utf16_length})
        return list(split_each(chunker, sources))
    except Exception as error:  # it affects every record
        return [error] * len(records)


def _values_of(body: bytes) -> list[Any]:
    """Return the records of a request."""
    try:
        values = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the request is not JSON: {error}") from None
    records = values.get("values") if isinstance(values, dict) else None
    if not isinstance(records, list):
        raise InputError('the request must be {"values": [{"recordId": ..., "data": {...}}, ...]}')
    if len(records) > MAX_RECORDS:
        raise InputError(
            f"the request has {len(records)} records and the limit is {MAX_RECORDS}: lower the "
            "skill's batchSize"
        )
    return records


def _metadata_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs that are metadata of the document, such as its file name.

    Raises ValueError for a name that looks like a misspelt parameter or input.
    """
    names = (*PARAMETERS, "text", "languageCode")
    metadata = {name: value for name, value in data.items() if name not in names}
    for name in metadata:
        lower = {each.lower(): each for each in names}
        if near := get_close_matches(name.lower(), lower, n=1, cutoff=0.9):
            raise InputError(f"unknown input {name!r}: did you mean {lower[near[0]]!r}?")
    return metadata
