"""The images of Markdown and HTML: their positions, alternative texts, captions and addresses."""

from __future__ import annotations

import base64
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

import regex

from rag_splitters.structure.block import outermost
from rag_splitters.structure.blocks.markdown import ESCAPE, LABEL
from rag_splitters.structure.html.tags import attribute, attribute_span, without_tags
from rag_splitters.structure.html.tree import Element, Tag, Tree, parse_html

_ADDRESS = r"<(?P<bracketed>[^<>\n]*+)>|(?P<bare>(?:[^\s()<>\\]|\\.|\((?:[^\s()\\]|\\.)*+\))++)"
_TITLE = r"""(?:\s++(?P<title>"[^"]{0,1000}+"|'[^']{0,1000}+'|\([^()]{0,1000}+\)))?+"""
_MARKDOWN = regex.compile(
    r"(?<!`)(?P<code>`{1,8})(?!`)[^`]{0,2000}+(?<!`)(?P=code)(?!`)|\\."
    rf"|!\[(?P<alt>{LABEL})\]"
    rf"(?:\(\s*+(?:{_ADDRESS}){_TITLE}\s*+\)|\[(?P<label>[^\[\]]{{0,1000}}+)\])?+",
    regex.DOTALL,
)
_DEFINITION = regex.compile(
    rf"^ {{0,3}}+\[(?P<label>(?:[^\[\]\\\n]|\\.)++)\]:[ \t]*+(?:{_ADDRESS}){_TITLE}[ \t]*+$",
    regex.MULTILINE,
)
_DATA_URI = re.compile(r"data:([^,;]*)((?:;[^,;]*)*),", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Image:
    """An image, by code-point offsets.

    Parameters:
        start: start of its markup.
        end: end of its markup.
        alt_start: start of its alternative text in the markup.
        alt_end: end of its alternative text in the markup.
        alt: its alternative text.
        caption: its title or its caption.
        url: its address.
    """

    start: int
    end: int
    alt_start: int
    alt_end: int
    alt: str
    caption: str
    url: str

    @property
    def content(self) -> str:
        """The image as text: its alternative text, its caption and its address."""
        parts = [self.alt, self.caption, "" if _DATA_URI.match(self.url) else self.url]
        return "\n".join(dict.fromkeys(part for part in parts if part.strip())) or "image"

    @property
    def metadata(self) -> dict[str, Any]:
        """`image_url`, or `image_data` (base64) and `image_mimetype`; `alt`, `caption`."""
        details = {"image_url": self.url, "alt": self.alt, "caption": self.caption}
        if match := _DATA_URI.match(self.url):
            data = re.sub(r"\s", "", self.url[match.end() :])
            if not match.group(2).lower().endswith(";base64"):
                data = base64.b64encode(unquote_to_bytes(data)).decode("ascii")
            details |= {"image_url": "", "image_data": data, "image_mimetype": match.group(1)}
        return {key: value for key, value in details.items() if value}


def definitions(text: str) -> dict[str, tuple[str, str]]:
    """Return the link definitions of a Markdown text: the address and the title of each label."""
    by_label: dict[str, tuple[str, str]] = {}
    for match in _DEFINITION.finditer(text) if "]:" in text else ():
        by_label.setdefault(_normal(match.group("label")), _address(match))
    return by_label


def find_images(
    text: str,
    start: int,
    end: int,
    references: Mapping[str, tuple[str, str]],
    markdown: bool = True,
) -> list[Image]:
    """Find the images in a part of a text, except those in code spans; see `definitions`."""
    matches: list[Image] = []
    if markdown and text.find("![", start, end) >= 0:
        matches += _markdown_images(text, start, end, references)
    if "<img" in text[start:end].lower():
        matches += _html_images(text, start, end)
    return list(outermost(matches))


def _markdown_images(
    text: str, start: int, end: int, references: Mapping[str, tuple[str, str]]
) -> Iterator[Image]:
    for match in _MARKDOWN.finditer(text, start, end):
        alt = match.group("alt")
        if alt is None:
            continue
        address, title = _address(match)
        if not address:
            label = _normal(match.group("label") or alt)
            if label not in references:
                continue
            address, title = references[label]
        plain = re.sub(ESCAPE, r"\1", alt)
        yield Image(*match.span(), *match.span("alt"), plain, title, address)


def _address(match: Any) -> tuple[str, str]:
    """Return the address and the title in a match of one of the patterns above."""
    bracketed, bare, title = match.group("bracketed", "bare", "title")
    address = re.sub(ESCAPE, r"\1", bracketed or bare or "")
    return address, re.sub(ESCAPE, r"\1", (title or "")[1:-1])


def _normal(label: str) -> str:
    return " ".join(label.split()).casefold()


def _html_images(text: str, start: int, end: int) -> Iterator[Image]:
    """Yield every `img`, with its `figure` and caption if it is alone in the figure."""
    tree = parse_html(text, start, end)
    tags = [tag for tag in tree.tags if tag.name == "img" and tag.kind == "open"]
    starts = [tag.start for tag in tags]
    figures: dict[int, Element] = {}
    for figure in outermost(each for each in tree.named("figure") if each.is_closed):
        first = bisect_left(starts, figure.start)
        if bisect_left(starts, figure.end) == first + 1:
            figures[first] = figure
    for number, tag in enumerate(tags):
        yield _html_image(tree, tag, figures.get(number))


def _html_image(tree: Tree, tag: Tag, figure: Element | None) -> Image:
    markup = tree.text[tag.start : tag.end]
    alt, url = attribute(markup, "alt"), attribute(markup, "src").strip()
    captions = [e for e in tree.inside(figure) if e.name == "figcaption"] if figure else []
    parts = (without_tags(tree.text[e.inner_start : e.inner_end]) for e in captions)
    caption = next(parts, "") or attribute(markup, "title")
    low, high = attribute_span(markup, "alt")
    start, end = (figure.start, figure.end) if figure else (tag.start, tag.end)
    return Image(start, end, tag.start + low, tag.start + high, alt, caption, url)
