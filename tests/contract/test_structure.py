"""The shape of the package: the catalogue, the direction of imports, names, and lazy imports."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import pytest

import rag_splitters
import rag_splitters.langchain
import rag_splitters.llama_index
from rag_splitters import CATALOGUE
from tests.support.processes import run_python

PACKAGE = Path(rag_splitters.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

every_file = pytest.mark.parametrize(
    "path", FILES, ids=[str(path.relative_to(PACKAGE)) for path in FILES]
)
every_strategy = pytest.mark.parametrize("name", CATALOGUE)

FRONT_ENDS = {"langchain": "TextSplitter", "llama_index": "NodeParser"}


@lru_cache
def tree(path: Path) -> ast.Module:
    text = path.read_text(encoding="utf-8")
    with suppress(SystemError):  # CPython 3.11, if garbage is collected meanwhile (gh-106905)
        return ast.parse(text)
    return ast.parse(text)


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# The catalogue


def camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


@every_strategy
def test_catalogue_names_the_class_and_the_file(name: str) -> None:
    chunker = CATALOGUE[name]
    assert chunker.__name__ == f"{camel(name)}Chunker"
    assert chunker.__module__ == f"rag_splitters.chunkers.{name}"
    assert (PACKAGE / "chunkers" / f"{name}.py").exists()
    for module in (rag_splitters, rag_splitters.chunkers):
        assert chunker.__name__ in module.__all__
        assert getattr(module, chunker.__name__) is chunker


def test_catalogue_has_every_chunker_of_the_package() -> None:
    """No strategy is written and then forgotten."""
    defined = {
        f"{path.stem}: {node.name}"
        for path in (PACKAGE / "chunkers").glob("*.py")
        for node in tree(path).body
        if isinstance(node, ast.ClassDef) and node.name.endswith("Chunker")
    }
    known = {f"{name}: {chunker.__name__}" for name, chunker in CATALOGUE.items()}
    assert sorted(defined - known) == []


@every_strategy
@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_catalogue_has_every_strategy_in_both_front_ends(name: str, front_end: str) -> None:
    suffix, stem = FRONT_ENDS[front_end], camel(name)
    module = sys.modules[f"rag_splitters.{front_end}"]
    kind = getattr(module, stem + suffix)
    assert stem + suffix in module.__all__
    assert issubclass(kind, CATALOGUE[name])
    assert issubclass(kind, getattr(module, f"Chunker{suffix}"))
    assert inspect.getdoc(kind)


@every_strategy
def test_catalogue_docstring_has_every_part(name: str) -> None:
    chunker = CATALOGUE[name]
    text = inspect.getdoc(chunker) or ""
    first = text.partition("\n\n")[0]
    wanted = {
        "a first line that ends with a full stop": "\n" not in first and first.endswith("."),
        "when to use it ('Use it ...' or 'The strategy for ...')": bool(
            re.search(r"Use it|The strategy for", " ".join(text.split()))
        ),
        "a paragraph 'Raises ...'": re.search(r"^Raises:? \w", text, re.MULTILINE) is not None,
        "an example": f">>> {''}" in text,
        "its own text": text != inspect.getdoc(chunker.__mro__[1]),
    }
    assert [part for part, is_there in wanted.items() if not is_there] == []


def own_fields() -> Iterator[tuple[str, type, str]]:
    """(class and field, the class, field) for every field that the package declares."""
    front_ends = [
        getattr(sys.modules[f"rag_splitters.{front_end}"], f"Chunker{suffix}")
        for front_end, suffix in FRONT_ENDS.items()
    ]
    seen = set()
    for chunker in [*CATALOGUE.values(), *front_ends]:
        for base in chunker.__mro__:
            if not base.__module__.startswith("rag_splitters") or base in seen:
                continue
            seen.add(base)
            for field in vars(base).get("__annotations__", {}):
                if field in base.model_fields:
                    yield f"{base.__name__}.{field}", base, field


FIELDS = sorted(own_fields(), key=lambda each: each[0])


@pytest.mark.parametrize(("base", "field"), [f[1:] for f in FIELDS], ids=[f[0] for f in FIELDS])
def test_catalogue_field_has_a_docstring(base: type, field: str) -> None:
    body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0].body  # type: ignore[attr-defined]
    following = [
        after
        for node, after in zip(body, [*body[1:], None], strict=True)
        if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == field
    ]
    assert len(following) == 1
    node = following[0]
    assert isinstance(node, ast.Expr), f"write a docstring below {base.__name__}.{field}"
    assert isinstance(node.value, ast.Constant)
    assert isinstance(node.value.value, str)
    assert node.value.value.strip()[-1] in ".?"


# Imports run one way

LAYERS = (
    {"span", "calls", "extras", "sqlite"},
    {"text"},
    {"fields"},
    {"structure", "models"},
    {"meaning"},
    {"chunker"},
    {"chunkers"},
    {"", "testing", "reading"},
    {"parent_child"},
    {"distributed", "evaluation", "docling"},
    {"langchain", "llama_index"},
    {"web"},
    {"playground", "azure"},
    {"cli"},
    {"__main__"},
)
"""Top-level modules and folders, the lowest first; "" is the package itself. Each may import its
own parts and the layers below it."""

LAYER_OF = {name: number for number, names in enumerate(LAYERS) for name in names}
MODULES = {module_name(path): path for path in FILES}


def part_of(module: str) -> str:
    """The top-level module or folder that a module belongs to."""
    return module.partition(".")[2].partition(".")[0]


def imports_of(path: Path) -> set[str]:
    """The package's modules that a file imports: at its top, in functions and for types."""
    modules: set[str] = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names if alias.name in MODULES}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                modules |= {inner if inner in MODULES else str(node.module)} & MODULES.keys()
    return modules - {module_name(path)}


