"""The marked parts of RST, AsciiDoc, Org, LaTeX, man pages, mail and logs: headings, code, tables.

Each reader gets a text with the line breaks "\\n". The text between the marked parts consists of
paragraphs and list items.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from rag_splitters.structure.block import Block, Kind, TextFormat, outermost
from rag_splitters.structure.mails import mail_headers
from rag_splitters.text.boundaries import skip_space, trim_space
from rag_splitters.text.lines import line_kind

FRONT_MATTER = (
    r"\ufeff?(---|\+\+\+)[ \t]*(?:\r\n|\r|\n)(?=[\w\"'-][^\r\n]{0,200}?[:=]|#|\1)"
    r"(?s:.*?(?:\r\n|\r|\n)|)(?:\1|\.\.\.)[ \t]*(?=[\r\n]|\Z)"
)
"""Pattern of YAML or TOML at the beginning of a text in Markdown."""
_LONGEST_LINE = 300  # characters of a heading


def _plain(title: str, marks: re.Pattern[str]) -> str:
    """Return a heading's text in one line, without marks; the last group of a mark stays."""
    words = marks.sub(lambda mark: mark[mark.lastindex] if mark.lastindex else "", title)
    return " ".join(words.split())


def _block(text: str, kind: Kind, start: int, end: int, title: str = "", level: int = 0) -> Block:
    start = skip_space(text, start)
    return Block(kind, start, trim_space(text, start, end), level, title)


def _line_before(text: str, position: int) -> tuple[int, str]:
    """Return start and text of the line before the line at `position`; "" if it is too long."""
    start = text.rfind("\n", max(0, position - _LONGEST_LINE), max(0, position - 1)) + 1
    is_whole = start > 0 or position <= _LONGEST_LINE
    return start, text[start:position].rstrip() if is_whole else ""


def _with_labels(text: str, position: int, is_label: Callable[[str], bool]) -> int:
    """Return the start of the labels right above the line at `position`, or `position`."""
    start, line = _line_before(text, position)
    while is_label(line):
        position = start
        start, line = _line_before(text, position)
    return position


# reStructuredText

_ADORNMENT = re.compile(r"^([!-/:-@\[-`{-~])\1{2,}[ \t]*$", re.MULTILINE)
_RST_CODE = re.compile(
    r"^([ \t]*)(?:(\.\. (?:code|code-block|sourcecode|parsed-literal|math|raw|graphviz)::)"
    r"[ \t]*(\S*).*((?:\n[ \t]+:\w.*)*)|(?!\.\. )\S?.{0,2000}::[ \t]*)$",
    re.MULTILINE,
)
_RST_MARKS = re.compile(  # a role, a link, emphasis or code
    r":[a-z][\w:+.-]{0,40}:(?=`)|`([^`<]*?)\s*<[^`<>]*>`_{0,2}"
    r"|(\*{1,2}|`{1,2}|\|)(?=\S)(.{1,200}?)(?<=\S)\2_{0,2}"
)


def _rst(text: str) -> Iterator[Block]:
    """Yield sections by their underlines, whose levels follow the order of their first use."""
    levels: dict[tuple[str, bool], int] = {}
    end = 0
    for line in _ADORNMENT.finditer(text):
        start, title = _line_before(text, line.start())
        if not title or start < end or _ADORNMENT.match(title):
            continue
        above_start, above = _line_before(text, start)
        adornment = line.group().rstrip()
        is_over = above == adornment
        is_alone = not above or start <= end + 1
        is_long = len(adornment) > 3 or len(adornment) >= len(title)
        if is_over or (is_alone and is_long and not title[0].isspace()):
            level = levels.setdefault((line[1], is_over), len(levels) + 1)
            begin, end = above_start if is_over else start, line.end()
            yield _block(text, "heading", begin, end, _plain(title, _RST_MARKS), level)
    yield from _rst_code(text)


def _rst_code(text: str) -> Iterator[Block]:
    """Yield the literal blocks, and the code of directives with them."""
    end = 0
    for opening in _RST_CODE.finditer(text):
        body = _indented(len(opening[1].expandtabs())).match(text, opening.end())
        if body is not None and opening.start() >= end:
            end = body.end()
            start = opening.start() if opening[2] else body.start(1)
            yield _block(text, "code", start, end, opening[3] or "")


@lru_cache(maxsize=64)
def _indented(indent: int) -> re.Pattern[str]:
    """Matches blank lines and, as group 1, the lines after them with a larger indentation."""
    return re.compile(rf"\n(?:[ \t]*\n)+((?:[ \t]{{{indent + 1},}}\S.*(?:\n|\Z)|[ \t]*\n)+)")


# AsciiDoc

