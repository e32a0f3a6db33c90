"""Finds the entities that a text mentions, with a recogniser of any library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from types import BuiltinFunctionType, FunctionType
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, PlainSerializer

from rag_splitters.errors import InputError
from rag_splitters.ids import stable_uuid
from rag_splitters.meaning.mentions import (
    Mention,
    mention_windows,
    read_mention,
    remove_overlaps,
)
from rag_splitters.models.loop import finished
from rag_splitters.models.secrets import without_secrets
from rag_splitters.parameters.functions import describe, registered_name, restore
from rag_splitters.span import Source
from rag_splitters.text.segmenters import spacy_pipeline
from rag_splitters.text.surrogates import replace_surrogates

_SPACY_WINDOW = 100_000  # characters: spaCy needs about 1 GB for a million
_GLINER_WINDOW = 1000  # characters: it reads 384 words and ignores the rest
_BATCH = 64  # texts in one call of a Hugging Face pipeline
_DEFAULT_TOKENS = 512  # the limit of an encoder whose tokenizer does not define one


_Answers: TypeAlias = Iterable[Iterable[Sequence[Any]]]


def find_mentions(
    ner: Any, sources: Sequence[Source], labels: Sequence[str]
) -> list[list[Mention]]:
    """Find the mentions in each text, in order.

    Mentions do not overlap (the longer one is kept) and have no white space at their edges. A
    recogniser with a maximum length gets each text in windows, those of all texts together.

    Without `labels`, mentions with any label are returned.

    Raises ValueError, which names the document, if the recogniser fails on it or reports a mention
    outside of it, and ImportError if spaCy or the pipeline with this name is not installed.

    >>> find_mentions(lambda text: [(0, 3, "PERSON")], [Source("Ada wrote.")], [])
    [[Mention(start=0, end=3, label='PERSON')]]
    """
    mentions: list[list[Mention]] = [[] for _ in sources]
    parts = [
        (index, offset, part)
        for index, source in enumerate(sources)
        if source.text.strip()
        for offset, part in _parts(ner, source.text)
    ]
    answers = iter(_ask(ner, [part for _, _, part in parts], labels))
    for index, offset, part in parts:
        try:
            for each in next(answers):
                start, end, label = read_mention(each, part)
                if not labels or label in labels:
                    mentions[index].append(Mention(start + offset, end + offset, label))
        except ImportError:
            raise
        except Exception as error:  # recognisers may raise anything
            number = sources[index].number
            details = without_secrets(f"{type(error).__name__}: {error}", ner)
            message = f"EntityChunker: document {number}: the recogniser failed: {details}"
            raise InputError(message) from (error if str(error) in details else None)
    return list(map(remove_overlaps, (source.text for source in sources), mentions))


# Each kind of recogniser


def _kind(ner: Any) -> str:
    """Return "name", "gliner", "spacy", "transformers", "function", or "" for anything else."""
    if isinstance(ner, str):
        return "name"
    if isinstance(ner, type):
        return ""
    if callable(getattr(ner, "predict_entities", None)):
        return "gliner"
    if hasattr(ner, "pipe_names") and hasattr(ner, "max_length"):
        return "spacy"
    if callable(ner):
        is_pipeline = hasattr(ner, "tokenizer") and hasattr(ner, "model")
        return "transformers" if is_pipeline else "function"
    return ""


def _pipeline(ner: Any) -> Any:
    """Return the spaCy pipeline, which is loaded if it is a name."""
    return spacy_pipeline(ner, "EntityChunker") if isinstance(ner, str) else ner


def _parts(ner: Any, text: str) -> list[tuple[int, str]]:
    """Divide a text into (offset, part): one part, or windows that the recogniser can read."""
    kind = _kind(ner)
    if kind == "function":
        return [(0, text)]
    plain = replace_surrogates(text)  # no tokenizer accepts them
    if kind == "transformers":
        return [
            (start + offset, part)
            for start, end in mention_windows(text, 2 * _max_tokens(ner))
            for offset, part in _split_to_fit(ner, plain[start:end])
        ]
    size = _GLINER_WINDOW
    if kind != "gliner":
        size = min(_SPACY_WINDOW, _pipeline(ner).max_length)
    return [(start, plain[start:end]) for start, end in mention_windows(text, size)]


def _ask(ner: Any, parts: list[str], labels: Sequence[str]) -> _Answers:
    """Return the recogniser's answer for each part: (start, end, label) of its mentions."""
    kind = _kind(ner)
    if kind == "function":
        return (finished(ner(part)) for part in parts)
    if kind == "gliner":
        if not labels:
            raise InputError("a GLiNER model needs the labels to look for: pass labels=[...]")
        answers = (ner.predict_entities(part, list(labels)) for part in parts)
        return ([(m["start"], m["end"], m["label"]) for m in answer] for answer in answers)
    if kind == "transformers":
        return _ask_transformers(ner, parts)
    pipeline = _pipeline(ner)
    if not pipeline.pipe_names:
        raise InputError(f"{describe_recogniser(pipeline)} has no component that finds entities")
    return (
        [(each.start_char, each.end_char, each.label_) for each in document.ents]
        for document in pipeline.pipe(parts, batch_size=16)
    )


