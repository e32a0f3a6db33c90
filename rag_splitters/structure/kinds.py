"""Detects the kind of a text by its name, its type, its first line and its content.

`KINDS` declares every kind in one place: its names, and the tests of its content. Content alone
decides only if there are clear signs; otherwise the text counts as plain text, because a wrong kind
does more harm than none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeAlias, get_args
from urllib.parse import urlsplit

from rag_splitters.errors import InputError
from rag_splitters.structure.block import TextFormat
from rag_splitters.structure.html.tags import BLOCK_TAGS, EMPTY_TAGS, INLINE_TAGS
from rag_splitters.structure.json_members import begins_json
from rag_splitters.structure.languages import LANGUAGES, Marks
from rag_splitters.structure.mails import begins_mail, may_be_mail, read_mails
from rag_splitters.structure.markup import (
    ADOC_LINE,
    FRONT_MATTER,
    ORG_HEADING,
    ORG_SIGN,
    PAGE_TITLE,
    TEX_HEADING,
    TROFF_HEADING,
)
from rag_splitters.structure.notebooks import read_notebook
from rag_splitters.structure.stored_outline import stored_headings
from rag_splitters.structure.subtitles import begins_subtitles, read_subtitles
from rag_splitters.structure.tables.separated import is_separated, may_be_separated
from rag_splitters.text.lines import wiki_heading
from rag_splitters.text.origin import READ_ALL, Reading, ReadingOptions, has_origin

Format: TypeAlias = Literal["auto", TextFormat]
"""The format of a text; "auto" detects it from the metadata and the beginning of the text."""

_PREFIX = 8_000  # characters
_LINES = 200
_NAME_KEYS = ("file_name", "file_path", "source")
_TYPE_KEYS = ("file_type", "mimetype", "mime_type", "content_type")
_PAGE_KEY = "page_start"  # in the metadata of PDFs that our own readers have read

_Test: TypeAlias = Callable[[str], object]


class TextKind(NamedTuple):
    """A kind of text: its names, and tests of its content.

    Parameters:
        format: the format in which to read its blocks and headings.
        suffixes: the suffixes of its files.
        aliases: other names of it, and the last parts of its MIME types without "x-".
        names: whole names of files, in lower case.
        interpreters: the programs that its first line may name after "#!".
        matches: whether the beginning of a text shows that it is of this kind.
        is_possible: whether a text may be of this kind if its name says so; a loader may have
            removed the markup. None: always.
        language: its name as a language of code or markup, or None.
        read: reads its texts without the markup, as the loaders and `AutoChunker` do, or None.
    """

    format: TextFormat
    suffixes: str = ""
    aliases: str = ""
    names: str = ""
    interpreters: str = ""
    matches: _Test | None = None
    is_possible: _Test | None = None
    language: str | None = None
    read: Callable[..., list[Reading]] | None = None


def detect_kind(text: str, metadata: Mapping[str, Any] | None = None) -> str:
    """Detect the kind of a text, a key of `KINDS`.

    The metadata's `language`, type (`file_type`, `mimetype`, `content_type`) and name (`file_name`,
    `file_path`, `source`) come first, unless the text cannot be of that kind: loaders of HTML and
    CSV often return plain text. Then the first 8,000 characters decide. If they do not, the kind is
    "text", and so it is for a text whose metadata lists its headings. The text of a PDF is "text"
    or, if its parser wrote that, "markdown", whatever else it looks like. Text that was read from a
    notebook, subtitles or a mail no longer counts as one of these.

    >>> detect_kind("# TODO", {"source": "https://example.org/build.sh?raw=1"})
    'bash'
    >>> detect_kind("#!/usr/bin/env python3"), detect_kind("# Tea"), detect_kind("Boil water.")
    ('python', 'markdown', 'text')
    """
    metadata = metadata or {}
    is_pdf = _is_from_pdf(metadata)
    if stored_headings(text, metadata) or (is_pdf and _PAGE_KEY in metadata):
        return "text"
    beginning = _beginning(text)
    is_read = has_origin(metadata)
    for name in _declared(metadata, beginning):
        is_possible = KINDS[name].is_possible
        if not (is_read and KINDS[name].read) and (is_possible is None or is_possible(beginning)):
            return name
    kind = _by_content(beginning)
    is_other = (is_pdf and kind != "markdown") or (is_read and KINDS[kind].read)
    return "text" if is_other else kind


def detect_format(
    text: str, metadata: Mapping[str, Any] | None = None, format: Format = "auto"
) -> TextFormat:
    """Detect the format in which to read the blocks of a text, unless `format` names one.

    See `detect_kind`. Raises ValueError if there is no such format.

    >>> detect_format("<p>One.</p><p>Two.</p>"), detect_format("import os\\nimport re\\n")
    ('html', 'code')
    """
    if format not in get_args(Format):
        raise InputError(f"format must be one of {', '.join(get_args(Format))}; got {format!r}")
    return KINDS[detect_kind(text, metadata)].format if format == "auto" else format


def read_kind(
    text: str,
    kind: str,
    options: ReadingOptions = READ_ALL,
    *,
    is_bytes: bool = False,
    name: str = "a mail",
) -> list[Reading]:
    """Read a notebook, subtitles or mails without the markup; mails are several texts.

    Parameters:
        kind: one of `READ_KINDS`.
        is_bytes: see `read_mails`.
        name: the name of the file, for warnings.

    Returns: the texts; none if the raw text is blank.

    Raises UnreadableError if the text is of another kind.

    >>> read_kind("00:01.000 --> 00:02.000\\nHello.", "subtitles")[0].text
    'Hello.'
    """
    read = KINDS[kind].read
    if read is None or not text.strip("\ufeff \t\r\n"):
        return []
    return read(text, options, is_bytes=is_bytes, name=name)


def language_of(metadata: Mapping[str, Any], text: str = "") -> str | None:
    """Return the language of code or markup, from metadata or text; None if it is neither.

    >>> language_of({"source": "https://example.org/src/app.py?raw=1#L10"})
    'python'
    """
    return KINDS[detect_kind(text, metadata)].language


def _beginning(text: str) -> str:
    """Return the whole lines at the beginning, with plain line breaks."""
    beginning = text[:_PREFIX].lstrip("\ufeff")
    if "\r" in beginning:
        beginning = re.sub(r"\r\n?", "\n", beginning)
    lines = beginning.split("\n", _LINES)
    if len(lines) > 1 and (len(text) > _PREFIX or len(lines) > _LINES):
        del lines[-1]
    return "\n".join(lines)


def _declared(metadata: Mapping[str, Any], beginning: str) -> Iterator[str]:
    """Yield the kinds that the metadata declares, the best first."""
    if name := metadata.get("language"):
        alias = str(getattr(name, "value", name)).strip().lower()
        kind = _BY_ALIAS.get(alias)
        if kind and not (alias in _NATURAL and _is_prose(beginning)):
            yield kind
    for mime_type in declared_types(metadata):
        kind = kind_of_type(mime_type)
        if kind and kind != "text":
            yield kind
    for path in declared_names(metadata):
        if kind := kind_of_name(path):
            yield kind


def _is_from_pdf(metadata: Mapping[str, Any]) -> bool:
    """Whether a text was read from a PDF, and its type does not say that it is Markdown now."""
    types = declared_types(metadata)
    is_pdf = any(name.lower().endswith(".pdf") for name in declared_names(metadata))
    return "text/markdown" not in types and (is_pdf or "application/pdf" in types)


def declared_types(metadata: Mapping[str, Any]) -> list[str]:
    """Return the MIME types in the metadata, in lower case and without parameters."""
    types = (str(metadata.get(key) or "").partition(";")[0] for key in _TYPE_KEYS)
    return [each.strip().lower() for each in types if each.strip()]


def declared_names(metadata: Mapping[str, Any]) -> list[str]:
    """Return the file names and paths in the metadata, with slashes."""
    names = (metadata[key] for key in _NAME_KEYS if metadata.get(key) is not None)
    return [_path(str(name)).replace("\\", "/") for name in names]


def kind_of_type(mime_type: str) -> str | None:
    """Return the kind of text of a MIME type; None if it is unknown.

    >>> kind_of_type("text/x-python"), kind_of_type("image/png")
    ('python', None)
    """
    return _BY_ALIAS.get(mime_type.rpartition("/")[2].removeprefix("x-"))


def kind_of_name(path: str) -> str | None:
    """Return the kind of text in a file of this name; None if the name does not tell.

    >>> kind_of_name("src/Makefile"), kind_of_name("notes.txt"), kind_of_name("a.png")
    ('code', None, None)
    """
    name = path.rpartition("/")[2].lower()
    stem, _, suffix = name.rpartition(".")
    return _BY_NAME.get(name) or (_BY_SUFFIX.get(suffix) if stem else None)


def _path(source: str) -> str:
    """Return the path of a URL; a file name unchanged."""
    try:
        return urlsplit(source).path if "://" in source else source
    except ValueError:
        return source


def _by_content(text: str) -> str:
    """Detect the kind of a text by its beginning."""
    if not text.strip():
        return "text"
    if script := _SHEBANG.match(text):
        return _BY_INTERPRETER.get(script[1], "code")
    return (
        _first_match(_DATA, text)
        or ("text" if _is_wiki(text) else None)
        or _first_match(_CODE, text)
        or _detect_language(text)
        or _first_match(_MARKUP, text)
        or "text"
    )


def _first_match(kinds: Mapping[str, TextKind], text: str) -> str | None:
    """Return the first of these kinds whose test the text passes."""
    return next((name for name, kind in kinds.items() if kind.matches and kind.matches(text)), None)


_SHEBANG = re.compile(r"#![ \t]*/(?:\S*/)?(?:env[ \t]+(?:-\S+[ \t]+)*)?([a-zA-Z_+-]+)")

# Markup

_HTML_TAG = re.compile(r"<(!doctype|!--|/?([a-z][a-z0-9-]*)(?=[\s/>]))", re.IGNORECASE)
_HTML_BLOCKS = BLOCK_TAGS | {"br", "script", "style"}
_HTML_NAMES = _HTML_BLOCKS | INLINE_TAGS | EMPTY_TAGS | {"head", "picture", "template", "video"}
_ROOT = re.compile(  # the declaration, the name in the document type, and the outermost element
    r"\s*(<\?xml\b[^>]{0,200}\?>\s*)?(?:<(?:\?[^>]{0,500}\?|!--.{0,2000}?--)>\s*){0,8}"
    r"(?:<!DOCTYPE\s+(\w*)[^\[>]{0,500}(?:\[.{0,4000}?\]\s*)?>\s*(?:<!--.{0,2000}?-->\s*){0,4})?"
    r"(?:<([a-zA-Z][\w:.-]*)([^<>]*)>)?",
    re.DOTALL | re.IGNORECASE,
)
_FENCE = re.compile(
    r"^ {0,3}(`{3,}(?=[^`\n]*$)|(?<![^\n]\n)~{3,}).*?(?:^ {0,3}\1|\Z)", re.MULTILINE | re.DOTALL
)
_FENCES = Marks(("```", "~~~"))
_ATX = re.compile(r"^ {0,3}(#{1,6})[ \t]+\S.*(\n {0,3}\1(?:[ \t].*)?$)*", re.MULTILINE)


class _Patterns:
    """Patterns, each with strings of which every match contains one.

    To look for a string is much faster than to search for a pattern, and most texts lack most. A
    pattern that matches at the start of a line begins with "\\n", which is found faster than "^".
    """

    def __init__(self, *patterns: tuple[tuple[str, ...], str]) -> None:
        self._patterns = [
            (Marks(marks), re.compile(each, re.MULTILINE)) for marks, each in patterns
        ]

    def matches(self, text: str) -> Iterator[re.Match[str]]:
        """Yield the matches of the patterns, one pattern after the other."""
        text = f"\n{text}"
        return chain.from_iterable(
            each.finditer(text) for marks, each in self._patterns if marks.any_in(text)
        )

    def kinds(self, text: str) -> int:
        """Return the number of patterns that match."""
        text = f"\n{text}"
        return sum(m.any_in(text) and each.search(text) is not None for m, each in self._patterns)

    def search(self, text: str) -> bool:
        """Whether any pattern matches."""
        return next(self.matches(text), None) is not None


_SIGNS = _Patterns(
    (("|",), r"\n {0,3}\|?[ \t]*:?-{1,200}:?[ \t]*\|[ \t|:-]{0,500}$"),  # delimiters of a table
    (("](",), r"!?\[[^\[\]\n]{1,200}\]\([^()\s]{1,500}\)"),  # link or image
    (("]:",), r"\n {0,3}\[[^\[\]\n]{1,200}\]:[ \t]+\S"),  # link reference definition
    (("---", "+++"), rf"\A\n{FRONT_MATTER}"),
    (("\n$$", "\n\\["), r"\n(?:\$\$|\\\[)"),  # display formula
)
_HINTS = _Patterns(
    (("**", "__"), r"\*\*[^\s*][^*\n]{0,200}\*\*|__[^\s_][^_\n]{0,200}__"),  # strong
    (("`",), r"(?<!`)`[^`\n]{1,200}`(?!`)"),  # code
    ((">",), r"\n {0,3}> ?\S"),  # quote
)
_ITEMS = re.compile(  # a list of at least two items
    r"\n {0,3}(?:[*+-]|\d{1,9}[.)])[ \t]+\S.*\n(?:.*\n)? {0,3}(?:[*+-]|\d{1,9}[.)])[ \t]"
)
_RST_MARKS = Marks(("`", "::", "\n.. "))
_RST_SIGNS = _Patterns(
    (("\n.. ",), r"\n\.\. (?:[\w:-]+::|_[^:\n]+:|\[[#\w*]+\] )"),  # directive, target, footnote
    ((":`",), r"(?<!\w):[a-z][\w:+.-]{0,40}:`[^`\n]"),  # role
    ((">`_",), r"`[^`<\n]{1,200}<[^`<>\n]{1,500}>`_"),  # link
    (  # unusual underline
        tuple(f"\n{4 * mark}" for mark in "~^\"'*+:."),
        r"\n[^\s#].{0,200}\n([~^\"'*+:.])\1{3,}$",
    ),
)
_RST_HINTS = _Patterns(
    (("::\n",), r"\n(?![ \t.]).*\S?::\n\n?[ \t]+\S"),  # literal block
    (("\n:",), r"\n:[A-Za-z][\w -]*:(?: |$)"),  # field
    (("\n===",), r"\n\S.{0,200}\n={3,}$"),  # underline
    (("\n---",), r"\n\S.{0,200}\n-{3,}$"),
    (("``",), r"(?<!`)``[^`\n]+``(?!`)"),
)
_ADOC_MARKS = Marks(("\n[verse]\n", "\n[source,", "\n+\n----"))
_LATEX_PREAMBLE = Marks(("\\documentclass", "\\usepackage", "\\begin{document}"))
_PAGE_NAME = re.compile(r"\s*NAME\n[ \t]+\S.* [-–—\u2010] ")


def _outside_fences(text: str) -> str:
    return _FENCE.sub("", text) if _has_fence(text) else text


def _has_fence(text: str) -> bool:
    return _FENCES.any_in(text) and _FENCE.search(text) is not None


def _begins_line(text: str, mark: str) -> bool:
    return mark in text and (text.startswith(mark) or f"\n{mark}" in text)


def _root(text: str) -> tuple[str, ...]:
    """Return the groups of `_ROOT` at the beginning of a text."""
    root = _ROOT.match(text) if "<" in text else None
    return root.groups("") if root else ("", "", "", "")


def _begins_html(text: str) -> bool:
    """Whether the document type or the outermost element of a text is that of HTML."""
    _, document_type, name, _ = _root(text)
    return document_type.lower() == "html" or name.lower() in ("html", "head", "body")


def _is_xml(text: str) -> bool:
    """Whether it begins with an XML declaration, or with an element that is not one of HTML."""
    declaration, _, name, attributes = _root(text)
    if not name or _begins_html(text):
        return False
    is_marked = "xmlns" in attributes or text.rstrip().endswith(f"</{name}>")
    return bool(declaration) or (is_marked and name.lower() not in _HTML_NAMES)


def _is_html(text: str) -> bool:
    """Whether it begins with the outer tags, or has many block tags and no sign of Markdown."""
    if "<" not in text or _begins_html(text):
        return "<" in text
    outside = _outside_fences(text)
    tags = sum(name.lower() in _HTML_BLOCKS for _, name in _HTML_TAG.findall(outside))
    if tags < 2 or tags * 400 <= len(outside) or outside is not text or _ATX.search(text):
        return False
    return text.lstrip()[:1] == "<" or not _SIGNS.search(text)


def _is_markdown(text: str) -> bool:
    """Whether it has a heading, fence, link or table, or two of: bold, code, quotes, lists."""
    if _has_fence(text):
        return True
    matches = _ATX.finditer(text) if "#" in text else ()
    headings = [match[2] is None for match in matches]  # lines in a row are comments
    if 2 * sum(headings) > len(headings) or _SIGNS.search(text):
        return True
    hints = _HINTS.kinds(text)
    return hints > 1 or (hints == 1 and _ITEMS.search(f"\n{text}") is not None)


def _is_rst(text: str) -> bool:
    if not _RST_MARKS.any_in(text):
        return False
    outside = _outside_fences(text)
    signs = sum(1 for _ in _RST_SIGNS.matches(outside))
    if 2 * signs + _RST_HINTS.kinds(outside) < 3:
        return False
    return outside.count("](") + f"\n{outside}".count("\n#") <= signs


def _is_asciidoc(text: str) -> bool:
    """Whether it has marks of blocks, several headings that no sign ends, or begins with one."""
    if _ADOC_MARKS.any_in(text) and not _has_fence(text):
        return True
    lines = ADOC_LINE.finditer(text) if _begins_line(text, "=") else ()
    headings = [line for line in lines if line[0][0] == "=" and line[0].rstrip()[-1] != "="]
    return len(headings) > 1 or (bool(headings) and text.lstrip().startswith("= "))


def _is_org(text: str) -> bool:
    return "*" in text and bool(ORG_HEADING.search(text)) and bool(ORG_SIGN.search(text))


def _is_wiki(text: str) -> bool:
    """Whether it has headings as in MediaWiki or Jira, where "#" begins an item of a list."""
    if not (_begins_line(text, "=") or _begins_line(text, "h")):
        return False
    lines = (line for line in text.split("\n") if line[:1] in ("=", "h"))
    no_pod = (line for line in lines if not line.startswith("=head"))  # it may be inside Perl
    return sum(wiki_heading(line) is not None for line in no_pod) > 1


def _is_latex(text: str) -> bool:
    if "\\" not in text or not (_LATEX_PREAMBLE.any_in(text) or TEX_HEADING.search(text)):
        return False
    return text.count("\\") > 2 and not _ATX.search(text)


def _is_man(text: str) -> bool:
    has_requests = _begins_line(text, ".") or _begins_line(text, "'")
    if has_requests and len(TROFF_HEADING.findall(text)) > 1:
        return True
    return (PAGE_TITLE.match(text) or _PAGE_NAME.match(text)) is not None


# Mail and data

_TIME = r"\d\d:\d\d:\d\d"
_DATE = r"(?:\d{4}[-/.]\d\d[-/.]\d\d|\d\d[-/.]\d\d[-/.]\d{2,4}|\d\d-\d\d)"
_LOG_LINE = re.compile(
    rf"[\[(<]?{_DATE}[T _-]{{1,2}}{_TIME}|[\[(]?{_TIME}|[A-Z][a-z]{{2}} [ \d]\d {_TIME}"
    rf"|\[\w{{3}} \w{{3}} [ \d]\d {_TIME}|\d{{6}} \d{{6}} |\S+ \S+ \S+ \[\d\d/\w{{3}}/\d{{4}}:"
    r"|(?:\S+ )?\d{10}(?:\.\d+)? |[\[<(]?(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b[\]>)]?[ :]"
    rf"|\{{\"(?:ts|time|timestamp|level|@timestamp)\"|(?:ts|time|level)=\S+ "
)


def _is_log(text: str) -> bool:
    """Whether at least half of the lines begin with a time or a log level, without a header."""
    lines = [line for line in text.split("\n")[:50] if line.strip()]
    if not any(map(_is_log_line, lines[:10])):
        return False
    times = sum(map(_is_log_line, lines))
    is_log = times > 2 and 2 * times >= len(lines)
    return is_log and (_is_log_line(lines[0]) or not is_separated(text, ","))


def _is_log_line(line: str) -> bool:
    return _LOG_LINE.match(line.lstrip()[:200]) is not None


def _is_notebook(text: str) -> bool:
    return text.lstrip()[:1] == "{" and ('"cell_type"' in text or '"nbformat"' in text)


# Code

_NATURAL = frozenset(("cs", "sh", "ts"))  # also the codes of natural languages
_CODE_SIGNS = re.compile(r"[{}();=<>$|\\/]")
_CODE_LINE = re.compile(r"[A-Z]{2,} \S|\s*[\w.-]+[ \t]*[:+?]?=")
_COMMENT_SIGNS = ("//", "--", "#", "*", "\\")
_CODE_ENDS = tuple(";{}([,:=\\)]")
_CODE_WORDS = frozenset(
    "abstract async cd class const curl def done echo else end enum esac export extends fi "
    "from func function if impl import interface internal let local message mod module my "
    "namespace option package private protected pub public raise readonly record require "
    "require_relative return set source struct sub sudo then trait try: type use using var".split()
)
_YAML_LINE = re.compile(r"""[ ]{2}|[\w./"'-]{1,80}:(?:[ ]|$)|-[ ]|[\#}\]]|$""")
_YAML_NESTED = re.compile(
    r"""^(?:-[ ])?[\w./"'-]{1,80}:[ ]*\n(?:[ ]*\#.*\n|[ ]*\n)*"""
    r"""[ ]*(?:-[ ]\S|[ ][\w./"'-]{1,80}:(?:[ ]|$))""",
    re.MULTILINE,
)
_YAML_BEGINNING = re.compile(
    r"""(?:---\n|\#.*\n|[ ]*\n)*(?:-[ ])?[\w./"'-]{1,80}:(?:[ ]|$)""", re.M
)
_TOML_LINE = re.compile(
    r"""\[{1,2}[\w."' -]+\]{1,2}[ ]*(?:#.*)?$|[\w."'-]{1,80}[ ]?=[ ]?\S|[#;]|[ ]|[\]}],?[ ]*$|$"""
)
_BARE_VALUE = re.compile(r"^\w[\w.-]*[ ]?=(?![ ]?(?:true\b|false\b|[-+\d\"'\[{]))", re.MULTILINE)