ADOC_LINE = re.compile(
    r"^(?:(={1,6}|\#{1,6})[ \t]+(\S.*)"  # heading
    r"|(-{4,}|\.{4,}|\+{4,}|/{4,}|={4,}|\*{4,}|_{4,}|`{3,}\w*|[|,:!]={3,}|--|[~^]{4,}))[ \t]*$",
    re.MULTILINE,
)
"""Pattern of the headings of AsciiDoc (group 1) and of the lines around its blocks (group 3)."""
_ADOC_MARKS = re.compile(  # an anchor, a link, emphasis or code
    r"\[\[[^\[\]]*\]\]|\[#[^\[\]]*\]|\b(?:link|xref|https?|image):\S*?\[([^\[\]]*)\]"
    r"|([*_`+]{1,2})(?=\S)(.{1,200}?)(?<=\S)\2"
)
_ADOC_KINDS: dict[str, Kind] = {
    **dict.fromkeys("|,:!", "table"),
    **dict.fromkeys("-.+/`", "code"),
    **dict.fromkeys("=*_", "quote"),  # an example, a sidebar or a quotation: it has paragraphs
}
_ADOC_LABELS = ("anchor", "comment", "label")  # such as [source,c]; a title begins with "."


def _asciidoc(text: str) -> Iterator[Block]:
    """Yield the headings, and the blocks between two lines of marks, with the labels above them."""
    lines = list(ADOC_LINE.finditer(text))
    last = {_delimiter(line): line.start() for line in lines if line[3]}
    opening: re.Match[str] | None = None
    for line in lines:
        if opening is not None:
            if line[3] and _delimiter(line) == _delimiter(opening):
                if kind := "quote" if opening[3] == "--" else _ADOC_KINDS.get(opening[3][0]):
                    begin = _with_labels(text, opening.start(), _is_adoc_label)
                    title = opening[3].lstrip("`.-+/|,:!=*_")
                    yield _block(text, kind, begin, line.end(), title)
                opening = None
        elif line[1]:
            title = _plain(line[2].removesuffix(" " + line[1]), _ADOC_MARKS)
            yield _block(text, "heading", line.start(), line.end(2), title, len(line[1]))
        elif heading := _two_line_heading(text, line):
            yield heading
        elif last[_delimiter(line)] > line.start():
            opening = line


def _delimiter(line: re.Match[str]) -> str:
    return "```" if line[3].startswith("```") else line[3]


def _is_adoc_label(line: str) -> bool:
    return line[:1] == "." or line_kind(line) in _ADOC_LABELS


def _two_line_heading(text: str, line: re.Match[str]) -> Block | None:
    """Return the heading above an underline of about its length, as in old documents."""
    start, title = _line_before(text, line.start())
    mark, length = line[3][0], len(line[3])
    if mark not in "=-~^+" or abs(len(title) - length) > 2 or not title[:1].isalnum():
        return None
    above = _line_before(text, start)[1]
    if above and line_kind(above) not in _ADOC_LABELS:
        return None
    level = "=-~^+".index(mark) + 1
    return _block(text, "heading", start, line.end(3), _plain(title, _ADOC_MARKS), level)


# Org

ORG_HEADING = re.compile(r"^(\*+)[ \t]+(\S.*)$", re.MULTILINE)
"""Pattern of a heading in Org."""
ORG_SIGN = re.compile(r"^[ \t]*(?:#\+(?:title:|begin_|startup:)|:properties:[ \t]*$)", re.M | re.I)
"""Pattern of a line that only Org has."""
_ORG_LINE = re.compile(  # a heading; around a block; around a drawer; the rows of a table
    rf"{ORG_HEADING.pattern}"
    r"|^[ \t]*(?:#\+(?:begin|end)_(\w+)(?:[ \t]+([\w-]+))?.*|:\w+:[ \t]*"
    r"|\|.*(?:\n[ \t]*\|.*)*)$",
    re.MULTILINE | re.IGNORECASE,
)
_ORG_MARKS = re.compile(  # a state, a priority, tags, a link, emphasis or code
    r"^(?:TODO|DONE|NEXT|WAITING|CANCELLED)[ \t]+|\[#\w\][ \t]*|[ \t]:[\w@#%:]+:$"
    r"|\[\[(?:[^\[\]]*\]\[)?([^\[\]]*)\]\]"
    r"|(?<!\w)([*/~=+_])(?=\S)(.{1,200}?)(?<=\S)\2(?!\w)"
)
_ORG_QUOTES = ("quote", "verse", "center")


