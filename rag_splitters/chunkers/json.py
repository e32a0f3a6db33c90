"""JsonChunker: cuts JSON between the members of its objects and arrays."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import ClassVar

from rag_splitters.contract.sized import MergingChunker
from rag_splitters.span import Span
from rag_splitters.structure.json_members import ESCAPE, JsonMembers, read_members
from rag_splitters.text.boundaries import (
    Finder,
    lazily,
    positions,
    sentences,
    words,
)
from rag_splitters.text.origin import UnreadableError
from rag_splitters.text.packing import pack
from rag_splitters.text.sizing import text_length
from rag_splitters.text.structure import Structure, Unbreakable, recursive_structure

_SMALL = 10  # chunks smaller than this fraction of the size are merged with a neighbour
_STEP = re.compile(r"\.\w+|\[(?:'(?:\\.|[^'\\])*'|[^\]]*)\]")


class JsonChunker(MergingChunker):
    """Keeps the objects and arrays of JSON whole if they fit, and cuts others between members.

    Use it for JSON and JSON lines: API responses, exports, settings, GeoJSON, raw notebooks.
    Members that fit are packed with their neighbours. A member that is too big is cut on its own,
    so that a chunk holds neighbours of one object or array; only a piece smaller than a tenth of a
    chunk is merged with whatever is next to it. A string that is too big is cut at its line breaks,
    sentences and words, and never inside an escape such as `\\u00e9`. A text that is not valid JSON
    is cut as in `RecursiveChunker`.

    Metadata: `json_path`, the JSONPath (RFC 9535) of the chunk without its overlap:
    `$.orders[3].items`, or `$.orders[3:6]` for several elements of an array. In JSON lines, each
    line counts as an element: `$[7]`. Members nested deeper than 32 levels have the path of the
    member around them. `fallback` says why a text was not read as JSON ("invalid JSON in line 3").

    Rewrites with `with_path=True`: `start` and `end` are those of the chunk without its path.

    Raises ValueError if the sizes are inconsistent.

    >>> text = '{"name": "Tea", "prices": [{"green": 4}, {"black": 3}, {"white": 5}]}'
    >>> for chunk in JsonChunker(chunk_size=40).chunk(text):
    ...     print(chunk.metadata["json_path"], chunk.text)
    $.name {"name": "Tea",
    $.prices[0:2] "prices": [{"green": 4}, {"black": 3},
    $.prices[2] {"white": 5}]}
    """

    strategy: ClassVar[str] = "json"

    with_path: bool = False
    """Whether to put the path before each chunk. The path counts towards the size, and its first
    steps are left out if it would fill more than half of a chunk."""

    @property
    def counts_context(self) -> bool:
        return self.with_path

    def spans(self, text: str) -> list[Span]:
        if not text.strip():
            return []
        try:
            members = read_members(text)
        except UnreadableError as error:
            spans = pack(recursive_structure(text), self.sizes)
            for span in spans:
                span.metadata = {"fallback": str(error)}
            return spans
        spans = self._pack(text, members)
        if not self.with_path:
            return spans
        prefixes = [self._prefix(span) for span in spans]
        length = partial(text_length, length_function=self.length_function)
        narrow = self.with_room_for(max(prefixes, key=length))
        return [self._with_path(text, span) for span in narrow._pack(text, members)]

    def _pack(self, text: str, members: JsonMembers) -> list[Span]:
        """Return the chunks, with their paths in the metadata."""
        sizes = self.sizes._replace(min_size=max(self.min_size, self.chunk_size // _SMALL))
        structure = Structure(text, _levels(text, members), keep_with_next=None)
        measure, size = structure.fit(sizes).measure, self.chunk_size
        structure.required = members.breaks(lambda start, end: measure.fits(start, end, size))
        spans = pack(structure, sizes)
        for span in spans:
            span.metadata = {"json_path": members.path(span.own, span.end)}
        return spans

    def _prefix(self, span: Span, rest: str | None = None) -> str:
        """Return a chunk's path and a blank line, without first steps if there is no room for them.

        `rest` is the chunk's text; None reserves half of a chunk for it.
        """
        path = str(span.metadata["json_path"])
        steps = _STEP.findall(path)
        while not self.fits(f"{path}\n\n{f'{path}  ' if rest is None else rest}"):
            if len(steps) < 2:
                return ""
            del steps[0]
            path = f"$.{'' if steps[0][0] == '.' else '.'}{''.join(steps)}"
        return f"{path}\n\n"

    def _with_path(self, text: str, span: Span) -> Span:
        """Put its path before a chunk, if that fits."""
        content = span.text_of(text)
        prefix = self._prefix(span, content)
        return replace(span, content=prefix + content, context=prefix[:-2]) if prefix else span


def _levels(text: str, members: JsonMembers) -> list[Finder]:
    """Return the levels of cuts: members, the outermost first, then parts of long strings."""

    def line_breaks() -> list[int]:
        return [escape.end() for escape in ESCAPE.finditer(text) if escape[0] == "\\n"]

    return [
        *map(positions, members.levels()),
        lazily(line_breaks),
        sentences(text),
        _words(text),
        _whole(text),
    ]


def _words(text: str) -> Finder:
    """Return the finder of word ends, except after a colon: a name stays with its value."""
    last_word = words(text)

    def last(low: int, high: int) -> int:
        cut = last_word(low, high)
        while cut > low and text.endswith((": ", ":"), low, cut):
            cut = last_word(low, cut - 2)
        return cut

    return last


def _whole(text: str) -> Finder:
    """Return the finder of all places except those inside an escape."""
    escapes = Unbreakable(map(re.Match.span, ESCAPE.finditer(text)) if "\\" in text else ())
    return escapes.guard(lambda low, high: high if high > low else -1)