def _is_code_line(line: str) -> bool:
    """Whether a line ends like code, or begins with a keyword or like an assignment.

    In a Dockerfile, lines begin with a word in capitals.
    """
    if line.endswith(_CODE_ENDS) or line.lstrip()[:1] in ("@", "#"):
        return True
    return line.split(None, 1)[0] in _CODE_WORDS or _CODE_LINE.match(line) is not None


def _is_prose(text: str) -> bool:
    """Whether its lines have several words, and few signs of code."""
    words = len(text.split())
    lines = sum(1 for line in text.split("\n") if line.strip())
    return words >= 5 * lines and 100 * len(_CODE_SIGNS.findall(text)) < len(text)


def _without_comments(text: str) -> str:
    if "*" not in text:
        return text
    return "".join(part.partition("/*")[0] for part in text.split("*/"))


def _is_yaml(text: str) -> bool:
    parts = text.removeprefix("---\n").split("\n---\n")
    if not (all(map(_YAML_BEGINNING.match, parts)) and _YAML_NESTED.search(text)):
        return False
    return all(map(_YAML_LINE.match, "\n".join(parts).split("\n")))


def _has_tables(text: str) -> bool:
    """Whether it is TOML, or another file of settings in sections."""
    if not _begins_line(text, "["):
        return False
    return all(map(_TOML_LINE.match, '""'.join(text.split('"""')[::2]).split("\n")))


