"""Word documents and presentations as Markdown, made with the libraries that read them."""

from __future__ import annotations

import io
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from docx import Document as WordDocument
from docx.enum.style import WD_STYLE_TYPE
from docx.oxml import parse_xml
from llama_index.core import SimpleDirectoryReader
from pptx import Presentation
from pptx.util import Inches

from rag_splitters.langchain import AutoTextSplitter, FileLoader, SentenceTextSplitter
from rag_splitters.llama_index import AutoNodeParser, FileReader
from rag_splitters.reading import archives
from rag_splitters.reading.files import read_bytes
from rag_splitters.structure.outline import Outline
from tests.support.logs import own_messages


@pytest.fixture
def word(tmp_path: Path) -> Path:
    document = WordDocument()
    document.add_heading("Tea", 0)
    document.add_heading("How to make it", 1)
    document.add_paragraph("You need:")
    document.add_paragraph("water", style="List Bullet")
    document.add_paragraph("leaves", style="List Bullet")
    document.add_paragraph("green ones", style="List Bullet 2")
    document.add_paragraph("Boil.", style="List Number")
    document.add_paragraph("Wait.", style="List Number")
    document.add_paragraph("# is no heading")
    table = document.add_table(rows=2, cols=3)
    for column, (label, value) in enumerate([("kind", "green"), ("a|b", "1\n2"), ("x", "")]):
        table.cell(0, column).text, table.cell(1, column).text = label, value
    table.cell(1, 1).merge(table.cell(1, 2))
    document.add_heading("When", 2)
    document.add_paragraph("At five.")
    document.save(str(tmp_path / "tea.docx"))
    return tmp_path / "tea.docx"


@pytest.fixture
def slides(tmp_path: Path) -> Path:
    presentation = Presentation()
    layouts = presentation.slide_layouts
    first = presentation.slides.add_slide(layouts[1])
    first.shapes.title.text = "Tea"
    frame = first.placeholders[1].text_frame
    frame.text = "Green"
    for text, level in (("Sencha", 1), ("Black", 0)):
        paragraph = frame.add_paragraph()
        paragraph.text, paragraph.level = text, level
    first.notes_slide.notes_text_frame.text = "Smile."
    presentation.slides.add_slide(layouts[6])
    third = presentation.slides.add_slide(layouts[5])
    third.shapes.title.text = "Prices"
    cells = third.shapes.add_table(2, 2, Inches(1), Inches(2), Inches(4), Inches(1)).table
    for row, values in enumerate((("kind", "euro"), ("green", "4"))):
        for column, value in enumerate(values):
            cells.cell(row, column).text = value
    group = third.shapes.add_group_shape()
    box = group.shapes.add_textbox(Inches(1), Inches(1), Inches(1), Inches(1))
    box.text_frame.text = "All fair."
    presentation.save(str(tmp_path / "tea.pptx"))
    return tmp_path / "tea.pptx"


def test_a_word_document_is_markdown(word: Path) -> None:
    (document,) = FileLoader(word).load()
    assert document.page_content == (
        "# Tea\n\n## How to make it\n\nYou need:\n\n- water\n- leaves\n  - green ones\n\n1. Boil.\n"
        "2. Wait.\n\n\\# is no heading\n\n"
        "| kind | a\\|b | x |\n| --- | --- | --- |\n| green | 1 2 | |\n\n"
        "### When\n\nAt five."
    )
    chunks = AutoTextSplitter(chunk_size=100).split_documents([document])
    assert {chunk.metadata["strategy"] for chunk in chunks} == {"content_aware"}
    assert chunks[-1].metadata["headings"] == ["Tea", "How to make it", "When"]


def read(document: Any, name: str) -> str:
    output = io.BytesIO()
    document.save(output)
    (source,) = read_bytes(output.getvalue(), name)
    return source.text


TRACKED = """<w:body xmlns:w="{w}" xmlns:x="{x}"><w:p>
<w:r><w:t>I have </w:t></w:r><w:del><w:r><w:delText>one</w:delText></w:r></w:del>
<w:ins><w:r><w:t>two</w:t></w:r></w:ins><w:smartTag><w:r><w:t> cups</w:t></w:r></w:smartTag></w:p>
<w:sdt><w:sdtContent><w:tbl><w:tr><w:tc><w:tcPr><w:vMerge w:val="restart"/></w:tcPr>
<w:p><w:r><w:t>kind</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>green</w:t></w:r></w:p></w:tc></w:tr>
<w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr><w:p/></w:tc>
<w:tc><w:p><w:r><w:t>black</w:t></w:r></w:p></w:tc></w:tr></w:tbl></w:sdtContent></w:sdt>
<w:p><w:r><w:pict><x:shape>
<x:textbox><w:txbxContent><w:p><w:r><w:t>In a box.</w:t></w:r></w:p></w:txbxContent></x:textbox>
</x:shape></w:pict></w:r></w:p>
<w:p><w:pPr><w:pStyle w:val="Mine"/></w:pPr><w:r><w:t>Hot</w:t></w:r></w:p></w:body>"""


