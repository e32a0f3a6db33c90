"""The catalogue of strategies, and what an import of the package loads.

That imports run one way is a rule of import-linter, and that public names have docstrings one of
ruff; see pyproject.toml.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import rag_splitters
import rag_splitters.langchain
import rag_splitters.llama_index
from rag_splitters import CATALOGUE
from rag_splitters.parameters.descriptions import field_descriptions
from tests.support.processes import run_python

PACKAGE = Path(rag_splitters.__file__).parent

every_strategy = pytest.mark.parametrize("name", CATALOGUE)

FRONT_ENDS = {"langchain": "TextSplitter", "llama_index": "NodeParser"}


@lru_cache
def tree(path: Path) -> ast.Module:
    text = path.read_text(encoding="utf-8")
    with suppress(SystemError):  # CPython 3.11, if garbage is collected meanwhile (gh-106905)
        return ast.parse(text)
    return ast.parse(text)


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


def test_every_parameter_is_described() -> None:
    """In a whole sentence, which `help()`, the command line and the playground show."""
    front_ends = [
        getattr(sys.modules[f"rag_splitters.{front_end}"], f"Chunker{suffix}")
        for front_end, suffix in FRONT_ENDS.items()
    ]
    assert [
        f"{kind.__name__}.{name}"
        for kind in [*CATALOGUE.values(), *front_ends]
        for name, meaning in field_descriptions(kind).items()
        if not meaning.strip().endswith((".", "?")) and name != "callback_manager"  # LlamaIndex's
    ] == []


# What an import loads


def loaded_by(code: str) -> set[str]:
    """The top-level modules that a fresh process has loaded after this code."""
    shown = f"{code}\nimport sys\nprint(*sorted({{m.partition('.')[0] for m in sys.modules}}))"
    return set(run_python(shown).split())


def test_strategies_need_only_what_the_page_installs() -> None:
    """`docs/start/python.md` says what to install where the frameworks have no room."""
    page = (PACKAGE.parent / "docs" / "start" / "python.md").read_text(encoding="utf-8")
    lines = re.search(r"--no-deps \.\npip install (.+)", page)
    assert lines is not None
    names, waiting = set[str](), lines[1].split()
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name not in names:
            names.add(name)
            needed = map(Requirement, requires(name) or ())
            waiting += [
                each.name for each in needed if each.marker is None or each.marker.evaluate()
            ]
    modules = sorted(
        module
        for module, owners in packages_distributions().items()
        if names.isdisjoint(map(canonicalize_name, owners)) and module != "rag_splitters"
    )
    run_python(
        f"import sys\nsys.modules.update(dict.fromkeys({modules}))\n"
        "from rag_splitters import CATALOGUE\n"
        "parameters = {'keyword': {'keywords': ['tea']}}\n"
        "others = 'agentic cluster embedding entity proposition semantic topic'\n"
        "for name in CATALOGUE.keys() - set(others.split()):\n"
        "    for unit in ('characters', 'words', 'tokens'):\n"
        "        chunker = CATALOGUE[name](**parameters.get(name, {}))\n"
        "        if 'length_function' in type(chunker).model_fields:\n"
        "            chunker = chunker.model_copy(update={'length_function': unit})\n"
        "        assert chunker.chunk('# Tea\\n\\nTea is green. It is hot.')\n"
    )


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