def _code_lines(text: str) -> list[str]:
    """Return the lines that are neither blank nor a comment, without white space at their ends."""
    lines = filter(None, map(str.rstrip, text.split("\n")))
    return [line for line in lines if not line.lstrip().startswith(_COMMENT_SIGNS)]


def _is_other_code(text: str) -> bool:
    """Whether most lines, comments aside, end or begin like code, and none like prose."""
    if _has_tables(text):
        return True
    lines = _code_lines(text)
    others = [line for line in lines if not line.endswith(_CODE_ENDS)]
    assignments = [line for line in others if "=" in line or line[:2].isupper()]
    codes = len(lines) - len(others)
    codes += sum(_CODE_LINE.match(line) is not None for line in assignments)
    if codes < 4 or 5 * codes < 3 * len(lines):
        return False
    return not (_SIGNS.search(text) or _has_fence(text) or _is_prose("\n".join(lines)))


_NO_PROSE = frozenset(" \t#/%;\"'")  # the first characters of lines that are not prose
_FIRST_WORD = re.compile(r"\n(\w+=|\s*(?:\w+|\S))")
_SIGNS_OF = {name: each.signs for name, each in LANGUAGES.items() if each.signs}
_LANGUAGES_WITH = {
    word: [name for name, signs in _SIGNS_OF.items() if word in signs.words]
    for word in chain.from_iterable(signs.words for signs in _SIGNS_OF.values())
}


