"""Evidence: where a quotation stands in the passage that it was taken from."""

from __future__ import annotations

import re

from rag_splitters.models.calling import sendable

__all__ = ["places_of"]

# What a model sees as one character: a run of white space, a pair of surrogates, or any other.
_SEEN = re.compile("\\s+|[\ud800-\udbff][\udc00-\udfff]|.", re.DOTALL)


def places_of(quote: str, text: str) -> list[tuple[int, int]]:
    """Start and end of every place where a quotation stands in a text, from left to right.

    Every character must be there, in its order and case. Two things are passed over, as no model
    can reproduce them: a run of white space in the quotation stands for any run of white space (a
    line break of any kind), and U+FFFD for the lone surrogate in whose place the model was shown
    it. White space around the quotation does not count. Places do not overlap.

    >>> places_of("hot tea", "Cold tea, hot\\r\\n tea and hot tea.")
    [(10, 19), (24, 31)]
    """
    wanted = _seen(" ".join(quote.split()))[0]
    seen, offsets = _seen(text)
    found: list[tuple[int, int]] = []
    at = seen.find(wanted) if wanted else -1
    while at >= 0:
        end = at + len(wanted)
        found.append((offsets[at], offsets[end]))
        at = seen.find(wanted, end)
    return found


def _seen(text: str) -> tuple[str, list[int]]:
    """The text as a model sees it, and the offset in the text of each character and of the end."""
    pieces = list(_SEEN.finditer(text))
    seen = "".join(" " if piece[0].isspace() else sendable(piece[0]) for piece in pieces)
    return seen, [piece.start() for piece in pieces] + [len(text)]
