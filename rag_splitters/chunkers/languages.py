"""Separators of programming and markup languages for `RecursiveChunker(language=...)`.

The names are those of LangChain's `Language`. Each language has several levels, from coarse to
fine. A level is a regular expression that begins at a line break, so the cut is before the line.
"""

from __future__ import annotations

_PRESETS = {"javascript": "js", "typescript": "ts", "tsx": "ts"}


def preset_for(language: str | None) -> str:
    """Return the key that a language of `structure.kinds` would have in `LANGUAGES`."""
    return _PRESETS.get(language or "", language or "")


def _lines(*levels: str) -> tuple[str, ...]:
    """Levels of words at the start of a line: "class|def" becomes `\\n[ \\t]*(?:class|def)\\b`."""
    return tuple(rf"\r?\n[ \t]*(?:{words})\b" for words in levels)


def _marks(*levels: str) -> tuple[str, ...]:
    """Levels of patterns at the start of a line, whatever follows them."""
    return tuple(rf"\r?\n(?:{marks})" for marks in levels)


_MODIFIERS = "public|protected|private|internal|static|abstract|final|sealed|override"
_C_FLOW = "if|for|while|do|switch|case|return"
_C = _lines("class|struct|union|enum|namespace|template|typedef", "void|int|float|double|char|bool")
_JS = _lines("export|import|class|interface|enum|namespace|type", "async function|function")
_JS_FLOW = _lines("const|let|var", f"{_C_FLOW}|try|default")
_MARKUP = _marks("<h1", "<h2", "<h3", "<h[456]", "<(?:div|section|article|table|ul|ol|p|pre)[ >]")

LANGUAGES: dict[str, tuple[str, ...]] = {
    "c": (*_C, *_lines(_C_FLOW)),
    "cobol": _lines(
        "IDENTIFICATION DIVISION|ENVIRONMENT DIVISION|DATA DIVISION|PROCEDURE DIVISION",
        "[A-Z-]+ SECTION",
        "IF|PERFORM|READ|WRITE|EVALUATE|STOP RUN",
    ),
    "cpp": (*_C, *_lines(_C_FLOW)),
    "csharp": _lines(
        "namespace|interface|class|enum|struct|record|delegate|event", _MODIFIERS, _C_FLOW
    ),
    "elixir": _lines("defmodule", "defp?|defmacrop?|defprotocol", "if|unless|while|case|cond|with"),
    "go": _lines("func", "type|var|const", _C_FLOW),
    "haskell": _lines(
        "module|import", "data|newtype|type|class|instance", "[a-z][A-Za-z0-9_']* ::", "where|let"
    ),
    "html": _MARKUP,
    "java": _lines("class|interface|enum|record", _MODIFIERS, _C_FLOW),
    "js": (*_JS, *_JS_FLOW),
    "kotlin": _lines("class|interface|object|enum class", f"fun|{_MODIFIERS}", "val|var", _C_FLOW),
    "latex": tuple(
        rf"\r?\n[ \t]*\\{name}"
        for name in (
            r"(?:part|chapter)\*?\{",
            r"section\*?\{",
            r"subsection\*?\{",
            r"subsubsection\*?\{",
            r"begin\{",
        )
    ),
    "lua": _lines("local function|function", "local", "if|for|while|repeat|return"),
    "markdown": (
        *_marks("# ", "## ", "### ", "####+ "),
        *_marks("```", r"[ \t]*(?:\*\*\*+|---+|___+)[ \t]*\r?\n"),
    ),
    "perl": _lines("package", "sub", "my|our|local", "if|unless|for|foreach|while|until|return"),
    "php": _lines("namespace|class|interface|trait|enum", f"function|{_MODIFIERS}", _C_FLOW),
    "powershell": _lines("class|function", "param", "if|foreach|for|while|switch|try|catch"),
    "proto": _lines("package|import|syntax", "message|service|enum", "rpc|option|oneof"),
    "python": (
        r"\r?\nclass\b",
        r"\r?\n(?:async def|def|@)",
        r"\r?\n[ \t]+(?:async def|def|class|@)",
    ),
    "r": _lines(r"[A-Za-z.][\w.]* *(?:<-|=) *function", "setClass|setMethod|setGeneric", "if|for"),
    "rst": (r"\r?\n(?=[^\r\n]+\r?\n[=*#^~\"'+-]{3,}[ \t]*(?:\r?\n|\Z))", *_marks(r"\.\. ")),
    "ruby": _lines("module|class", "def", "if|unless|while|for|do|begin|rescue"),
    "rust": _lines(
        "(?:pub(?:\\([a-z]+\\))? )?(?:mod|struct|enum|trait|impl)",
        "(?:pub(?:\\([a-z]+\\))? )?(?:async |const |unsafe )*fn",
        "const|static|let|type|use",
        "if|while|for|loop|match",
    ),
    "scala": _lines("class|object|trait|enum", "def", "val|var", "if|for|while|match|case"),
    "sol": _lines(
        "pragma|using|import",
        "contract|interface|library",
        "constructor|event|modifier|error|struct|enum|function",
        _C_FLOW,
    ),
    "swift": _lines("class|struct|enum|protocol|extension", "func|init", "let|var", _C_FLOW),
    "ts": (*_JS, *_JS_FLOW),
    "visualbasic6": _lines(
        "(?:Public |Private |Friend |Static )*(?:Sub|Function|Property|Type|Enum)",
        "Dim|Const|Public|Private",
        "If|For|While|Do|Select|With",
    ),
}