def _ask_transformers(ner: Any, parts: Sequence[str]) -> Iterator[list[tuple[Any, ...]]]:
    for first in range(0, len(parts), _BATCH):
        batch = list(parts[first : first + _BATCH])
        answers = list(ner(batch))
        if len(batch) == 1 and (not answers or isinstance(answers[0], Mapping)):
            answers = [answers]
        if len(answers) != len(batch):
            raise InputError(f"the pipeline returned {len(answers)} answers for {len(batch)} texts")
        yield from map(_group_tokens, answers)


def _group_tokens(answer: Iterable[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Return the pipeline's entities; single tokens are joined by their labels B- and I-."""
    entities: list[tuple[Any, ...]] = []
    for each in answer:
        start, end = each["start"], each["end"]
        if start is None or end is None:
            raise InputError("the pipeline returns no positions: use a fast tokenizer")
        prefix, _, label = str(each.get("entity", "")).rpartition("-")
        _, last_end, last_label = entities[-1] if entities else (0, 0, None)
        if "entity_group" in each:
            entities.append((start, end, each["entity_group"]))
        elif prefix != "B" and label == last_label and start - last_end <= 1:
            entities[-1] = (entities[-1][0], end, label)
        else:
            entities.append((start, end, label))
    return entities


def _max_tokens(ner: Any) -> int:
    limit = getattr(ner.tokenizer, "model_max_length", None)
    return limit if isinstance(limit, int) and 8 <= limit < 100_000 else _DEFAULT_TOKENS


def _split_to_fit(ner: Any, part: str) -> list[tuple[int, str]]:
    """Divide a part so that it fits: models silently ignore tokens beyond their limit."""
    if not callable(ner.tokenizer) or len(part) < 8:
        return [(0, part)]
    if len(ner.tokenizer(part)["input_ids"]) <= _max_tokens(ner):
        return [(0, part)]
    return [
        (start + offset, piece)
        for start, end in mention_windows(part, len(part) // 2 + 1)
        for offset, piece in _split_to_fit(ner, part[start:end])
    ]


# A recogniser as a field


def _check(value: Any) -> Any:
    """Return a field's value. Raises ValueError if it is not a recogniser."""
    value = restore(value, "ner")
    if not _kind(value) or value == "":
        raise InputError(
            "ner must be a spaCy pipeline or its name, a Hugging Face token "
            "classification pipeline, a GLiNER model, or a function from text to a list of "
            f"(start, end, label), got {value!r}"
        )
    return value


def describe_recogniser(ner: Any) -> str:
    """Return a name that is the same in every process.

    It identifies a spaCy pipeline by language, name, version, components, labels and patterns, and
    a model by its name. If you train a model again, give it a new version or name.

    Raises ValueError for a function that cannot be imported, a method, or an object without a name.
    """
    kind = _kind(ner)
    if kind == "name":
        return str(ner)
    if kind == "function":
        if registered := registered_name(ner):
            return registered
        if isinstance(ner, (FunctionType, BuiltinFunctionType)):
            return describe(ner)
    if kind == "spacy":
        meta = ner.meta
        full_name = f"{meta['lang']}_{meta['name']}-{meta['version']}"
        patterns = [getattr(component, "patterns", None) for _, component in ner.pipeline]
        details = (ner.pipe_names, sorted(ner.pipe_labels.items()), patterns)
        return f"recogniser:spacy:{full_name}:{stable_uuid(*map(repr, details))}"
    holders = (getattr(ner, "model", None), ner)
    configs = [getattr(holder, "config", None) for holder in holders]
    owners = [*holders, *configs]
    for owner, key in product(owners, ("name_or_path", "_name_or_path", "model_name")):
        if name := getattr(owner, key, None):
            return f"recogniser:{kind}:{name}{_weights(ner) if kind == 'gliner' else ''}"
    raise InputError(
        f"{type(ner).__qualname__} has no name by which another process could recognise it: "
        "give it a name_or_path or model_name"
    )


def _weights(model: Any) -> str:
    """Return a fingerprint of the weights; GLiNER models with one encoder share its name."""
    if not callable(getattr(model, "parameters", None)):
        return ""
    numbers = [each.detach().flatten()[:8].tolist() for each in model.parameters()]
    return f":{stable_uuid(repr(numbers))}"


Recogniser = Annotated[
    Any, BeforeValidator(_check), PlainSerializer(describe_recogniser, return_type=str)
]
"""A field for a recogniser; a configuration holds its name.

It accepts a spaCy pipeline, or the name of an installed one; a Hugging Face token classification
pipeline; a GLiNER model, or anything with its `predict_entities`; or a function from a text to a
list of (start, end, label)."""
