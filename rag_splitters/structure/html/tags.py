"""The tags of an HTML text and the text between them, in linear time even in broken HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from rag_splitters.text.excerpt import Excerpt, Replacement

BLOCK_TAGS = frozenset(
    "address article aside blockquote body caption center col colgroup dd details dialog dir div "
    "dl dt fieldset figcaption figure footer form frameset h1 h2 h3 h4 h5 h6 header hgroup hr html "
    "legend li main menu nav noscript ol optgroup option p pre search section summary table tbody "
    "td tfoot th thead title tr ul".split()
)
"""Elements that end a paragraph."""

INLINE_TAGS = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark nobr q "
    "rp rt ruby s samp small span strike strong sub sup time tt u var wbr".split()
)
"""Elements inside a sentence. No white space replaces their tags."""

EMPTY_TAGS = frozenset(
    "area base br col embed frame hr img input link meta param source track wbr".split()
)
"""Elements without a closing tag."""

_TAG_START = re.compile(r"<(?:(!--)|([!?])(?!\[)|(/?)([A-Za-z][^\s/>\x00<]{0,100}))")
_XML_START = re.compile(r"<(?:(!--)|([!?])|(/?)([^\W\d][\w:.-]{0,200}))")
_CDATA = "[CDATA["
_CDATA_END = re.compile("]]>")
_DOCTYPE_END = re.compile(r"[^<>\[\]]{0,2000}(?:\[[^\]]*\]\s*)?>")
_TAG_END = re.compile(">")
_TAG_REST = re.compile(  # only a quotation mark behind "=" begins a value, in which ">" is text
    r"""[^"'>=]*(?:(?:=\s*(?:"[^"]*"|'[^']*')|=(?!\s*["'])|["'])[^"'>=]*)*>"""
)
_COMMENT_END = re.compile(r"--!?>")  # "<!-->" is a whole comment
_TEXT = re.compile(r"&(?:#\w{1,10}|\w{1,32});?|\s+")
_ATTRIBUTE = r"""(?<![^\s"'/])%s\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))"""
_LONGEST = 500  # characters of the text of a part
_RAW = ("script", "style")

RawTag: TypeAlias = tuple[str, int, int, str]
"""The kind of a tag ("open", "close" or "dropped"), its start, its end, and its name."""


def scan_tags(
    text: str, begin: int = 0, stop: int | None = None, *, is_xml: bool = False
) -> Iterator[RawTag]:
    """Find the tags of a text in HTML or XML, or of a part of it. Everything between them is text.

    A comment, a script or a tag that is never closed is text, so that nothing after it is lost.

    Comments, declarations, and scripts and styles with their content have the kind "dropped". In
    XML, so have the marks around character data, and names lose their prefixes.

    >>> [name for _, _, _, name in scan_tags("<p title='a>b'>1 < 2</p><!-- -->")]
    ['p', 'p', 'comment']
    """
    missing: set[str] = set()  # closing marks that do not occur again
    position, stop = begin, len(text) if stop is None else stop
    pattern = _XML_START if is_xml else _TAG_START
    while match := pattern.search(text, position, stop):
        start, position = match.start(), match.end()
        comment, declaration, slash, name = match.groups()
        if comment:
            end = _closing(_COMMENT_END.search, text, position - 2, stop, "-->", missing)
            if end >= 0:
                yield "dropped", start, end, "comment"
                position = end
            continue
        if is_xml and declaration and text.startswith(_CDATA, position):
            end = _closing(_CDATA_END.search, text, position, stop, _CDATA, missing)
            if end >= 0:
                yield "dropped", start, start + len("<![CDATA["), "cdata"
                yield "dropped", end - len("]]>"), end, "cdata"
                position = end
            continue
        subset = _DOCTYPE_END.match(text, position, stop) if is_xml and declaration else None
        if subset:
            end = subset.end()
        else:
            end = _closing(_TAG_REST.match, text, position, stop, "quotes", missing)
        if end < 0:  # every ">" is in quotes, so one of them is not closed where it should be
            end = _closing(_TAG_END.search, text, position, stop, ">", missing)
        if end < 0:
            continue
        position = end
        if declaration:
            yield "dropped", start, end, "declaration"
            continue
        name = name.rpartition(":")[2] if is_xml else name.lower()
        if name in _RAW and not slash and text[end - 2] != "/" and not is_xml:
            closing = _RAW_ENDS[name]
            if (closed := _closing(closing.search, text, end, stop, name, missing)) >= 0:
                position = closed
                yield "dropped", start, closed, name
                continue
        yield "close" if slash else "open", start, end, name


_RAW_ENDS = {name: re.compile(rf"</{name}(?=[\s/>])[^<>]*>", re.IGNORECASE) for name in _RAW}


def _closing(
    find: Callable[[str, int, int], re.Match[str] | None],
    text: str,
    start: int,
    stop: int,
    key: str,
    missing: set[str],
) -> int:
    """Return the end of the next match, or -1. A missing mark is not searched for again."""
    if key in missing:
        return -1
    if match := find(text, start, stop):
        return match.end()
    missing.add(key)
    return -1


def attribute(tag: str, name: str) -> str:
    """Return the decoded value of a tag's attribute, or "" if there is none.

    >>> attribute('<img alt="A &amp; B" src=x>', "alt")
    'A & B'
    """
    low, high = attribute_span(tag, name)
    return html.unescape(tag[low:high])


def number_in(value: str) -> int:
    """Return the number of at most five digits that an attribute holds, or 1."""
    return int(value) if value.isdecimal() and len(value) < 6 else 1


def attribute_span(tag: str, name: str) -> tuple[int, int]:
    """Return the start and end of the value of a tag's attribute; (0, 0) if there is none."""
    pattern = _ATTRIBUTE % name
    match = re.search(pattern, tag, re.IGNORECASE) if name in tag.lower() else None
    return match.span(match.lastindex or 0) if match else (0, 0)


def plain_html(text: str, start: int, end: int) -> Excerpt:
    """Return the plain text of a part of an HTML text, with its positions."""
    return Excerpt.of(text, start, end, plain_replacements(text, start, end))


def without_tags(part: str) -> str:
    """Return up to 500 characters of a part without tags and images, decoded, in one line.

    >>> without_tags("<h1>Q<i>&amp;</i>A</h1>")
    'Q&A'
    """
    part = part[: 20 * _LONGEST]
    replacements = plain_replacements(part, 0, len(part), with_images=False)
    return " ".join(Excerpt.of(part, 0, len(part), replacements).text.split())[:_LONGEST]


def plain_replacements(
    text: str, start: int, end: int, *, with_images: bool = True
) -> Iterator[Replacement]:
    """Yield the replacements that turn HTML into plain text: of tags, entities and white space."""
    position = start
    for kind, low, high, name in scan_tags(text, start, end):
        yield from _decoded(text, position, low)
        is_break = name in BLOCK_TAGS or name == "br"
        instead = " " if name in ("td", "th") else "\n" if is_break else ""
        if name == "img" and kind == "open" and with_images:
            instead = attribute(text[low:high], "alt")
        yield low, high, instead
        position = high
    yield from _decoded(text, position, end)


def _decoded(text: str, start: int, end: int) -> Iterator[Replacement]:
    for match in _TEXT.finditer(text, start, end):
        piece = match.group()
        instead = html.unescape(piece) if piece[0] == "&" else " "
        if instead != piece:
            yield match.start(), match.end(), instead
