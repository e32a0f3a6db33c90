"""The parameters of the Text Split skill, applied to a chunker."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from rag_splitters.contract.chunker import Chunker
from rag_splitters.contract.sized import SizedChunker
from rag_splitters.errors import InputError
from rag_splitters.parameters.messages import describe_value, did_you_mean, plain_errors

_TOKENIZER = "azureOpenAITokenizerParameters"


class SplitParameters(BaseModel):
    """The parameters of the Text Split skill; None keeps the chunker's own value.

    `unit` is "characters" (UTF-16 code units, as Azure counts) or "azureOpenAITokens", which
    `encoder_model_name` counts. 0 for `maximum_pages_to_take` returns all chunks.
    """

    model_config = ConfigDict(frozen=True, alias_generator=to_camel)

    text_split_mode: Literal["pages", "sentences"] = "pages"
    maximum_page_length: Annotated[int, Field(ge=1)] | None = None
    page_overlap_length: Annotated[int, Field(ge=0)] | None = None
    maximum_pages_to_take: Annotated[int, Field(ge=0)] = 0
    unit: Literal["characters", "azureOpenAITokens"] | None = None
    encoder_model_name: Literal[
        "cl100k_base", "o200k_base", "r50k_base", "p50k_base", "p50k_edit"
    ] = "cl100k_base"

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> SplitParameters:
        """Read the parameters from a query string, or from the inputs of a record.

        Numbers may be strings of digits, and null counts as missing. Raises ValueError for an
        unknown parameter or an invalid value.

        >>> SplitParameters.read({"maximumPageLength": "512", "unit": "azureOpenAITokens"}).unit
        'azureOpenAITokens'
        """
        for name in values:
            if name not in PARAMETERS:
                raise InputError(f"unknown parameter {name!r}: {did_you_mean(name, PARAMETERS)}")
        tokenizer = values.get(_TOKENIZER) or {}
        with suppress(ValueError, RecursionError):  # invalid JSON is no object, either
            tokenizer = json.loads(tokenizer) if isinstance(tokenizer, str) else tokenizer
        if not isinstance(tokenizer, dict):
            raise InputError(f"{_TOKENIZER} must be an object, got {describe_value(tokenizer)}")
        for name in tokenizer:
            if name not in _TOKENIZER_PARAMETERS:
                hint = did_you_mean(name, _TOKENIZER_PARAMETERS)
                raise InputError(f"{_TOKENIZER} has no {name!r}: {hint}")
        present = {k: v for k, v in {**tokenizer, **values}.items() if v is not None}
        with plain_errors(cls):
            return cls(**present)

    def apply_to(self, chunker: Chunker) -> Chunker:
        """Return the chunker with these sizes instead of its own.

        Raises ValueError if the sizes contradict each other, or if the chunker has none.
        """
        sizes: dict[str, Any] = {}
        if self.maximum_page_length is not None:
            sizes["chunk_size"] = self.maximum_page_length
        if self.page_overlap_length is not None:
            sizes["chunk_overlap"] = self.page_overlap_length
        if self.unit is not None:
            is_tokens = self.unit == "azureOpenAITokens"
            sizes["length_function"] = (
                f"tokens:{self.encoder_model_name}" if is_tokens else "characters"
            )
        if not sizes:
            return chunker
        if not isinstance(chunker, SizedChunker):
            raise InputError(
                f"{type(chunker).__name__} has no chunk_size of its own: leave out "
                "maximumPageLength, pageOverlapLength and unit, and set the sizes where the skill "
                "is served"
            )
        if self.maximum_page_length is None and self.unit is not None:
            raise InputError(f"unit={self.unit} needs maximumPageLength")
        values = {name: getattr(chunker, name) for name in chunker.model_fields_set}
        resized = chunker.model_copy()  # with what a user's subclass adds to it
        Chunker.__init__(resized, **{**values, **sizes})
        return resized


_TOKENIZER_PARAMETERS = ("encoderModelName", "allowedSpecialTokens")
PARAMETERS = (
    *map(to_camel, SplitParameters.model_fields),
    "defaultLanguageCode",  # has no effect, as the next one: special tokens are ordinary text
    "allowedSpecialTokens",
    _TOKENIZER,
)
"""The names of the parameters, including those of `azureOpenAITokenizerParameters`."""
