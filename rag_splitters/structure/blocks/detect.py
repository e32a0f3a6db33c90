"""Is a text Markdown, HTML or plain?"""

from __future__ import annotations

import re
from typing import Literal

__all__ = ["detect_format"]

_PREFIX = 20_000  # characters that are looked at
_HTML_OPENING = re.compile(
    r"\s*(?:\ufeff\s*)?(?:<\?xml[^>]{0,200}\?>\s*)?(?:<!--.{0,2000}?-->\s*){0,4}"
    r"<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)
_HTML_TAG = re.compile(
    r"</?(?:p|div|h[1-6]|ul|ol|li|table|tr|td|th|section|article|main|nav|header|footer|body|"
    r"blockquote|pre|figure|br|hr|dl|dt|dd|form|script|style|title)(?=[\s/>])",
    re.IGNORECASE,
)
_FENCE = re.compile(
    r"^ {0,3}(`{3,}(?=[^`\n]*$)|~{3,}).*?(?:^ {0,3}\1|\Z)", re.MULTILINE | re.DOTALL
)
_FENCED = re.compile(r"^ {0,3}(?:`{3,}[^`\n]*|~{3,}[^~\n]*)$", re.MULTILINE)
_SIGNS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^ {0,3}#{1,6}[ \t]+\S",  # ATX heading
        r"^ {0,3}\|?[ \t]*:?-{1,200}:?[ \t]*\|[ \t|:-]{0,500}$",  # delimiter row of a table
        r"!?\[[^\[\]\n]{1,200}\]\([^()\s]{1,500}\)",  # link or image
        r"^ {0,3}\[[^\[\]\n]{1,200}\]:[ \t]+\S",  # link reference definition
        r"\A---[ \t]*\n[\w-]+:",  # front matter
        r"^\$\$|^\\\[",  # display formula
    )
)
_HINTS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"\*\*[^\s*][^*\n]{0,200}\*\*|__[^\s_][^_\n]{0,200}__",  # strong
        r"(?<!`)`[^`\n]{1,200}`(?!`)",  # code
        r"^ {0,3}> ?\S",  # quote
        # list of at least two items
        r"^ {0,3}(?:[*+-]|\d{1,9}[.)])[ \t]+\S.*\n(?:.*\n)?^ {0,3}(?:[*+-]|\d{1,9}[.)])[ \t]",
    )
)


def detect_format(text: str) -> Literal["markdown", "html", "text"]:
    """Tells how a text is written, by its first 20,000 characters.

    HTML begins with its doctype or an outer tag, or is dense in block tags outside code fences.
    Markdown holds a heading, a fence, a table, a link, a front matter or a formula, or at least
    two of: strong words, code, quotes, lists. Everything else is plain text.

    >>> detect_format("<p>One.</p><p>Two.</p>"), detect_format("# One"), detect_format("One.")
    ('html', 'markdown', 'text')
    """
    beginning = re.sub(r"\r\n?", "\n", text[:_PREFIX])
    if _HTML_OPENING.match(beginning):
        return "html"
    fenced = _FENCED.search(beginning) is not None
    outside = _FENCE.sub("", beginning) if fenced else beginning
    tags = sum(1 for _ in _HTML_TAG.finditer(outside))
    signs = [sign for sign in _SIGNS if sign.search(outside)]
    if tags >= 2 and tags * 400 > len(outside) and (outside.lstrip()[:1] == "<" or not signs):
        hashed = _SIGNS[0].search(outside)
        return "markdown" if hashed or fenced else "html"
    if fenced or signs:
        return "markdown"
    return "markdown" if sum(1 for hint in _HINTS if hint.search(outside)) >= 2 else "text"
