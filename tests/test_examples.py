"""The examples, and the Python code in README.md, run as they are written."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.openai_server import OpenAIServer
from tests.processes import run_python

ROOT = Path(__file__).parent.parent
MARKERS = {"index_dataset": "ray", "ray_data": "ray", "spark": "spark"}
EXAMPLES = [
    pytest.param(path, marks=getattr(pytest.mark, MARKERS.get(path.stem, "slow")), id=path.stem)
    for path in sorted((ROOT / "examples").glob("*.py"))
]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
TEXT = "Agnes Pell kept the old lamp in her kitchen. The harbour closed in 1954."
LANGCHAIN = f"""from langchain_core.documents import Document
text = {TEXT!r}
documents = [Document(page_content=text)]
"""
LLAMA_INDEX = f"""from llama_index.core import Document, MockEmbedding, Settings, VectorStoreIndex
Settings.embed_model = MockEmbedding(embed_dim=8)
documents = [Document(text={TEXT!r})]
"""


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_runs(example: Path, tmp_path: Path) -> None:
    code = f"import runpy; runpy.run_path({str(example)!r}, run_name='__main__')"
    assert run_python(code, cwd=tmp_path).strip()


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_code_in_readme_runs(number: int, tmp_path: Path) -> None:
    code = (LLAMA_INDEX if "llama_index" in BLOCKS[number] else LANGCHAIN) + BLOCKS[number]
    core = find_spec("llama_index.core")
    assert core is not None
    assert core.origin is not None
    with OpenAIServer() as server:
        run_python(
            code,
            cwd=tmp_path,
            OPENAI_API_KEY="any",
            OPENAI_BASE_URL=server.url,
            TIKTOKEN_CACHE_DIR=str(Path(core.origin).parent / "_static" / "tiktoken_cache"),
        )
