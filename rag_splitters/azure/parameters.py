"""The parameters of the Text Split skill, applied to a chunker."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from rag_splitters.contract.chunker import Chunker
from rag_splitters.contract.sized import SizedChunker
from rag_splitters.errors import InputError
from rag_splitters.parameters.messages import did_you_mean

ENCODINGS = ("cl100k_base", "o200k_base", "r50k_base", "p50k_base", "p50k_edit")
"""The allowed values of `encoderModelName`, the default first."""

_UNITS = ("characters", "azureOpenAITokens")


@dataclass(frozen=True)
class SplitParameters:
    """The parameters of the Text Split skill; None keeps the chunker's own value.

    Parameters:
        mode: "pages" or "sentences".
        page_length: maximum size of a chunk.
        overlap: how much of a chunk the next one repeats.
        pages_to_take: number of chunks to return; 0 for all.
        unit: "characters" (UTF-16 code units, as Azure counts) or "azureOpenAITokens".
        encoding: the tokenizer of the unit "azureOpenAITokens".
        special_tokens: whether the request allows special tokens, which are ordinary text here.
    """

    mode: str = "pages"
    page_length: int | None = None
    overlap: int | None = None
    pages_to_take: int = 0
    unit: str | None = None
    encoding: str = ENCODINGS[0]
    special_tokens: bool = False

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> SplitParameters:
        """Read the parameters from a query string, or from the inputs of a record.

        Numbers may be strings of digits, and null counts as missing. Raises ValueError for an
        unknown parameter or an invalid value.

        >>> SplitParameters.read({"maximumPageLength": "512", "unit": "azureOpenAITokens"}).unit
        'azureOpenAITokens'
        """
        values = {name: value for name, value in values.items() if value is not None}
        for name in values:
            if name not in PARAMETERS:
                raise InputError(f"unknown parameter {name!r}: {did_you_mean(name, PARAMETERS)}")
        tokenizer = _tokenizer_parameters(values)
        return cls(
            mode=_one_of(values, "textSplitMode", ("pages", "sentences")) or "pages",
            page_length=_whole_number(values, "maximumPageLength", 1),
            overlap=_whole_number(values, "pageOverlapLength", 0),
            pages_to_take=_whole_number(values, "maximumPagesToTake", 0) or 0,
            unit=_one_of(values, "unit", _UNITS),
            encoding=_one_of(tokenizer, "encoderModelName", ENCODINGS) or ENCODINGS[0],
            special_tokens=bool(tokenizer.get("allowedSpecialTokens")),
        )

    def apply_to(self, chunker: Chunker) -> Chunker:
        """Return the chunker with these sizes instead of its own.

        Raises ValueError if the sizes contradict each other, or if the chunker has none.
        """
        if self.mode == "sentences":
            return chunker  # sizes apply to pages only
        sizes: dict[str, Any] = {}
        if self.page_length is not None:
            sizes["chunk_size"] = self.page_length
        if self.overlap is not None:
            sizes["chunk_overlap"] = self.overlap
        if self.unit is not None:
            is_tokens = self.unit == "azureOpenAITokens"
            sizes["length_function"] = f"tokens:{self.encoding}" if is_tokens else "characters"
        if not sizes:
            return chunker
        if not isinstance(chunker, SizedChunker):
            raise InputError(
                f"{type(chunker).__name__} has no chunk_size of its own: leave out "
                "maximumPageLength, pageOverlapLength and unit, and set the sizes where the skill "
                "is served"
            )
        self._check_sizes(chunker)
        values = {name: getattr(chunker, name) for name in chunker.model_fields_set}
        return type(chunker)(**{**values, **sizes})

    def _check_sizes(self, chunker: SizedChunker) -> None:
        length = self.page_length
        if length is None and self.unit is not None:
            raise InputError(f"unit={self.unit} needs maximumPageLength")
        is_characters = self.unit == "characters" or (
            self.unit is None and chunker.length_function == "characters"
        )
        least, unit = (300, "characters") if is_characters else (50, "tokens")
        if length is not None and not least <= length <= 50_000:
            raise InputError(
                f"maximumPageLength must be from {least} to 50000 {unit}, got {length}"
            )
        length = chunker.chunk_size if length is None else length
        if self.overlap is not None and self.overlap >= length:
            raise InputError(
                f"pageOverlapLength must be smaller than maximumPageLength ({length}), "
                f"got {self.overlap}"
            )


PARAMETERS = (
    "textSplitMode",
    "maximumPageLength",
    "pageOverlapLength",
    "maximumPagesToTake",
    "unit",
    "defaultLanguageCode",
    "azureOpenAITokenizerParameters",
    "encoderModelName",
    "allowedSpecialTokens",
)
"""The names of the parameters, including those of `azureOpenAITokenizerParameters`."""


def _tokenizer_parameters(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return `encoderModelName` and `allowedSpecialTokens`, which may be in an object."""
    names = ("encoderModelName", "allowedSpecialTokens")
    own = {name: values[name] for name in names if name in values}
    options = values.get("azureOpenAITokenizerParameters", {})
    with suppress(ValueError, RecursionError):  # invalid JSON is no object, either
        options = json.loads(options) if isinstance(options, str) else options
    if not isinstance(options, dict):
        raise InputError(f"azureOpenAITokenizerParameters must be an object, got {options!r:.200}")
    for name in options:
        if name not in names:
            hint = did_you_mean(name, names)
            raise InputError(f"azureOpenAITokenizerParameters has no {name!r}: {hint}")
    return {**{name: value for name, value in options.items() if value is not None}, **own}


def _one_of(values: Mapping[str, Any], name: str, choices: tuple[str, ...]) -> str | None:
    value = values.get(name)
    if value is not None and value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}; got {value!r:.200}")
    return value


def _whole_number(values: Mapping[str, Any], name: str, least: int) -> int | None:
    value = values.get(name)
    if value is None:
        return None
    is_digits = isinstance(value, str) and value.isdecimal() and len(value) < 20
    is_whole = isinstance(value, float) and value.is_integer()
    number = int(value) if is_digits or is_whole else value
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r:.200}")
    return number
