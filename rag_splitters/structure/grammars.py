"""Programming languages: their grammars and definitions."""

from __future__ import annotations

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
