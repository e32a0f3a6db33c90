"""The signatures of definitions in source code, found without a grammar."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from rag_splitters.structure.languages import language_record
from rag_splitters.text.boundaries import skip_space
from rag_splitters.text.structure import Range

_LONGEST_SIGNATURE = 1000  # characters
_MOST_BRACKETS = 64
_LONGEST_DOCSTRING = 2000
_MOST_LINES = 60  # of comments and so on
_COMMENT = re.compile(r"[ \t]*(?://|/?\*|#|@|--|\[\[?[A-Za-z]|template\b)")
_BEFORE = (
    r"(?:(?:pub(?:\([\w: ]{1,40}\))?|async|unsafe|const|extern|export|default|declare|open|"
    r"inline|virtual|suspend|synchronized|partial|data|public|protected|private|"
    r"internal|static|abstract|final|sealed|override)[ \t]+)"
)
_DEFINITION = (
    "fn|func|fun|function|class|struct|union|enum|trait|interface|impl|mod|namespace|record|object|"
    "protocol|extension|contract|library|type[ \\t]+\\w+[ \\t]+(?:struct|interface)"
)
_NO_NAMES = (
    "if|for|while|switch|catch|else|return|do|case|new|delete|throw|await|yield|assert|elif|match"
)
_KEYWORD = (
    rf"^[ \t]*(?:{_BEFORE}{{0,6}}(?:{_DEFINITION})\b|{_BEFORE}{{1,6}}[^\n=;(){{}}]{{0,200}}\()"
)
_CALL = rf"^[ \t]*(?!(?:{_NO_NAMES})\b)[\w$#~][\w$:<>,&*~\[\] \t]{{0,200}}\("
_SIGNATURES = {
    "blocks": r"^[ \t]*\w+(?:[ \t]+\"[^\"\n]{0,100}\"){0,4}[ \t]*(?=\{)",
    "python": r"^[ \t]*(?:(?:async[ \t]+)?def[ \t]+\w+|class[ \t]+\w+[ \t]*(?=[(:]))",
    "keywords": _KEYWORD,
    "calls": f"{_KEYWORD}|(?P<call>{_CALL})",
}
_STOP = re.compile(r"[(\[)\]{;]|:(?=[ \t]*(?:#.*)?(?:\r?\n|\Z))|\n[ \t]*\r?\n")
_FIRST_LINE = re.compile(  # of a body, with the bracket that closes it if that follows
    r"[ \t]*\r?\n[ \t]*(?=[^\s/#*\"'@{}])[^\n]*?[^\s{(\[,\\](?=[ \t]*\r?(?:\n|\Z))"
    r"(?:\s*\n[ \t]*\}(?=\s|\Z))?"
)
_DOCSTRING = re.compile(r"\s*[rRuU]?(\"{3}|'{3})")


def find_signatures(text: str, language: str | None) -> Iterator[Range]:
    """Yield (start, end) of signatures in source code, up to the bracket or colon before the body.

    Each is yielded with and without the comments, decorators and attributes before it, and with and
    without the docstring or the first line of the body.

    >>> text = "// Grows.\\nfn grow(\\n    size: u32,\\n) {\\n    size + 1\\n}"
    >>> min(text[start:end] for start, end in find_signatures(text, "rust"))
    '// Grows.\\nfn grow(\\n    size: u32,\\n) {'
    """
    style = language_record(language).signatures
    for match in re.finditer(_SIGNATURES[style], text, re.MULTILINE) if style else ():
        end = _signature_end(text, match, style == "python")
        if end < 0:
            continue
        start = skip_space(text, match.start())
        lead = skip_space(text, _comment_start(text, match.start()))
        ends = [end]
        if style == "python" and (opening := _DOCSTRING.match(text, end)):
            closing = text.find(opening[1], opening.end(), opening.end() + _LONGEST_DOCSTRING)
            ends += [closing + 3] if closing >= 0 else []
        if line := _FIRST_LINE.match(text, end):
            ends.append(line.end())
        yield from ((first, last) for first in {lead, start} for last in ends)


def _comment_start(text: str, start: int) -> int:
    """Return the start of the comments, decorators and attributes in the lines before `start`."""
    for _ in range(_MOST_LINES):
        above = text.rfind("\n", 0, max(start - 1, 0)) + 1
        if above == start or not _COMMENT.match(text, above, start):
            break
        start = above
    return start


def _signature_end(text: str, match: re.Match[str], is_python: bool) -> int:
    """Return the offset after the bracket or colon that opens the body, or -1."""
    depth = match[0].count("(") - match[0].count(")")
    stops = _STOP.finditer(text, match.end(), match.end() + _LONGEST_SIGNATURE)
    for stop in islice(stops, _MOST_BRACKETS):
        sign = stop[0]
        if sign in "([":
            depth += 1
        elif sign in ")]":
            depth -= 1
        elif sign.startswith("\n"):
            return -1
        elif depth <= 0 and (sign == ":") == is_python:
            is_call = "call" in match.re.groupindex and match["call"] is not None
            return stop.end() if sign != ";" or not is_call else -1
    return -1
