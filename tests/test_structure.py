"""The shape of the package: the catalogue, the direction of imports, names, and lazy imports."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

import rag_splitters
import rag_splitters.langchain
import rag_splitters.llama_index
from rag_splitters import CATALOGUE

PACKAGE = Path(rag_splitters.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
MOST_LINES = 300

every_file = pytest.mark.parametrize(
    "path", FILES, ids=[str(path.relative_to(PACKAGE)) for path in FILES]
)
every_strategy = pytest.mark.parametrize("name", CATALOGUE)

FRONT_ENDS = {"langchain": "TextSplitter", "llama_index": "NodeParser"}


@lru_cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


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
    for module in (rag_splitters, rag_splitters.chunkers, sys.modules[chunker.__module__]):
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
def test_catalogue_front_end_is_a_two_line_class(name: str, front_end: str) -> None:
    suffix, stem = FRONT_ENDS[front_end], camel(name)
    module = sys.modules[f"rag_splitters.{front_end}"]
    wanted = (
        f"class {stem}{suffix}({stem}Chunker, Chunker{suffix}):\n"
        f'    """{"LangChain splitter" if suffix == "TextSplitter" else "LlamaIndex parser"} '
        f'for `{stem}Chunker`."""'
    )
    found = getattr(module, stem + suffix, None)
    assert found is not None, f"add to {module.__name__}:\n{wanted}"
    assert stem + suffix in module.__all__
    assert inspect.getsource(found).rstrip().replace("  # type: ignore[misc]", "") == wanted


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
        "a paragraph 'Raises: ...'": re.search(r"^Raises: \w", text, re.MULTILINE) is not None,
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
    {"ids", "span", "sentences", "token_counts"},
    {"sizing", "boundaries", "headings", "pages"},
    {"tokens", "segmenters", "parameters"},
    {"packing", "models"},
    {"chunker", "blocks"},
    {"meaning", "tables", "syntax"},
    {"images", "routing"},
    {"chunkers"},
    {"", "frontend", "testing", "readers"},
    {"nodes", "documents", "file_loader", "file_reader"},
    {"distributed", "langchain", "llama_index", "evaluation"},
    {"parent_child"},
    {"cli", "cli_compare", "cli_index", "cli_models", "cli_parameters", "cli_play", "cli_views"}
    | {"demo", "playground"},
    {"__main__"},
)
"""Modules and packages, the lowest first; "" is the package itself. A layer's members may import
those of the layers below, and their own parts; those of the command line, and what shares its
parts, each other."""

COMMAND_LINE = LAYERS[-2]

LAYER_OF = {name: number for number, names in enumerate(LAYERS) for name in names}


def part_of(module: str) -> str:
    """The part of the package that a module belongs to."""
    return module.partition(".")[2].partition(".")[0]


def imports_at_load(body: list[ast.stmt], module: str) -> Iterator[str]:
    """The package's modules that are imported when this one is, but for TYPE_CHECKING."""
    for node in body:
        if isinstance(node, ast.If):
            if "TYPE_CHECKING" not in ast.unparse(node.test):
                yield from imports_at_load(node.body, module)
            yield from imports_at_load(node.orelse, module)
        elif isinstance(node, ast.Try):
            handlers = [part for handler in node.handlers for part in handler.body]
            yield from imports_at_load([*node.body, *handlers, *node.orelse], module)
        elif isinstance(node, ast.ClassDef):
            yield from imports_at_load(node.body, module)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if is_ours(alias.name))
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            if is_ours(node.module or ""):
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    yield (
                        inner
                        if (PACKAGE.parent / inner.replace(".", "/")).with_suffix(".py").exists()
                        else str(node.module)
                    )


def is_ours(module: str) -> bool:
    return module.partition(".")[0] == "rag_splitters"


@every_file
def test_imports_run_one_way(path: Path) -> None:
    module = module_name(path)
    part = part_of(module)
    assert part in LAYER_OF, f"give {part!r} a place in tests.test_structure.LAYERS"
    wrong = [
        other
        for other in imports_at_load(tree(path).body, module)
        if part_of(other) != part
        and LAYER_OF[part_of(other)] >= LAYER_OF[part]
        and not {part, part_of(other)} <= COMMAND_LINE
    ]
    assert wrong == [], f"{module} imports what stands beside or above it"


def test_import_test_sees_imports() -> None:
    """The rule above is not empty."""
    found = set(imports_at_load(tree(PACKAGE / "packing.py").body, "rag_splitters.packing"))
    assert found == {"rag_splitters.boundaries", "rag_splitters.sizing", "rag_splitters.span"}
    found = set(imports_at_load(tree(PACKAGE / "langchain.py").body, "rag_splitters.langchain"))
    parts = {part_of(module) for module in found}
    assert parts >= {"chunker", "chunkers", "frontend"}
    assert "parent_child" not in parts, "it is imported lazily, and for the types"


# Public names


def public_names(module: ast.Module) -> set[str]:
    """The names without an underscore that a module defines at its top level."""
    names: set[str] = set()
    for node in module.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            is_command = any(".command" in ast.unparse(mark) for mark in node.decorator_list)
            names |= set() if is_command else {node.name}
        elif isinstance(node, ast.Assign) and "TypeVar(" in ast.unparse(node.value):
            continue
        elif isinstance(node, ast.Assign):
            targets = [leaf for target in node.targets for leaf in ast.walk(target)]
            names |= {leaf.id for leaf in targets if isinstance(leaf, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return {name for name in names if not name.startswith("_") and name != "logger"}


def order(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest, as ruff sorts `__all__`."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


@every_file
def test_public_names_are_in_all(path: Path) -> None:
    module = importlib.import_module(module_name(path)) if path.name != "__main__.py" else None
    names = getattr(module, "__all__", None)
    if names is None:
        assert not public_names(tree(path)), f"{path.name} has public names and no __all__"
        return
    assert list(names) == sorted(names, key=order)
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
    done = subprocess.run(
        [sys.executable, "-c", shown],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


HEAVY = {"numpy", "chromadb", "tiktoken", "spacy", "nltk", "tokenizers", "transformers", "pypdf"}
HEAVY |= {"pandas", "pyarrow", "pyspark", "ray"}


@pytest.mark.parametrize(
    ("code", "forbidden"),
    [
        ("import rag_splitters", HEAVY),
        ("import rag_splitters.chunkers, rag_splitters.testing, rag_splitters.models", HEAVY),
        ("import rag_splitters.distributed.ray, rag_splitters.distributed.spark", HEAVY),
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


# Style that a linter does not hold


@every_file
def test_file_is_short(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").count("\n")
    classes = 5 * len(CATALOGUE) if path.stem in FRONT_ENDS else 0  # two lines each, and space
    assert lines <= MOST_LINES + classes, f"{path.name} has {lines} lines: cut it at a concept"


@every_file
def test_file_does_not_print(path: Path) -> None:
    calls = [
        node.lineno
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("print", "pprint", "breakpoint")
    ]
    assert path.stem == "cli" or calls == []
