"""PowerPoint presentations as Markdown."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import accumulate, groupby
from typing import Any

from rag_splitters.extras import needs
from rag_splitters.reading.archives import named_elements, open_archive, parse_part
from rag_splitters.reading.markdown import escape_markdown, markdown_table
from rag_splitters.text.origin import Row

_DEEPEST = 20  # groups of shapes inside groups
_MARGINALIA = ("DATE", "FOOTER", "SLIDE_NUMBER")  # types of placeholders


def read_pptx(data: bytes, name: str) -> tuple[str, list[Row]]:
    """Read a presentation as Markdown: the titles, texts, tables and notes of its slides.

    Texts are in the order of the shapes; those of a SmartArt diagram are list items, and speaker
    notes follow "Notes:". A slide without a title gets one such as "Slide 3". Images, charts,
    footers, slide numbers and texts on the slide masters are dropped.

    Returns: the text, and the start and number of each slide.

    Raises: ImportError if python-pptx is not installed; ValueError if the presentation is damaged,
    protected by a password, in the old format, or unpacks to more than 500 MB.
    """
    with needs(f"reading {name} needs python-pptx", "office"):
        pptx: Any = import_module("pptx")
    with open_archive(data, name, "PPTX") as archive:
        numbered = enumerate(pptx.Presentation(io.BytesIO(data)).slides, 1)
        slides = {number: _slide_text(number, slide, archive) for number, slide in numbered}
    filled = {number: text for number, text in slides.items() if text}
    starts = accumulate((len(text) + 2 for text in filled.values()), initial=0)
    rows: list[Row] = [(start, n, n) for start, n in zip(starts, filled, strict=False)]
    return "\n\n".join(filled.values()), rows


def _slide_text(number: int, slide: Any, archive: zipfile.ZipFile) -> str:
    """Write a slide, its title first; "Slide 3" if it has none, but other text."""
    title = slide.shapes.title
    words = " ".join(title.text_frame.text.split()) if title is not None else ""
    blocks = [block for block in _blocks_under_title(slide, title, archive) if block]
    heading = [f"# {words or f'Slide {number}'}"] if words or blocks else []
    return "\n\n".join([*heading, *blocks])


def _blocks_under_title(slide: Any, title: Any, archive: zipfile.ZipFile) -> Iterator[str]:
    """Yield the texts, tables and diagrams of a slide, and its notes."""
    for shape in _shapes(slide.shapes):
        kind = shape.placeholder_format.type if shape.is_placeholder else None
        is_title = title is not None and shape.shape_id == title.shape_id
        if is_title or (kind is not None and kind.name in _MARGINALIA):
            continue
        if shape.has_table:
            yield markdown_table(_cells(shape.table))
        elif shape.has_text_frame:
            yield _text_of(shape)
        else:
            yield "\n".join(_diagram_items(shape, archive))
    if slide.has_notes_slide:
        notes = slide.notes_slide.notes_text_frame
        if notes is not None and notes.text.strip():
            yield f"Notes: {escape_markdown(notes.text.strip())}"


def _cells(table: Any) -> list[list[str]]:
    """Return the texts of a table; a text that is merged over several rows is in each of them."""
    rows = [list(row.cells) for row in table.rows]
    texts = [[cell.text for cell in row] for row in rows]
    for number, row in enumerate(rows):
        for column, cell in enumerate(row):
            if cell.is_merge_origin:
                for below in texts[number + 1 : number + cell.span_height]:
                    below[column] = cell.text
    return texts


def _shapes(shapes: Iterable[Any], depth: int = 0) -> Iterator[Any]:
    """Yield the shapes, including those inside groups."""
    for shape in shapes:
        if hasattr(shape, "shapes") and depth < _DEEPEST:
            yield from _shapes(shape.shapes, depth + 1)
        else:
            yield shape


def _text_of(shape: Any) -> str:
    """Write the paragraphs of a shape; several ones in a body placeholder are list items."""
    paragraphs = [each for each in shape.text_frame.paragraphs if each.text.strip()]
    is_list = shape.is_placeholder and len(paragraphs) > 1
    groups: list[str] = []
    for is_item, group in groupby(paragraphs, lambda each: is_list or each.level > 0):
        texts = [(each.text.replace("\v", "\n").strip(), each.level) for each in group]
        if is_item:
            groups.append("\n".join(_as_item(text, depth) for text, depth in texts))
        else:
            groups += [escape_markdown(text) for text, _ in texts]
    return "\n\n".join(groups)


def _diagram_items(shape: Any, archive: zipfile.ZipFile) -> Iterator[str]:
    """Yield the texts of a SmartArt diagram as list items; nothing for any other shape."""
    for relation in shape.element.xpath(".//*[local-name()='relIds']/@*[local-name()='dm']"):
        data = parse_part(archive, shape.part.related_part(relation).partname[1:])
        for paragraph in named_elements(data, "p"):
            text = "".join(each.text or "" for each in named_elements(paragraph, "t")).strip()
            if text:
                yield _as_item(text, 0)


def _as_item(text: str, depth: int) -> str:
    """Write a list item, indented by its depth."""
    indent = "   " * depth
    rest = f"\n{indent}  "
    return f"{indent}- {rest.join(escape_markdown(text).splitlines())}"