def _detect_language(text: str) -> str | None:
    """Return the language whose signs are most frequent, unless more lines are prose."""
    if text.lstrip().startswith("<"):
        return "php" if text.lstrip().startswith("<?php") else None
    code = "".join(_without_comments(_outside_fences(text)).split('"""')[::2])
    lines = list(filter(None, map(str.rstrip, code.split("\n"))))
    code = "\n".join(lines)
    words = [word.lstrip() for word in _FIRST_WORD.findall(f"\n{code}")]
    candidates: dict[str, list[str]] = {}
    for line, word in zip(lines, words, strict=True):
        first = "=" if word[-1] == "=" else word  # "=" for an assignment at the margin
        for name in _LANGUAGES_WITH.get(first, ()):
            candidates.setdefault(name, []).append(line)
    language, most = None, 1
    for name, signs in _SIGNS_OF.items():
        if signs.marks.any_in(code):
            candidates[name] = lines
        if len(candidates.get(name, ())) > most:
            count = sum(map(_is_code_line, filter(signs.matches, candidates[name])))
            language, most = (name, count) if count > most else (language, most)
    if language is None:
        return None
    long = (line for line in lines if line.count(" ") > 4 and line[0] not in _NO_PROSE)
    return language if sum(not _is_code_line(line) for line in long) <= most else None


