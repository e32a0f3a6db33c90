"""What a line is: an item, a heading, an anchor, a label, an underline, a comment, a rule, a fence.

Sentences, wrapped paragraphs, lead-ins, unbreakable ranges and the outline of plain text ask here.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, TypeAlias

VISIBLE = re.compile(r"\S")
SPACE = re.compile(r"\s")
NEWLINE = r"(?:\r\n|\n|\r(?!\n))"
LINE_BREAK = re.compile(r"\r\n|[\r\n]")
"""Pattern of a line break of any kind."""
LINE = re.compile(r"[^\r\n]+")
"""Pattern of a line that is not empty."""
BLANK_LINE = re.compile(rf"{NEWLINE}[^\S\r\n]*{NEWLINE}")
_LONE_RETURN = re.compile(r"\r(?!\n)")

LineKind: TypeAlias = Literal[
    "item", "heading", "anchor", "label", "underline", "rule", "comment", "fence", "text"
]

BULLETS = "-*+•◦▪‣·●○■□◆◇►▸▶✓✔☐☑"
DASHES = "–—"
"""They begin items in some texts and speech in others, so such a line is not kept whole."""

_IDEOGRAPHS = "[一二三四五六七八九十]{1,3}"
DECIMAL = r"\d{1,3}(?:\.\d{1,3}){1,4}[.)]?(?=[ \t]+[^\W\da-z_])"
"""Pattern of a number such as 1.1. It begins a heading if the line is short, else an item."""
_LONGEST_NUMBERED_HEADING = 45  # characters
MARK = (
    rf"(?:(?:[{re.escape(BULLETS)}]"  # - item
    r"|\d{1,3}[.)]"  # 1. item, 1) item
    r"|\(?(?:[A-Za-z]|[ivxIVX]{1,5}|\d{1,3})\)"  # (a) item, iv) item
    rf"|{DECIMAL}(?=[^\n]{{{_LONGEST_NUMBERED_HEADING}}})"  # 1.1 The licensee shall ...
    r"|\[(?:\d{1,3}|[ xX])\])(?=[ \t]+\S)"  # [1] item, [x] item
    rf"|[①-⒇❶-❿](?=\S|[ \t])|(?:\d{{1,3}}|{_IDEOGRAPHS})[、．）]|（(?:\d{{1,3}}|{_IDEOGRAPHS})）)"
)
"""Pattern of the mark that begins a list item."""
LETTERED = r"(?:[A-Za-z]|[ivx]{1,4}|[IVX]{1,4})\.(?=[ \t]+(?!\w\.)[^\W\d])"
"""Pattern of a mark that begins an item only after a blank line or the end of a clause."""
NO_MARK = re.compile(r"[ \t]{0,20}[A-Za-z]{2}(?:[A-Za-z]{4}|[A-Za-z]{0,3}(?![A-Za-z.)]))")
"""Pattern of a line that begins with a word, and so is no item. Most lines do."""
AFTER_CLAUSE = r"(?<![^\s.;:,!?]\n)(?<![^\s.;:,!?]\r\n)"
"""Pattern that matches behind a line break after a blank line or the end of a clause."""
ROW = r"\|(?=[^\r\n|]{0,200}\|)"
"""Pattern of the beginning of a table's row; AsciiDoc has a cell in each line."""

