"""LlamaIndex's own names for the parameters of parsers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_splitters import chunkers
from rag_splitters.contract.chunker import Chunker, without
from rag_splitters.contract.options import Rules, ignore, only, rename, translate
from rag_splitters.errors import InputError, InputTypeError
from rag_splitters.models.embedder import check_embedding_model
from rag_splitters.parameters.conversions import SentenceSpans, length_in_tokens
from rag_splitters.parameters.messages import describe_value

_SEPARATORS = "token windows have no separators; use RecursiveNodeParser(separators=[...])"
_LEVELS = "pass chunk_sizes=[...], the size of each level"
VERSION_KEY = "rag_splitters_version"  # a subclass may have a parameter "version"
_WRITTEN = {"class_name", VERSION_KEY}
"""What `to_dict` and `model_dump` write besides parameters."""


def our_parameters(kind: type[Chunker], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Translate LlamaIndex's names of a parser's parameters into ours: see `translate`."""
    unset = {"callback_manager"} if parameters.get("callback_manager") is None else set[str]()
    unset |= _WRITTEN | kind.model_computed_fields.keys()
    return translate(kind, without(parameters, unset), _RULES)


def _code_size(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Apply the rule for the size of code: only that in the unit of `count_mode` has an effect."""
    tokens = parameters.get("max_tokens")
    characters = parameters.get("max_chars")
    is_token = tokens is not None and characters is None
    mode = parameters.get("count_mode") or ("token" if is_token else "char")
    if mode not in ("token", "char"):
        raise InputError(f'count_mode must be "token" or "char", got {mode!r}')
    sizes = {"token": (tokens, "max_tokens"), "char": (characters, "max_chars")}
    size, name_of_size = sizes[mode]
    if name != (name_of_size if size is not None else "count_mode"):
        return {}
    ours = {} if size is None else {"chunk_size": size}
    if mode == "char":
        ours["length_function"] = "characters"
    elif parameters.get("tokenizer") is None:
        ours["length_function"] = "tokens"
    return ours


def _segmenter(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Make a segmenter of a function that returns the sentences of a text."""
    function = parameters[name]
    if function is None:
        return {}
    if not callable(function):
        got = describe_value(function)
        raise InputError(f"{name} must be a function from a text to its sentences, got {got}")
    return {"segmenter": SentenceSpans(function)}


def _embedding_model(value: Any) -> Any:
    """Return a model, or the name of one; anything else is an error."""
    try:
        if not isinstance(value, str):
            check_embedding_model(value, "embed_model")
    except InputTypeError as error:
        raise InputError(str(error)) from None
    return value


_RULES: Rules = {
    chunkers.SentenceChunker: {
        "separator": only(
            [" "],
            "a long sentence is cut between words; for other separators use "
            "RecursiveNodeParser(separators=[...])",
        )
    },
    chunkers.TokenChunker: {
        "separator": only([" "], _SEPARATORS),
        "backup_separators": only([["\n"], []], _SEPARATORS),
        "keep_whitespaces": rename("strip_whitespace", lambda value: not value),
    },
    chunkers.CodeChunker: {
        "chunk_lines": ignore,
        "chunk_lines_overlap": ignore,
        "count_mode": _code_size,
        "max_chars": _code_size,
        "max_tokens": _code_size,
        "parser": only([], "pass language= instead; each supported language has its parser"),
    },
    chunkers.ContentAwareChunker: {
        "header_path_separator": only(
            [], 'the path of each chunk is in metadata["headings"], as "Tea > Green tea"'
        ),
        "tags": only(
            [], "all of the main content is read; main_content_only=False adds menus and footers"
        ),
    },
    chunkers.SemanticChunker: {
        "breakpoint_percentile_threshold": rename("breakpoint_threshold_amount"),
        "original_text_metadata_key": ignore,
    },
    chunkers.HierarchicalChunker: {
        "node_parser_ids": only([], _LEVELS),
        "node_parser_map": only([], _LEVELS),
    },
    "embeddings": {"embed_model": rename("embeddings", _embedding_model)},
    "length_function": {"tokenizer": rename("length_function", length_in_tokens)},
    "segmenter": {
        "chunking_tokenizer_fn": _segmenter,
        "sentence_splitter": _segmenter,
    },
}