GRAPH = {module: imports_of(path) for module, path in MODULES.items()}


@every_file
def test_imports_run_one_way(path: Path) -> None:
    part = part_of(module_name(path))
    assert part in LAYER_OF, f"give {part!r} a place in tests.contract.test_structure.LAYERS"
    wrong = [
        other
        for other in imports_of(path)
        if part_of(other) != part and LAYER_OF[part_of(other)] >= LAYER_OF[part]
    ]
    assert wrong == [], f"{module_name(path)} imports what stands beside or above it"


def cycle_in(graph: dict[str, set[str]]) -> list[str]:
    """A cycle of imports, or nothing."""
    state: dict[str, int] = {}

    def visit(module: str, trail: list[str]) -> list[str]:
        if state.get(module) == 2:
            return []
        if state.get(module) == 1:
            return [*trail[trail.index(module) :], module]
        state[module] = 1
        for other in sorted(graph.get(module, ())):
            if cycle := visit(other, [*trail, module]):
                return cycle
        state[module] = 2
        return []

    return next((cycle for module in sorted(graph) if (cycle := visit(module, []))), [])


def test_no_file_imports_itself_through_others() -> None:
    assert cycle_in(GRAPH) == []


def test_cycle_test_sees_cycles_and_imports_in_functions() -> None:
    """The rules above are not empty."""
    assert cycle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert "rag_splitters.text.sizing" in GRAPH["rag_splitters.text.packing"]
    assert "rag_splitters.parent_child.redis" in GRAPH["rag_splitters.langchain.kvstores"]


def test_only_front_ends_and_what_stands_above_import_a_framework() -> None:
    frameworks = ("langchain", "llama_index")
    importing = set()
    for path in FILES:
        for node in ast.walk(tree(path)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.startswith(frameworks) for name in names):
                importing.add(part_of(module_name(path)))
    allowed = {"langchain", "llama_index", "models", "testing", "cli", "playground", "evaluation"}
    assert importing <= allowed


def test_few_modules_lie_at_the_top() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= 9


