"""Where are entities mentioned? The one place that knows what a recogniser is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import product
from types import BuiltinFunctionType, FunctionType
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, PlainSerializer

from rag_splitters.fields import describe, restore
from rag_splitters.meaning.mentions import Mention, checked_mention, mention_windows, mentions_apart
from rag_splitters.text.ids import stable_uuid

__all__ = ["Recogniser", "describe_recogniser", "find_mentions"]

_LARGEST_WINDOW = 100_000  # characters: spaCy takes about 1 GB for a million
_GLINER_WINDOW = 1000  # characters: it reads 384 words and drops the rest
_BATCH = 64  # texts that a Hugging Face pipeline is handed at a time
_DEFAULT_TOKENS = 512  # what an encoder reads where its tokenizer does not say
_SURROGATE = re.compile("[\ud800-\udfff]")  # no library's tokenizer takes them


_Answers: TypeAlias = Iterable[Iterable[Sequence[Any]]]


def find_mentions(ner: Any, texts: Sequence[str], labels: Sequence[str]) -> list[list[Mention]]:
    """The mentions in each text, ascending and without overlaps; of two that do, the longer one.

    A recogniser that reads a part of a text at a time is asked about all texts at once, in windows.
    White space at a mention's edges is left out.

    Parameters:
        ner: a recogniser, see `Recogniser`.
        texts: the texts.
        labels: only these; none for all.

    Raises: ValueError for a mention outside of its text; ImportError where spaCy or a pipeline of
    the name is missing.

    >>> find_mentions(lambda text: [(0, 3, "PERSON")], ["Ada wrote."], [])
    [[Mention(start=0, end=3, label='PERSON')]]
    """
    found: list[list[Mention]] = [[] for _ in texts]
    parts = [
        (index, offset, part)
        for index, text in enumerate(texts)
        if text.strip()
        for offset, part in _parts(ner, text)
    ]
    answers = _ask(ner, [part for _, _, part in parts], labels)
    for (index, offset, part), answer in zip(parts, answers, strict=True):
        for each in answer:
            start, end, label = checked_mention(each, part)
            found[index].append(Mention(start + offset, end + offset, label))
    return [
        mentions_apart(text, [each for each in mentions if not labels or each.label in labels])
        for text, mentions in zip(texts, found, strict=True)
    ]


# Asking each kind of recogniser


def _kind(ner: Any) -> str:
    """ "name", "gliner", "spacy", "transformers", "function", or "" for what is no recogniser."""
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


@lru_cache(maxsize=4)
def _load(name: str) -> Any:
    """The spaCy pipeline of a name or in a folder, loaded once per process; never downloaded."""
    try:
        import spacy
    except ImportError as error:
        raise ImportError("EntityChunker needs spaCy: pip install 'rag-splitters[ner]'") from error
    try:
        return spacy.load(name)
    except OSError as error:
        raise ImportError(
            f"spaCy has no pipeline {name!r}, and none is downloaded unasked: python -m spacy "
            f"download {name}, or name the folder of one"
        ) from error


def _parts(ner: Any, text: str) -> list[tuple[int, str]]:
    """(offset, text) of what the recogniser reads at a time: all of it, or windows."""
    kind = _kind(ner)
    if kind == "function":
        return [(0, text)]
    plain = _SURROGATE.sub("\ufffd", text)
    if kind == "transformers":
        return [
            (start + offset, part)
            for start, end in mention_windows(text, 2 * _most_tokens(ner))
            for offset, part in _fitting(ner, plain[start:end])
        ]
    most = _GLINER_WINDOW
    if kind != "gliner":
        pipeline = _load(ner) if kind == "name" else ner
        most = min(_LARGEST_WINDOW, pipeline.max_length)
    return [(start, plain[start:end]) for start, end in mention_windows(text, most)]


def _ask(ner: Any, parts: list[str], labels: Sequence[str]) -> _Answers:
    """The answers about the parts, in their order: (start, end, label) in each."""
    kind = _kind(ner)
    if kind == "function":
        return map(ner, parts)
    if kind == "gliner":
        if not labels:
            raise ValueError("a GLiNER model must be told the labels to look for: labels=[...]")
        return map(partial(_ask_gliner, ner, list(labels)), parts)
    if kind == "transformers":
        return _ask_transformers(ner, parts)
    pipeline = _load(ner) if kind == "name" else ner
    if not pipeline.pipe_names:
        raise ValueError(f"{describe_recogniser(pipeline)} has no component that finds entities")
    return (
        [(each.start_char, each.end_char, each.label_) for each in document.ents]
        for document in pipeline.pipe(parts, batch_size=16)
    )


def _ask_gliner(ner: Any, labels: list[str], part: str) -> list[tuple[Any, ...]]:
    return [(m["start"], m["end"], m["label"]) for m in ner.predict_entities(part, labels)]


def _ask_transformers(ner: Any, parts: Sequence[str]) -> Iterator[list[tuple[Any, ...]]]:
    for first in range(0, len(parts), _BATCH):
        batch = list(parts[first : first + _BATCH])
        answers = list(ner(batch))
        if len(batch) == 1 and (not answers or isinstance(answers[0], Mapping)):
            answers = [answers]
        if len(answers) != len(batch):
            raise ValueError(f"the pipeline gave {len(answers)} answers for {len(batch)} texts")
        yield from map(_grouped, answers)


def _grouped(answer: Iterable[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """The pipeline's groups; where it does not aggregate, tokens are put together by B- and I-."""
    found: list[tuple[Any, ...]] = []
    for each in answer:
        start, end = each["start"], each["end"]
        if start is None or end is None:
            raise ValueError("the pipeline gives no positions: it needs a fast tokenizer")
        prefix, _, label = str(each.get("entity", "")).rpartition("-")
        if "entity_group" in each:
            found.append((start, end, each["entity_group"]))
        elif prefix != "B" and found and found[-1][2] == label and start - found[-1][1] <= 1:
            found[-1] = (found[-1][0], end, label)
        else:
            found.append((start, end, label))
    return found


