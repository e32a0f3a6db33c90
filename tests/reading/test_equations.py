"""Equations of Word documents become LaTeX where they stand."""

from __future__ import annotations

import io

from docx import Document
from docx.oxml import parse_xml

from rag_splitters import ModalityChunker
from rag_splitters.reading.files import read_bytes

MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"


def text(letters: str) -> str:
    return f"<m:r><m:rPr/><m:t>{letters}</m:t></m:r>"


def word(*equations: str) -> bytes:
    """A document with a paragraph that has the equations between its words."""
    document = Document()
    paragraph = document.add_paragraph("Given ")
    for equation in equations:
        paragraph._p.append(parse_xml(f'<m:oMath xmlns:m="{MATH}">{equation}</m:oMath>'))
        paragraph.add_run(" and ")
    output = io.BytesIO()
    document.save(output)
    return output.getvalue()


def read(data: bytes) -> str:
    (source,) = read_bytes(data, "optics.docx")
    return source.text


X, N, TWO = text("x"), text("n"), text("2")


EQUATIONS = [
    (text("a*b_c") + text("=1"), "a*b_c=1"),
    (f"<m:f><m:fPr/><m:num>{X}</m:num><m:den>{N}</m:den></m:f>", r"\frac{x}{n}"),
    (
        f'<m:f><m:fPr><m:type m:val="noBar"/></m:fPr><m:num>{X}</m:num><m:den>{N}</m:den></m:f>',
        r"{x \atop n}",
    ),
    (f"<m:eqArr><m:e>{X}</m:e></m:eqArr>", "x"),
    (f"<m:sSup><m:e>{X}</m:e><m:sup>{TWO}</m:sup></m:sSup>", "{x}^{2}"),
    (f"<m:sSub><m:e>{X}</m:e><m:sub>{N}</m:sub></m:sSub>", "{x}_{n}"),
    (
        f"<m:sSubSup><m:e>{X}</m:e><m:sub>{N}</m:sub><m:sup>{TWO}</m:sup></m:sSubSup>",
        "{x}_{n}^{2}",
    ),
    (f"<m:sPre><m:sub>{N}</m:sub><m:sup>{TWO}</m:sup><m:e>{X}</m:e></m:sPre>", "{}_{n}^{2}{x}"),
    (f"<m:rad><m:deg/><m:e>{X}</m:e></m:rad>", r"\sqrt{x}"),
    (f"<m:rad><m:deg>{N}</m:deg><m:e>{X}</m:e></m:rad>", r"\sqrt[n]{x}"),
    (f"<m:nary><m:sub/><m:sup/><m:e>{X}</m:e></m:nary>", "∫ x"),
    (
        f'<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub>{N}</m:sub>'
        f"<m:sup>{TWO}</m:sup><m:e>{X}</m:e></m:nary>",
        "∑_{n}^{2} x",
    ),
    (f"<m:func><m:fName>{text('sin')}</m:fName><m:e>{X}</m:e></m:func>", "sin x"),
    (
        f"<m:limLow><m:e>{text('lim')}</m:e><m:lim>{text('n→∞')}</m:lim></m:limLow>",
        "{lim}_{n→∞}",
    ),
    (f"<m:limUpp><m:e>{X}</m:e><m:lim>{N}</m:lim></m:limUpp>", "{x}^{n}"),
    (f"<m:d><m:e>{X}</m:e><m:e>{N}</m:e></m:d>", "(x, n)"),
    (
        f'<m:d><m:dPr><m:begChr m:val="|"/><m:endChr m:val=""/></m:dPr><m:e>{X}</m:e></m:d>',
        r"\vert x",
    ),
    (f"<m:acc><m:e>{X}</m:e></m:acc>", r"\hat{x}"),
    (f'<m:acc><m:accPr><m:chr m:val="\u20d7"/></m:accPr><m:e>{X}</m:e></m:acc>', r"\vec{x}"),
    (f'<m:acc><m:accPr><m:chr m:val="\u0323"/></m:accPr><m:e>{X}</m:e></m:acc>', "x\u0323"),
    (text("\ue0007\ue000"), "\ue0007\ue000"),
    (f"<m:bar><m:e>{X}</m:e></m:bar>", r"\underline{x}"),
    (f'<m:bar><m:barPr><m:pos m:val="top"/></m:barPr><m:e>{X}</m:e></m:bar>', r"\overline{x}"),
    (
        f"<m:m><m:mPr/><m:mr><m:e>{X}</m:e><m:e>{N}</m:e></m:mr><m:mr><m:e>{TWO}</m:e></m:mr></m:m>",
        r"\begin{matrix} x & n \\ 2 \end{matrix}",
    ),
    (f"<m:eqArr><m:e>{X}</m:e><m:e>{N}</m:e></m:eqArr>", r"\begin{matrix} x \\ n \end{matrix}"),
    (f"<m:borderBox><m:e>{X}</m:e></m:borderBox>", "x"),
    (X, "x"),
]


def test_equations_are_latex() -> None:
    markup, latex = zip(*EQUATIONS, strict=True)
    shown = read(word(*markup)).removeprefix("Given ").removesuffix(" and").split(" and ")
    assert shown == [f"${each}$" for each in latex]


def test_equations_beside_each_other_are_apart() -> None:
    document = Document()
    paragraph = document.add_paragraph()
    for letters in ("x", "n"):
        equation = f'<m:oMath xmlns:m="{MATH}">{text(letters)}</m:oMath>'
        paragraph._p.append(parse_xml(equation))
    output = io.BytesIO()
    document.save(output)
    assert read(output.getvalue()) == "$x$ $n$"


def test_equation_on_lines_of_its_own_is_a_formula() -> None:
    document = Document()
    document.add_paragraph("Light bends.")
    paragraph = document.add_paragraph()
    equation = f"<m:oMath>{X}</m:oMath>"
    paragraph._p.append(parse_xml(f'<m:oMathPara xmlns:m="{MATH}">{equation}</m:oMathPara>'))
    document.add_table(1, 2).cell(0, 1).paragraphs[0]._p.append(
        parse_xml(f'<m:oMath xmlns:m="{MATH}">{text("|x|")}</m:oMath>')
    )
    output = io.BytesIO()
    document.save(output)
    content = read(output.getvalue())
    assert content == ("Light bends.\n\n$$x$$\n\n| | $\\vert x\\vert$ |\n| --- | --- |")
    chunks = ModalityChunker().chunk(content)
    assert [chunk.metadata["modality"] for chunk in chunks] == ["text", "formula", "table"]
