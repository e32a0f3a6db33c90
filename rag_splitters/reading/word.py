"""Word documents as Markdown."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

from rag_splitters.extras import needs
from rag_splitters.reading.archives import (
    attribute,
    local_name,
    named_elements,
    open_archive,
    parse_part,
)
from rag_splitters.reading.equations import put_equations
from rag_splitters.reading.markdown import escape_markdown
from rag_splitters.reading.word_lists import with_numbers
from rag_splitters.reading.word_parts import prepare_parts
from rag_splitters.structure.html.text import Stripped, plain_page

_HEADING = re.compile(r"heading ([1-9])\Z", re.IGNORECASE)
_LIST = re.compile(r"List (?:Bullet|Number) ([2-5])\Z", re.IGNORECASE)
_DROPPED = re.compile(  # links from notes to the text, and groups of rows, which end merged cells
    r' <a href="#(?:foot|end)note-ref-\w+">↑</a>|</?t(?:head|body)>'
)
_CHECKBOXES = {
    '<input checked="checked" type="checkbox" />': "☒",
    '<input type="checkbox" />': "☐",
}
_DEEPEST = 20  # styles based on styles


def read_docx(data: bytes, name: str) -> str:
    """Read a Word document as Markdown, with headings, lists, tables and notes.

    Headings are recognised by their styles, and by the styles that these are based on. The title,
    if there is one, becomes the heading above all others. Changes that were tracked are accepted,
    and the first row of a table is its header. Items of lists keep their numbers, and equations
    become LaTeX. Page headers, comments and images are dropped.

    Raises: ImportError if mammoth is not installed; ValueError if the document is damaged,
    protected by a password, in the old format, or unpacks to more than 500 MB.
    """
    with needs(f"reading {name} needs mammoth", "office"):
        mammoth: Any = import_module("mammoth")
    with open_archive(data, name, "DOCX") as archive:
        document, equations = prepare_parts(archive)
        html = mammoth.convert_to_html(
            io.BytesIO(document),
            transform_document=_prepare(mammoth, _heading_levels(archive)),
            convert_image=lambda image: [],
            include_embedded_style_map=False,
        ).value
    html = with_numbers(_DROPPED.sub("", html))
    for element, sign in _CHECKBOXES.items():
        html = html.replace(element, sign)
    return put_equations(_to_markdown(plain_page(html, main_content_only=False)), equations)


def _prepare(mammoth: Any, levels: Mapping[str, int]) -> Callable[[Any], Any]:
    """Return a function that prepares headings, lists and tables for mammoth.

    It gives headings the style of their level, items of "List Bullet 2" and the like their depth,
    and tables a header.
    """
    documents = mammoth.documents

    def prepare(element: Any) -> Any:
        if isinstance(element, documents.Table) and element.children:
            header, *rows = element.children
            return element.copy(children=[header.copy(is_header=True), *rows])
        if not isinstance(element, documents.Paragraph):
            return element
        if level := levels.get(element.style_id):
            return element.copy(style_id=None, style_name=f"Heading {level}", numbering=None)
        style = _LIST.match(element.style_name or "")
        if style and element.numbering is not None and element.numbering.level_index == "0":
            level = documents.numbering_level(int(style[1]) - 1, element.numbering.is_ordered)
            return element.copy(numbering=level)
        return element

    convert: Callable[[Any], Any] = mammoth.transforms.element_of_type(object, prepare)
    return convert


def _heading_levels(archive: zipfile.ZipFile) -> dict[str, int]:
    """Return the level of each style of headings, by its id: 1 for the title, else 2 or more."""
    names: dict[str, str] = {}
    bases: dict[str, str] = {}
    with suppress(KeyError):
        for style in named_elements(parse_part(archive, "word/styles.xml"), "style"):
            key = attribute(style, "styleId")
            for child in style:
                kind = local_name(child)
                if kind in ("name", "basedOn"):
                    (names if kind == "name" else bases)[key] = attribute(child, "val")
    levels: dict[str, int] = {}
    for key in names:
        base = key
        for _ in range(_DEEPEST):
            heading = _HEADING.match(names.get(base, ""))
            if heading or names.get(base) == "Title":
                levels[key] = min(int(heading[1]) + 1, 6) if heading else 1
                break
            base = bases.get(base, "")
    return levels


def _to_markdown(page: Stripped) -> str:
    """Write the text of a page as Markdown."""
    levels = [block.level for block in page.blocks if block.kind == "heading"]
    parts: list[str] = []
    position, shift = 0, min(levels, default=1) > 1
    for block in page.blocks:
        between, text = page.text[position : block.start], page.text[block.start : block.end]
        if block.kind == "heading":
            text = f"{'#' * (block.level - shift)} {' '.join(text.split())}"
        elif block.kind == "paragraph":
            text = escape_markdown(text)
        parts += between, text
        position = block.end
    return "".join(parts)
