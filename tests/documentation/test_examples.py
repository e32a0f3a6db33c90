"""The examples run as they are written; `test_docs.py` runs the code in the documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.processes import run_python

MARKERS = dict.fromkeys(["index_dataset", "ray_data", "spark"], "nightly")
EXAMPLES = [
    pytest.param(path, marks=getattr(pytest.mark, MARKERS.get(path.stem, "slow")), id=path.stem)
    for path in sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_runs(example: Path, tmp_path: Path) -> None:
    code = f"import runpy; runpy.run_path({str(example)!r}, run_name='__main__')"
    assert run_python(code, cwd=tmp_path).strip()