@pytest.mark.parametrize("folder", sorted({p.parent for p in FILES} - {PACKAGE}), ids=str)
def test_folder_says_what_belongs_there(folder: Path) -> None:
    assert len((ast.get_docstring(tree(folder / "__init__.py")) or "").splitlines()) >= 2


# Public names


def public_names(module: ast.Module) -> set[str]:
    """The names without an underscore that a module defines at its top level."""
    names: set[str] = set()
    for node in module.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            is_command = any(".command" in ast.unparse(mark) for mark in node.decorator_list)
            names |= set() if is_command else {node.name}
        elif isinstance(node, ast.Assign) and ast.unparse(node.value).startswith(
            ("TypeVar(", "ParamSpec(")
        ):
            continue
        elif isinstance(node, ast.Assign):
            targets = [leaf for target in node.targets for leaf in ast.walk(target)]
            names |= {leaf.id for leaf in targets if isinstance(leaf, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return {name for name in names if not name.startswith("_") and name != "logger"}


@every_file
def test_all_lists_what_a_module_exports(path: Path) -> None:
    """A package's `__init__` lists its names; elsewhere, those without underscore are public."""
    module = importlib.import_module(module_name(path)) if path.name != "__main__.py" else None
    names = getattr(module, "__all__", None)
    if names is None:
        assert path.name != "__init__.py" or not public_names(tree(path))
        return
    assert len(set(names)) == len(names)
    assert [name for name in names if not hasattr(module, name)] == []
    assert sorted(public_names(tree(path)) - set(names)) == [], "neither in __all__ nor private"


@every_file
def test_public_functions_and_classes_have_docstrings(path: Path) -> None:
    assert ast.get_docstring(tree(path)) or not tree(path).body, "the module has no docstring"
    missing = [
        node.name
        for node in tree(path).body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
        and node.name != "__getattr__"
    ]
    assert missing == []


# What an import loads


def loaded_by(code: str) -> set[str]:
    """The top-level modules that a fresh process has loaded after this code."""
    shown = f"{code}\nimport sys\nprint(*sorted({{m.partition('.')[0] for m in sys.modules}}))"
    return set(run_python(shown).split())


HEAVY = {
    "numpy",
    "chromadb",
    "tiktoken",
    "spacy",
    "nltk",
    "tokenizers",
    "transformers",
    "pypdfium2",
}
HEAVY |= {"pandas", "pyarrow", "pyspark", "ray"}


@pytest.mark.parametrize(
    ("code", "forbidden"),
    [
        ("import rag_splitters", HEAVY),
        ("import rag_splitters.chunkers, rag_splitters.testing, rag_splitters.models", HEAVY),
        (
            "import rag_splitters.distributed.ray, rag_splitters.distributed.spark",
            HEAVY - {"numpy"},
        ),
        (
            "from rag_splitters import CATALOGUE, RecursiveChunker, SentenceChunker, TokenChunker\n"
            "TokenChunker(), RecursiveChunker().chunk('One.'), SentenceChunker().chunk('A b.')",
            HEAVY,
        ),
    ],
)
def test_import_of_the_core_is_light(code: str, forbidden: set[str]) -> None:
    loaded = loaded_by(code)
    frameworks = {m for m in loaded if m.startswith(("langchain", "langsmith", "llama_index"))}
    assert "rag_splitters" in loaded
    assert (frameworks | loaded) & (forbidden | frameworks) == set()


@pytest.mark.parametrize(
    ("module", "forbidden"),
    [
        ("langchain", ("llama_index", "chromadb", "langchain_chroma", "langchain_openai")),
        ("llama_index", ("langchain", "chromadb")),
    ],
)
def test_import_of_a_front_end_leaves_the_other_out(
    module: str, forbidden: tuple[str, ...]
) -> None:
    loaded = loaded_by(f"import rag_splitters.{module}")
    assert {name for name in loaded if name.startswith(forbidden)} == set()
    assert f"{module.replace('langchain', 'langchain_core')}" in loaded