_KEYWORDS = (
    "part book teil volume titre título titolo раздел",
    "canto act chapter chapitre capítulo capitolo kapitel hoofdstuk глава annex appendix anhang "
    "schedule exhibit",
    "scene section item abschnitt sección sezione seção",
    "article artikel artículo articolo artigo статья art. §",
)
KEYWORDS = {word: level for level, words in enumerate(_KEYWORDS, 1) for word in words.split()}
"""The words that begin a heading if a number follows, and the level of that heading."""
_NUMBER = (
    r"(?:\d{1,4}(?:\.\d{1,3}){0,5}(?:er|[a-zº])?|[IVXLCDM]{1,8}|[A-Z]|"
    r"one|two|three|four|five|six|seven|eight|nine|ten)"
)
_KEYWORD = (
    rf"(?i:({'|'.join(map(re.escape, KEYWORDS))})"
    rf"(?:[ \t\u00a0]+(?:{_NUMBER})|(?:(?<=appendix)|(?<=annex)|(?<=anhang))(?=:)))"
)
_KEYWORD_HEADING = re.compile(rf"{_KEYWORD}(?=[\s.:)–—-]|\Z)")
HEADING_NUMBER = re.compile(
    r"(?:(?:\d{1,3}\.)*\d{1,3}\.?|[IVXLC]{1,5}\."  # 2.1, IV.
    rf"|{_KEYWORD}(?:[.:]|[ \t]+(?:-{{1,3}}|[–—])))[ \t]+(?=\S)"  # Chapter 3: Section 1 --
)
"""Pattern of the number before the words of a heading."""

_CHINESE_LEVELS = {
    sign: level for level, signs in enumerate(("卷部", "篇回章幕", "節节"), 1) for sign in signs
}
_CHINESE = re.compile(
    rf"第[一二三四五六七八九十百零〇两兩\d]{{1,5}}([{''.join(_CHINESE_LEVELS)}])(?:\s+\S.{{0,40}}|\S.{{0,12}})?\Z"
)
_CONTENTS_LINE = re.compile(
    r"(?:\.[ \t]?){4,}[ \t]*\(?(?:[A-Z]-?)?(?:\d{1,4}|[ivxlc]{1,7})(?:, \d{1,4}){0,9}\)?\Z"
)
_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|"
    r"Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_WIKI = re.compile(r"=(?: ?=){0,5}")
