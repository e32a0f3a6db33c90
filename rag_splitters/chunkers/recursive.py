"""RecursiveChunker: cuts at the best separator that fits."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, model_validator
from typing_extensions import Self

from rag_splitters.chunker import MergingChunker
from rag_splitters.chunkers.languages import LANGUAGES
from rag_splitters.fields import Texts
from rag_splitters.span import Span
from rag_splitters.text.boundaries import (
    Finder,
    lines,
    paragraphs,
    sentences,
    separator_pattern,
    separators,
    words,
)
from rag_splitters.text.packing import pack

__all__ = ["RecursiveChunker", "recursive_levels"]


def recursive_levels(text: str) -> list[Finder]:
    """The default levels: paragraph, line, sentence, word."""
    return [paragraphs(text), lines(text), sentences(text), words(text)]


class RecursiveChunker(MergingChunker):
    """Cuts at the best separator that fits, and at a finer one only if a piece is too big.

    Use it by default. It keeps whole paragraphs if they fit, else whole lines, sentences or words.
    It corresponds to LangChain's `RecursiveCharacterTextSplitter`.

    Raises ValueError if both separators and language are given, if the language is unknown, if a
    separator is not a valid regular expression, or if the sizes are inconsistent.

    >>> text = "A first paragraph.\\n\\nA second one. It is longer."
    >>> [chunk.text for chunk in RecursiveChunker(chunk_size=20).chunk(text)]
    ['A first paragraph.', 'A second one.', 'It is longer.']
    """

    separators: Texts | None = None
    """Separators from coarse to fine; None means paragraphs, lines, sentences and words."""

    is_regex: bool = False
    """Whether the separators are regular expressions."""

    language: Annotated[
        str | None, BeforeValidator(lambda value: getattr(value, "value", value))
    ] = None
    """Programming or markup language whose separators to use, named as in LangChain."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.language is not None and self.separators is not None:
            raise ValueError(f"give separators or language ({self.language!r}), not both")
        if self.language is not None and self.language not in LANGUAGES:
            names = ", ".join(sorted(LANGUAGES))
            raise ValueError(f"language must be one of {names}; got {self.language!r}")
        separator_pattern([each for each in self.separators or () if each], self.is_regex)
        return self

    def spans(self, text: str) -> list[Span]:
        return pack(text, self._levels(text), **self.sizes, min_size=self.min_chunk_size)

    def _levels(self, text: str) -> list[Finder]:
        if self.language is not None:
            opening = [separators(text, regex, True) for regex in LANGUAGES[self.language]]
            return [*opening, *recursive_levels(text)]
        if self.separators is None:
            return recursive_levels(text)
        return [separators(text, each, self.is_regex) for each in self.separators if each]