def test_text_in_changes_controls_and_boxes_is_read() -> None:
    document = WordDocument()
    heading = document.styles.add_style("Mine", WD_STYLE_TYPE.PARAGRAPH)
    heading.base_style = document.styles["Heading 2"]
    body = TRACKED.replace("\n", "").format(w=WORD, x="urn:schemas-microsoft-com:vml")
    document.element.replace(document.element.body, parse_xml(body))
    assert read(document, "tea.docx") == (
        "I have two cups\n\n| kind | green |\n| --- | --- |\n| kind | black |\n\n"
        "In a box.\n\n## Hot"
    )


def run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


BOX = f"<w:txbxContent><w:p>{run('In a box.')}</w:p></w:txbxContent>"
DRAWN = f"<w:drawing><w:box>{BOX}</w:box></w:drawing>"
PICTURE = "<w:drawing><w:picture/></w:drawing>"
DROP_CAP = '<w:p><w:pPr><w:framePr w:dropCap="drop"/></w:pPr>{}</w:p>'


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            f"<w:p>{run('Cup ')}<w:fldSimple>{run('7')}</w:fldSimple>{run(': tea')}</w:p>",
            "Cup 7: tea",
        ),
        (f"<w:p><w:dir>{run('green ')}</w:dir><w:bdo>{run('tea')}</w:bdo></w:p>", "green tea"),
        (
            f"<w:p><w:r><w:ruby><w:rt>{run('ちゃ')}</w:rt><w:rubyBase>{run('茶')}</w:rubyBase>"
            "</w:ruby></w:r></w:p>",
            "茶",
        ),
        ("<w:p><w:r><w:t>a</w:t><w:cr/><w:t>b</w:t><w:ptab/><w:t>c</w:t></w:r></w:p>", "a\nb c"),
        (f"{DROP_CAP.format(run('T'))}<w:p>{run('ea is hot.')}</w:p>", "Tea is hot."),
        (f"<w:p>{run('Tea')}</w:p>{DROP_CAP.format(run('T'))}", "Tea\n\nT"),
        (f"<w:p><w:r>{DRAWN}</w:r></w:p>", "In a box."),
        *(
            (
                f"<w:p><w:r><c:AlternateContent>{choices}</c:AlternateContent></w:r></w:p>",
                "In a box.",
            )
            for choices in (
                f"<c:Choice>{DRAWN}</c:Choice>",
                f"<c:Choice>{DRAWN}</c:Choice><c:Fallback>{PICTURE}</c:Fallback>",
                f"<c:Choice>{DRAWN}</c:Choice><c:Fallback><w:pict>{BOX}</w:pict></c:Fallback>",
            )
        ),
    ],
)
def test_text_in_every_part_of_a_paragraph_is_read(body: str, text: str) -> None:
    document = WordDocument()
    names = (
        f'xmlns:w="{WORD}" xmlns:c="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    )
    document.element.replace(document.element.body, parse_xml(f"<w:body {names}>{body}</w:body>"))
    assert read(document, "tea.docx") == text


LISTS = """<w:{} xmlns:w="{}" w:{}Id="{}">{}</w:{}>"""
LEVEL = '<w:lvl w:ilvl="{}"><w:start w:val="{}"/><w:numFmt w:val="{}"/></w:lvl>'
ITEM = '<w:pPr xmlns:w="{}"><w:numPr><w:ilvl w:val="{}"/><w:numId w:val="{}"/></w:numPr></w:pPr>'


def test_lists_go_on_counting_after_other_text() -> None:
    document = WordDocument()
    levels = LEVEL.format(0, 1, "decimal") + LEVEL.format(1, 4, "lowerLetter")
    levels += LEVEL.format(2, 1, "bullet")
    numbering = document.part.numbering_part.element
    numbering.insert(
        0, parse_xml(LISTS.format("abstractNum", WORD, "abstractNum", 90, levels, "abstractNum"))
    )
    override = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride>'
    for key, more in ((90, ""), (91, override)):
        inner = f'<w:abstractNumId w:val="90"/>{more}'
        numbering.append(parse_xml(LISTS.format("num", WORD, "num", key, inner, "num")))
    for text, *item in (
        *(("Boil.", 0, 90), ("Wait.", 0, 90), ("Long.", 1, 90), ("Tea", 2, 90), ("More.", 1, 90)),
        *(("Meanwhile:",), ("Pour.", 0, 90), ("Cool.", 1, 90), ("Again:",), ("Boil.", 0, 91)),
        *(("Drink.", 0, 91), ("Boil.", 0, 90)),
    ):
        paragraph = document.add_paragraph(text)
        if item:
            paragraph._p.insert(0, parse_xml(ITEM.format(WORD, *item)))
    assert read(document, "tea.docx").split("\n\n") == [
        "1. Boil.\n2. Wait.\n  4. Long.\n    - Tea\n  5. More.",
        *("Meanwhile:", "3. Pour.\n  4. Cool.", "Again:", "1. Boil.\n2. Drink.\n3. Boil."),
    ]


WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
RELATIONSHIP = '<Relationship Id="r1" Type="{}/{}" Target="{}"/>'
CHECKBOX = """<w:sdt><w:sdtPr><x:checkbox><x:checked x:val="{}"/></x:checkbox></w:sdtPr>
<w:sdtContent><w:r><w:t>{}</w:t></w:r></w:sdtContent></w:sdt>
<w:r><w:t xml:space="preserve">{}</w:t></w:r>"""
NOTE = """<w:footnote w:id="2"><w:p><w:r><w:t xml:space="preserve">Hot: </w:t></w:r>
<m:oMath><m:r><m:t>n</m:t></m:r></m:oMath></w:p></w:footnote>"""


def test_notes_and_checkboxes_of_a_document_without_styles_are_read() -> None:
    names = f'xmlns:w="{WORD}" xmlns:x="http://schemas.microsoft.com/office/word/2010/wordml"'
    names += ' xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
    boxes = CHECKBOX.format(1, "\u2612", " milk ") + CHECKBOX.format(0, "\u2610", " lemon")
    reference = '<w:r><w:footnoteReference w:id="2"/></w:r>'
    body = f"<w:p><w:r><w:t>Tea</w:t></w:r>{reference}</w:p><w:p>{boxes}</w:p>"
    relations = f'<Relationships xmlns="{PACKAGE}/relationships">{RELATIONSHIP}</Relationships>'
    kinds = '<Default Extension="xml" ContentType="application/xml"/>'
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">{kinds}</Types>',
        "_rels/.rels": relations.format(OFFICE, "officeDocument", "word/document.xml"),
        "word/_rels/document.xml.rels": relations.format(OFFICE, "footnotes", "footnotes.xml"),
        "word/document.xml": f"<w:document {names}><w:body>{body}</w:body></w:document>",
        "word/footnotes.xml": f"<w:footnotes {names}>{NOTE}</w:footnotes>",
    }
    data = archive(**{name: part.encode() for name, part in parts.items()})
    (source,) = read_bytes(data, "tea.docx")
    assert source.text == "Tea[1]\n\n☒ milk ☐ lemon\n\n1. Hot: $n$"


