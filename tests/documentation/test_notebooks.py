"""The notebooks under examples/ run from the first cell to the last, with a key and without."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import llama_index.core
import nbformat
import pytest
from nbclient import NotebookClient

from tests.support.doc_blocks import quote_or_shout
from tests.support.openai_server import OpenAIServer

FOLDER = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
NAMES = [path.stem for path in NOTEBOOKS]
TOKENS = Path(llama_index.core.__file__).parent / "_static" / "tiktoken_cache"


def execute(path: Path, folder: Path) -> list[Any]:
    """The outputs of a notebook that was run in a folder. A cell that fails raises its error."""
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(
        notebook, timeout=300, startup_timeout=300, kernel_name="python3", resources=resources
    ).execute()
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def test_there_are_notebooks() -> None:
    assert NAMES == [
        "choosing_a_strategy",
        "parent_child",
        "quickstart_langchain",
        "quickstart_llama_index",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "has_key"),
    [
        ("choosing_a_strategy", True),
        ("parent_child", False),
        pytest.param("parent_child", True, marks=pytest.mark.nightly),
        ("quickstart_langchain", True),
        pytest.param("quickstart_llama_index", False, marks=pytest.mark.nightly),
        ("quickstart_llama_index", True),
    ],
)
def test_notebook_runs(
    name: str, has_key: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(TOKENS))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with OpenAIServer(quote_or_shout) as server:
        if has_key:
            monkeypatch.setenv("OPENAI_API_KEY", "any")
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            monkeypatch.setenv("OPENAI_API_BASE", server.url)  # LlamaIndex reads this one
        outputs = execute(FOLDER / f"{name}.ipynb", tmp_path)
    assert bool(server.requests) == has_key
    displays = [output.data.get("text/html", "") for output in outputs if "data" in output]
    assert any("background" in html for html in displays), "no chunks are shown in colours"
    printed = "".join(output.text for output in outputs if output.get("name") == "stdout")
    if has_key and name.startswith("quickstart"):
        assert "\nTrue " in printed, "the answer quotes no passage"
    if name == "choosing_a_strategy":
        assert any("report.html" in html for html in displays), "no chart is shown"
        assert "winner: " in printed or "No clear winner: " in printed
        assert {path.suffix for path in (tmp_path / "samples").iterdir()} == {
            ".docx",
            ".md",
            ".pdf",
        }
    errors = [output.text for output in outputs if output.get("name") == "stderr"]
    assert all("TqdmWarning" in text for text in errors), errors  # there are no widgets


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_notebook_is_committed_without_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
        assert not re.search(r"/home/|/root/|/Users/", cell.source)
