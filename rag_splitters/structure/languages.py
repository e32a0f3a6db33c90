"""Languages of code and markup: each with its names, signs, grammar, definitions and separators.

To add a language, add a record to `LANGUAGES`. What is known of one language only, such as the
code that its grammar cannot read, stands with what uses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

Signatures: TypeAlias = Literal["", "blocks", "calls", "keywords", "python"]
"""How a definition begins: with a type and labels, with a type and a name or a keyword, with a
keyword, or as in Python."""


class Marks:
    """Strings to look for in a text.

    Python finds one character sixty times as fast as several, so the rarest of each comes first.

    >>> Marks(("](", "---")).any_in("[a](b)")
    True
    """

    def __init__(self, marks: Iterable[str]) -> None:
        rare = "`~|[{}$_*=>;:)(-."
        self._marks = [(next((c for c in rare if c in mark), mark[0]), mark) for mark in marks]

    def any_in(self, text: str) -> bool:
        """Whether one of them is in a text."""
        for character, mark in self._marks:  # noqa: SIM110 (a generator takes twice the time)
            if character in text and mark in text:
                return True
        return False


class Signs:
    """Patterns of lines that occur only in one language.

    Parameters:
        words: the first words (or signs) of such lines, separated by spaces; "=" for an assignment
            at the margin, as in a shell.
        patterns: regular expressions that match such lines from their start.
        marks: strings of which one is in the text if a line with another first word may match.
    """

    def __init__(self, words: str, *patterns: str, marks: tuple[str, ...] = ()) -> None:
        self.words = frozenset(words.split())
        self.marks = Marks(marks)
        self.matches = re.compile("|".join(patterns)).match


class Language(NamedTuple):
    """A language of code or markup.

    Parameters:
        suffixes: the suffixes of its files.
        aliases: other names of it, LangChain's among them, and the last parts of its MIME types
            without "x-".
        names: whole names of files, in lower case.
        interpreters: the programs that its first line may name after "#!".
        signs: the lines that occur only in this language.
        grammar: the module of its tree-sitter grammar, and the function in it if that is not
            `language`; "" if there is none.
        definitions: the kinds of nodes in that grammar that define something.
        separators: regular expressions for `RecursiveChunker`, from coarse to fine. Each begins at
            a line break, so the cut is before the line.
        signatures: how a definition begins.
    """

    suffixes: str = ""
    aliases: str = ""
    names: str = ""
    interpreters: str = ""
    signs: Signs | None = None
    grammar: str = ""
    definitions: str = ""
    separators: tuple[str, ...] = ()
    signatures: Signatures = ""


def _lines(*levels: str) -> tuple[str, ...]:
    """Return levels of words that begin lines: "class|def" is `\\n[ \\t]*(?:class|def)\\b`."""
    return tuple(rf"\r?\n[ \t]*(?:{words})\b" for words in levels)


def _marks(*levels: str) -> tuple[str, ...]:
    """Return levels of patterns at the start of a line, whatever follows them."""
    return tuple(rf"\r?\n(?:{marks})" for marks in levels)


_MODIFIERS = "public|protected|private|internal|static|abstract|final|sealed|override"
_FLOW = "if|for|while|do|switch|case|return"

_MEMBER_WORDS = "public private protected internal"
_MEMBER = (
    r"\s*(?:public|private|protected|internal) (?:[\w<>\[\],?]+ ){0,5}\w+ ?(?:\(.*|[;{=].*|\{)?$"
)
_JVM_NODES = (
    "class_declaration interface_declaration enum_declaration record_declaration "
    "method_declaration constructor_declaration"
)

_C_WORDS = (
    "# static const unsigned struct int void char float double long size_t bool typedef enum union"
)
_C_SIGNS = (
    r"[ \t]*#[ \t]*(?:include[ \t]*[<\"]|define \w|ifn?def \w|endif\b|pragma \w)",
    r"(?:static |const |unsigned |struct )*(?:int|void|char|float|double|long|size_t|bool) [\w*]+"
    r"(?:\(|;| = |\[)",
    r"(?:typedef )?(?:struct|enum|union)(?: \w+)? \{$",
)
_C_NODES = "function_definition struct_specifier union_specifier enum_specifier type_definition"
_C_LINES = _lines(
    "class|struct|union|enum|namespace|template|typedef", "void|int|float|double|char|bool", _FLOW
)

_JS_WORDS = "import export const let var async function module class"
_JS_SIGNS = (
    r"import .{1,200} from ['\"]|import ['\"]|export (?:default|const|function|class|async|\{|\*)",
    r"(?:const|let|var) [\w{\[][^=\n]{0,200} = |(?:async )?function\*? ?\w*\(|module\.exports\b",
    r"class \w+(?: extends [\w.]+)? \{$|\s+(?:const|let) \w+ = .*;$",
)
_JS_NODES = (
    "class_declaration class function_declaration generator_function_declaration "
    "method_definition variable_declarator"
)
_JS_LINES = _lines(
    "export|import|class|interface|enum|namespace|type",
    "async function|function",
    "const|let|var",
    f"{_FLOW}|try|default",
)
_TS_TYPES = ("string", "number", "boolean", "void", "unknown", "any", "Promise<")
_TS_NODES = (
    f"{_JS_NODES} abstract_class_declaration interface_declaration enum_declaration "
    "internal_module module type_alias_declaration"
)

LANGUAGES: dict[str, Language] = {
    "python": Language(
        "py pyi pyw",
        "py python3",
        interpreters="python pypy",
        signs=Signs(
            "def async class import from @ self raise try",
            r"[ \t]*(?:async )?def \w+\(|class \w+(?:\([^()\n]{0,200}\))?:[ \t]*$",
            r"import [\w.]+(?: as \w+)?(?:, ?[\w.]+)*$|from [\w.]+ import [\w(*]",
            r"[ \t]*@[\w.]+(?:\(.*)?$|if __name__ ==|[ \t]+(?:self\.\w+ = |raise \w+|try:$)",
            marks=("__name__",),
        ),
        grammar="tree_sitter_python",
        definitions="class_definition function_definition",
        separators=(
            r"\r?\nclass\b",
            r"\r?\n(?:async def|def|@)",
            r"\r?\n[ \t]+(?:async def|def|class|@)",
        ),
        signatures="python",
    ),
    "go": Language(
        "go",
        "golang",
        signs=Signs(
            "package import func type",
            r"package \w+$|import (?:\(|\"[^;]*$)|func [\w(]",
            r"type \w+ (?:struct|interface|func)\b",
            r"\t+[\w, ]+ := |\tif err != nil",
            marks=(" := ", "err != nil"),
        ),
        grammar="tree_sitter_go",
        definitions="function_declaration method_declaration type_spec",
        separators=_lines("func", "type|var|const", _FLOW),
        signatures="keywords",
    ),
    "rust": Language(
        "rs",
        "rs",
        signs=Signs(
            "pub async unsafe fn trait impl mod use struct enum # let",
            r"[ \t]*(?:pub(?:\(\w+\))? )?(?:async |unsafe )?(?:fn|trait|impl|mod) .*[{;(,>]$",
            r"impl<.*[{>]$",
            r"use \w+::.*;$|(?:pub )?(?:struct|enum) \w+.*[{;]$|[ \t]*#!?\[\w.*\]$",
            r"[ \t]+let (?:mut )?\w+",
        ),
        grammar="tree_sitter_rust",
        definitions="function_item struct_item enum_item union_item trait_item impl_item mod_item "
        "macro_definition",
        separators=_lines(
            "(?:pub(?:\\([a-z]+\\))? )?(?:mod|struct|enum|trait|impl)",
            "(?:pub(?:\\([a-z]+\\))? )?(?:async |const |unsafe )*fn",
            "const|static|let|type|use",
            "if|while|for|loop|match",
        ),
        signatures="keywords",
    ),
    "java": Language(
        "java",
        "java-source",
        signs=Signs(
            f"package import abstract final class interface enum record {_MEMBER_WORDS}",
            r"package [\w.]+;|import (?:static )?[\w.]+(?:\.\*)?;",
            r"(?:public |abstract |final )*(?:class|interface|enum|record) \w+.*\{$",
            _MEMBER,
        ),
        grammar="tree_sitter_java",
        definitions=f"{_JVM_NODES} annotation_type_declaration compact_constructor_declaration",
        separators=_lines("class|interface|enum|record", _MODIFIERS, _FLOW),
        signatures="keywords",
    ),
    "csharp": Language(
        "cs",
        "c# cs",
        signs=Signs(
            f"using namespace sealed abstract partial class interface struct {_MEMBER_WORDS}",
            r"\s*using (?:static )?[\w.]+;$|namespace [\w.]+|.{0,80}\{ get;",
            r"\s*(?:(?:public|internal|sealed|abstract|partial) )+(?:class|interface|struct) ",
            _MEMBER,
            marks=("{ get;",),
        ),
        grammar="tree_sitter_c_sharp",
        definitions=f"{_JVM_NODES} namespace_declaration struct_declaration property_declaration "
        "delegate_declaration destructor_declaration local_function_statement",
        separators=_lines(
            "namespace|interface|class|enum|struct|record|delegate|event", _MODIFIERS, _FLOW
        ),
        signatures="keywords",
    ),
    "c": Language(
        "c",
        "csrc",
        signs=Signs(_C_WORDS, *_C_SIGNS),
        grammar="tree_sitter_c",
        definitions=_C_NODES,
        separators=_C_LINES,
        signatures="calls",
    ),
    # the C++ grammar reads C headers, not the other way round
    "cpp": Language(
        "cc cpp cxx h hh hpp hxx",
        "c++ c++src",
        signs=Signs(
            f"{_C_WORDS} class namespace template using std public private protected",
            *_C_SIGNS,
            r"(?:class|namespace) \w+.*\{?$|template ?<|using (?:namespace )?[\w:]+",
            r"\s+(?:const )?std::\w|#include <\w+>|(?:public|private|protected):$",
        ),
        grammar="tree_sitter_cpp",
        definitions=f"{_C_NODES} class_specifier namespace_definition",
        separators=_C_LINES,
        signatures="calls",
    ),
    "javascript": Language(
        "js mjs cjs jsx",
        "js jsx",
        interpreters="node",
        signs=Signs(_JS_WORDS, *_JS_SIGNS),
        grammar="tree_sitter_javascript",
        definitions=_JS_NODES,
        separators=_JS_LINES,
        signatures="calls",
    ),
    "typescript": Language(
        "ts mts cts",
        "ts",
        interpreters="deno",
        signs=Signs(
            f"{_JS_WORDS} declare interface type enum namespace abstract {_MEMBER_WORDS} readonly",
            *_JS_SIGNS,
            r"(?:export )?(?:declare )?(?:interface|type|enum|namespace|abstract class) \w+",
            r"\s+(?:private|public|protected|readonly) [\w ]+[?!]?[:(]",
            rf"\s*(?:\w+\??|.{{0,120}}\)): (?:{'|'.join(_TS_TYPES)})|import type ",
            marks=tuple(f": {each}" for each in _TS_TYPES),
        ),
        grammar="tree_sitter_typescript language_typescript",
        definitions=_TS_NODES,
        separators=_JS_LINES,
        signatures="calls",
    ),
    "tsx": Language(
        "tsx",
        grammar="tree_sitter_typescript language_tsx",
        definitions=_TS_NODES,
        separators=_JS_LINES,
        signatures="calls",
    ),
    "php": Language(
        "php phtml",
        interpreters="php",
        grammar="tree_sitter_php language_php",
        definitions="class_declaration interface_declaration trait_declaration enum_declaration "
        "function_definition method_declaration",
        separators=_lines("namespace|class|interface|trait|enum", f"function|{_MODIFIERS}", _FLOW),
        signatures="keywords",
    ),
    "ruby": Language(
        "rb rake gemspec",
        "rb",
        names="gemfile rakefile",
        interpreters="ruby",
        signs=Signs(
            "def end require require_relative module class attr_accessor attr_reader attr_writer",
            r"\s*def [\w.]+[?!=]?(?:\(.*\))?$|\s*end$|require(?:_relative)? ['\"]",
            r"\s*(?:module|class) [A-Z][\w:]*(?: < [\w:]+)?$|\s*attr_\w+ :|.{0,80}\bdo \|\w+",
            marks=("do |",),
        ),
        grammar="tree_sitter_ruby",
        definitions="module class method singleton_method",
        separators=_lines("module|class", "def", "if|unless|while|for|do|begin|rescue"),
    ),
    "bash": Language(
        "sh bash zsh",
        "sh shell shellscript zsh",
        names=".bashrc .bash_profile .profile .zshrc",
        interpreters="sh bash zsh dash ksh ash",
        signs=Signs(
            "fi done esac then set export readonly local = sudo apt cd echo mkdir rm cp mv curl "
            "chmod source",
            r"\s*(?:fi|done|esac|then)(?:[ ;].*)?$|.{0,120}; (?:then|do)$|set -[a-z]",
            r"\w+\(\) ?\{$",
            r"(?:export |readonly |local )?\w+=(?:[\"'$(\w/]|$)",
            r"\s*(?:sudo|apt-get|cd|echo|mkdir|rm|cp|mv|curl|chmod|source) [\w\"'$/.~-]",
            marks=("; then", "; do", "() {", "(){"),
        ),
        grammar="tree_sitter_bash",
        definitions="function_definition",
    ),
    "css": Language(
        "css",
        signs=Signs("", r"\s+[a-z-]+: ?[^;{}\n()]+;$", marks=(";\n", ";\r")),
        grammar="tree_sitter_css",
    ),
    "sql": Language(
        "sql",
        grammar="tree_sitter_sql",
        definitions="create_table create_view create_materialized_view create_function create_type",
    ),
    "yaml": Language(
        "yaml yml", "yml", grammar="tree_sitter_yaml", definitions="block_mapping_pair"
    ),
    "toml": Language(
        "toml",
        names="pipfile poetry.lock cargo.lock uv.lock",
        grammar="tree_sitter_toml",
        definitions="table table_array_element",
    ),
    "hcl": Language(
        "tf tfvars hcl",
        "terraform tf",
        signs=Signs(
            "resource data variable output provider module terraform locals",
            r"(?:resource|data) \"[\w-]+\" \"[\w-]+\" \{$",
            r"(?:variable|output|provider|module) \"[\w-]+\" \{$|(?:terraform|locals) \{$",
        ),
        grammar="tree_sitter_hcl",
        definitions="block",
        signatures="blocks",
    ),
    "cobol": Language(
        "cob cbl",
        separators=_lines(
            "IDENTIFICATION DIVISION|ENVIRONMENT DIVISION|DATA DIVISION|PROCEDURE DIVISION",
            "[A-Z-]+ SECTION",
            "IF|PERFORM|READ|WRITE|EVALUATE|STOP RUN",
        ),
    ),
    "elixir": Language(
        "ex exs",
        separators=_lines(
            "defmodule", "defp?|defmacrop?|defprotocol", "if|unless|while|case|cond|with"
        ),
    ),
    "haskell": Language(
        "hs",
        separators=_lines(
            "module|import",
            "data|newtype|type|class|instance",
            "[a-z][A-Za-z0-9_']* ::",
            "where|let",
        ),
    ),
    "kotlin": Language(
        "kt kts",
        separators=_lines(
            "class|interface|object|enum class", f"fun|{_MODIFIERS}", "val|var", _FLOW
        ),
        signatures="keywords",
    ),
    "lua": Language(
        "lua",
        interpreters="lua",
        signs=Signs(
            "local function end",
            r"\s*local (?:function )?\w[\w, ]*(?: = |\(|$)|\s*function [\w.:]+\([\w, .]*\)$",
            r"\s*end$",
        ),
        separators=_lines("local function|function", "local", "if|for|while|repeat|return"),
    ),
    "perl": Language(
        "pl pm",
        interpreters="perl",
        signs=Signs(
            "use sub my =",
            r"use (?:strict|warnings|vars|[A-Z]\w+)\b.*;$|sub \w+|\s*my [$@%(]|=head1 ",
        ),
        separators=_lines(
            "package", "sub", "my|our|local", "if|unless|for|foreach|while|until|return"
        ),
    ),
    "powershell": Language(
        "ps1 psm1",
        interpreters="pwsh",
        separators=_lines("class|function", "param", "if|foreach|for|while|switch|try|catch"),
    ),
    "proto": Language(
        "proto",
        signs=Signs(
            "syntax message rpc option",
            r"syntax = |message \w+ \{|\s+rpc \w+|\s+[\w. ]+ \w+ = \d+;|option \w+ = ",
            marks=(" = 1;", " = 2;", " = 3;"),
        ),
        separators=_lines("package|import|syntax", "message|service|enum", "rpc|option|oneof"),
    ),
    "r": Language(
        "r",
        interpreters="rscript",
        separators=_lines(
            r"[A-Za-z.][\w.]* *(?:<-|=) *function", "setClass|setMethod|setGeneric", "if|for"
        ),
    ),
    "scala": Language(
        "scala sc",
        separators=_lines("class|object|trait|enum", "def", "val|var", "if|for|while|match|case"),
        signatures="keywords",
    ),
    "sol": Language(
        "sol",
        separators=_lines(
            "pragma|using|import",
            "contract|interface|library",
            "constructor|event|modifier|error|struct|enum|function",
            _FLOW,
        ),
        signatures="keywords",
    ),
    "swift": Language(
        "swift",
        grammar="tree_sitter_swift",
        definitions="class_declaration protocol_declaration function_declaration init_declaration "
        "protocol_function_declaration",
        separators=_lines("class|struct|enum|protocol|extension", "func|init", "let|var", _FLOW),
        signatures="keywords",
    ),
    "visualbasic6": Language(
        "bas frm",
        separators=_lines(
            "(?:Public |Private |Friend |Static )*(?:Sub|Function|Property|Type|Enum)",
            "Dim|Const|Public|Private",
            "If|For|While|Do|Select|With",
        ),
    ),
    "json": Language(
        "json jsonl ndjson geojson jsonc", "jsonl", grammar="tree_sitter_json", definitions="pair"
    ),
    "html": Language(
        "html htm xhtml",
        "xhtml xhtml+xml",
        grammar="tree_sitter_html",
        separators=_marks(
            "<h1", "<h2", "<h3", "<h[456]", "<(?:div|section|article|table|ul|ol|p|pre)[ >]"
        ),
    ),
    "latex": Language(
        "tex ltx latex",
        "tex",
        separators=tuple(
            rf"\r?\n[ \t]*\\{name}"
            for name in (
                r"(?:part|chapter)\*?\{",
                r"section\*?\{",
                r"subsection\*?\{",
                r"subsubsection\*?\{",
                r"begin\{",
            )
        ),
    ),
    "rst": Language(
        "rst rest",
        "restructuredtext",
        separators=(r"\r?\n(?=[^\r\n]+\r?\n[=*#^~\"'+-]{3,}[ \t]*(?:\r?\n|\Z))", *_marks(r"\.\. ")),
    ),
    "markdown": Language(
        "md markdown mdown mkd mdx qmd rmd",
        "md",
        separators=_marks(
            "# ", "## ", "### ", "####+ ", "```", r"[ \t]*(?:\*\*\*+|---+|___+)[ \t]*\r?\n"
        ),
    ),
}
"""Every language by its name, in the order in which equally good signs are preferred."""

_BY_ALIAS = {
    alias: name for name, each in LANGUAGES.items() for alias in (name, *each.aliases.split())
}
_UNKNOWN = Language()


def language_named(name: object) -> str | None:
    """Return the language with this name, ours or LangChain's; None if it is unknown.

    >>> language_named("TS"), language_named("klingon")
    ('typescript', None)
    """
    return _BY_ALIAS.get(str(getattr(name, "value", name)).strip().lower())


def language_record(name: object) -> Language:
    """Return the record of the language with this name; an empty one if it is unknown.

    >>> language_record("js").grammar, language_record("klingon").grammar
    ('tree_sitter_javascript', '')
    """
    return LANGUAGES.get(language_named(name) or "", _UNKNOWN)
