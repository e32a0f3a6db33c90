"""The documentation: its Python runs as it is written, and its links lead somewhere.

What a page under `docs` (and README.md) may say:

- All ```python blocks of a page run in order, in one process, in an empty folder, and share names.
  `await` is allowed outside of functions.
- A ```text block directly behind a ```python block is what that block prints. A block may also be
  written as a doctest (`>>>`). `...` stands for anything. `python -m tests.support.doc_blocks PAGE`
  writes what the blocks print into the page.
- Nothing is hidden: what an example needs, such as the files that it reads, stands in a block
  before it, in `<details markdown="1">` if it is long. In README.md each block runs by itself.
- OPENAI_API_KEY and OPENAI_BASE_URL lead to the server of `tests/support/openai_server.py`, which
  embeds by hashing and answers a chat with a quotation from the passages in the prompt or, without
  passages, with the prompt in capitals. So OpenAI's classes work.
- The addresses `redis://localhost:6379/0`, `postgresql://localhost/rag` and
  `host="localhost", port=8000` (of Chroma) are replaced by those of real servers, which the tests
  start. Where such a program is not installed, the page is skipped; in CI it fails.
- Only code that needs a model, an account or a program that the tests cannot have is left out, with
  the reason in the line before it: `<!-- not run: needs a Spark cluster -->`. It must still be
  valid Python. `MAX_NOT_RUN` limits how many there are.
- ```bash and all other blocks are not run.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import rag_splitters
from rag_splitters import CATALOGUE, chunkers
from tests.support.axe import violations
from tests.support.doc_blocks import Block, PageRunner, differs, python_blocks

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
TEXTS = {path: path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *PAGES]}
BLOCKS = {path: python_blocks(text) for path, text in TEXTS.items()}
WITH_CODE = [path for path, blocks in BLOCKS.items() if blocks]
MAX_NOT_RUN = 12

REDIS, POSTGRES = "redis://localhost:6379/0", "postgresql://localhost/rag"
CHROMA = 'host="localhost", port=8000'


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def uses_servers(path: Path) -> bool:
    addresses = (REDIS, POSTGRES, CHROMA)
    return any(address in block.code for block in BLOCKS[path] for address in addresses)


@pytest.fixture(scope="module")
def runner() -> Iterator[PageRunner]:
    with PageRunner() as runner:
        yield runner


def run_page(
    path: Path, runner: PageRunner, folder: Path, places: Mapping[str, str] | None = None
) -> None:
    """Run a page's code with these places for its addresses, and compare what it prints."""
    blocks = [block for block in BLOCKS[path] if block.not_run is None]
    for address, place in (places or {}).items():
        blocks = [replace(each, code=each.code.replace(address, place)) for each in blocks]
    outputs = runner.run(name(path), blocks, folder)
    differences = [differs(*each) for each in zip(blocks, outputs, strict=True)]
    assert not any(differences), "\n".join(each for each in differences if each)


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in WITH_CODE if not uses_servers(path)], ids=name)
def test_code_of_page_runs(path: Path, runner: PageRunner, tmp_path: Path) -> None:
    run_page(path, runner, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(BLOCKS[ROOT / "README.md"])))
def test_block_of_the_readme_runs_by_itself(
    number: int, runner: PageRunner, tmp_path: Path
) -> None:
    runner.run("README.md", [BLOCKS[ROOT / "README.md"][number]], tmp_path)


@pytest.mark.server
@pytest.mark.parametrize("path", [path for path in WITH_CODE if uses_servers(path)], ids=name)
def test_code_of_page_runs_with_servers(
    path: Path,
    runner: PageRunner,
    tmp_path: Path,
    redis_url: str,
    postgres_url: str,
    chroma_server: tuple[str, int],
) -> None:
    host, port = chroma_server
    chroma = f'host="{host}", port={port}'
    run_page(path, runner, tmp_path, {REDIS: redis_url, POSTGRES: postgres_url, CHROMA: chroma})


def test_lines_of_code_fit_into_the_column() -> None:
    """At 1400 pixels, the site shows 82 characters of code; GitHub shows more of the README."""
    code = re.compile(r"^( *)```(?!text|json|jsonl|\n)\w+\n((?:.*\n)*?)\1```", re.MULTILINE)
    lines = [
        f"{name(path)}: {line}"
        for path in PAGES
        for match in code.finditer(TEXTS[path])
        for line in match[2].splitlines()
        if len(line) > 82
    ]
    assert lines == []


def test_code_that_does_not_run_has_a_reason_and_is_rare() -> None:
    left_out = [
        block for blocks in BLOCKS.values() for block in blocks if block.not_run is not None
    ]
    for block in left_out:
        assert len((block.not_run or "").split()) >= 3, f"no reason: {block.code}"
        ast.parse(block.code)
    assert len(left_out) <= MAX_NOT_RUN


