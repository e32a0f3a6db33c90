"""Books and workbooks, made by the test, in both front ends."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from rag_splitters.errors import InputError
from rag_splitters.langchain import AutoTextSplitter, FileLoader
from rag_splitters.llama_index import FileReader
from rag_splitters.reading.files import read_bytes, read_file
from rag_splitters.structure.outline import Outline

CONTAINER = """<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>"""
PACKAGE = """<package xmlns="http://www.idpf.org/2007/opf"
xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>On tea</dc:title></metadata>
<manifest><item id="b" href="two.xhtml" media-type="application/xhtml+xml"/>
<item id="a" href="text/one%20a.xhtml" media-type="application/xhtml+xml"/>
<item id="c" href="c.css" media-type="text/css"/></manifest>
<spine><itemref idref="a"/><itemref idref="c"/><itemref idref="b"/></spine></package>"""
PAGE = "<?xml version='1.0'?><html><head><title>x</title></head><body>{}</body></html>"
BOOK = {
    "META-INF/container.xml": CONTAINER,
    "OEBPS/book.opf": PACKAGE,
    "OEBPS/two.xhtml": PAGE.replace("{}", "<h1>Black</h1><p>It is strong.</p>"),
    "OEBPS/text/one a.xhtml": PAGE.replace("{}", "<h1>Green</h1><p>Cool the <b>water</b>.</p>"),
}
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
WORKBOOK = {
    "xl/workbook.xml": f"""<workbook xmlns="{MAIN}" xmlns:r="http://example.org/r"><sheets>
<sheet name="Prices" r:id="r1"/><sheet name="Secret" state="hidden" r:id="r2"/></sheets>
</workbook>""",
    "xl/_rels/workbook.xml.rels": """<Relationships>
<Relationship Id="r1" Target="worksheets/s1.xml"/>
<Relationship Id="r2" Target="/xl/worksheets/s1.xml"/></Relationships>""",
    "xl/sharedStrings.xml": f"""<sst xmlns="{MAIN}"><si><t>tea</t></si>
<si><r><t>gre</t></r><r><t>en</t></r></si></sst>""",
    "xl/styles.xml": f"""<styleSheet xmlns="{MAIN}"><numFmts><numFmt numFmtId="164"
formatCode="dd/mm/yyyy"/></numFmts><cellXfs><xf numFmtId="0"/><xf numFmtId="164"/></cellXfs>
</styleSheet>""",
    "xl/worksheets/s1.xml": f"""<worksheet xmlns="{MAIN}"><sheetData>
