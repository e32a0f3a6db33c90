"""The types as a user's program sees them: what mypy and pyright accept, and what they report.

Both read the package from the wheel, not from this checkout.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.distributions import Distributions, distributions  # noqa: F401  (a fixture)
from tests.support.processes import ROOT

pytestmark = pytest.mark.slow

FOLDER = ROOT / "tests" / "typing"
NAMES = ("accepted.py", "rejected.py")
_REPORT = re.compile(r"^.*?(\w+\.py):(\d+): error: (.*?)\s+\[([\w-]+)\]$")
_EXPECTED = re.compile(r"# expect: (.+)$")


class Report(NamedTuple):
    """An error: the file's name, the line and the code that the checker gives it."""

    file: str
    line: int
    code: str


class Consumer(NamedTuple):
    """A user's project: its folder, and the interpreter with the wheel and its dependencies."""

    folder: Path
    python: Path


@pytest.fixture(scope="module")
def consumer(
    distributions: Distributions,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> Consumer:
    folder = tmp_path_factory.mktemp("consumer")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
    python = folder / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(subprocess.check_output([python, "-c", code], text=True).strip())
    with zipfile.ZipFile(distributions.wheel) as wheel:
        wheel.extractall(packages)
    # Everything else comes from here. Python does not follow the .pth files of that folder, among
    # them the one of this checkout.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    for name in NAMES:
        (folder / name).write_bytes((FOLDER / name).read_bytes())
    return Consumer(folder, python)


def run_checker(arguments: list[str], consumer: Consumer) -> str:
    """What a checker prints about both files."""
    done = subprocess.run(
        [sys.executable, "-m", *arguments, *NAMES],
        cwd=consumer.folder,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def mypy(consumer: Consumer) -> list[Report]:
    """With what mypy knows from the checkout about the packages that both read: a minute less."""
    cache = consumer.folder / "mypy"
    with suppress(FileNotFoundError):
        shutil.copytree(ROOT / ".mypy_cache", cache)
    settings = [f"--config-file={ROOT / 'pyproject.toml'}", f"--cache-dir={cache}"]
    options = [*settings, "--show-error-codes", "--no-error-summary"]
    output = run_checker(["mypy", *options, f"--python-executable={consumer.python}"], consumer)
    matches = [_REPORT.match(line) for line in output.splitlines() if ": error:" in line]
    assert None not in matches, output
    return [Report(match[1], int(match[2]), match[4]) for match in matches if match]


def pyright(consumer: Consumer) -> list[Report]:
    pytest.importorskip("pyright")
    output = run_checker(["pyright", "--outputjson", f"--pythonpath={consumer.python}"], consumer)
    return [
        Report(Path(each["file"]).name, each["range"]["start"]["line"] + 1, each.get("rule", ""))
        for each in json.loads(output)["generalDiagnostics"]
        if each["severity"] == "error"
    ]


def expected(lines: Iterable[str]) -> list[tuple[int, str]]:
    """The lines of the errors that a file's comments announce, with the codes that mypy gives."""
    return [
        (number, code.strip())
        for number, line in enumerate(lines, start=1)
        if (match := _EXPECTED.search(line))
        for code in match[1].split(",")
    ]


def test_the_checkers_read_the_wheel(consumer: Consumer) -> None:
    code = "import rag_splitters; print(rag_splitters.__file__)"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    shown = subprocess.check_output(
        [consumer.python, "-c", code], text=True, cwd=consumer.folder, env=environment
    )
    assert Path(shown.strip()).is_relative_to(consumer.folder)
    assert (Path(shown.strip()).parent / "py.typed").exists()


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_checker_reports_what_is_announced_and_nothing_else(
    checker: Callable[[Consumer], list[Report]], consumer: Consumer
) -> None:
    reports = checker(consumer)
    assert [report for report in reports if report.file != "rejected.py"] == []
    announced = expected((FOLDER / "rejected.py").read_text(encoding="utf-8").splitlines())
    assert len(announced) > 35
    if checker is mypy:
        assert sorted({(report.line, report.code) for report in reports}) == sorted(announced)
    else:
        assert {report.line for report in reports} == {line for line, _ in announced}
