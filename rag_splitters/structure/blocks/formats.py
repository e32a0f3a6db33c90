"""The format of a text: Markdown, HTML, source code or plain text."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

Format: TypeAlias = Literal["auto", "markdown", "html", "text"]
"""The format of a text; "auto" detects it from the beginning of the text."""

TextFormat: TypeAlias = Literal["auto", "markdown", "html", "text", "code"]
"""`Format`, and "code" for source code and configuration files."""

_PREFIX = 20_000  # characters
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


_CODE_LINE = re.compile(
    r"""^(?:
        import[ ][\w.]+(?:[ ]as[ ]\w+)?(?:,[ ]?[\w.]+)*;?[ \t]*$
      | import[ ].{1,200}[ ]from[ ]['"]
      | from[ ][\w.]+[ ]import[ ][\w(*]
      | (?:async[ ])?def[ ]\w+\(
      | class[ ]\w+(?:\([^()\n]{0,200}\))?:[ \t]*$
      | \#[ \t]*include[ ]?[<"]
      | (?:package|use|using)[ ][\w.:]+;[ \t]*$
      | (?:pub[ ])?(?:fn|func|function)[ ]\w+[ ]?[(<]
      | (?:export[ ])?(?:const|let|var)[ ]\w+[ ]?=
      | (?:public|private|protected)[ ](?:\w+[ ]){0,4}\w+.{0,100}\{[ \t]*$
    )""",
    re.MULTILINE | re.VERBOSE,
)
_YAML_LINE = re.compile(r"""[ ]{2}|[\w./"'-]{1,80}:(?:[ ]|$)|-[ ]|\#|$""")
_YAML_BEGINNING = re.compile(r"""(?:---\n)?(?:\#.*\n|[ ]*\n)*[\w./"'-]{1,80}:(?:[ ].*)?\n""")
_YAML_NESTED = re.compile(
    r"""^[\w./"'-]{1,80}:[ ]*\n(?:[ ]*\#.*\n|[ ]*\n)*[ ]*(?:-[ ]\S|[ ][\w./"'-]{1,80}:(?:[ ]|$))""",
    re.MULTILINE,
)
_TOML_LINE = re.compile(
    r"""\[{1,2}[\w."' -]+\]{1,2}[ ]*$|[\w."'-]{1,80}[ ]?=[ ]?\S|[#;]|[ ]|[\]}],?[ ]*$|$"""
)
_TOML_TABLE = re.compile(r"""^\[{1,2}[\w."' -]+\]{1,2}[ ]*\n""", re.MULTILINE)


def detect_format(text: str) -> Literal["markdown", "html", "text", "code"]:
    """Detect the format of a text from its first 20,000 characters.

    Source code begins with "#!", or has lines that import or define something and little prose;
    YAML and TOML count as code. HTML begins with a doctype or an outer tag, or has many block tags
    outside code fences. Markdown has a heading, a fence, a table, a link, front matter or a
    formula, or at least two of these: bold words, code spans, quotes, lists. Everything else is
    plain text.

    >>> detect_format("<p>One.</p><p>Two.</p>"), detect_format("# One"), detect_format("One.")
    ('html', 'markdown', 'text')
    >>> detect_format("import os\\n\\n# Where we are\\ndef here():\\n    return os.getcwd()")
    'code'
    """
    beginning = text[:_PREFIX]
    if "\r" in beginning:
        beginning = re.sub(r"\r\n?", "\n", beginning)
    if _HTML_OPENING.match(beginning):
        return "html"
    if _is_code(beginning):
        return "code"
    fenced = _FENCED.search(beginning) is not None
    outside = _FENCE.sub("", beginning) if fenced else beginning
    tags = sum(1 for _ in _HTML_TAG.finditer(outside))
    has_signs = any(sign.search(outside) for sign in _SIGNS)
    is_dense = tags >= 2 and tags * 400 > len(outside)
    if is_dense and (outside.lstrip()[:1] == "<" or not has_signs):
        return "markdown" if fenced or _SIGNS[0].search(outside) else "html"
    if fenced or has_signs:
        return "markdown"
    return "markdown" if sum(1 for hint in _HINTS if hint.search(outside)) >= 2 else "text"


def _is_code(text: str) -> bool:
    """Is this obviously source code or a configuration file?"""
    if text.startswith("#!"):
        return True
    if len(_CODE_LINE.findall(text)) >= 2:
        outside = _FENCE.sub("", text)
        lines = [line for line in outside.split("\n") if line[:1].strip()]
        code = sum(1 for _ in _CODE_LINE.finditer(outside))
        prose = sum(len(line.split()) > 3 and line[0].isalpha() for line in lines) - code
        return code >= 2 and prose <= 2 * code
    lines = text.removeprefix("---\n").split("\n")
    if _YAML_BEGINNING.match(text) and _YAML_NESTED.search(text):
        return all(map(_YAML_LINE.match, lines))
    return bool(_TOML_LINE.match(text) and _TOML_TABLE.search(text)) and all(
        map(_TOML_LINE.match, lines)
    )
