"""The static types: what mypy accepts, and what it must report."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "typing"
NAMES = ("accepted.py", "rejected.py")
ROOT = Path(__file__).parents[1]
_REPORT = re.compile(r"^.*?(\w+\.py):(\d+): error: (.*?)\s+\[([\w-]+)\]$")
_EXPECTED = re.compile(r"# expect: (.+)$")

Report = tuple[int, str]
"""A line and the code of an error in it."""


@pytest.fixture(scope="module")
def reports() -> dict[str, list[Report]]:
    """What `mypy --strict` reports on the files, by their names."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--show-error-codes"]
    done = subprocess.run(
        [*command, "--no-error-summary", *(str(FOLDER / name) for name in NAMES)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found: dict[str, list[Report]] = {name: [] for name in NAMES}
    for line in done.stdout.splitlines():
        if match := _REPORT.match(line):
            found.setdefault(match[1], []).append((int(match[2]), match[4]))
    return found


def expected(lines: Iterable[str]) -> list[Report]:
    """The errors that a file's comments announce."""
    return [
        (number, code.strip())
        for number, line in enumerate(lines, start=1)
        if (match := _EXPECTED.search(line))
        for code in match[1].split(",")
    ]


@pytest.mark.parametrize("name", NAMES)
def test_mypy_reports_what_is_announced_and_nothing_else(
    name: str, reports: dict[str, list[Report]]
) -> None:
    announced = expected((FOLDER / name).read_text(encoding="utf-8").splitlines())
    assert bool(announced) == (name == "rejected.py")
    assert sorted(set(reports[name])) == sorted(announced)


def test_mypy_finds_types_in_the_package(reports: dict[str, list[Report]]) -> None:
    """Without `py.typed` every name would be Any, and nothing would be reported."""
    assert (ROOT / "rag_splitters" / "py.typed").exists()
    assert len(reports["rejected.py"]) > 20