def test_table_inside_a_table_loses_no_text() -> None:
    document = WordDocument()
    table = document.add_table(rows=1, cols=2)
    table.cell(0, 0).text, table.cell(0, 1).text = "Kinds", "Prices"
    inner = table.cell(0, 0).add_table(2, 1)
    inner.cell(0, 0).text, inner.cell(1, 0).text = "kind", "green"
    assert read(document, "tea.docx").split() == "Kinds | kind | | --- | | green | Prices".split()


def test_slides_are_pages(slides: Path) -> None:
    reader = SimpleDirectoryReader(str(slides.parent), file_extractor={".pptx": FileReader()})
    (document,) = reader.load_data()
    assert document.text == (
        "# Tea\n\n- Green\n   - Sencha\n- Black\n\nNotes: Smile.\n\n"
        "# Prices\n\n| kind | euro |\n| --- | --- |\n| green | 4 |\n\nAll fair."
    )
    nodes = AutoNodeParser(
        chunk_size=60, length_function="characters", count_metadata=False
    ).get_nodes_from_documents([document])
    pages = [(node.metadata["page_start"], node.metadata["page_end"]) for node in nodes]
    assert (pages[0], pages[-1]) == ((1, 1), (3, 3))
    chunks = SentenceTextSplitter(chunk_size=1000).split_documents(FileLoader(slides).load())
    assert [(c.metadata["page_start"], c.metadata["page_end"]) for c in chunks] == [(1, 3)]


def test_merged_cells_of_a_slide_are_in_each_of_their_rows() -> None:
    presentation = Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    table = slide.shapes.add_table(3, 2, 0, 0, Inches(4), Inches(1)).table
    for row, values in enumerate((("kind", "euro"), ("green", "4"), ("", "5"))):
        for column, value in enumerate(values):
            table.cell(row, column).text = value
    table.cell(1, 0).merge(table.cell(2, 0))
    assert read(presentation, "tea.pptx").endswith("| green | 4 |\n| green | 5 |")


