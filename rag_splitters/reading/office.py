"""Word documents and PowerPoint presentations as Markdown."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any

from rag_splitters.errors import InputError, MissingExtraError
from rag_splitters.extras import install_command
from rag_splitters.text.origin import Row

_MOST_BYTES = 500_000_000  # of an unpacked file; larger files are attacks
_OLE = bytes.fromhex("D0CF11E0A1B11AE1")  # the beginning of encrypted files and of old formats
_HEADING = re.compile(r"heading ([1-9])\Z", re.IGNORECASE)
_LIST = re.compile(r"list (bullet|number)(?: ([2-5]))?\Z", re.IGNORECASE)
_MARKUP = re.compile(
    r"^([ \t]*)(#{1,6}(?=\s|\Z)|>|`{3}|~{3}|[-+*](?=\s)|\d+(?=[.)]\s))", re.MULTILINE
)
_DEEPEST = 20  # groups of shapes inside groups, styles based on styles


def read_docx(data: bytes, name: str) -> str:
    """Read a Word document as Markdown, with headings, lists and tables.

    Headings and list items are recognised by their styles or numbering. The title, if there is one,
    becomes the heading above all others. Page headers, footnotes, comments, text boxes and images
    are dropped.

    Parameters:
        data: the document.
        name: its name, for error messages.

    Raises: ImportError if python-docx is not installed; ValueError if the document is damaged,
    protected by a password, in the old format, or unpacks to more than 500 MB.
    """
    docx = _library("docx", "python-docx", name)
    check_archive(data, name, "DOCX")
    try:
        document = docx.Document(io.BytesIO(data))
        return _join(_Word(document).blocks())
    except Exception as error:  # the libraries raise many kinds of errors for damaged files
        raise damaged_file(name, "DOCX", error) from error


def read_pptx(data: bytes, name: str) -> tuple[str, list[Row]]:
    """Read a presentation as Markdown: the titles, texts, tables and notes of its slides.

    Texts are in the order of the shapes; speaker notes follow "Notes:". A slide without a title
    gets one such as "Slide 3". Images, charts, and texts on the slide masters are dropped.

    Parameters:
        data: the presentation.
        name: its name, for error messages.

    Returns: the text, and the start and number of each slide.

    Raises: ImportError if python-pptx is not installed; ValueError if the presentation is damaged,
    protected by a password, in the old format, or unpacks to more than 500 MB.
    """
    pptx = _library("pptx", "python-pptx", name)
    check_archive(data, name, "PPTX")
    try:
        presentation = pptx.Presentation(io.BytesIO(data))
        slides = [_join(_slide_blocks(*each)) for each in enumerate(presentation.slides, 1)]
    except Exception as error:
        raise damaged_file(name, "PPTX", error) from error
    rows: list[Row] = []
    parts: list[str] = []
    length = 0
    for number, slide in enumerate(slides, 1):
        if slide:
            rows.append((length, number, number))
            parts.append(slide)
            length += len(slide) + 2
    return "\n\n".join(parts), rows


def _library(module: str, package: str, name: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        hint = install_command("office")
        raise MissingExtraError(f"reading {name} needs {package}: {hint}") from error


def check_archive(data: bytes, name: str, kind: str) -> None:
    """Raise ValueError if the file is not a ZIP archive, or is too large when unpacked."""
    if data.startswith(_OLE):
        raise InputError(
            f"{name} cannot be read as {kind}: it is protected by a password or in the format "
            f"before 2007. Save a copy as {kind} without a password"
        )
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(each.file_size for each in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise damaged_file(name, kind, error) from error
    if size > _MOST_BYTES:
        raise InputError(
            f"{name} is too large: it unpacks to {size:,} bytes, and the limit is {_MOST_BYTES:,}"
        )


def damaged_file(name: str, kind: str, error: Exception) -> InputError:
    """Return the error for a file that cannot be read."""
    reason = " ".join(str(error).split()) or type(error).__name__
    return InputError(
        f"{name} cannot be read as {kind}: {reason}. The file may be damaged: download or export "
        "it again"
    )


class _Word:
    """Reads the blocks of a Word document."""

    def __init__(self, document: Any) -> None:
        self.document = document
        styles = [paragraph.style for paragraph in document.paragraphs]
        self.has_title = any(style is not None and style.name == "Title" for style in styles)
        self.formats = _numbering_formats(document)
        self.numbers: dict[int, int] = {}  # of the last items, by level; 0 without numbers

    def blocks(self) -> Iterator[tuple[str, bool]]:
        """Yield each block in Markdown, and whether it is a list item."""
        for block in self.document.iter_inner_content():
            if hasattr(block, "rows"):
                self.numbers.clear()
                cells = [
                    [_cell_text(cell) for cell in _distinct_cells(row.cells)] for row in block.rows
                ]
                yield markdown_table(cells), False
            elif block.text.strip():
                yield self._paragraph(block)

    def _paragraph(self, paragraph: Any) -> tuple[str, bool]:
        text = paragraph.text.strip()
        names = list(_style_names(paragraph.style))
        level = 1 if "Title" in names else 0
        if heading := next(filter(None, map(_HEADING.match, names)), None):
            level = min(int(heading[1]) + self.has_title, 6)
        if level:
            self.numbers.clear()
            return f"{'#' * level} {' '.join(text.split())}", False
        item = self._item(paragraph, names)
        if item is None:
            self.numbers.clear()
            return _escape(text), False
        depth, is_numbered = item
        self.numbers = {each: count for each, count in self.numbers.items() if each <= depth}
        self.numbers[depth] = self.numbers.get(depth, 0) + 1 if is_numbered else 0
        mark = f"{self.numbers[depth]}." if is_numbered else "-"
        return _as_item(text, depth, mark), True

    def _item(self, paragraph: Any, names: Sequence[str]) -> tuple[int, bool] | None:
        """Return the depth of a list item, and whether it has a number; None for other text."""
        style = next(filter(None, map(_LIST.match, names)), None)
        properties = paragraph._p.pPr  # python-docx has no public access to the numbering
        numbering = properties.numPr if properties is not None else None
        if numbering is not None and numbering.numId is not None:
            depth = numbering.ilvl.val if numbering.ilvl is not None else 0
            kind = self.formats.get((numbering.numId.val, depth))
            return None if kind in (None, "none") else (min(depth, 8), kind != "bullet")
        if style is None:
            return None
        return int(style[2] or 1) - 1, style[1].lower() == "number"


def _numbering_formats(document: Any) -> dict[tuple[int, int], str]:
    """Return the format of each level of each list: "bullet", "decimal" and so on."""
    parts = [
        rel.target_part for rel in document.part.rels.values() if rel.reltype.endswith("/numbering")
    ]
    formats: dict[tuple[int, int], str] = {}
    for part in parts:
        root = part.element
        abstract = {each.get(_w("abstractNumId")): each for each in root.iter(_w("abstractNum"))}
        for number in root.iter(_w("num")):
            reference = number.find(_w("abstractNumId"))
            levels = abstract.get(reference.get(_w("val"))) if reference is not None else None
            for level in () if levels is None else levels.iter(_w("lvl")):
                kind = level.find(_w("numFmt"))
                if kind is not None:
                    key = (int(number.get(_w("numId"))), int(level.get(_w("ilvl"))))
                    formats[key] = kind.get(_w("val"))
    return formats


def _w(name: str) -> str:
    return f"{{http://schemas.openxmlformats.org/wordprocessingml/2006/main}}{name}"


def _style_names(style: Any) -> Iterator[str]:
    """Yield the name of a style, and those of the styles that it is based on."""
    for _ in range(_DEEPEST):
        if style is None:
            return
        yield style.name or ""
        style = getattr(style, "base_style", None)


def _cell_text(cell: Any, depth: int = 0) -> str:
    """Return the text of a cell, including tables inside it."""
    texts = [cell.text]
    for table in cell.tables if depth < _DEEPEST else ():
        for row in table.rows:
            texts += [_cell_text(each, depth + 1) for each in _distinct_cells(row.cells)]
    return " ".join(filter(None, texts))


def _distinct_cells(cells: Iterable[Any]) -> Iterator[Any]:
    """Yield the cells of a row, merged ones only once."""
    last = None
    for cell in cells:
        if cell._tc is not last:
            yield cell
        last = cell._tc


def _slide_blocks(number: int, slide: Any) -> Iterator[tuple[str, bool]]:
    """Yield the blocks of a slide, its title first; "Slide 3" if it has none, but other text."""
    title = slide.shapes.title
    words = " ".join(title.text_frame.text.split()) if title is not None else ""
    blocks = list(_blocks_under_title(slide, title))
    if words or blocks:
        yield f"# {words or f'Slide {number}'}", False
    yield from blocks


def _blocks_under_title(slide: Any, title: Any) -> Iterator[tuple[str, bool]]:
    """Yield the texts and tables of a slide, and its notes."""
    for shape in _shapes(slide.shapes):
        if title is not None and shape.shape_id == title.shape_id:
            continue
        if shape.has_table:
            rows = [[cell.text for cell in row.cells] for row in shape.table.rows]
            yield markdown_table(rows), False
        elif shape.has_text_frame:
            yield from _shape_blocks(shape)
    if slide.has_notes_slide:
        notes = slide.notes_slide.notes_text_frame
        if notes is not None and notes.text.strip():
            yield f"Notes: {_escape(notes.text.strip())}", False


def _shapes(shapes: Iterable[Any], depth: int = 0) -> Iterator[Any]:
    """Yield the shapes, including those inside groups."""
    for shape in shapes:
        if hasattr(shape, "shapes") and depth < _DEEPEST:
            yield from _shapes(shape.shapes, depth + 1)
        else:
            yield shape


def _shape_blocks(shape: Any) -> Iterator[tuple[str, bool]]:
    """Yield the paragraphs of a shape; several ones in a body placeholder are list items."""
    paragraphs = [each for each in shape.text_frame.paragraphs if each.text.strip()]
    is_list = shape.is_placeholder and len(paragraphs) > 1
    for paragraph in paragraphs:
        text = paragraph.text.replace("\v", "\n").strip()
        if is_list or paragraph.level:
            yield _as_item(text, paragraph.level, "-"), True
        else:
            yield _escape(text), False


def _as_item(text: str, depth: int, mark: str) -> str:
    indent = "   " * depth
    rest = f"\n{indent}{' ' * (len(mark) + 1)}"
    return f"{indent}{mark} {rest.join(_escape(text).splitlines())}"


def _escape(text: str) -> str:
    """Escape a text, so that no line begins like a block of Markdown."""
    return _MARKUP.sub(_with_backslash, text)


def _with_backslash(match: re.Match[str]) -> str:
    return f"{match[1]}{match[2]}\\" if match[2].isdigit() else f"{match[1]}\\{match[2]}"


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """Write a table in Markdown, with its first row as the header; "" if it has no text."""
    if not any(cell.strip() for row in rows for cell in row):
        return ""
    width = max(map(len, rows))
    lines = [_line([*row, *[""] * (width - len(row))]) for row in rows]
    return "\n".join([lines[0], _line(["---"] * width), *lines[1:]])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(' '.join(cell.replace('|', chr(92) + '|').split()) for cell in cells)} |"


def _join(blocks: Iterable[tuple[str, bool]]) -> str:
    """Join the blocks with blank lines, or with line breaks between list items."""
    parts: list[str] = []
    after_item = False
    for block, is_item in blocks:
        if block:
            parts += ["\n" if is_item and after_item else "\n\n"] * bool(parts)
            parts.append(block)
            after_item = is_item
    return "".join(parts)
