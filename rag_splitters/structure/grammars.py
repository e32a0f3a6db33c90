"""Programming languages: their names, file suffixes, grammars and definitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

GRAMMARS: dict[str, tuple[str, str]] = {
    "bash": ("tree_sitter_bash", "language"),
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
    "csharp": ("tree_sitter_c_sharp", "language"),
    "css": ("tree_sitter_css", "language"),
    "go": ("tree_sitter_go", "language"),
    "html": ("tree_sitter_html", "language"),
    "java": ("tree_sitter_java", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "json": ("tree_sitter_json", "language"),
    "php": ("tree_sitter_php", "language_php"),
    "python": ("tree_sitter_python", "language"),
    "ruby": ("tree_sitter_ruby", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "sql": ("tree_sitter_sql", "language"),
    "toml": ("tree_sitter_toml", "language"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "yaml": ("tree_sitter_yaml", "language"),
}
"""The module and entry function of each language's grammar."""

_ALIASES = {
    "c#": "csharp",
    "c++": "cpp",
    "cs": "csharp",
    "golang": "go",
    "js": "javascript",
    "jsx": "javascript",
    "md": "markdown",
    "py": "python",
    "rb": "ruby",
    "rs": "rust",
    "sh": "bash",
    "shell": "bash",
    "ts": "typescript",
    "yml": "yaml",
}

_SUFFIXES = {
    "bash": "sh bash zsh",
    "c": "c",
    "cobol": "cob cbl",
    "cpp": "cc cpp cxx h hh hpp hxx",  # the C++ grammar reads C headers, not the other way round
    "csharp": "cs",
    "css": "css",
    "elixir": "ex exs",
    "go": "go",
    "haskell": "hs",
    "html": "html htm xhtml",
    "java": "java",
    "javascript": "js mjs cjs jsx",
    "json": "json",
    "kotlin": "kt kts",
    "latex": "tex",
    "lua": "lua",
    "markdown": "md markdown",
    "perl": "pl pm",
    "php": "php phtml",
    "powershell": "ps1 psm1",
    "proto": "proto",
    "python": "py pyi pyw",
    "r": "r",
    "rst": "rst",
    "ruby": "rb rake gemspec",
    "rust": "rs",
    "scala": "scala sc",
    "sol": "sol",
    "sql": "sql",
    "swift": "swift",
    "toml": "toml",
    "tsx": "tsx",
    "typescript": "ts mts cts",
    "visualbasic6": "bas frm",
    "yaml": "yaml yml",
}
_BY_SUFFIX = {each: name for name, suffixes in _SUFFIXES.items() for each in suffixes.split()}

_JS = (
    "class_declaration class function_declaration generator_function_declaration "
    "method_definition variable_declarator"
)
_TS = (
    f"{_JS} abstract_class_declaration interface_declaration enum_declaration internal_module "
    "module type_alias_declaration"
)
_C = "function_definition struct_specifier union_specifier enum_specifier type_definition"
_JVM = (
    "class_declaration interface_declaration enum_declaration record_declaration "
    "method_declaration constructor_declaration"
)
_TYPES = {
    "bash": "function_definition",
    "c": _C,
    "cpp": f"{_C} class_specifier namespace_definition",
    "csharp": (
        f"{_JVM} namespace_declaration struct_declaration property_declaration "
        "delegate_declaration destructor_declaration local_function_statement"
    ),
    "go": "function_declaration method_declaration type_spec",
    "java": f"{_JVM} annotation_type_declaration compact_constructor_declaration",
    "javascript": _JS,
    "json": "pair",
    "php": (
        "class_declaration interface_declaration trait_declaration enum_declaration "
        "function_definition method_declaration"
    ),
    "python": "class_definition function_definition",
    "ruby": "module class method singleton_method",
    "rust": (
        "function_item struct_item enum_item union_item trait_item impl_item mod_item "
        "macro_definition"
    ),
    "sql": "create_table create_view create_materialized_view create_function create_type",
    "toml": "table table_array_element",
    "tsx": _TS,
    "typescript": _TS,
    "yaml": "block_mapping_pair",
}
DEFINITIONS: dict[str, frozenset[str]] = {
    name: frozenset(types.split()) for name, types in _TYPES.items()
}
"""For each language, the kinds of nodes that define something."""


def language_named(name: object) -> str | None:
    """The language with this name, ours or LangChain's; None if it is unknown.

    >>> language_named("TS"), language_named("klingon")
    ('typescript', None)
    """
    alias = str(getattr(name, "value", name)).strip().lower()
    language = _ALIASES.get(alias, alias)
    return language if language in _SUFFIXES else None


def language_of(metadata: Mapping[str, Any]) -> str | None:
    """The language of a document, from the `language` or the file name in its metadata.

    >>> language_of({"source": "https://example.org/src/app.py?raw=1#L10"})
    'python'
    """
    if (name := metadata.get("language")) and (language := language_named(name)):
        return language
    for key in ("file_name", "file_path", "source"):
        value = metadata.get(key)
        if value is None:
            continue
        path = _path(str(value))
        stem, dot, suffix = path.replace("\\", "/").rpartition("/")[2].rpartition(".")
        if stem and dot and (language := _BY_SUFFIX.get(suffix.lower())):
            return language
    return None


def _path(source: str) -> str:
    """The path of a URL; a file name unchanged."""
    try:
        return urlsplit(source).path if "://" in source else source
    except ValueError:
        return source
