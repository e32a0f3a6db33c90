"""Tables of PDFs: columns that lines or gaps show become Markdown, and stay where they are."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from reportlab.lib import colors
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import ListFlowable, Paragraph, SimpleDocTemplate, Table, TableStyle

from rag_splitters import AutoChunker, ContentAwareChunker
from rag_splitters.reading import locate
from rag_splitters.reading.files import read_bytes, read_file
from rag_splitters.reading.pdf_tables import Rule, find_grids
from tests.reading.test_places import letters, text_in

BODY = (
    "The warehouse keeps every article in a bay, and each bay is counted once a month by two "
    "people who do not know the expected number. "
)
ROWS = [
    ["Bay", "Articles", "Change", "Note"],
    *([f"B-{n:02}", str(280 + 7 * n), str(3 * n - 23), "counted"] for n in range(1, 7)),
]
MARKDOWN = "\n".join(
    [
        "| Bay | Articles | Change | Note |",
        "| --- | --- | --- | --- |",
        *(f"| {' | '.join(row)} |" for row in ROWS[1:]),
    ]
)
GRID = TableStyle([("GRID", (0, 0), (-1, -1), 0.5, colors.black)])
BOX = TableStyle([("BOX", (0, 0), (-1, -1), 0.5, colors.black)])
ABOVE_AND_BELOW = TableStyle(
    [(kind, (0, 0), (-1, 0), 1, colors.black) for kind in ("LINEABOVE", "LINEBELOW")]
)


def paragraph(text: str) -> Paragraph:
    return Paragraph(text, getSampleStyleSheet()["BodyText"])


def pdf(*flowables: Any) -> bytes:
    """A PDF of these parts between two paragraphs."""
    output = io.BytesIO()
    SimpleDocTemplate(output).build([paragraph(BODY * 2), *flowables, paragraph(BODY)])
    return output.getvalue()


def page(*rows: Sequence[str], places: Sequence[float]) -> bytes:
    """A PDF of one page with texts at these distances from its left edge."""
    output = io.BytesIO()
    canvas = Canvas(output)
    canvas.setFont("Helvetica", 10)
    for number, row in enumerate(rows):
        for place, text in zip(places, row, strict=False):
            canvas.drawString(place, 780 - 14 * number, text)
    canvas.save()
    return output.getvalue()


def text_of(data: bytes) -> str:
    (source,) = read_bytes(data, "stock.pdf")
    return source.text


@pytest.mark.parametrize("style", [GRID, None, ABOVE_AND_BELOW])
def test_table_is_written_in_markdown(style: TableStyle | None) -> None:
    before, _, after = text_of(pdf(Table(ROWS, style=style))).partition(f"\n\n{MARKDOWN}\n\n")
    assert " ".join(before.split()) == (BODY * 2).strip()
    assert " ".join(after.split()) == BODY.strip()


@pytest.mark.parametrize(
    ("columns", "rows", "is_grid"), [(1, 3, False), (3, 1, False), (2, 2, True)]
)
def test_grid_has_two_columns_and_two_rows(columns: int, rows: int, is_grid: bool) -> None:
    upright = [Rule(50.0 * n, 0, 50.0 * n, 20.0 * rows) for n in range(columns + 1)]
    level = [Rule(0, 20.0 * n, 50.0 * columns, 20.0 * n) for n in range(rows + 1)]
    assert [len(grid.columns) for grid in find_grids([*upright, *level])] == [3] * is_grid


HYPHENS = getSampleStyleSheet()["BodyText"]
HYPHENS.embeddedHyphenation = 1
SPANNED = TableStyle([*GRID.getCommands(), ("SPAN", (0, 0), (-1, 0))])
NARROW = TableStyle(
    [
        *GRID.getCommands(),
        *((f"{side}PADDING", (0, 0), (-1, -1), 1) for side in ("LEFT", "RIGHT")),
    ]
)
TOP = TableStyle([*GRID.getCommands(), ("VALIGN", (0, 0), (-1, -1), "TOP")])


@pytest.mark.parametrize(
    ("rows", "style", "widths", "expected"),
    [
        (
            [
                ["Bay", "Contents | owner"],
                ["B-01", paragraph("Blue pots with a long spout, and green ones that came in May")],
            ],
            GRID,
            [60, 150],
            "| Bay | Contents \\| owner |\n| --- | --- |\n"
            "| B-01 | Blue pots with a long spout, and green ones that came in May |",
        ),
        (
            [["Bay"], ["B-01", Paragraph("The water\u00admarks of the ware\u00adhouse", HYPHENS)]],
            GRID,
            [60, 80],
            "| B-01 | The watermarks of the warehouse |",
        ),
        (
            [["Bays that were counted on the third of May"], *ROWS],
            SPANNED,
            [60, 80, 80, 80],
            "| Bays that were counted on the third of May | | | |\n| --- | --- | --- | --- |\n"
            "| Bay | Articles | Change | Note |",
        ),
        (
            [["Bay", "Articles"], ["B-01", "287"], ["B-02", "294"], ["B-03", "301"]],
            NARROW,
            [25, 60],
            "| B-01 | 287 |\n| B-02 | 294 |",
        ),
        (
            [["Name", "Phone"], ["Ada", "044 123\n45 67"], ["Ben", "044 765\n43 21"], ["Cy", "7"]],
            GRID,
            None,
            "| Ada | 044 123 45 67 |\n| Ben | 044 765 43 21 |",
        ),
        (
            [
                ["Payee", "Purpose", "Amount"],
                [
                    "Lamp Works\nBlue Pots\n\nAda Lee",
                    "lamps\ntravel\nto Bern and back\nwages",
                    "37.50\n210.00\n\n61.50",
                ],
                ["Total\nof which paid", "in May\n", "99.00"],
                ["Tea Hall", "tea", "4.00"],
            ],
            GRID,
            None,
            "| Lamp Works | lamps | 37.50 |\n"
            "| Blue Pots | travel to Bern and back | 210.00 |\n"
            "| Ada Lee | wages | 61.50 |\n"
            "| Total of which paid | in May | 99.00 |\n",
        ),
        (
            [
                ["Insured", "", "Vehicle"],
                [
                    "Name\nClaim\nPhone",
                    "Ada Lee\nSF-1008\n-",
                    "Make Jeep\nColour White\nYear 2022\nTrim Plain",
                ],
                ["Order", "RO-2022", "none"],
                ["Pots", "- blue pots\n- white pots\n- green pots", "- lamps\n- oil\n- wicks"],
            ],
            TOP,
            [90, 110, 130],
            "| Name | Ada Lee | Make Jeep |\n"
            "| Claim | SF-1008 | Colour White |\n"
            "| Phone | - | Year 2022 |\n"
            "| | | Trim Plain |\n"
            "| Order | RO-2022 | none |\n"
            "| Pots | - blue pots - white pots - green pots | - lamps - oil - wicks |\n",
        ),
    ],
    ids="lines hyphens spanned near phones numbers form".split(),
)
def test_cells_of_a_grid(rows: Any, style: TableStyle, widths: Any, expected: str) -> None:
    rows = [[*row, *[""] * (max(map(len, rows)) - len(row))] for row in rows]
    assert expected in text_of(pdf(Table(rows, style=style, colWidths=widths)))


def test_rows_without_lines() -> None:
    rows = [
        ("Bay", "Contents", "Articles"),
        ("B-01", "blue pots with a", "287"),
        ("", "long spout"),
        ("B-02", "green pots", "294"),
        ("B-03", "white pots", "301"),
    ]
    text = text_of(page(*rows, places=(60, 140, 300)))
    assert "| B-01 | blue pots with a long spout | 287 |\n| B-02 | green pots | 294 |" in text
    assert "| B-02 | 294 | -17 | counted |" in text_of(page(*ROWS[:3], places=(60, 140, 220, 300)))
    years = [(str(2019 + n), "lamps", str(100 + 20 * n)) for n in range(3)]
    assert "| 2021 | lamps | 140 |" in text_of(page(*years, places=(60, 140, 300)))


ITEMS = ["Blue teapot", "White cup", "Sugar bowl", "Shipping"]


@pytest.mark.parametrize("place_of_digits", [1, 2])
@pytest.mark.parametrize("title", [["Invoice"], []])  # PDFium has the first digit in a line without
def test_digits_that_are_drawn_alone_stay_in_their_row(
    place_of_digits: int, title: list[str]
) -> None:
    rows = [["Item", "14.50"], *([item, f"{n}.50"] for n, item in enumerate(ITEMS, 13))]
    for digit, row in enumerate(rows, 2):
        row.insert(place_of_digits, str(digit))
    text = text_of(page(title, *rows, ["Thank you."], places=(60, 240, 320)))
    for row in rows:
        assert f"| {' | '.join(row)} |" in text, "PDFium says '14.502' for '14.50' and '2'"


WORDS = (BODY * 8).split()
COLUMNS = [
    (" ".join(WORDS[8 * n : 8 * n + 8]), " ".join(WORDS[8 * n + 80 : 8 * n + 88]))
    for n in range(10)
]


@pytest.mark.parametrize(
    "data",
    [
        page(*COLUMNS, places=(60, 320)),
        page(*((*row, "and so on, as the year before") for row in COLUMNS), places=(40, 290, 520)),
        page(*((f"{n}.", "The pots", "are counted") for n in range(1, 6)), places=(60, 90, 250)),
        page(*((f"{n} On pots", str(3 + n // 2)) for n in range(1, 6)), places=(60, 400)),
        page(*((f"{n}.1", f"Pots {'. ' * 30}", str(n)) for n in range(1, 6)), places=(60, 90, 400)),
        page(
            *((f"{n}.1", text, str(7 * n)) for n, text in enumerate(ITEMS, 1)), places=(60, 90, 400)
        ),
        page(*(("-v", "shows every pot that is counted") for _ in range(5)), places=(60, 120)),
        page(*ROWS[:2], places=(60, 140, 220, 300)),
        pdf(Table([[paragraph(BODY)]], style=BOX)),
    ],
    ids="columns three-columns list contents dots sections options two-rows box".split(),
)
def test_other_texts_side_by_side_are_no_table(data: bytes) -> None:
    assert "|" not in text_of(data)


@pytest.mark.parametrize("style", [GRID, None])
def test_chunks_of_a_table_repeat_its_header_and_are_located(
    style: TableStyle | None, tmp_path: Path
) -> None:
    path = tmp_path / "stock.pdf"
    path.write_bytes(pdf(Table(ROWS, style=style)))
    (source,) = read_file(path)
    header = "\n".join(MARKDOWN.splitlines()[:2])
    for chunker in (AutoChunker(chunk_size=150), ContentAwareChunker(chunk_size=150)):
        chunks = chunker.chunk(source.text, metadata=source.metadata)
        rows = [chunk for chunk in chunks if "counted |" in chunk.text]
        assert len(rows) > 1
        assert all(chunk.text.startswith(header) for chunk in rows)
        for chunk in chunks:
            own = source.text[chunk.start : chunk.end].replace("---", "")
            assert letters(text_in(path, locate(path, chunk))) == letters(own)


@pytest.mark.parametrize("size", [70, 120])
def test_parts_of_a_cell_are_located(size: int, tmp_path: Path) -> None:
    path = tmp_path / "stock.pdf"
    rows = [["Bay", "Note"], ["B-01", paragraph(BODY)], ["B-02", paragraph(BODY)]]
    path.write_bytes(pdf(Table(rows, style=GRID, colWidths=[60, 300])))
    (source,) = read_file(path)
    chunks = AutoChunker(chunk_size=size).chunk(source.text, metadata=source.metadata)
    parts = [chunk for chunk in chunks if chunk.text != source.text[chunk.start : chunk.end]]
    assert len(parts) > 2
    for chunk in parts:
        own = source.text[chunk.start : chunk.end]
        assert letters(text_in(path, locate(path, chunk))) == letters(own)


def test_table_that_goes_beyond_its_lines_stays_text() -> None:
    output = io.BytesIO()
    canvas = Canvas(output)
    for number in range(3):
        canvas.drawString(60, 780 - 20 * number, f"B-0{number} is counted beyond the line")
        canvas.line(50, 775 - 20 * number, 150, 775 - 20 * number)
    for place in (50, 90, 150):
        canvas.line(place, 735, place, 795)
    canvas.save()
    assert "B-01 is counted beyond the line" in text_of(output.getvalue())


def slides(titles: Sequence[str], size: float) -> bytes:
    output = io.BytesIO()
    canvas = Canvas(output, pagesize=(800, 450))
    for title in titles:
        canvas.setFont("Helvetica-Bold", size)
        canvas.drawString(60, 400, title)
        canvas.setFont("Helvetica", 20)
        for number in range(4):
            canvas.drawString(60, 340 - 30 * number, f"Point {number} of {title} is short")
        canvas.showPage()
    canvas.save()
    return output.getvalue()


@pytest.mark.parametrize("size", [20, 22, 32])
def test_each_slide_is_a_section_with_its_title(size: float) -> None:
    titles = ["Tea", "Green tea", "Black tea"]
    (source,) = read_bytes(slides(titles, size), "tea.pdf")
    chunks = AutoChunker(chunk_size=200).chunk(source.text, metadata=source.metadata)
    assert [chunk.metadata["headings"] for chunk in chunks] == [[title] for title in titles]
    assert [chunk.metadata["page_start"] for chunk in chunks] == [1, 2, 3]


def rotated(quarters: int, *rows: Sequence[str]) -> bytes:
    """A PDF of a table below two lines, which is upright only after the page is rotated."""
    output = io.BytesIO()
    canvas = Canvas(output, pagesize=(600, 600))
    canvas.setPageRotation(90 * quarters)
    for _ in range(quarters):
        canvas.translate(600, 0)
        canvas.rotate(90)
    canvas.drawString(60, 540, "Counted on 3 May.")
    canvas.drawString(60, 526, "See the bays below.")
    table = Table(rows, style=GRID)
    table.wrapOn(canvas, 480, 400)
    table.drawOn(canvas, 60, 300)
    canvas.save()
    return output.getvalue()


@pytest.mark.parametrize("quarters", range(4))
def test_rotated_page_is_read_as_it_is_shown(quarters: int) -> None:
    expected = f"Counted on 3 May.\nSee the bays below.\n\n{MARKDOWN}"
    assert text_of(rotated(quarters, *ROWS)) == expected


def test_items_of_a_list_on_a_short_page_are_lines() -> None:
    output = io.BytesIO()
    items = [paragraph("Boil the water."), paragraph("Wait."), paragraph("Pour it.")]
    title = Paragraph("Tea", getSampleStyleSheet()["Title"])
    SimpleDocTemplate(output).build([title, ListFlowable(items), paragraph("Drink it.")])
    assert text_of(output.getvalue()).splitlines() == [
        *("Tea", "1 Boil the water.", "2 Wait.", "3 Pour it.", "Drink it.")
    ]


@pytest.mark.parametrize(("count", "is_table"), [(1, True), (4, False)])
def test_boxes_of_prose_are_no_table(count: int, is_table: bool) -> None:
    one, other = BODY * count, BODY.upper() * count
    boxes = [["First box", "Second box"], [paragraph(one), paragraph(other)]]
    text = text_of(pdf(Table(boxes, style=GRID, colWidths=[200, 260])))
    assert (f"| {one.strip()} | {other.strip()} |" in text) == is_table
    assert one.strip() in " ".join(text.split())
    assert other.strip() in " ".join(text.split())
