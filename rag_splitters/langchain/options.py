"""LangChain's names for parameters, and the attributes of its splitters that other code reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any

from rag_splitters import chunkers
from rag_splitters.contract.chunker import Chunker, without
from rag_splitters.contract.options import Rules, ignore, only, rename, translate
from rag_splitters.contract.sized import unit_of
from rag_splitters.structure.languages import language_record
from rag_splitters.text.sizing import text_length

_WINDOWS = (chunkers.FixedSizeChunker, chunkers.SlidingWindowChunker)


def our_parameters(kind: type[Chunker], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Translate LangChain's names of parameters into ours: see `translate`."""
    unset = {name for name, value in parameters.items() if _is_unset(name, value)}
    ours = translate(kind, without(parameters, unset), _RULES)
    if _keeps_pieces(kind, parameters):
        ours.pop("chunk_overlap", None)
        ours["chunk_size"] = None
    return ours


def _is_unset(name: str, value: Any) -> bool:
    """Whether this value means the default in LangChain."""
    return (name == "separators" and value == []) or (name == "min_chunk_size" and value is None)


def _keeps_pieces(kind: type[Chunker], parameters: Mapping[str, Any]) -> bool:
    """Whether a size of 1 asks for the pieces, which LangChain's class never cuts."""
    is_one = parameters.get("chunk_size") == 1 and bool(parameters.get("separator"))
    in_characters = parameters.get("length_function", "characters") in ("characters", len)
    return is_one and in_characters and issubclass(kind, chunkers.SeparatorChunker)


def _encoding(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Apply the rule for a tokenizer's name: a model comes before an encoding."""
    tokenizer = parameters[name]
    if not tokenizer or (name == "encoding_name" and parameters.get("model_name")):
        return {}
    return {"length_function": f"tokens:{tokenizer}"}


_RULES: Rules = {
    "length_function": {
        "allowed_special": only([[], (), set(), ""], "special tokens are ordinary text here"),
        "disallowed_special": ignore,
        "encoding_name": _encoding,
        "model_name": _encoding,
    },
    "is_regex": {"is_separator_regex": rename("is_regex")},
    "segmenter": {"sentence_split_regex": rename("segmenter", "regex:{}".format)},
    chunkers.SentenceChunker: {
        "language": only(
            ["english"],
            "pass segmenter=PunktTokenizer(language).span_tokenize, from nltk.tokenize.punkt",
        ),
        "max_length": only([1_000_000], "texts of any length are cut"),
        "separator": only(["\n\n"], "a chunk keeps what is between its sentences in the text"),
    },
    "separators": {"separator": rename("separators", lambda separator: (separator,))},
    # LangChain's token splitters do not strip either.
    **{kind: {"strip_whitespace": ignore} for kind in _WINDOWS},
    Chunker: {
        "headers_to_split_on": only(
            [],
            "HierarchicalTextSplitter and ContentAwareTextSplitter find headings by themselves and "
            'write them to metadata["headings"]',
        ),
        "keep_separator": only([True], "this strategy has no separators"),
        "max_chunk_size": only([], "pass chunk_size"),
        "pipeline": only([], 'pass segmenter="spacy:<pipeline>"'),
        "strip_whitespace": only(
            [True], "chunks of this strategy never begin or end with white space"
        ),
        "tokens_per_chunk": only([], "pass chunk_size"),
        "use_span_tokenize": only([], "positions are always exact"),
    },
}


def langchain_attribute(parameter: str, read: Callable[[Any], Any] | None = None) -> Any:
    """Return a property under which LangChain's splitters hold a parameter, to read and assign.

    Parameters:
        read: returns the value in LangChain's form for a splitter; None: the value itself.
    """

    def assign(splitter: Any, value: Any) -> None:
        setattr(splitter, parameter, value)

    return property(read or attrgetter(parameter), assign)


def chunk_overlap(splitter: Any) -> Any:
    """Return a splitter's overlap in units, also if it was passed as a share of the size."""
    return getattr(splitter, "overlap", splitter.chunk_overlap)


def length_function(splitter: Any) -> Callable[[str], int]:
    """Return a function that measures a text in a splitter's unit."""
    return partial(text_length, length_function=unit_of(splitter))


def keep_separator(splitter: Any) -> Any:
    """Return LangChain's value for a splitter's `keep_separator`; "auto" is closest to True."""
    side: Any = getattr(splitter, "keep_separator", False)
    return {"auto": True, "none": False}.get(side, side)


def strip_whitespace(splitter: Any) -> Any:
    """Return whether a splitter removes white space at the edges of chunks."""
    return getattr(splitter, "strip_whitespace", not isinstance(splitter, _WINDOWS))


def is_separator_regex(splitter: Any) -> bool:
    """Return whether `separators` returns regular expressions; those of a language are."""
    return splitter.is_regex or getattr(splitter, "language", None) is not None


def separators(splitter: Any) -> list[str]:
    """Return the separators of a splitter, or those of its language, as LangChain lists them."""
    if splitter.separators is not None:
        return list(splitter.separators)
    return [*language_record(splitter.language).separators, "\n\n", "\n", " ", ""]
