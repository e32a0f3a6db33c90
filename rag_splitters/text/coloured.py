"""Shows a text with its chunks in colours: in a notebook, in a terminal, or without colours."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from rag_splitters.parameters.checks import check_has
from rag_splitters.span import Chunk
from rag_splitters.text.surrogates import replace_surrogates

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_INVISIBLE: dict[int, int | str] = dict.fromkeys((*range(32), *range(127, 160)), 0xFFFD)
# Each code point is replaced by one, so that positions stay valid. Only a line feed ends a line.
_INVISIBLE |= {0x09: " ", 0x0A: "\n", 0x0B: " ", 0x0C: "\n", 0x0D: " "}

_IN_NOTEBOOK = 50_000  # characters that a notebook shows
_IN_HINT = 300  # characters of a rewritten chunk that its hint shows
_STYLES = ("black on bright_cyan", "black on bright_yellow")
_OVERLAP_STYLE = "underline black on bright_magenta"
_HTML_STYLES = ("background:#a9d1f7", "background:#f9dc9c")
_HTML_OVERLAP = "background:#c9b3ef;text-decoration:underline"


class CanChunk(Protocol):
    """Anything that `show` accepts: a chunker, or one of our splitters or parsers."""

    def chunk(
        self, text: str, *, metadata: Mapping[str, Any] | None = None
    ) -> Sequence[Chunk]:  # pragma: no cover
        """Return the chunks of a text."""


class Piece(NamedTuple):
    """A piece of a text that is in the same chunks from beginning to end.

    Parameters:
        start: offset of its first code point.
        end: offset after its last code point.
        chunks: the numbers of the chunks that it is in, in the order in which they begin; chunks
            with the same position are in one tuple.
        colour: the number of the last of them in this order, so that neighbours differ.
        begins: whether a chunk begins here.
    """

    start: int
    end: int
    chunks: tuple[tuple[int, ...], ...]
    colour: int
    begins: bool

    @property
    def overlaps(self) -> bool:
        """Whether it is in chunks with different positions."""
        return len(self.chunks) > 1


class Chunks(list[Chunk]):
    """The chunks of a text: a list, which a notebook displays as coloured text."""

    def __init__(self, chunks: Iterable[Chunk] = (), text: str = "") -> None:
        super().__init__(chunks)
        self.text = text

    def _repr_html_(self) -> str:
        """Return the text with chunks in alternating colours, and their positions as hints."""
        text = printable(self.text[:_IN_NOTEBOOK])
        body = "".join(self._html_piece(each, text) for each in pieces(text, self))
        rest = len(self.text) - len(text)
        more = f"<div>... and {rest:,} more characters</div>" if rest else ""
        return (
            '<div class="tex2jax_ignore mathjax_ignore">'
            '<div style="white-space:pre-wrap;overflow-wrap:anywhere">'
            f"{body}</div>{more}<div><small>{summary(self)}</small></div></div>"
        )

    def _html_piece(self, piece: Piece, text: str) -> str:
        text = html.escape(text[piece.start : piece.end])
        if not piece.chunks:
            return (
                f'<span style="opacity:.55;unicode-bidi:isolate" title="in no chunk">{text}</span>'
            )
        number = piece.chunks[-1][0]
        chunk = self[number]
        hint = f"chunk {number}: {chunk.start}-{chunk.end}"
        if chunk.text != self.text[chunk.start : chunk.end]:
            hint += f", rewritten as: {printable(chunk.text[:_IN_HINT])}"
        style = _HTML_OVERLAP if piece.overlaps else _HTML_STYLES[piece.colour % 2]
        return (
            f'<span style="{style};color:#111;unicode-bidi:isolate" title="{html.escape(hint)}">'
            f"{text}</span>"
        )


def show(text: str, chunker: CanChunk, *, metadata: Mapping[str, Any] | None = None) -> None:
    """Print a text in the terminal with its chunks in alternating colours.

    Overlap is underlined. Without colours, as in a pipe, each chunk begins with a bar, and overlap
    is enclosed in `>>` and `<<`. A notebook shows the same if `chunker.chunk(text)` is the last
    line of a cell.

    Parameters:
        text: the text.
        chunker: a chunker, or one of our text splitters or node parsers.
        metadata: metadata of the text, for strategies that read it.

    >>> from rag_splitters import SentenceChunker
    >>> show("One. Two. Three.", SentenceChunker(chunk_size=11, chunk_overlap=5))
    |One. |>>Two.<< Three.
    2 chunks of 9 to 11 characters
    """
    from rich.console import Console

    check_has(chunker, "chunk", "a chunker after the text")
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    chunks = chunker.chunk(text, metadata=metadata)
    console.print(coloured(text, chunks, console))
    console.print(summary(chunks))


def coloured(text: str, chunks: Sequence[Chunk], console: Console) -> Text:
    """Return the text with its chunks in colours, or with marks if the console has no colours."""
    from rich.text import Text

    encoding = console.encoding
    has_colours = console.color_system is not None and not console.no_color
    shown, result = printable(text), Text()
    for piece in pieces(text, chunks):
        content = shown[piece.start : piece.end]
        content = content.encode(encoding, "backslashreplace").decode(encoding)
        if not piece.chunks:
            result.append(content, "dim" if has_colours else None)
        elif has_colours:
            result.append(content, _OVERLAP_STYLE if piece.overlaps else _STYLES[piece.colour % 2])
        else:
            bar = "|" if piece.begins else ""
            result.append(f"{bar}>>{content}<<" if piece.overlaps else f"{bar}{content}")
    return result


def summary(chunks: Sequence[Chunk]) -> str:
    """Say how many chunks there are, and how long the shortest and the longest are.

    >>> summary([])
    '0 chunks'
    """
    count = number_of(len(chunks), "chunk")
    if not chunks:
        return count
    lengths = [len(chunk.text) for chunk in chunks]
    spread = f"{min(lengths)} to {max(lengths)}" if min(lengths) < max(lengths) else lengths[0]
    return f"{count} of {spread} characters"


def number_of(count: int, noun: str) -> str:
    """Return a number with its noun.

    >>> number_of(1, "chunk"), number_of(2000, "chunk")
    ('1 chunk', '2,000 chunks')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def pieces(text: str, chunks: Sequence[Chunk]) -> Iterator[Piece]:
    """Divide the text into pieces, each of which is in the same chunks from beginning to end.

    Chunks that are the parents of others are left out.
    """
    places = _places(text, chunks)
    order = sorted(places)
    ends: dict[int, list[int]] = {}
    for number, (_, end) in enumerate(order):
        ends.setdefault(end, []).append(number)
    boundaries = sorted({0, len(text), *ends, *(start for start, _ in order)})
    active: dict[int, tuple[int, ...]] = {}
    begun = 0
    for start, end in pairwise(boundaries):
        for number in ends.get(start, ()):
            active.pop(number)
        before = begun
        while begun < len(order) and order[begun][0] == start:
            active[begun] = tuple(places[order[begun]])
            begun += 1
        last = next(reversed(active), 0)
        yield Piece(start, end, tuple(active.values()), last, begun > before)


def _places(text: str, chunks: Sequence[Chunk]) -> dict[tuple[int, int], list[int]]:
    """Return the numbers of the chunks that are not parents, by their positions."""
    parents = {chunk.metadata.get("parent_id") for chunk in chunks}
    places: dict[tuple[int, int], list[int]] = {}
    for number, chunk in enumerate(chunks):
        start, end = chunk.start, min(chunk.end, len(text))
        if chunk.id not in parents and start < end:
            places.setdefault((start, end), []).append(number)
    return places


def printable(text: str) -> str:
    """Replace control characters and lone surrogates; the length stays the same."""
    return replace_surrogates(text).translate(_INVISIBLE)