def _org(text: str) -> Iterator[Block]:
    """Yield the headings, and the blocks, drawers and tables between them."""
    kind: Kind = "code"
    start, closing, language = 0, "", ""
    for line in _ORG_LINE.finditer(text):
        mark = line[0].strip().lower()
        if line[1]:
            title, level, closing = _plain(line[2], _ORG_MARKS), min(len(line[1]), 6), ""
            yield _block(text, "heading", line.start(), line.end(), title, level)
        elif closing:
            if mark.startswith(closing):
                begin = _with_labels(text, start, _is_org_label)
                yield _block(text, kind, begin, line.end(), language)
                closing = ""
        elif mark[0] == "|":
            begin = _with_labels(text, line.start(), _is_org_label)
            yield _block(text, "table", begin, line.end())
        elif mark != ":end:" and not mark.startswith("#+end"):
            start, language, name = line.start(), line[4] or "", (line[3] or "").lower()
            closing = f"#+end_{name}" if name else ":end:"
            kind = "front_matter" if not name else "quote" if name in _ORG_QUOTES else "code"


def _is_org_label(line: str) -> bool:
    return line.lstrip()[:2] == "#+" and not _ORG_LINE.match(line)


# LaTeX

_SECTIONING = ("title", "part", "chapter", "section", "subsection", "subsubsection")
TEX_HEADING = re.compile(
    r"^[ \t]*\\(" + "|".join(_SECTIONING) + r")\*?[ \t]*(?:\[[^\[\]]{0,500}\][ \t]*)?(\{)",
    re.MULTILINE,
)
"""Pattern of the beginning of a heading in LaTeX."""
_TEX_BRACE = re.compile(r"\\.|[{}]|\n[ \t]*\n", re.DOTALL)
_TEX_LABEL = re.compile(r"\s{0,20}\\label\{[^{}]{0,200}\}")
_TEX_MARKS = re.compile(  # a comment, a command, an escaped character, a bracket
    r"%.*|\\(?:label|thanks|footnote|index|texorpdfstring)\{(?:[^{}]|\{[^{}]*\})*\}"
    r"|\\([a-zA-Z]*TeX[a-z]*)(?:\{\})?|\\(?=\s)"
    r"|\\[a-zA-Z]+(?:\*?(?:\[[^\[\]]*\])?(?=\{)| ?)|\\([&%$#_{}])|[{}$]"
)
FORMULAS = tuple("equation align alignat displaymath eqnarray flalign gather math multline".split())
"""The environments of formulas, with or without a star."""
_TEX_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("verbatim", "Verbatim", "lstlisting", "minted", "comment", "alltt"), "code"),
    **dict.fromkeys(("filecontents", "algorithm", "tikzpicture"), "code"),
    **dict.fromkeys(FORMULAS, "formula"),
    **dict.fromkeys(("table", "tabular", "longtable", "figure"), "table"),
}
_TEX_OPENING = re.compile(rf"^[ \t]*\\begin\{{({'|'.join(_TEX_KINDS)})(\*?)\}}", re.MULTILINE)


def _latex(text: str) -> Iterator[Block]:
    """Yield the title and the sections, and verbatim code, formulas and tables."""
    matches = list(TEX_HEADING.finditer(text))
    used = [name for name in _SECTIONING if any(match[1] == name for match in matches)]
    for match in matches:
        end = _closing_brace(text, match.end())
        if end < 0:
            continue
        title = text[match.end() : end - 1].replace(r"\\", " ").replace("~", " ")
        if label := _TEX_LABEL.match(text, end):
            end = label.end()
        level = used.index(match[1]) + 1
        yield _block(text, "heading", match.start(), end, _plain(title, _TEX_MARKS), level)
    yield from _environments(text)


def _closing_brace(text: str, start: int) -> int:
    """Return the offset after the brace that closes the one before `start`; -1 if too far."""
    depth = 1
    for mark in _TEX_BRACE.finditer(text, start, start + 500):
        depth += {"{": 1, "}": -1}.get(mark.group(), 0)
        if mark.group()[0] == "\n":
            return -1
        if depth == 0:
            return mark.end()
    return -1


def _environments(text: str) -> Iterator[Block]:
    position = 0
    unclosed: set[str] = set()
    for opening in _TEX_OPENING.finditer(text):
        closing = f"\\end{{{opening[1]}{opening[2]}}}"
        if opening.start() < position or closing in unclosed:
            continue
        end = text.find(closing, opening.end())
        if end < 0:
            unclosed.add(closing)
            continue
        position = end + len(closing)
        yield _block(text, _TEX_KINDS[opening[1]], opening.start(), position)


# Man pages

