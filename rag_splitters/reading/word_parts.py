"""The parts of a Word document, with all of their text where mammoth reads it."""

from __future__ import annotations

import io
import re
import zipfile
from itertools import pairwise
from xml.etree import ElementTree

from rag_splitters.reading.archives import attribute, local_name, named_elements, parse_part
from rag_splitters.reading.equations import take_equations
from rag_splitters.reading.word_lists import Numbering

_PART = re.compile(r"word/(?:document|footnotes|endnotes)\d*\.xml\Z")
_LISTS = re.compile(r"word/numbering\d*\.xml\Z")
_MEDIA = "word/media/"
_READ_AS = {
    **dict.fromkeys(("bdo", "dir", "fldSimple", "ruby", "rubyBase"), "smartTag"),
    "cr": "br",
    "ptab": "tab",
    "rt": "del",
}
"""Elements that mammoth does not read, and those that it reads instead: fields, runs in one
direction, and words with their pronunciation, which is dropped."""


def prepare_parts(archive: zipfile.ZipFile) -> tuple[bytes, list[str]]:
    """Return a Word document as mammoth can read all of it, without images, and its equations.

    A mark stands for each equation and before each numbered item; see `put_equations` and
    `with_numbers`.
    """
    equations: list[str] = []
    output, names = io.BytesIO(), archive.namelist()
    numbering = Numbering(parse_part(archive, name) for name in filter(_LISTS.match, names))
    with zipfile.ZipFile(output, "w") as copy:
        for name in names:
            if _PART.match(name):
                root = parse_part(archive, name)
                equations += take_equations(root, len(equations))
                numbering.mark_items(root)
                _rewrite(root)
                copy.writestr(name, ElementTree.tostring(root))
            elif not name.startswith(_MEDIA):
                copy.writestr(name, archive.read(name))
    return output.getvalue(), equations


def _rewrite(root: ElementTree.Element) -> None:
    """Put the text of a part where mammoth reads it."""
    word = root.tag.rpartition("}")[0] + "}"
    for element in list(root.iter()):
        name = local_name(element)
        if name == "AlternateContent":
            _choose(element, word)
        elif name == "drawing" and (boxes := list(named_elements(element, "txbxContent"))):
            element.tag, element[:] = f"{word}pict", boxes
        elif element.tag == word + name:
            element.tag = word + _READ_AS.get(name, name)
        for child, after in pairwise(element):
            if after.tag == f"{word}p" and _is_drop_cap(child):
                _join_with_next(child, word)


def _choose(element: ElementTree.Element, word: str) -> None:
    """Keep the text of the first alternative if the last, which mammoth reads, has none."""
    with_text = [each for each in element if next(each.iter(f"{word}t"), None) is not None]
    if with_text and local_name(with_text[-1]) == "Choice":
        with_text[0].tag = element.tag = f"{word}smartTag"
        element[:] = with_text[:1]


def _is_drop_cap(paragraph: ElementTree.Element) -> bool:
    frames = (each for each in paragraph.findall("*/*") if local_name(each) == "framePr")
    return any(attribute(each, "dropCap") in ("drop", "margin") for each in frames)


def _join_with_next(paragraph: ElementTree.Element, word: str) -> None:
    """Mark the end of a paragraph as deleted."""
    properties = paragraph.find(f"{word}pPr")
    if properties is not None:
        run = properties.find(f"{word}rPr")
        run = ElementTree.SubElement(properties, f"{word}rPr") if run is None else run
        ElementTree.SubElement(run, f"{word}del")