def test_words_of_a_diagram_are_read_and_slide_numbers_are_not(tmp_path: Path) -> None:
    presentation = Presentation()
    shapes = presentation.slides.add_slide(presentation.slide_layouts[6]).shapes
    shapes.add_table(1, 1, 0, 0, 0, 0)
    shapes.add_textbox(0, 0, 0, 0).text_frame.text = "5"
    path = tmp_path / "tea.pptx"
    presentation.save(str(path))
    with zipfile.ZipFile(path) as source:
        parts = {name: source.read(name) for name in source.namelist()}
    slide, relations = "ppt/slides/slide1.xml", "ppt/slides/_rels/slide1.xml.rels"
    begin, end = parts[slide].index(b"<a:tbl>"), parts[slide].index(b"</a:tbl>")
    for old, new in (
        (parts[slide][begin : end + 8], b'<d:relIds xmlns:d="urn:d" r:dm="rId9"/>'),
        (b"2006/table", b"2006/diagram"),
        (b' txBox="1"/><p:nvPr/>', b'/><p:nvPr><p:ph type="sldNum" idx="9"/></p:nvPr>'),
    ):
        parts[slide] = parts[slide].replace(old, new)
    diagram = b'<Relationship Id="rId9" Type="urn:data" Target="../diagrams/data1.xml"/>'
    parts[relations] = parts[relations].replace(b"</Rel", diagram + b"</Rel")
    points = "<p><r><t>Gre</t></r><r><t>en</t></r></p><p/><p><r><t>Black</t></r></p>"
    parts["ppt/diagrams/data1.xml"] = f'<d xmlns="urn:a">{points}</d>'.encode()
    (read,) = read_bytes(archive(**parts), path.name)
    assert read.text == "# Slide 1\n\n- Green\n- Black"


def test_documents_without_text_are_named_in_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    WordDocument().save(str(tmp_path / "a.docx"))
    Presentation().save(str(tmp_path / "b.pptx"))
    encrypted = "From: a@b.c\nContent-Type: application/octet-stream\n\n-----BEGIN PGP MESSAGE-----"
    (tmp_path / "c.eml").write_text(encrypted)
    documents = FileLoader(tmp_path).load()
    assert [document.page_content for document in documents] == ["", "", ""]
    assert [message.rpartition("/")[2] for message in own_messages(caplog)] == [
        f"{name} holds no text; images and encrypted parts are not read"
        for name in ("a.docx", "b.pptx", "c.eml")
    ]
    assert AutoTextSplitter().split_documents(documents) == []


def archive(**files: bytes) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as target:
        for name, data in files.items():
            target.writestr(name, data)
    return content.getvalue()


def test_slide_without_a_title_has_its_number_as_title() -> None:
    presentation = Presentation()
    for _ in range(2):
        slide = presentation.slides.add_slide(presentation.slide_layouts[6])
        box = slide.shapes.add_textbox(Inches(1), Inches(1), Inches(4), Inches(1))
        box.text_frame.text = "Cool the water for green tea."
    text = read(presentation, "tea.pptx")
    assert [heading.title for heading in Outline.of(text).headings] == ["Slide 1", "Slide 2"]


@pytest.mark.parametrize("suffix", ["docx", "pptx"])
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"no archive", "cannot be read as {}: File is not a zip file"),
        (archive(a=b"x"), "cannot be read as {}: .*The file may be damaged"),
        (bytes.fromhex("D0CF11E0A1B11AE1"), "cannot be read as {}: it is protected by"),
        (archive(a=bytes(2_000_000)), "is too large: it unpacks to 2,000,000 bytes, and the limit"),
    ],
    ids=["text", "other archive", "encrypted", "bomb"],
)
def test_damaged_files_are_an_error(
    data: bytes, message: str, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "_MOST_BYTES", 1_000_000)
    with pytest.raises(ValueError, match=f"a.{suffix} {message.format(suffix.upper())}"):
        read_bytes(data, f"a.{suffix}")


def test_parts_that_are_damaged_are_an_error(word: Path, slides: Path) -> None:
    for path, part in ((word, "word/document.xml"), (slides, "ppt/slides/slide1.xml")):
        with zipfile.ZipFile(path) as source:
            parts = {name: source.read(name) for name in source.namelist()}
        path.write_bytes(archive(**{**parts, part: parts[part][:-50] + b"\0"}))
        with pytest.raises(ValueError, match=rf"\A{path.name} cannot be read as.*again\Z"):
            read_bytes(path.read_bytes(), path.name)


@pytest.mark.parametrize(
    ("suffix", "module", "package"),
    [("docx", "mammoth", "mammoth"), ("pptx", "pptx", "python-pptx")],
)
def test_missing_libraries_are_named(
    suffix: str, module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"needs {package}: pip install .*\[office\]"):
        read_bytes(b"", f"a.{suffix}")
