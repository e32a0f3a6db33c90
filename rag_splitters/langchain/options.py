"""LangChain's names for parameters, and the attributes of its splitters that other code reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any

from rag_splitters import chunkers
from rag_splitters.contract.chunker import Chunker
from rag_splitters.errors import InputError
from rag_splitters.structure.languages import language_record
from rag_splitters.text.sizing import text_length

_NAMES = {
    "is_separator_regex": "is_regex",
    "sentence_split_regex": "segmenter",
    "separator": "separators",
}
_VALUES: dict[str, Callable[[Any], Any]] = {
    "sentence_split_regex": lambda pattern: f"regex:{pattern}",
    "separator": lambda separator: (separator,),
}
_TOKENIZER = ("encoding_name", "model_name", "allowed_special", "disallowed_special")
_WINDOWS = (chunkers.FixedSizeChunker, chunkers.SlidingWindowChunker)
_HINTS = {
    "headers_to_split_on": "HierarchicalTextSplitter and ContentAwareTextSplitter find headings by "
    'themselves and write them to metadata["headings"]',
    "keep_separator": "this strategy has no separators",
    "max_chunk_size": "pass chunk_size",
    "pipeline": 'pass segmenter="spacy:<pipeline>"',
    "strip_whitespace": "chunks of this strategy never begin or end with white space",
    "tokens_per_chunk": "pass chunk_size",
    "use_span_tokenize": "positions are always exact",
}
"""What to do instead of passing an option that a strategy does not have."""


def our_parameters(kind: type[Chunker], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Translate LangChain's names of parameters into ours.

    Raises ValueError for an option of LangChain's that the strategy does not have, and for a
    parameter that is passed under both names.
    """
    fields = kind.model_fields
    options = {name: value for name, value in parameters.items() if not _is_unset(name, value)}
    if "length_function" in fields:
        options = _with_tokenizer(options)
    for name, value in parameters.items():
        ours = _NAMES.get(name)
        if name in fields or name not in options:
            continue
        if ours in fields:
            if ours in options:
                raise InputError(f"pass {name} or {ours}, not both")
            convert = _VALUES.get(name, lambda value: value)
            options[ours] = convert(options.pop(name))
        elif _changes_nothing(kind, name, value):
            del options[name]
        elif name in _HINTS:
            raise InputError(f"leave {name} out: {_HINTS[name]}; got {value!r}")
    if _keeps_pieces(kind, parameters):
        options.pop("chunk_overlap", None)
        options["chunk_size"] = None
    return options


def _keeps_pieces(kind: type[Chunker], parameters: Mapping[str, Any]) -> bool:
    """Whether a size of 1 asks for the pieces, which LangChain's class never cuts."""
    is_one = parameters.get("chunk_size") == 1 and bool(parameters.get("separator"))
    in_characters = parameters.get("length_function", "characters") in ("characters", len)
    return is_one and in_characters and issubclass(kind, chunkers.SeparatorChunker)


def _is_unset(name: str, value: Any) -> bool:
    """Whether this value means the default in LangChain."""
    return (name == "separators" and value == []) or (name == "min_chunk_size" and value is None)


def _changes_nothing(kind: type[Chunker], name: str, value: Any) -> bool:
    if name == "strip_whitespace" and issubclass(kind, _WINDOWS):
        return True  # LangChain's token splitters do not strip either
    return name in ("keep_separator", "strip_whitespace") and value is True


def _with_tokenizer(options: dict[str, Any]) -> dict[str, Any]:
    """Replace the name of a tokenizer in the options by a length function."""
    encoding, model, special, _ = (options.pop(name, None) for name in _TOKENIZER)
    if special:
        raise InputError(
            f"leave allowed_special out: special tokens are ordinary text here, got {special!r}"
        )
    if model or encoding:
        if "length_function" in options:
            raise InputError("pass only one of encoding_name, model_name and length_function")
        options["length_function"] = f"tokens:{model or encoding}"
    return options


def langchain_attribute(parameter: str, read: Callable[[Any], Any] | None = None) -> Any:
    """Return a property under which LangChain's splitters hold a parameter, to read and assign.

    Parameters:
        parameter: our name of the parameter.
        read: returns the value in LangChain's form for a splitter; None: the value itself.
    """

    def assign(splitter: Any, value: Any) -> None:
        setattr(splitter, parameter, value)

    return property(read or attrgetter(parameter), assign)


def length_function(splitter: Any) -> Callable[[str], int]:
    """Return a function that measures a text in a splitter's unit."""
    return partial(text_length, length_function=splitter.length_function)


def keep_separator(splitter: Any) -> Any:
    """Return LangChain's value for a splitter's `keep_separator`; "auto" is closest to True."""
    side: Any = getattr(splitter, "keep_separator", False)
    return {"auto": True, "none": False}.get(side, side)


def strip_whitespace(splitter: Any) -> Any:
    """Return whether a splitter removes white space at the edges of chunks."""
    return getattr(splitter, "strip_whitespace", not isinstance(splitter, _WINDOWS))


def separators(splitter: Any) -> list[str]:
    """Return the separators of a splitter, or those of its language, as LangChain lists them."""
    if splitter.separators is not None:
        return list(splitter.separators)
    return [*language_record(splitter.language).separators, "\n\n", "\n", " ", ""]