_SQL_WORD = re.compile(r"\n(?:create|alter|drop|insert|update|delete|select|with) ")
_SQL = re.compile(
    r"\s*(?:(?:create|alter|drop) +(?:or +replace +)?(?:temp(?:orary)? +)?"
    r"(?:table|view|index|unique|database|function|procedure|schema|type|trigger)\b"
    r"|insert +into +\w|update +\S+ +set\b|delete +from +\w|select\b.*|with +\w+ +as +\()",
    re.IGNORECASE,
)


def _is_sql(text: str) -> bool:
    if ";" not in text or not _SQL_WORD.search(f"\n{text.lower()}"):
        return False
    outside = "\n".join(_code_lines(_without_comments(text)))
    statements = [part for part in outside.split(";") if part.strip()]
    matches = sum(1 for part in statements if _SQL.match(part.lstrip()))
    return matches > 0 and 2 * matches >= len(statements)


def _kind(
    format: TextFormat, name: str, matches: _Test | None = None, is_possible: _Test | None = None
) -> TextKind:
    """Return the kind of texts in a language."""
    own = LANGUAGES[name]
    names = own.suffixes, own.aliases, own.names, own.interpreters
    return TextKind(format, *names, matches, is_possible, name)


_DATA: dict[str, TextKind] = {
    "subtitles": TextKind(
        "subtitles",
        "srt vtt",
        "vtt subrip",
        matches=begins_subtitles,
        is_possible=lambda text: "-->" in text,
        read=lambda text, options, **_: [read_subtitles(text)],
    ),
    "notebook": TextKind(
        "code",
        "ipynb",
        "ipynb+json",
        matches=_is_notebook,
        is_possible=_is_notebook,
        language="json",
        read=lambda text, options, **_: [read_notebook(text, options)],
    ),
    "json": _kind("code", "json", begins_json, begins_json),
    "mail": TextKind(
        "mail",
        "eml mbox",
        "mbox rfc822",
        matches=begins_mail,
        is_possible=may_be_mail,
        read=read_mails,
    ),
    "man": TextKind(
        "man", "1 2 3 4 5 6 7 8 9 man roff", "troff troff-man", matches=_is_man, is_possible=_is_man
    ),
    "asciidoc": TextKind(
        "asciidoc",
        "adoc asciidoc asc",
        "adoc",
        matches=_is_asciidoc,
    ),
    "org": TextKind("org", "org", matches=_is_org, is_possible=ORG_HEADING.search),
    "log": TextKind("log", "log", matches=_is_log),
    "csv": TextKind(
        "csv",
        "csv",
        matches=lambda text: is_separated(text, ","),
        is_possible=lambda text: may_be_separated(text, ",;"),
    ),
    "tsv": TextKind(
        "tsv",
        "tsv tab",
        "tab-separated-values",
        matches=lambda text: is_separated(text, "\t"),
        is_possible=lambda text: may_be_separated(text, "\t"),
    ),
}

