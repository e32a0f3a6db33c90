"""Charts in PDFs: the numbers beside an axis are one line, and stay where they are."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from reportlab.pdfgen.canvas import Canvas

from rag_splitters import SentenceChunker
from rag_splitters.reading import locate
from rag_splitters.reading.files import read_bytes, read_file
from tests.reading.test_places import letters, text_in

Text = tuple[float, float, str]
"""How far from the left and from the bottom a text stands, and the text."""
WORDS: list[Text] = [
    (40, 350, "Visitors per year"),
    (40, 300, "More visitors came in spring."),
    (40, 272, "Fewer came in autumn."),
]
NAMES: list[Text] = [(420 + 60 * n, 60, name) for n, name in enumerate(("North", "East", "South"))]


def column(numbers: Sequence[str], left: float = 400, bottom: float = 80) -> list[Text]:
    """Numbers above each other, the first one at the bottom."""
    return [(left, bottom + 30 * n, number) for n, number in enumerate(numbers)]


def slide(texts: Sequence[Text]) -> bytes:
    """A PDF of one slide, on which these texts are drawn in this order."""
    output = io.BytesIO()
    canvas = Canvas(output, pagesize=(720, 405))
    canvas.setFont("Helvetica", 10)
    for left, bottom, text in texts:
        canvas.drawString(left, bottom, text)
    canvas.save()
    return output.getvalue()


def lines_of(texts: Sequence[Text]) -> list[str]:
    (source,) = read_bytes(slide(texts), "slides.pdf")
    return source.text.split("\n")


@pytest.mark.parametrize(
    "numbers",
    [
        ["0", "20", "40", "60", "80", "100"],
        ["-0.5", "0.0", "0.5", "1.0"],
        ["0%", "25 %", "50 %", "75 %"],
        ["$0", "$1,500", "$3,000", "$4,500"],
        ["−10", "0", "10"],
    ],
)
@pytest.mark.parametrize("downwards", [False, True])
def test_scale_of_a_chart_is_one_line(numbers: list[str], downwards: bool) -> None:
    scale = column(numbers)[:: -1 if downwards else 1]
    words = [text for _, _, text in WORDS]
    assert lines_of([*WORDS, *NAMES, *scale]) == [
        *words,
        "North East South",
        " ".join(text for _, _, text in scale),
    ]


def test_scales_on_both_sides_are_two_lines() -> None:
    left, right = ["0", "10", "20", "30"], ["5", "6", "7", "8"]
    texts = [*WORDS, *column(left), *column(right, left=650)]
    assert lines_of(texts)[-2:] == ["0 10 20 30", "5 6 7 8"]


@pytest.mark.parametrize(
    "numbers",
    [
        ["4", "3", "2", "1"],  # the numbers of a list or of lines: they rise downwards
        ["10", "20", "35", "40"],
        ["0", "20"],
        ["0", "20", "many", "60"],
    ],
)
def test_other_numbers_stay_in_their_lines(numbers: list[str]) -> None:
    assert lines_of([*WORDS, *column(numbers)])[len(WORDS) :] == numbers


def test_numbers_at_other_distances_stay_in_their_lines() -> None:
    numbers = [(400.0, bottom, str(bottom)) for bottom in (100, 120, 140, 170, 240, 320)]
    assert lines_of([*WORDS, *numbers])[len(WORDS) :] == ["100 120 140", "170", "240", "320"]


def test_column_of_a_table_stays_in_its_lines() -> None:
    names = column(["Finch", "Robin", "Wren", "Kite"], left=300)
    numbers = ["10", "20", "30", "40"]
    assert lines_of([*WORDS, *names, *column(numbers)])[-4:] == numbers


def test_scale_is_located_on_the_page(tmp_path: Path) -> None:
    path = tmp_path / "slides.pdf"
    path.write_bytes(slide([*WORDS, *column(["0", "20", "40", "60"])]))
    (source,) = read_file(path)
    chunks = SentenceChunker(chunk_size=30).chunk(source.text, metadata=source.metadata)
    assert len(chunks) > 1
    boxes = locate(path, chunks[-1])
    assert chunks[-1].text.endswith("0 20 40 60")
    assert letters(text_in(path, boxes)) == letters(chunks[-1].text)
    assert {round(box.left) for box in boxes[-4:]} == {400}