@pytest.mark.slow  # as is what it stands for
def test_outputs_are_compared(runner: PageRunner) -> None:
    """The runner sees a wrong output, a wrong doctest, and what is not to be run."""
    page = "\n".join(
        [
            "```python",
            "name = 'tea'",
            "print(name)",
            "```",
            "",
            "```text",
            "t...a",
            "```",
            "<!-- not run: needs a kettle -->",
            "```python",
            "boil()",
            "```",
            "=== LangChain",
            "",
            "    ```python",
            "    import asyncio",
            "    await asyncio.sleep(0)",
            "    print(name, 'again')",
            "    ```",
            "",
            "    ```text",
            "    tea",
            "    ```",
            "",
            "```python",
            "print(1)",
            "```",
            "words between",
            "```text",
            "not an output",
            "```",
        ]
    )
    tea, kettle, again, last = python_blocks(page)
    assert (tea.line, kettle.not_run) == (2, "needs a kettle")
    assert (last.output, again.output) == (None, "tea\n")
    outputs = runner.run("page", [tea, again, last], ROOT)
    assert outputs == ["tea\n", "tea again\n", "1\n"]
    assert differs(tea, outputs[0]) is None
    assert "tea again" in (differs(again, outputs[1]) or "")
    with pytest.raises(AssertionError, match="Expected"):
        runner.run("page", [Block(">>> 1 + 1\n3\n", 1)], ROOT)
    with pytest.raises(AssertionError, match='"page", line 5'):
        runner.run("page", [Block("1 / 0\n", 5)], ROOT)


LINK = re.compile(r"(?<!!)\[[^\]\n]*(?:\n[^\]\n]*)?\]\((?P<target>[^)\s]+)\)")
FENCED = re.compile(r"^ *(`{3,}|~{3,}).*?^ *\1 *$", re.DOTALL | re.MULTILINE)


def test_links_of_the_pages_lead_to_files() -> None:
    """Also without the extra `docs`; `mkdocs build --strict` checks the anchors as well."""
    for path, text in TEXTS.items():
        for match in LINK.finditer(FENCED.sub("", text)):
            target = match["target"].split("#")[0]
            if target and not re.match(r"[a-z]+:", target):
                assert (path.parent / target).exists(), f"{name(path)} links to {target}"


@pytest.mark.parametrize("strategy", CATALOGUE)
def test_strategy_has_a_page(strategy: str) -> None:
    """It shows the parameters, the names in both frameworks, and an example with its output."""
    path = DOCS / "strategies" / f"{strategy}.md"
    kind = CATALOGUE[strategy].__name__
    stem = kind.removesuffix("Chunker")
    page = TEXTS[path]
    assert f"<!-- parameters: {kind} -->" in page
    assert f"`{stem}TextSplitter`" in page
    assert f"`{stem}NodeParser`" in page
    assert any(block.output and kind in block.code for block in BLOCKS[path])


def test_public_names_are_in_the_reference() -> None:
    """Other pages list a module's `__all__`; this one names what is not a strategy."""
    page = TEXTS[DOCS / "reference" / "index.md"]
    names = re.findall(r"<!-- reference: rag_splitters (.*) -->", page)
    assert set(names[0].split()) == set(rag_splitters.__all__) - set(chunkers.__all__)


@pytest.mark.parametrize("path", sorted(DOCS.glob("reference/*.md")), ids=name)
def test_names_of_the_reference_are_there(path: Path) -> None:
    for place, *names in map(str.split, re.findall("<!-- reference: (.+) -->", TEXTS[path])):
        module = import_module(place)
        assert [each for each in names if not hasattr(module, each)] == []


@pytest.fixture(scope="session")  # pytest-xdist may run other modules' tests in between
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    pytest.importorskip("mkdocs", reason="the site needs pip install -e '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    result = subprocess.run(
        build, cwd=ROOT, capture_output=True, text=True, check=False, env=environment
    )
    assert result.returncode == 0, result.stderr
    return folder


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["choosing", "strategies/recursive"])
def test_page_is_accessible(name: str, scheme: Any, site: Path, browser: Any) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    page.goto((site / name / "index.html").as_uri())
    assert violations(page) == []
    context.close()


@pytest.mark.slow
def test_site_builds_strictly(site: Path) -> None:
    """Every link and anchor leads somewhere, and nothing is fetched from another server."""
    guide = (site / "llms.txt").read_text(encoding="utf-8")
    assert guide.startswith("# rag_splitters")
    assert "strategies/recursive/" in guide
    assert len((site / "llms-full.txt").read_text(encoding="utf-8")) > 10 * len(guide)
    page = (site / "strategies" / "recursive" / "index.html").read_text(encoding="utf-8")
    assert "<code>chunk_overlap</code>" in page
    assert "&lt;!-- parameters" not in page
    sources = re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="?(https?://[^"> ]+)', page)
    assert [each for each in sources if "site-url-is-not-set.example" not in each] == []
