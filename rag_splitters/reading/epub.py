"""Books (EPUB) as text with headings."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from urllib.parse import unquote
from xml.etree import ElementTree

from rag_splitters.reading.archives import named_elements, open_archive, parse_part
from rag_splitters.reading.decoding import decode
from rag_splitters.structure.block import Block
from rag_splitters.structure.html.text import plain_page

_PAGES = ("application/xhtml+xml", "text/html")


def read_epub(data: bytes, name: str) -> tuple[str, list[Block], str]:
    """Read a book as text: its chapters in their order, without tags and images.

    Returns: the text, its headings, and the title of the book.

    Raises InputError if the book is damaged or protected, or unpacks to more than 500 MB.
    """
    with open_archive(data, name, "EPUB") as archive:
        container = parse_part(archive, "META-INF/container.xml")
        path = next(named_elements(container, "rootfile")).get("full-path", "")
        package = parse_part(archive, path)
        chapters = [
            decode(archive.read(each), f"{name}: {each}") for each in _chapters(package, path)
        ]
    # All of each chapter, because an "aside" in a book is a note.
    every_page = (plain_page(chapter, main_content_only=False) for chapter in chapters)
    pages = [page for page in every_page if page.text]
    starts = accumulate((len(page.text) + 2 for page in pages), initial=0)
    headings = [
        replace(each, start=start + each.start, end=start + each.end)
        for start, page in zip(starts, pages, strict=False)
        for each in page.blocks
        if each.kind == "heading" and each.title
    ]
    title = next((each.text or "" for each in named_elements(package, "title")), "")
    return "\n\n".join(page.text for page in pages), headings, " ".join(title.split())


def _chapters(package: ElementTree.Element, path: str) -> Iterator[str]:
    """Yield the paths of a book's chapters in their order."""
    items = {each.get("id"): each for each in named_elements(package, "item")}
    for reference in named_elements(package, "itemref"):
        item = items.get(reference.get("idref"))
        if item is not None and item.get("media-type") in _PAGES:
            target = unquote(item.get("href", ""))
            yield posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
