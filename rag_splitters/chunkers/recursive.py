"""RecursiveChunker: cuts at the coarsest separator that fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from rag_splitters.contract.sized import MergingChunker
from rag_splitters.contract.streams import check_streams, check_unit
from rag_splitters.errors import InputError
from rag_splitters.parameters.fields import LanguageName, Texts
from rag_splitters.span import Source, Span
from rag_splitters.structure.languages import LANGUAGES, language_record
from rag_splitters.structure.signatures import find_signatures
from rag_splitters.structure.stored_outline import OUTLINE, uncut_headings
from rag_splitters.text.leads import lead_start
from rag_splitters.text.packing import pack
from rag_splitters.text.separators import KeepSeparator, check_separators, pieces
from rag_splitters.text.sizing import Sizes
from rag_splitters.text.structure import recursive_levels, recursive_structure


class RecursiveChunker(MergingChunker):
    """Cuts at the coarsest separator that fits, and at a finer one only if a piece is too big.

    Use it by default. It keeps whole paragraphs if they fit, else whole lines, sentences, clauses
    or words. Headings and lead-ins, such as a line that ends with a colon, stay with what follows
    them; a sentence that begins with "It", "They" or "This" stays with the one before it. In a
    paragraph that was wrapped to a line width, the end of a sentence is preferred to a line break.
    With a `language`, a signature that fits is not cut. Your own separators are applied exactly,
    without these rules.

    It corresponds to LangChain's `RecursiveCharacterTextSplitter`. Text is dropped only with
    `keep_separator="none"`: the separators at which the text is cut, and those at its edges.

    Raises ValueError if both separators and language are given, if the language is unknown, if a
    separator is not a valid regular expression, or if the sizes are inconsistent.

    >>> text = "A first paragraph.\\n\\nA second one. Tea is hot."
    >>> [chunk.text for chunk in RecursiveChunker(chunk_size=20).chunk(text)]
    ['A first paragraph.', 'A second one.', 'Tea is hot.']
    """

    strategy: ClassVar[str] = "recursive"

    separators: Texts | None = None
    """Separators from coarse to fine; None: paragraphs, lines, sentences, clauses and words, or the
    separators of `language`."""

    is_regex: bool = False
    """Whether the separators are regular expressions."""

    language: LanguageName | None = None
    """Programming or markup language whose separators to use, by its name in LangChain, such as
    "python" or "js"; None: no language."""

    keep_separator: KeepSeparator = "auto"
    """Where to keep a separator: at the "start" of the chunk after it (True), at the "end" of the
    chunk before it, or nowhere ("none" or False). "auto": punctuation at the end, anything else at
    the start."""

    strip_whitespace: bool = True
    """Whether to remove white space at the edges of chunks."""

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.language is not None and self.separators is not None:
            raise InputError(f"pass separators or language ({self.language!r}), not both")
        if self.language is not None and not language_record(self.language).separators:
            names = ", ".join(sorted(name for name in LANGUAGES if LANGUAGES[name].separators))
            raise InputError(f"language must be one of {names}; got {self.language!r}")
        check_separators([each for each in self.separators or () if each], self.is_regex)

    async def plan(self, sources: Sequence[Source]) -> list[list[Span]]:
        sizes = self.sizes
        return [self._spans(source.text, source.metadata, sizes) for source in sources]

    def _spans(self, text: str, metadata: Mapping[str, Any], sizes: Sizes) -> list[Span]:
        is_preset = self.separators is None
        if is_preset and self.language is None and self.strip_whitespace:
            structure = recursive_structure(text)
        else:
            patterns = language_record(self.language).separators or self.separators or ()
            structure = pieces(
                text,
                [(each,) for each in patterns if each],
                recursive_levels(text) if is_preset else (),
                is_regex=self.is_regex or is_preset,
                keep=self.keep_separator,
                strip=self.strip_whitespace,
            )
        if is_preset:
            structure.keep_with_next = lead_start
            if self.language or OUTLINE in metadata:
                structure.unbreakable = partial(self._unbreakable, text, metadata)
        return pack(structure, sizes, trim=self.strip_whitespace)

    def spans_after(self, text: str, last: Span | None) -> list[Span]:
        check_unit(self)
        names = ("separators", "language", "min_chunk_size")
        problem = next((f"with {name}" for name in names if getattr(self, name)), None)
        check_streams(self, problem if self.strip_whitespace else "with strip_whitespace=False")
        return pack(recursive_structure(text), self.sizes, last=last)

    def _unbreakable(self, text: str, metadata: Mapping[str, Any]) -> list[tuple[int, int]]:
        signatures = find_signatures(text, self.language) if self.language else ()
        return [*uncut_headings(text, metadata), *signatures]