_MARKED_LEVEL = re.compile(r"(?:h(?=\d\.)|=head)([1-6])\.?[ \t]+(\S.*)")
_NO_TITLE = re.compile(
    rf"-{{3,}}|END OF |(?:\d{{1,2}}[ ])?{_MONTH}\.?(?:[ ]\d{{1,2}},?)?[ ]\d{{4}}\Z"  # dates
    r"|[^:]{1,40}:[ \t]+(?:\S+[ \t]+)?\S*\d"  # Release Date: July 26
    r"|.*(?:[=<>{}|\\]|\S[ \t]{3,}\S|[$€£] ?\d[\d.,]*\Z|\d(?:,\d{3})+(?:\.\d\d)?\)?\Z)",  # sums
    re.IGNORECASE,
)
CAPTION = re.compile(
    r"[\s*_:>-]{0,6}(?:(?P<image>fig(?:ure)?|image|photo|abb(?:ildung)?)|"
    r"(?P<table>tab(?:le|elle|leau|la)?))\b\.?\s?(?:[A-Z]?\d|[IVX]{1,5}\b|:)",
    re.IGNORECASE,
)
"""Pattern of the beginning of a caption, such as "Figure 3" or "Table 2:"."""
_ROMAN_DIGITS = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
_ITEM = re.compile(rf"[ \t]*(?:{MARK}|{LETTERED}|[{DASHES}|>][ \t])")
_KEYWORD_INITIALS = frozenset(word[0].upper() for word in KEYWORDS)
LONGEST_MARK = 60  # characters of the mark of an item, with its indentation
_BULLET_MARKS = frozenset(f"{BULLETS}{DASHES}|>")
_OPEN_TAG = r"<(?:[A-Za-z]|!DOCTYPE|!doctype|\?xml)[^<>]*(?<!/)>\s*"
_MARKED = re.compile(
    r"[ \t]*(?:"
    r"(?P<fence>(?:`{3,}|~{3,})[ \t]*\Z)"
    r"|(?P<heading>(?:(?<![ \t]{4})"
    r"(?:#{1,6}|={1,6}(?![ \t]+=)|=head[1-6]|\*{2,8}|h[1-6]\.)[ \t]+\S.{0,150}"
    r"|(?P<wiki>={2,6})[^=\s].{0,150}(?<![=\s])(?P=wiki)[ \t]*"  # ==Tea==
    r"|\\(?:(?:sub){0,2}section|chapter|part|(?:sub)?paragraph)\b.{0,150}"
    r"|\.\.[ \t]+rubric::[ \t]+\S.{0,150})\Z)"
    r"|(?P<anchor>(?:\.\.[ \t]+(?:_[^:\n]{1,100}:|index::.*)"  # .. _tea:
    r"|\([\w.-]+\)="  # (tea)=
    r"|\[(?:\[[\w ,=\"'%.#:-]+\]"  # [[tea]]
    r"|(?![\d ,=\"':-]|\.\.)[\w ,=\"'%.#:-]+(?<!\.))\]"  # [#tea], [source,c]
    r"|<a\b[^<>]*(?:/>|>\s*</a>)"  # <a name="tea"></a>
    r"|<!--(?:(?!-->).)*-->"
    r"|\+"  # before the next paragraph of an item in AsciiDoc
    rf"|(?:{_OPEN_TAG})+(?:[^<>]{{0,80}}(?:</\w+>\s*)*</summary>\s*(?:{_OPEN_TAG})*)?)\Z)"
    r"|(?P<underline>(?<![ \t]{4})(?P<sign>[=\-~^\"'`*+#.:_])(?P=sign){2,}[ \t]*\Z)"
    r"|(?P<label>(?:(?P<bold>\*\*|__)(?!\s).{1,100}(?P=bold):?"  # **Note**
    r"|:{3,}[ \t]*[\w{].*"  # :::note
    r"|\.\.[ \t]+[\w-]+::.*"  # .. note::
    r"|\.[A-Z]\S.{0,80}"  # .The title of a block
    r"|=(?:begin|for|item|over)\b.*"  # POD
    r"|\\(?:\[|(?:label|index\w*|begin)\b.{0,150})"  # LaTeX
    r"|(?:`{3,}|~{3,})[ \t]*[\w{].*)\Z)"  # the opening of a fence
    r"|(?P<rule>(?=[^\n]*[|+])(?=[^\n]*(?:-|\+=))[|+:-][-+=| :\t]*\Z"
    r"|[=-]{2,}(?:[ \t]+[=-]{2,})+[ \t]*\Z)"  # below columns
    r"|(?P<comment>#(?=[\s:\[#]|\Z)|//|--(?=[ \t]|\Z)|;;|%"
    r"|@[A-Za-z_][\w.]*(?:\(.*)?\Z|\[\[?[A-Za-z_]\w*.*\]\Z)"
    rf"|(?P<item>{MARK}|[{DASHES}][ \t]))"
)


def with_line_feeds(text: str) -> str:
    """Return the text with a line feed in place of each carriage return that stands alone.

    All offsets stay the same, and so does CRLF.

    >>> with_line_feeds("one\\rtwo\\r\\nthree")
    'one\\ntwo\\r\\nthree'
    """
    return _LONE_RETURN.sub("\n", text) if "\r" in text else text


@lru_cache(maxsize=4096)
def line_kind(line: str) -> LineKind:
    """Return what a line is, by its marks alone.

    An anchor is a target of links, an attribute or an opening tag; it belongs to what follows.

    >>> [line_kind(each) for each in ("# Tea", "- a pot", "3) a lid", "====", "// Pour", "Tea.")]
    ['heading', 'item', 'item', 'underline', 'comment', 'text']
    >>> [line_kind(each) for each in (".. _tea:", "[[tea]]", '<a name="tea"></a>', "<ul>")]
    ['anchor', 'anchor', 'anchor', 'anchor']
    """
    match = _MARKED.match(line)
    return match.lastgroup if match else "text"  # type: ignore[return-value]


def underlines(line: str, title: str) -> bool:
    """Whether a line underlines the title above it. A row of "~" or "`" may close a fence, too.

    >>> underlines("~~~~", "Tea"), underlines("~~~~", "x = pour(pot)")
    (True, False)
    """
    kind = line_kind(line)
    is_long = len(line) > 3 and len(line) + 2 >= len(title)
    return kind == "underline" or (kind == "fence" and is_long)


