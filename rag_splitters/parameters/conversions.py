"""Conversions of functions for other libraries to length functions and segmenters."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from rag_splitters.errors import InputError
from rag_splitters.parameters.checks import LengthFunction


@dataclass(frozen=True)
class TokenCount:
    """A length function made from a function that returns the tokens of a text.

    >>> TokenCount(str.split)("one two")
    2
    """

    function: Callable[[str], Sized]

    def __call__(self, text: str) -> int:
        return len(self.function(text))


@dataclass(frozen=True)
class SentenceSpans:
    """A segmenter made from a function that returns the sentences of a text.

    >>> SentenceSpans(lambda text: text.split("; "))("one; two")
    [(0, 3), (5, 8)]
    """

    function: Callable[[str], Sequence[str]]

    def __call__(self, text: str) -> list[tuple[int, int]]:
        spans, end = [], 0
        for sentence in self.function(text):
            start = text.find(sentence, end)
            if start < 0:
                raise InputError(
                    f"the sentence splitter returned {sentence[:80]!r}, which is not in the text "
                    f"after character {end}"
                )
            end = start + len(sentence)
            spans.append((start, end))
        return spans


Conversion: TypeAlias = "TokenCount | SentenceSpans"
CONVERSIONS: dict[str, type[Conversion]] = {"tokens-of": TokenCount, "sentences-of": SentenceSpans}
"""Conversions by their names in a configuration."""


def length_in_tokens(tokenizer: Any) -> LengthFunction:
    """Return the length function of a tokenizer: an object, one of its methods, or a function.

    Tokens of well-known tokenizers are counted by our own fast code, without special tokens.

    >>> from rag_splitters.text.encodings import load_encoding
    >>> length_in_tokens(load_encoding("cl100k_base").encode)
    'tokens'
    """
    is_bare = isinstance(tokenizer, partial) and not tokenizer.args
    function = tokenizer.func if is_bare else tokenizer
    owner = getattr(function, "__self__", function)
    if hasattr(owner, "encode_ordinary"):
        return "tokens" if owner.name == "cl100k_base" else owner
    if hasattr(owner, "token_to_id") or hasattr(owner, "tokenize"):
        return owner
    if not callable(tokenizer):
        raise InputError(f"tokenizer must be a function from a text to tokens, got {tokenizer!r}")
    return TokenCount(tokenizer)
