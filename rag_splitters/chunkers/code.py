"""CodeChunker: cuts source code at its syntax."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from rag_splitters.contract.sized import SizedChunker
from rag_splitters.parameters.fields import LanguageName
from rag_splitters.span import Source, Span
from rag_splitters.structure.kinds import language_of
from rag_splitters.structure.languages import language_named, language_record
from rag_splitters.structure.signatures import find_signatures
from rag_splitters.structure.syntax import Syntax, read_syntax
from rag_splitters.text.boundaries import Finder, line_start, lines, paragraphs, positions, words
from rag_splitters.text.leads import lead_start
from rag_splitters.text.origin import UnreadableError
from rag_splitters.text.packing import pack
from rag_splitters.text.separators import separators
from rag_splitters.text.structure import Structure, recursive_levels

_MAX_ERRORS = 0.2
_BLOCK_END = r"(?<=[\r\n][}\])])[;,)]*[ \t]*\r?\n\s*"  # of a block that begins at the margin


class CodeChunker(SizedChunker):
    """Cuts source code between definitions, and a definition that is too big between statements.

    Use it for repositories, code from notebooks, and configuration files. A definition keeps its
    decorators, its attributes and the comments directly above it, and a signature that fits is not
    cut. A chunk keeps the indentation of its first line if that fits. tree-sitter parses bash, C,
    C++, C#, CSS, Go, HCL (Terraform), HTML, Java, JavaScript, JSON, PHP, Python, Ruby, Rust, SQL,
    Swift, TOML, TypeScript (and TSX) and YAML. No network is needed.

    Other languages, and texts with errors in more than a fifth of their length, are cut at the
    separators of `RecursiveChunker` for the language. The metadata `fallback` says why: "unknown
    language", "no grammar", "syntax error" or "too complex" (hundreds of nested levels).

    Metadata: `language`; `definitions`, the names of the classes, functions, tables and keys around
    the whole chunk without its overlap, the outermost first, such as `["Tree", "insert"]`.

    Raises ImportError at first use if the extra `code` is not installed, and ValueError if the
    sizes are inconsistent.

    >>> code = "class Tree:\\n    def grow(self):\\n        pass\\n\\n    def fall(self): ..."
    >>> chunks = CodeChunker(chunk_size=50, language="python").chunk(code)
    >>> print(chunks[1].text)
        def fall(self): ...
    >>> chunks[1].metadata["definitions"]
    ['Tree', 'fall']
    """

    strategy: ClassVar[str] = "code"

    language: LanguageName = "auto"
    """Name of the programming language, such as "python"; "auto" detects it from the metadata
    (`language`, MIME type or file name), else from the text."""

    async def plan(self, sources: Sequence[Source]) -> list[list[Span]]:
        return [self._spans(source.text, source.metadata) for source in sources]

    def _spans(self, text: str, metadata: Mapping[str, Any]) -> list[Span]:
        is_auto = self.language.strip().lower() == "auto"
        language = language_of(metadata, text) if is_auto else language_named(self.language)
        syntax, fallback = _syntax(text, language)
        details = {"language": language, "fallback": fallback}
        details = {key: value for key, value in details.items() if value}
        levels = _syntax_levels(text, syntax) if syntax else _fallback_levels(text, language)
        structure = Structure(
            text,
            levels,
            unbreakable=lambda: find_signatures(text, language),
            keep_with_next=_in_yaml if language == "yaml" else lead_start,
            indentation=lambda start: line_start(text, start),
        )
        spans = pack(structure, self.sizes)
        for span in spans:
            end = _before_closers(text, span.own, span.end)
            path = syntax.path(span.own, end) if syntax else []
            span.metadata = {**details, "definitions": path} if path else details
        return spans


def _in_yaml(text: str, low: int, cut: int) -> int:
    """Return the start of the lines that belong to what follows; "---" underlines nothing."""
    return cut if text.startswith("---", cut) else lead_start(text, low, cut)


def _before_closers(text: str, start: int, end: int) -> int:
    """Return `end` before closing brackets, which may have been opened before the chunk."""
    while end > start:
        if text[end - 1] in ")]};," or text[end - 1].isspace():
            end -= 1
        elif text.endswith("end", start, end) and text[max(end - 4, 0) : end - 3].isspace():
            end -= 3
        else:
            break
    return end


def _syntax(text: str, language: str | None) -> tuple[Syntax | None, str]:
    """Return the syntax of a text, or None and the reason why there is none."""
    if not text.strip() or language is None:
        return None, "unknown language"
    if not language_record(language).grammar:
        return None, "no grammar"
    try:
        syntax = read_syntax(text, language)
    except UnreadableError as error:
        return None, str(error)
    code = text.strip()
    if syntax.errors > _MAX_ERRORS * (len(code) - code.count("\r\n")):
        return None, "syntax error"
    return syntax, ""


def _syntax_levels(text: str, syntax: Syntax) -> list[Finder]:
    finders = [positions(cuts) for cuts in syntax.levels]
    return [*finders, paragraphs(text), positions(syntax.joints), lines(text), words(text)]


def _fallback_levels(text: str, language: str | None) -> list[Finder]:
    patterns = language_record(language).separators
    opening = [separators(text, (pattern,), True) for pattern in patterns]
    blocks = separators(text, (_BLOCK_END,), is_regex=True, keep="end")
    return [blocks, *opening, *recursive_levels(text)]
