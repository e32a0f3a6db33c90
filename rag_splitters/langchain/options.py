"""LangChain's names for options, and the attributes of its splitters that other code reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from rag_splitters import chunkers
from rag_splitters.chunker import Chunker
from rag_splitters.text.sizing import sizer

_NAMES = {"is_separator_regex": "is_regex", "separator": "separators"}
_TOKENIZER = ("encoding_name", "model_name", "allowed_special", "disallowed_special")
_WINDOWS = (chunkers.FixedSizeChunker, chunkers.SlidingWindowChunker)
_HINTS = {
    "headers_to_split_on": "HierarchicalTextSplitter and ContentAwareTextSplitter find headings by "
    'themselves and write them to metadata["headings"]',
    "keep_separator": "this strategy has no separators",
    "max_chunk_size": "pass chunk_size",
    "pipeline": 'pass segmenter="spacy:<pipeline>"',
    "sentence_split_regex": 'pass segmenter="rules" or a function from text to (start, end) pairs',
    "strip_whitespace": "chunks of this strategy never begin or end with white space",
    "tokens_per_chunk": "pass chunk_size",
    "use_span_tokenize": "positions are always exact",
}
"""What to do instead of passing an option that a strategy does not have."""


def our_parameters(kind: type[Chunker], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters by our names, where some have LangChain's.

    Raises ValueError for an option of LangChain's that the strategy does not have, and for two
    names of one parameter.
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
                raise ValueError(f"pass {name} or {ours}, not both")
            options[ours] = (options.pop(name),) if name == "separator" else options.pop(name)
        elif _changes_nothing(kind, name, value):
            del options[name]
        elif name in _HINTS:
            raise ValueError(f"leave {name} out: {_HINTS[name]}; got {value!r}")
    return options


def _is_unset(name: str, value: Any) -> bool:
    """Whether LangChain takes its default for this value."""
    return (name == "separators" and value == []) or (name == "min_chunk_size" and value is None)


def _changes_nothing(kind: type[Chunker], name: str, value: Any) -> bool:
    if name == "strip_whitespace" and issubclass(kind, _WINDOWS):
        return True  # LangChain's splitters by tokens do not strip either
    return name in ("keep_separator", "strip_whitespace") and value is True


def _with_tokenizer(options: dict[str, Any]) -> dict[str, Any]:
    """The options with a length function in the place of a tokenizer's name."""
    encoding, model, special, _ = (options.pop(name, None) for name in _TOKENIZER)
    if special:
        raise ValueError(
            f"leave allowed_special out: special tokens in a text are text, got {special!r}"
        )
    if model or encoding:
        if "length_function" in options:
            raise ValueError("pass encoding_name, model_name or length_function, not several")
        options["length_function"] = f"tokens:{model or encoding}"
    return options


def langchain_attribute(parameter: str, read: Callable[[Any], Any] | None = None) -> Any:
    """The attribute that stands for a parameter in LangChain's splitters, to read and assign.

    Parameters:
        parameter: the parameter.
        read: its value as LangChain writes it, by the splitter; None for the value itself.
    """

    def assign(splitter: Any, value: Any) -> None:
        setattr(splitter, parameter, value)

    return property(read or attrgetter(parameter), assign)


def length_function(splitter: Any) -> Callable[[str], int]:
    """A function that measures a text in a splitter's unit."""
    new_measure = sizer(splitter.length_function)
    return lambda text: new_measure(text).length(0, len(text))


def keep_separator(splitter: Any) -> Any:
    """Where a splitter's separators go; "auto" is closest to True."""
    side: Any = getattr(splitter, "keep_separator", False)
    return {"auto": True, "none": False}.get(side, side)


def strip_whitespace(splitter: Any) -> Any:
    """Whether a splitter leaves out white space at the edges of chunks."""
    return getattr(splitter, "strip_whitespace", not isinstance(splitter, _WINDOWS))