def is_bullet(line: str) -> bool:
    """Whether a line begins with a bullet, a dash, a bar or a quotation mark, and a space."""
    content = line.lstrip(" \t")
    return content[:1] in _BULLET_MARKS and content[1:2] in (" ", "\t")


def is_item(line: str) -> bool:
    """Whether a line may be an item: it begins with a bullet, a number or a letter."""
    return _ITEM.match(line) is not None


def is_behind_mark(text: str, cut: int) -> bool:
    """Whether an offset is behind the mark of an item and a space.

    >>> [is_behind_mark("- two", cut) for cut in (2, 3)]
    [True, False]
    """
    is_behind = cut > 1 and text[cut - 1] == " " and not text[cut - 2].isalnum()
    if not is_behind or not text[cut : cut + 1].strip():
        return False
    line = text.rfind("\n", max(0, cut - LONGEST_MARK), cut) + 1
    if line == 0 and cut > LONGEST_MARK:
        return False
    return " " not in text[line:cut].strip() and is_item(text[line : cut + 1])


def keyword_heading(line: str, after: str) -> int:
    """Return the level of a heading such as "Chapter 3: Tea" or "第三回", or 0.

    Parameters:
        line: the line, without white space around it.
        after: the next line.

    >>> keyword_heading("Chapter 3", "Tea is hot."), keyword_heading("section 3 says", "so.")
    (2, 0)
    """
    if line[:1] == "第" and line[-1] not in "。，；：、！？" and (chinese := _CHINESE.match(line)):
        return _CHINESE_LEVELS[chinese[1]]
    if line[:1] not in _KEYWORD_INITIALS or (match := _KEYWORD_HEADING.match(line)) is None:
        return 0
    rest = line[match.end() :]
    words = rest.lstrip(" \t.:)–—-")
    if words and ((rest[0] == " " and words[0].islower()) or words[-1] in ",;"):
        return 0
    goes_on = after.strip() and (words[-1:] in (".", ":") or after.lstrip()[0].islower())
    return 0 if words and goes_on else KEYWORDS[match[1].lower()]


def wiki_heading(line: str) -> tuple[int, str] | None:
    """Level and text of a heading as MediaWiki, WikiText, Jira, Textile and POD write it.

    >>> wiki_heading("== Tea =="), wiki_heading("= = Green = = "), wiki_heading("h2. Tea")
    ((2, 'Tea'), (2, 'Green'), (2, 'Tea'))
    >>> wiki_heading("=head1 Tea")
    (1, 'Tea')
    """
    content = line.strip(" \t")
    if heading := _MARKED_LEVEL.fullmatch(content):
        return int(heading[1]), heading[2]
    mark = _WIKI.match(content)
    if mark is None or not content.endswith(mark.group()):
        return None
    text = content[mark.end() : -mark.end()].strip()
    is_heading = bool(text) and text[0] != "=" and text[-1] != "="
    return (mark.group().count("="), text) if is_heading else None


def is_contents_line(line: str) -> bool:
    """Whether a line belongs to a table of contents or an index: it has a dot leader and a number.

    >>> is_contents_line("1.2 Green tea ........ 17"), is_contents_line("Wait ... 3")
    (True, False)
    """
    may_be = "..." in line or ". ." in line
    return may_be and _CONTENTS_LINE.search(line[-200:].rstrip()) is not None


def is_no_title(line: str) -> bool:
    """Whether a short line is a sum, a date, a value or a rule, and so no heading.

    >>> [is_no_title(line) for line in ("GRAND TOTAL 5,738", "December 1998", "GREEN TEA")]
    [True, True, False]
    """
    return _NO_TITLE.match(line) is not None


def roman_value(number: str) -> int:
    """Return the value of a Roman number.

    >>> roman_value("xiv"), roman_value("CLIV")
    (14, 154)
    """
    values = [_ROMAN_DIGITS[digit] for digit in number.lower()]
    return sum(
        -value if value < following else value
        for value, following in zip(values, [*values[1:], 0], strict=True)
    )
