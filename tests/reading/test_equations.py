"""Equations of Word documents become LaTeX where they stand."""

from __future__ import annotations

import io
from typing import Any

from docx import Document
from docx.oxml import parse_xml

from rag_splitters import ModalityChunker
from rag_splitters.reading.files import read_bytes

MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"


def text(letters: str) -> str:
    return f"<r><rPr/><t>{letters}</t></r>"


def add(paragraph: Any, markup: str, name: str = "oMath") -> None:
    paragraph._p.append(parse_xml(f'<{name} xmlns="{MATH}">{markup}</{name}>'))


def read(document: Any) -> str:
    output = io.BytesIO()
    document.save(output)
    (source,) = read_bytes(output.getvalue(), "optics.docx")
    return source.text


X, N, TWO = f"<e>{text('x')}</e>", text("n"), text("2")
EQUATIONS = {
    text("a*b_c") + text("=1"): "a*b_c=1",
    f"<f><fPr/><num>{TWO}</num><den>{N}</den></f>": r"\frac{2}{n}",
    f'<f><fPr><type val="noBar"/></fPr><num>{TWO}</num><den>{N}</den></f>': r"{2 \atop n}",
    f"<eqArr>{X}</eqArr>": "x",
    f"<sSup>{X}<sup>{TWO}</sup></sSup>": "{x}^{2}",
    f"<sSub>{X}<sub>{N}</sub></sSub>": "{x}_{n}",
    f"<sSubSup>{X}<sub>{N}</sub><sup>{TWO}</sup></sSubSup>": "{x}_{n}^{2}",
    f"<sPre><sub>{N}</sub><sup>{TWO}</sup>{X}</sPre>": "{}_{n}^{2}{x}",
    f"<rad><deg/>{X}</rad>": r"\sqrt{x}",
    f"<rad><deg>{N}</deg>{X}</rad>": r"\sqrt[n]{x}",
    f"<nary><sub/><sup/>{X}</nary>": "∫ x",
    f'<nary><naryPr><chr val="∑"/></naryPr><sub>{N}</sub><sup>{TWO}</sup>{X}</nary>': "∑_{n}^{2} x",
    f"<func><fName>{text('sin')}</fName>{X}</func>": "sin x",
    f"<limLow><e>{text('lim')}</e><lim>{text('n→∞')}</lim></limLow>": "{lim}_{n→∞}",
    f"<limUpp>{X}<lim>{N}</lim></limUpp>": "{x}^{n}",
    f"<d>{X}<e>{N}</e></d>": "(x, n)",
    f'<d><dPr><begChr val="|"/><endChr val=""/></dPr>{X}</d>': r"\vert x",
    f"<acc>{X}</acc>": r"\hat{x}",
    f'<acc><accPr><chr val="\u20d7"/></accPr>{X}</acc>': r"\vec{x}",
    f'<acc><accPr><chr val="\u0323"/></accPr>{X}</acc>': "x\u0323",
    text("\ue0007\ue000"): "\ue0007\ue000",
    f"<bar>{X}</bar>": r"\underline{x}",
    f'<bar><barPr><pos val="top"/></barPr>{X}</bar>': r"\overline{x}",
    f"<m><mPr/><mr>{X}<e>{N}</e></mr><mr><e>{TWO}</e></mr></m>": (
        r"\begin{matrix} x & n \\ 2 \end{matrix}"
    ),
    f"<eqArr>{X}<e>{N}</e></eqArr>": r"\begin{matrix} x \\ n \end{matrix}",
    f"<borderBox>{X}</borderBox>": "x",
}


def test_equations_are_latex() -> None:
    document = Document()
    paragraph = document.add_paragraph("Given ")
    for markup in EQUATIONS:
        add(paragraph, markup)
        paragraph.add_run(" and ")
    shown = read(document).removeprefix("Given ").removesuffix(" and").split(" and ")
    assert shown == [f"${each}$" for each in EQUATIONS.values()]


def test_equations_stand_beside_each_other_on_lines_of_their_own_and_in_cells() -> None:
    document = Document()
    paragraph = document.add_paragraph()
    add(paragraph, N)
    add(paragraph, TWO)
    add(document.add_paragraph(), f"<oMath>{N}</oMath>", "oMathPara")
    add(document.add_table(1, 2).cell(0, 1).paragraphs[0], text("|x|"))
    content = read(document)
    assert content == "$n$ $2$\n\n$$n$$\n\n| | $\\vert x\\vert$ |\n| --- | --- |"
    chunks = ModalityChunker().chunk(content)
    assert [chunk.metadata["modality"] for chunk in chunks] == ["text", "formula", "table"]
