"""Sentence segmenters: our own rules, NLTK's Punkt, a spaCy pipeline, or a user's function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from importlib.metadata import entry_points
from operator import index
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, Field

from rag_splitters.errors import InputError, InputTypeError, MissingExtraError
from rag_splitters.extras import needs
from rag_splitters.parameters.checks import compile_pattern
from rag_splitters.parameters.fields import FunctionOrName
from rag_splitters.parameters.messages import describe_value
from rag_splitters.text.boundaries import boundary_before
from rag_splitters.text.sentences import sentence_cuts

Segmenter: TypeAlias = Callable[[str], Sequence[tuple[int, int]]]
"""A function from a text to (start, end) of each sentence, in order."""


def check_segmenter(segmenter: str | Segmenter) -> str | Segmenter:
    """Return the segmenter. Raises ValueError if it is not a function or a known name."""
    if isinstance(segmenter, str) and segmenter not in ("rules", "punkt"):
        kind, _, name = segmenter.partition(":")
        if kind not in ("spacy", "regex") or not name:
            raise InputError(
                'segmenter must be "rules", "punkt", "spacy:<model>", "regex:<between sentences>" '
                f"or a function from text to a list of (start, end), got {segmenter!r}"
            )
        if kind == "regex":
            _regex(name)
    return segmenter


SegmenterField = Annotated[
    FunctionOrName,
    AfterValidator(check_segmenter),
    Field(
        description='How to find sentences: "rules" (built in), "punkt" (NLTK), "spacy:<model>", '
        '"regex:<between sentences>" or a function from a text to a list of (start, end).'
    ),
]
"""A field for a segmenter."""


def segmenter_cuts(segmenter: str | Segmenter, text: str) -> list[int]:
    """Return the offsets at which the sentences of a text begin, except the first.

    A sentence that begins inside a grapheme cluster is joined to the one before it.

    Raises: ValueError if the segmenter's spans do not ascend or are outside the text; ImportError,
    with what to install, if a package or its data is missing.

    >>> segmenter_cuts("rules", "One. Two.")
    [5]
    """
    if segmenter == "rules":
        return sentence_cuts(text)
    if not text or text.isspace():
        return []
    function = _load_segmenter(segmenter) if isinstance(segmenter, str) else segmenter
    cuts, last = [], 0
    for start, end in _positions(function(text), segmenter):
        if not last <= start <= end <= len(text):
            raise InputError(
                f"the segmenter {segmenter!r} returned ({start}, {end}) after {last} for a text of "
                f"{len(text)} characters: sentences must ascend and be inside the text"
            )
        cuts.append(start)
        last = end
    return [cut for cut in cuts[1:] if cut > 0 and boundary_before(text, cut) == cut]


def _positions(answer: Any, segmenter: str | Segmenter) -> list[tuple[int, int]]:
    sentences = list(answer) if isinstance(answer, Iterable) else [answer]
    try:
        return [(index(start), index(end)) for start, end in sentences]
    except (TypeError, ValueError):
        raise InputTypeError(
            f"the segmenter {segmenter!r} must return (start, end) of each sentence, "
            f"got {describe_value(answer)}"
        ) from None


@lru_cache(maxsize=8)
def _load_segmenter(name: str) -> Segmenter:
    """Load the segmenter with this name, once per process."""
    check_segmenter(name)
    kind, _, rest = name.partition(":")
    if kind == "regex":
        return _regex(rest)
    return _punkt() if kind == "punkt" else _spacy(rest)


def _regex(pattern: str) -> Segmenter:
    """Return a segmenter that cuts where a regular expression matches between two sentences."""
    between = compile_pattern(pattern, "segmenter")

    def segment(text: str) -> list[tuple[int, int]]:
        matches = list(between.finditer(text))
        starts = [0, *(match.end() for match in matches)]
        ends = [*(match.start() for match in matches), len(text)]
        return list(zip(starts, ends, strict=True))

    return segment


def _punkt() -> Segmenter:
    try:
        from nltk.tokenize.punkt import PunktTokenizer
    except ImportError as error:
        raise MissingExtraError("segmenter='punkt' needs NLTK: pip install nltk") from error
    try:
        tokenizer: Any = PunktTokenizer("english")
    except LookupError as error:
        raise MissingExtraError(
            "segmenter='punkt' needs NLTK's punkt_tab data, which is not downloaded automatically: "
            "python -m nltk.downloader punkt_tab"
        ) from error
    return lambda text: list(tokenizer.span_tokenize(text))


@lru_cache(maxsize=8)
def spacy_pipeline(name: str, user: str) -> Any:
    """Load the installed spaCy pipeline with this name, once per process.

    The name may come from a configuration, so only packages that declare themselves to be spaCy
    pipelines are imported. Raises ImportError if it is missing, or spaCy, which `user` needs.
    """
    with needs(f"{user} needs spaCy", "ner"):
        import spacy  # noqa: F401
    for package in entry_points(group="spacy_models", name=name):
        return package.load().load()
    raise MissingExtraError(
        f"spaCy has no pipeline {name!r} (none is downloaded automatically): run python -m spacy "
        f"download {name}. For a pipeline in a folder, pass ner=spacy.load(folder), or a function "
        "as segmenter="
    )


def _spacy(model: str) -> Segmenter:
    pipeline = spacy_pipeline(model, f"segmenter='spacy:{model}'")

    def segment(text: str) -> list[tuple[int, int]]:
        limit = pipeline.max_length - 1
        spans: list[tuple[int, int]] = []
        for start in range(0, len(text), limit):
            document = pipeline(text[start : start + limit])
            spans += [(start + s.start_char, start + s.end_char) for s in document.sents]
        return spans

    return segment