TROFF_HEADING = re.compile(  # perhaps after the mark of an empty paragraph
    r"^(?:\.(?:PP|LP|P|sp)\s*\n)?"
    r"[.'][ \t]*(TH|Dt|SH|Sh|SS|Ss)(?:[ \t]+(\S.*)|[ \t]*\n([^.'\n].*))$",
    re.MULTILINE,
)
"""Pattern of a heading in troff, the source of man pages."""
_TROFF_LINE = re.compile(
    r"^[.'][ \t]*(?:(nf|EX|Bd)|(fi|EE|Ed)|SH|Sh|SS|Ss)\b.*$", re.MULTILINE
)  # no filling of lines from here, or filling again
_TROFF_MARKS = re.compile(  # a font, a space, a size, a glyph, an escaped character
    r"\\f(?:\[\w*\]|\(..|.)|\\[&%|^]|\\s[+-]?\d|\\\(..|\\(.)"
)
PAGE_TITLE = re.compile(r"\s*(\S{1,60}\(\w{1,6}\))[ \t]{2,}\S.*[ \t]\1[ \t]*$", re.MULTILINE)
"""Pattern of the first line of a printed man page: "tea(1)   Commands   tea(1)"."""
_PAGE_SECTION = re.compile(r"^(\S.{0,78}|   \S.{0,75})\n(?=(?:[ \t]*\n)?[ ]{5,}\S)", re.MULTILINE)


def _man(text: str) -> Iterator[Block]:
    """Yield the name, sections and subsections of a page, in troff or as printed."""
    if TROFF_HEADING.search(text):
        return _troff(text)
    return _printed(text)


def _troff(text: str) -> Iterator[Block]:
    for match in TROFF_HEADING.finditer(text):
        level = {"T": 1, "D": 1}.get(match[1][0], 2 if match[1][1] in "Hh" else 3)
        title = _plain((match[2] or match[3]).strip().strip('"'), _TROFF_MARKS)
        if level == 1:
            name, section = [*title.replace('"', "").split(), ""][:2]
            title = f"{name}({section})" if section else name
        yield _block(text, "heading", match.start(), match.end(), title, level)
    opening = -1
    for line in _TROFF_LINE.finditer(text):
        if line[2] and opening >= 0:
            yield _block(text, "code", opening, line.end())
        opening = line.start() if line[1] else -1


def _printed(text: str) -> Iterator[Block]:
    if page := PAGE_TITLE.match(text):
        yield _block(text, "heading", page.start(1), page.end(), page[1], 1)
    for match in _PAGE_SECTION.finditer(text):
        line = match[1]
        is_section = line[0] != " " and line.isupper()
        if is_section or (line[0] == " " and line.strip()[0].isupper()):
            title, level = " ".join(line.split()), 2 if is_section else 3
            yield _block(text, "heading", match.start(), match.end(), title, level)


# Mail and data


def _mail(text: str) -> Iterator[Block]:
    """Yield the first line of each mail, a heading with its subject, and its other headers."""
    for start, end, subject in mail_headers(text):
        end = trim_space(text, start, end)
        first = text.find("\n", start, end)
        if first >= 0:
            yield _block(text, "heading", start, first, subject, 1)
            yield _block(text, "front_matter", first, end)


_ENTRY = re.compile(r"^\S.*(?:\n[ \t]+\S.*)*", re.MULTILINE)


def _log(text: str) -> Iterator[Block]:
    """Yield the entries: each line with the indented lines below it."""
    for entry in _ENTRY.finditer(text):
        yield replace(_block(text, "paragraph", *entry.span()), group=1)


def _whole(text: str, kind: Kind) -> list[Block]:
    return [_block(text, kind, 0, len(text))] if text.strip() else []


MARKUP: dict[TextFormat, Callable[[str], Iterable[Block]]] = {
    "rst": _rst,
    "asciidoc": _asciidoc,
    "org": _org,
    "latex": _latex,
    "man": _man,
    "mail": _mail,
    "log": _log,
    "subtitles": lambda text: (),
    "csv": lambda text: _whole(text, "table"),
    "tsv": lambda text: _whole(text, "table"),
    "code": lambda text: _whole(text, "code"),
}
"""The readers of the formats that are read by their lines; of nested parts the outermost counts."""

_BREAKS = {
    "asciidoc": r"[ \t]*(?:[*.-]{1,5}|\d+\.|<\d+>)[ \t]+\S|\.[A-Z]|\[.*\]$",
    "latex": r"[ \t]*\\(?:item\b|begin\{|end\{)",
    "man": r"[.'][ \t]*(?:P|PP|LP|TP|IP|HP|Pp|It|sp|RS|RE)\b",
}
BREAKS = {name: re.compile(pattern) for name, pattern in _BREAKS.items()}
"""Matches the lines that begin a paragraph without a blank line before them."""


def marked_parts(text: str, format: TextFormat) -> list[Block]:
    """Return the headings, code, formulas and tables of a text in one of the formats of `MARKUP`.

    They begin without the anchors before them.

    >>> text = "Tea\\n===\\n\\nBoil::\\n\\n    Title\\n    ====="
    >>> [(block.kind, block.title) for block in marked_parts(text, "rst")]
    [('heading', 'Tea'), ('code', '')]
    """
    return list(outermost(MARKUP[format](text.replace("\r\n", " \n").replace("\r", "\n"))))