_CODE: dict[str, TextKind] = {
    **{
        name: _kind("code", name)
        for name in LANGUAGES
        if name not in ("json", "html", "latex", "rst", "markdown")
    },
    "php": _kind("code", "php", is_possible=lambda text: "<?" in text or "$" in text),
    "sql": _kind("code", "sql", _is_sql),
    "yaml": _kind("code", "yaml", _is_yaml),
    "toml": _kind("code", "toml", lambda text: _has_tables(text) and not _BARE_VALUE.search(text)),
}

_MARKUP: dict[str, TextKind] = {
    "xml": TextKind(
        "xml",
        "xml atom csproj dbk dita ditamap docbook fb2 opml owl plist rdf resx rss svg tei wsdl xlf "
        "xliff xsd xsl xslt",
        "atom+xml docbook+xml rss+xml svg+xml",
        matches=_is_xml,
        is_possible=lambda text: text.lstrip()[:1] == "<",
    ),
    "html": _kind("html", "html", _is_html, _HTML_TAG.search),
    "latex": _kind("latex", "latex", _is_latex, lambda text: "\\" in text),
    "rst": _kind(
        "rst", "rst", _is_rst, lambda text: _RST_SIGNS.search(text) or _RST_HINTS.search(text)
    ),
    "code": TextKind(
        "code",
        "ini cfg conf properties mk cmake gradle groovy dart zig nim clj cljs edn erl fs vb vue "
        "svelte nix bat cmd awk sed diff patch bats fish tcl vim el lisp scm rkt ml mli jl m mm "
        "f90 pas asm cu scss sass less graphql gql dot gv astro bib bicep bzl bazel elm jsonnet "
        "prisma rego sv thrift vhd vhdl",
        names="makefile gnumakefile dockerfile containerfile cmakelists.txt jenkinsfile .env "
        ".gitignore .gitattributes .dockerignore .editorconfig",
        interpreters="make awk",
        matches=_is_other_code,
    ),
    "markdown": _kind("markdown", "markdown", _is_markdown),
    "text": TextKind("text", "mediawiki wiki", "txt plain console output"),
}

KINDS: dict[str, TextKind] = {**_DATA, **_CODE, **_MARKUP}
"""Every kind by its name, in the order in which their contents are tested."""

READ_KINDS = tuple(name for name, kind in KINDS.items() if kind.read)
"""The kinds from which the loaders and `AutoChunker` read the text without the markup."""

_BY_ALIAS = {alias: name for name, kind in KINDS.items() for alias in (name, *kind.aliases.split())}
_BY_SUFFIX = {suffix: name for name, kind in KINDS.items() for suffix in kind.suffixes.split()}
_BY_NAME = {each: name for name, kind in KINDS.items() for each in kind.names.split()}
_BY_INTERPRETER = {each: name for name, kind in KINDS.items() for each in kind.interpreters.split()}
