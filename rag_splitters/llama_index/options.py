"""LlamaIndex's own names for the parameters of parsers, translated to ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from rag_splitters import chunkers
from rag_splitters.contract.chunker import Chunker, without
from rag_splitters.errors import InputError
from rag_splitters.parameters.conversions import SentenceSpans, length_in_tokens

_Rule: TypeAlias = Callable[[str, Mapping[str, Any]], dict[str, Any]]
"""A function from one of LlamaIndex's names and all parameters to our parameters instead."""

_SEPARATORS = "token windows have no separators; use RecursiveNodeParser(separators=[...])"
_WRITTEN = {"class_name", "version"}
"""What `to_dict` and `model_dump` write besides parameters."""
_LEVELS = "pass chunk_sizes=[...], the size of each level"


def our_parameters(kind: type[Chunker], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Translate LlamaIndex's names of a parser's parameters into ours.

    Raises ValueError if a parameter is passed under both names, or if there is no counterpart for a
    parameter of LlamaIndex.
    """
    names = kind.model_fields.keys() - {"callback_manager"}
    ours = {name: value for name, value in parameters.items() if name in names}
    for name in without(parameters, {*ours, *_WRITTEN}):
        rule = _rule(kind, name)
        values = {name: parameters[name]} if rule is None else rule(name, parameters)
        for own_name, value in values.items():
            if own_name in ours:
                raise InputError(f"pass {own_name} or {name}, not both")
            ours[own_name] = value
    return ours


def _rule(kind: type[Chunker], name: str) -> _Rule | None:
    for owner, rules in _RULES.items():
        if name in rules and issubclass(kind, owner):
            return rules[name]
    ours, rule = _SHARED_RULES.get(name, ("", None))
    return rule if ours in kind.model_fields else None


def _renamed(ours: str, convert: Callable[[Any], Any] = lambda value: value) -> _Rule:
    """Return a rule for a parameter that has another name here; None leaves it unset."""

    def rule(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        value = parameters[name]
        return {} if value is None else {ours: convert(value)}

    return rule


def _only(defaults: Sequence[Any], advice: str) -> _Rule:
    """Return a rule for a parameter that we lack: only values without effect are accepted."""

    def rule(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        value = parameters[name]
        if value is None or value in defaults:
            return {}
        raise InputError(f"{name}={value!r} is not supported: {advice}")

    return rule


def _ignored(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out a parameter that has no effect in LlamaIndex either."""
    return {}


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


_SHARED_RULES: dict[str, tuple[str, _Rule]] = {
    "callback_manager": ("callback_manager", _renamed("callback_manager")),
    "chunking_tokenizer_fn": ("segmenter", _renamed("segmenter", SentenceSpans)),
    "embed_model": ("embeddings", _renamed("embeddings")),
    "sentence_splitter": ("segmenter", _renamed("segmenter", SentenceSpans)),
    "tokenizer": ("length_function", _renamed("length_function", length_in_tokens)),
}
"""Rules for all parsers that have our parameter."""

_RULES: dict[type[Chunker], dict[str, _Rule]] = {
    chunkers.SentenceChunker: {
        "separator": _only(
            [" "],
            "a long sentence is cut between words; for other separators use "
            "RecursiveNodeParser(separators=[...])",
        ),
    },
    chunkers.TokenChunker: {
        "separator": _only([" "], _SEPARATORS),
        "backup_separators": _only([["\n"], []], _SEPARATORS),
        "keep_whitespaces": _renamed("strip_whitespace", lambda value: not value),
    },
    chunkers.CodeChunker: {
        "chunk_lines": _ignored,
        "chunk_lines_overlap": _ignored,
        "count_mode": _code_size,
        "max_chars": _code_size,
        "max_tokens": _code_size,
        "parser": _only([], "pass language= instead; each supported language has its parser"),
    },
    chunkers.SemanticChunker: {
        "breakpoint_percentile_threshold": _renamed("breakpoint_threshold_amount"),
        "original_text_metadata_key": _ignored,
    },
    chunkers.HierarchicalChunker: {
        "node_parser_ids": _only([], _LEVELS),
        "node_parser_map": _only([], _LEVELS),
    },
}
"""Rules for the counterparts of LlamaIndex's parsers."""
