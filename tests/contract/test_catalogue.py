"""The catalogue of strategies, and what an import of the package loads.

That imports run one way is a rule of import-linter, and that public names have docstrings one of
ruff; see pyproject.toml.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import rag_splitters
from rag_splitters import CATALOGUE
from rag_splitters.parameters.descriptions import field_descriptions
from tests.support.forms import FRAMEWORKS, front_end_class
from tests.support.processes import run_python

PACKAGE = Path(rag_splitters.__file__).parent


def test_catalogue_names_the_class_the_file_and_the_front_ends() -> None:
    for name, chunker in CATALOGUE.items():
        stem = "".join(part.capitalize() for part in name.split("_"))
        assert chunker.__name__ == f"{stem}Chunker"
        assert chunker.__module__ == f"rag_splitters.chunkers.{name}"
        for module in (rag_splitters, rag_splitters.chunkers):
            assert chunker.__name__ in module.__all__
            assert getattr(module, chunker.__name__) is chunker
        for framework, suffix in FRAMEWORKS.items():
            module = getattr(rag_splitters, framework)
            front_end = front_end_class(name, framework)
            assert front_end.__name__ in module.__all__
            assert issubclass(front_end, chunker)
            assert issubclass(front_end, getattr(module, f"Chunker{suffix}"))


def test_catalogue_has_every_chunker_of_the_package() -> None:
    """No strategy is written and then forgotten."""
    forgotten = {
        each.__qualname__
        for path in (PACKAGE / "chunkers").glob("*.py")
        for each in vars(import_module(f"rag_splitters.chunkers.{path.stem}")).values()
        if inspect.isclass(each) and each.__name__.endswith("Chunker")
        if each.__module__.startswith("rag_splitters.chunkers.")
    } - {chunker.__name__ for chunker in CATALOGUE.values()}
    assert forgotten == set()


def test_docstrings_of_strategies_have_every_part() -> None:
    lacking = []
    for chunker in CATALOGUE.values():
        text = inspect.getdoc(chunker) or ""
        first = text.partition("\n\n")[0]
        parts = {
            "a first line that ends with a full stop": "\n" not in first and first.endswith("."),
            "when to use it": re.search(r"Use it|The strategy for", " ".join(text.split())),
            "what it raises": re.search(r"^Raises:? \w", text, re.MULTILINE),
            "an example": f">>> {''}" in text,
            "its own text": text != inspect.getdoc(chunker.__mro__[1]),
        }
        lacking += [f"{chunker.__name__}: {part}" for part, found in parts.items() if not found]
    assert lacking == []


def test_every_parameter_is_described() -> None:
    """In whole sentences, which `help()`, the command line and the playground show.

    A line break between quotation marks would look like a space there.
    """
    front_ends = [
        getattr(getattr(rag_splitters, framework), f"Chunker{suffix}")
        for framework, suffix in FRAMEWORKS.items()
    ]
    for kind in [*CATALOGUE.values(), *front_ends]:
        for name, meaning in field_descriptions(kind).items():
            if name != "callback_manager":  # LlamaIndex's
                assert meaning.strip().endswith((".", "?")), f"{kind.__name__}.{name}"
                assert not re.search(r'"\s+"', meaning), f"{kind.__name__}.{name}"


# What an import loads


def loaded_by(*steps: str) -> list[list[str]]:
    """The top-level modules that a fresh process has loaded after each of the steps."""
    show = "print(*{name.partition('.')[0] for name in sys.modules})"
    code = "".join(f"{step}\n{show}\n" for step in steps)
    output = run_python(f"import contextlib, io, sys\n{code}")
    return [line.split() for line in output.splitlines()]


@pytest.mark.slow
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
        "from rag_splitters.models import HashingEmbeddings\n"
        "parameters = {'keyword': {'keywords': ['tea']}, 'entity': {'ner': lambda text: []}}\n"
        "for name in ('cluster', 'embedding', 'semantic'):\n"
        "    parameters[name] = {'embeddings': HashingEmbeddings()}\n"
        "parameters['agentic'] = {'llm': lambda prompt: '1'}\n"
        "parameters['contextual'] = {'llm': lambda prompt: 'About tea.'}\n"
        "parameters['proposition'] = {'llm': lambda prompt: '1-1: Tea is green.'}\n"
        "for name in CATALOGUE.keys() - {'topic'}:\n"
        "    for unit in ('characters', 'words', 'tokens'):\n"
        "        chunker = CATALOGUE[name](**parameters.get(name, {}))\n"
        "        if 'length_function' in type(chunker).model_fields:\n"
        "            chunker = chunker.model_copy(update={'length_function': unit})\n"
        "        assert chunker.chunk('# Tea\\n\\nTea is green. It is hot.')\n"
    )


FRAMEWORKS_AND_HEAVY = (
    *("langchain", "langsmith", "llama_index", "chromadb", "tenacity", "sklearn", "scipy"),
    *("numpy", "tiktoken", "spacy", "nltk", "tokenizers", "transformers", "pypdfium2", "pandas"),
    *("pyarrow", "pyspark", "ray"),
)
CUT_A_TEXT = (
    "from rag_splitters import CATALOGUE, RecursiveChunker, SentenceChunker, TokenChunker\n"
    "TokenChunker(), RecursiveChunker().chunk('One.'), SentenceChunker().chunk('A b.')"
)
RUN_A_COMMAND = (
    "from rag_splitters.cli import main\n"
    "sys.argv[1:] = {}\n"
    "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
    "    main()"
)
IN_TURN: list[tuple[str, tuple[str, ...]]] = [
    ("import rag_splitters, rag_splitters.chunkers, rag_splitters.testing", FRAMEWORKS_AND_HEAVY),
    ("import rag_splitters.models, rag_splitters.chunkers.topic", FRAMEWORKS_AND_HEAVY),
    ("import rag_splitters.parent_child.stores.keyvalue", FRAMEWORKS_AND_HEAVY),
    (CUT_A_TEXT, FRAMEWORKS_AND_HEAVY),
    (RUN_A_COMMAND.format(["strategies"]), FRAMEWORKS_AND_HEAVY),
    (RUN_A_COMMAND.format(["split", "README.md"]), FRAMEWORKS_AND_HEAVY),
    (
        "import rag_splitters.distributed.ray, rag_splitters.distributed.spark",
        ("langchain", "llama_index", "chromadb", "tiktoken", "pyarrow", "pyspark", "ray"),
    ),
    (
        "import rag_splitters.parent_child.indexing, rag_splitters.parent_child.search",
        ("langchain", "llama_index", "chromadb"),
    ),
    (
        "import rag_splitters.langchain",
        ("llama_index", "chromadb", "langchain_chroma", "langchain_openai"),
    ),
]
"""Code, and how the names of modules begin that it must not load, nor what stands before it."""


@pytest.mark.slow
def test_imports_are_light_and_leave_out_the_other_framework() -> None:
    loaded = loaded_by(*(step for step, _ in IN_TURN))
    for (step, forbidden), modules in zip(IN_TURN, loaded, strict=True):
        assert [name for name in modules if name.startswith(forbidden)] == [], step
    assert "langchain_core" in loaded[-1]


@pytest.mark.slow
def test_import_of_llama_index_leaves_out_langchain() -> None:
    (loaded,) = loaded_by("import rag_splitters.llama_index")
    assert [name for name in loaded if name.startswith(("langchain", "chromadb"))] == []
    assert "llama_index" in loaded