<row><c r="A1" t="s"><v>0</v></c><c r="B1" t="inlineStr"><is><t>a|b</t></is></c>
<c r="D1" t="str"><f>1+1</f><v>from</v></c></row><row/>
<row><c r="A3" t="s"><v>1</v></c><c r="B3"><v>4.5</v></c><c r="C3" t="b"><v>1</v></c>
<c r="D3" s="1"><v>45292</v></c></row></sheetData></worksheet>""",
}


def write(path: Path, parts: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def test_chapters_of_a_book_are_in_order_with_headings(tmp_path: Path) -> None:
    path = write(tmp_path / "tea.epub", BOOK)
    (source,) = read_file(path)
    assert source.text == "Green\n\nCool the water.\n\nBlack\n\nIt is strong."
    assert source.metadata["title"] == "On tea"
    headings = Outline.of(source.text, metadata=source.metadata).headings
    assert [each.title for each in headings] == ["Green", "Black"]
    (document,) = FileLoader(path).load()
    (node,) = FileReader().load_data(path)
    assert document.page_content == node.text == source.text
    chunks = AutoTextSplitter(chunk_size=30).split_documents([document])
    assert [chunk.metadata["headings"] for chunk in chunks] == [["Green"], ["Black"]]


def test_empty_heading_of_a_book_is_no_heading_of_what_follows(tmp_path: Path) -> None:
    page = PAGE.replace("{}", "<h1>Green</h1><h2/><p>Cool the water.</p>")
    (source,) = read_file(write(tmp_path / "tea.epub", BOOK | {"OEBPS/two.xhtml": page}))
    headings = Outline.of(source.text, metadata=source.metadata).headings
    assert "Cool the water." not in [each.title for each in headings]


def test_notes_and_indexes_of_a_book_are_text(tmp_path: Path) -> None:
    words = "Green tea is poured at seventy degrees, and the leaves are used three times. " * 8
    note = '<aside epub:type="footnote"><p>Or twice.</p></aside><footer>Ann wrote it.</footer>'
    links = "".join(f'<li><a href="one.xhtml#p{n}">leaf {n}</a></li>' for n in range(5))
    page = PAGE.replace("{}", f"<h1>Green</h1><p>{words}</p>{note}<ul>{links}</ul>")
    (source,) = read_file(write(tmp_path / "tea.epub", BOOK | {"OEBPS/two.xhtml": page}))
    for text in ("Or twice.", "Ann wrote it.", "leaf 4"):
        assert text in source.text


def test_sheets_of_a_workbook_are_tables(tmp_path: Path) -> None:
    (source,) = read_file(write(tmp_path / "tea.xlsx", WORKBOOK))
    assert source.text == (
        "# Prices\n\n| tea | a\\|b |  | from |\n| --- | --- | --- | --- |\n"
        "| green | 4.5 | TRUE | 2024-01-01 |"
    )
    assert source.metadata["mimetype"] == "text/markdown"


@pytest.mark.parametrize(("value", "date"), [("1", "2028-01-02"), ("0", "2024-01-01")])
def test_dates_are_counted_from_the_first_day_of_the_workbook(
    tmp_path: Path, value: str, date: str
) -> None:
    main = WORKBOOK["xl/workbook.xml"]
    properties = main.replace("<sheets>", f'<workbookPr date1904="{value}"/><sheets>')
    parts = WORKBOOK | {"xl/workbook.xml": properties}
    (source,) = read_file(write(tmp_path / "tea.xlsx", parts))
    assert source.text.endswith(f"| {date} |")


def workbook(
    tmp_path: Path, *rows: str, with_empty: bool = True, merged: Sequence[str] = ()
) -> str:
    """The text of a sheet of these rows, whose cells are separated by bars."""
    styles = {"%": 1, "h": 2, "m": 3}
    xml = ""
    for line, row in enumerate(rows, 1):
        if not row and not with_empty:
            continue
        xml += f'<row r="{line}">'
        for number, cell in enumerate(row.split("|")):
            place, value = f'r="{"ABCDEF"[number]}1"', cell.strip()
            if value[:1].isdigit():
                xml += f'<c {place} s="{styles.get(value[-1], 0)}"><v>{value.rstrip("%hm")}</v></c>'
            elif cell:
                xml += f'<c {place} t="inlineStr"><is><t>{cell}</t></is></c>'
        xml += "</row>"
    merges = "".join(f'<mergeCell ref="{each}"/>' for each in merged)
    sheet = f'<worksheet xmlns="{MAIN}"><sheetData>{xml}</sheetData>{merges}</worksheet>'
    formats = '<numFmts><numFmt numFmtId="164" formatCode="[Red][h]:mm"/></numFmts>'
    numbers = "".join(f'<xf numFmtId="{number}"/>' for number in (0, 10, 46, 164))
    styles_xml = f"<styleSheet>{formats}<cellXfs>{numbers}</cellXfs></styleSheet>"
    parts = {"xl/worksheets/s1.xml": sheet, "xl/styles.xml": styles_xml}
    (source,) = read_file(write(tmp_path / "tea.xlsx", WORKBOOK | parts))
    return source.text.removeprefix("# Prices\n\n")


def test_text_that_is_merged_over_rows_is_in_each_of_them(tmp_path: Path) -> None:
    rows = (
        "Teas of 2024",
        "",
        "Kind | 2023",
        " | cups | pots",
        "Green | 1 | 2",
        "| 3 | 4",
        "Black | 5",
    )
    text = workbook(tmp_path, *rows, merged=["A1:C2", "A3:A4", "B3:C3", "A5:A6"])
    table = markdown("Kind | 2023 cups | pots", "Green | 1 | 2", "Green | 3 | 4", "Black | 5 | ")
    assert text == f"Teas of 2024\n\n{table}"


def markdown(*rows: str) -> str:
    lines = [f"| {' | '.join(cell.strip() for cell in row.split('|'))} |" for row in rows]
    return "\n".join(
        [lines[0], "| " + " | ".join(["---"] * len(rows[0].split("|"))) + " |", *lines[1:]]
    )


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("  | //", ""),
        ("Tea | Price/Sencha | unknown/Assam | 4", ["Tea | Price/Sencha | unknown/Assam | 4"]),
        ("| Tea/| Sencha//| Assam", ["Tea/Sencha/Assam"]),
        (
            "Tea | Price | Share/Sencha | 2.2000000000000002 | 0.125%/Assam | 3.0 | 1e-3%",
            ["Tea | Price | Share/Sencha | 2.2 | 12.5%/Assam | 3 | 0.1%"],
        ),
        (
            "Name | Hours | Break/Ann | 1.5625h | 0.03125m/Bob | 40h | 0.0625m",
            ["Name | Hours | Break/Ann | 37:30:00 | 00:45:00/Bob | 960:00:00 | 01:30:00"],
        ),
        (
            "Teas of 2024/1. Green//Name | Price/Sencha | 4//Sum | 4/Without tax",
            [
                "Teas of 2024",
                "1\\. Green",
                "Name | Price/Sencha | 4/Sum | 4/Without tax | ",
            ],
        ),
        ("Teas/Item | /Sencha | 4/Assam | 3", ["Teas", "Item | /Sencha | 4/Assam | 3"]),
        (
            "Name | Price | /Sencha | 4//Cups/Size | Colour | 2023 | 2024/big | red | 3 | 5",
            ["Name | Price/Sencha | 4", "Cups", "Size | Colour | 2023 | 2024/big | red | 3 | 5"],
        ),
        *(
            (f"Name | Price/Sencha | 4//{rows}", [f"Name | Price/Sencha | 4/{rows}"])
            for rows in (
                "Total | 9",
                "Cups | none/Pots | none",
                "2024 | 9/2025 | 3",
                "Part two | /Lamps | 3",
            )
        ),
        (
            " | Sales | | Costs/Tea | Q1 | Q2 | Q1/Sencha | 4 | 5 | 6",
            ["Tea | Sales Q1 | Q2 | Costs Q1/Sencha | 4 | 5 | 6"],
        ),
        (
            " | Sales | | Costs | /Tea | Q1 | Q2 | Q1 | Q2/Sencha | 4 | 5 | 6 | 7",
            ["Tea | Sales Q1 | Sales Q2 | Costs Q1 | Costs Q2/Sencha | 4 | 5 | 6 | 7"],
        ),
    ],
)
@pytest.mark.parametrize("with_empty", [True, False])
def test_tables_of_a_sheet_and_titles_above_them(
    tmp_path: Path, rows: str, expected: Sequence[str], with_empty: bool
) -> None:
    """A slash begins a row. Most programs leave empty rows out of the file."""
    parts = [markdown(*part.split("/")) if "/" in part else part for part in expected]
    text = workbook(tmp_path, *rows.split("/"), with_empty=with_empty)
    assert text == "\n\n".join(parts)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("a.epub", {"x": ""}),
        ("a.epub", BOOK | {"OEBPS/book.opf": '<!DOCTYPE a [<!ENTITY b "c">]>' + PACKAGE}),
        ("a.xlsx", {"x": ""}),
        ("a.xlsx", WORKBOOK | {"xl/workbook.xml": "<workbook"}),
    ],
)
def test_damaged_files_are_named(tmp_path: Path, name: str, parts: dict[str, str]) -> None:
    with pytest.raises(InputError, match=f"{name} cannot be read as"):
        read_file(write(tmp_path / name, parts))


@pytest.mark.parametrize(
    ("name", "advice"),
    [("a.msg", r"\.eml"), ("b.XLS", r"\.xlsx"), ("c.mobi", r"\.epub"), ("d.log.gz", "unpack it")],
)
def test_other_kinds_are_refused_with_advice(name: str, advice: str) -> None:
    with pytest.raises(InputError, match=rf"{name} cannot be read: .*{advice}"):
        read_bytes(b"\0", name)
