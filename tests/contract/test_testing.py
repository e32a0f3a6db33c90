"""The checks for a user's own chunker find what is wrong with it."""

from __future__ import annotations

from itertools import count
from typing import ClassVar

import pytest

from rag_splitters import Chunker, SizedChunker, Span
from rag_splitters.testing import check_chunker
from tests.support import checks

TEXT = "One two. Three four. Five."
PARTS = [Span(0, 8), Span(9, 20), Span(21, 26)]


RUNS = count()


class Fixed(Chunker):
    """Cuts every text at the same places."""

    parts: tuple[Span, ...] = ()

    def spans(self, text: str) -> list[Span]:
        return list(self.parts)


class FixedSized(SizedChunker, Fixed):
    """The same with sizes."""


class FixedExact(FixedSized):
    """The same with an overlap that is as long as was asked for."""

    exact_overlap: ClassVar[bool] = True


class Changing(Chunker):
    """Gives other metadata each time."""

    def spans(self, text: str) -> list[Span]:
        return [Span(0, len(text), {"run": next(RUNS)})]


@pytest.mark.parametrize(
    ("chunker", "text", "message"),
    [
        (Fixed(parts=(Span(0, 1),)), " ", "blank text must give no chunks"),
        (Fixed(parts=(Span(0, 27),)), TEXT, "is not in the text"),
        (Fixed(parts=(Span(0, 0), *PARTS)), TEXT, "is not in the text"),
        (Fixed(parts=(Span(0, 8), Span(8, 9), *PARTS[1:])), TEXT, "is blank"),
        (Fixed(parts=(*PARTS[1:], PARTS[0])), TEXT, "are out of order"),
        (Fixed(parts=(Span(0, 26), Span(21, 26))), TEXT, "adds nothing"),
        (Fixed(parts=PARTS[:2]), TEXT, "'Five.' is lost"),
        (Fixed(parts=PARTS[1:]), TEXT, "'One two.' is lost"),
        (Fixed(parts=(Span(0, 1), Span(1, 2))), "e\u0301", "cuts a grapheme cluster"),
        (Fixed(parts=(Span(0, 26, parent=1), Span(0, 27))), f"{TEXT} ", "comes before its parent"),
        (Fixed(parts=(Span(0, 26, parent=0),)), TEXT, "comes before its parent"),
        (Fixed(parts=(Span(0, 26, parent=7),)), TEXT, "comes before its parent"),
        (Fixed(parts=(Span(0, 20), Span(0, 26, parent=0))), TEXT, "is not inside its parent"),
        (Fixed(parts=(Span(0, 26), Span(0, 26, parent=0))), TEXT, "twice"),
        (Changing(), TEXT, "a second run differs"),
        (FixedSized(parts=PARTS, chunk_size=10), TEXT, r"Span\(start=9, .* is too big"),
        (
            FixedSized(parts=(Span(0, 20), Span(9, 26)), chunk_size=21, chunk_overlap=9),
            TEXT,
            "overlap of 11",
        ),
    ],
)
def test_a_broken_guarantee_is_found(chunker: Chunker, text: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_chunker(chunker, text)
    check_chunker(Fixed(parts=PARTS), TEXT)
    with pytest.raises(TypeError, match="chunker must be a Chunker, got the class"):
        check_chunker(type(chunker), text)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("chunker", "start"),
    [
        (FixedSized(parts=PARTS, chunk_size=21, chunk_overlap=9), 0),
        (FixedSized(parts=PARTS, chunk_size=21, chunk_overlap=5), 4),
        (FixedExact(parts=(Span(0, 20), Span(14, 26)), chunk_size=21, chunk_overlap=9), 13),
    ],
)
def test_only_our_own_overlaps_must_be_the_longest_possible(chunker: Chunker, start: int) -> None:
    check_chunker(chunker, TEXT)
    with pytest.raises(AssertionError, match=f"should start at {start}"):
        checks.check_chunker(chunker, TEXT)