def _most_tokens(ner: Any) -> int:
    most = getattr(ner.tokenizer, "model_max_length", None)
    return most if isinstance(most, int) and 8 <= most < 100_000 else _DEFAULT_TOKENS


def _fitting(ner: Any, part: str) -> list[tuple[int, str]]:
    """(offset, text) of pieces that the model reads whole: it would drop the rest unasked."""
    if not callable(ner.tokenizer) or len(part) < 8:
        return [(0, part)]
    if len(ner.tokenizer(part)["input_ids"]) <= _most_tokens(ner):
        return [(0, part)]
    return [
        (start + offset, piece)
        for start, end in mention_windows(part, len(part) // 2 + 1)
        for offset, piece in _fitting(ner, part[start:end])
    ]


# A recogniser as a field


def _check(value: Any) -> Any:
    """The recogniser that a value names or is, or ValueError."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    value = restore(value, "ner")
    if not _kind(value) or value == "":
        raise ValueError(
            "ner must be a spaCy pipeline, its name or folder, a Hugging Face token "
            "classification pipeline, a GLiNER model, or a function from text to a list of "
            f"(start, end, label), got {value!r}"
        )
    return value


def describe_recogniser(ner: Any) -> str:
    """A name that is the same in every process: never an address.

    A spaCy pipeline is known by language, name, version, components, labels and patterns, a model
    by its name: give one that you train anew a new version or name.

    Raises: ValueError for an object without a name, a method, or a function nobody can import.
    """
    kind = _kind(ner)
    if kind == "name":
        return str(ner)
    if kind == "function" and isinstance(ner, (FunctionType, BuiltinFunctionType)):
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
        name = getattr(owner, key, None)
        if isinstance(name, str) and name:
            return f"recogniser:{kind}:{name}{_weights(ner) if kind == 'gliner' else ''}"
    raise ValueError(f"{type(ner).__qualname__} has no name by which another process could know it")


def _weights(model: Any) -> str:
    """Some of a model's numbers: a GLiNER bears the name of the encoder that it was made from."""
    if not callable(getattr(model, "parameters", None)):
        return ""
    numbers = [each.detach().flatten()[:8].tolist() for each in model.parameters()]
    return f":{stable_uuid(repr(numbers))}"


Recogniser = Annotated[
    Any, BeforeValidator(_check), PlainSerializer(describe_recogniser, return_type=str)
]
"""A field that holds what finds entities, and is written as its name.

A spaCy pipeline, or its name or folder; a Hugging Face token classification pipeline; a GLiNER
model, or anything with its `predict_entities`; a function from a text to (start, end, label)."""
