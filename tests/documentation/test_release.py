"""What surrounds the package: its metadata, the workflows, and files for contributors."""

from __future__ import annotations

import inspect
import re
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.specifiers import SpecifierSet

import rag_splitters
from rag_splitters import llama_index
from tests.support.distributions import Distributions, distributions  # noqa: F401  (a fixture)
from tests.support.processes import ROOT

REPOSITORY = "https://github.com/rag-splitters/rag-splitters"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
YAML_FILES = [
    *sorted((ROOT / ".github").rglob("*.yml")),
    ROOT / ".pre-commit-config.yaml",
    ROOT / "CITATION.cff",
]

pytestmark = pytest.mark.skipif(not WORKFLOWS, reason="a source distribution has no workflows")


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def project() -> str:
    return (ROOT / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", YAML_FILES, ids=lambda path: path.name)
def test_yaml_is_valid(path: Path) -> None:
    assert isinstance(read(path), dict)


def test_citation_has_the_version_of_the_package() -> None:
    citation = read(ROOT / "CITATION.cff")
    assert citation["version"] == rag_splitters.__version__
    assert citation["cff-version"] == "1.2.0"
    assert {"title", "message", "authors"} <= citation.keys()
    assert citation["repository-code"] == REPOSITORY


def test_every_address_of_the_repository_is_the_same() -> None:
    names = ("CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "README.md", "pyproject.toml")
    for path in [*YAML_FILES, *(ROOT / name for name in names)]:
        text = path.read_text(encoding="utf-8")
        assert set(re.findall(r"https://github\.com/rag-splitters/[\w-]+", text)) <= {REPOSITORY}


def test_actions_are_pinned_by_version_and_permissions_are_minimal() -> None:
    for path in WORKFLOWS:
        workflow = read(path)
        assert workflow["permissions"] in ({}, {"contents": "read"}), path.name
        for name, job in workflow["jobs"].items():
            writes = {key for key, value in job.get("permissions", {}).items() if value == "write"}
            assert writes <= {"id-token", "pages"}, (path.name, name)
            assert "uses" in job or "timeout-minutes" in job, (path.name, name)
            for step in job.get("steps", ()):
                if "uses" in step:
                    assert re.search(r"@v\d+(\.\d+\.\d+)?$", step["uses"]), step["uses"]


def test_release_builds_and_publishes_in_separate_jobs() -> None:
    jobs = read(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["needs"] == ["tests", "build", "compile"]
    assert not any("run" in step for step in jobs["publish"]["steps"])
    for name in ("build", "compile"):
        assert "id-token" not in jobs[name]["permissions"]


def test_workflow_tests_every_version_of_python_on_three_systems() -> None:
    matrix = read(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]["test"]["strategy"][
        "matrix"
    ]
    classifiers = re.findall(r"Python :: (3\.\d+)\"", project())
    assert matrix["python"] == classifiers
    (lowest,) = re.findall(r'requires-python = "(.*)"', project())
    assert classifiers[0] in SpecifierSet(lowest)
    systems = {*matrix["system"], *(each["system"] for each in matrix["include"])}
    assert {name.partition("-")[0] for name in systems} == {"ubuntu", "macos", "windows"}


def test_llamahub_lists_every_class_of_the_front_end() -> None:
    section = project().partition("[tool.llamahub.class_authors]\n")[2].partition("\n\n")[0]
    listed = re.findall(r"^(\w+) = ", section, re.MULTILINE)
    classes = {
        name
        for name in llama_index.__all__
        if inspect.isclass(getattr(llama_index, name)) and name != "ChunkerNodeParser"
    }
    assert listed == sorted(classes)
    assert 'import_path = "rag_splitters.llama_index"' in project()


def test_contributing_explains_every_marker() -> None:
    markers = re.findall(r'^    "(\w+): .*left out by default",$', project(), re.MULTILINE)
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", guide, re.MULTILINE) == markers


@pytest.mark.slow
def test_wheel_holds_the_package_alone(distributions: Distributions) -> None:  # noqa: F811
    with zipfile.ZipFile(distributions.wheel) as wheel:
        names = wheel.namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"rag_splitters"}
    files = {name for name in names if name.startswith("rag_splitters/")}
    assert "rag_splitters/py.typed" in files
    assert files == {path for path in tracked_files() if path.startswith("rag_splitters/")}
    licences = {name.partition(".dist-info/licenses/")[2] for name in names} - {""}
    listed = project().partition("license-files = [")[2].partition("]")[0]
    assert licences == set(re.findall(r'"(.*)"', listed))


@pytest.mark.slow
def test_source_distribution_holds_what_its_users_need(
    distributions: Distributions,  # noqa: F811
) -> None:
    with tarfile.open(distributions.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    names -= {"PKG-INFO"}
    left_out = (".github/", ".ci/", ".pre-commit-config.yaml")
    assert names == {path for path in tracked_files() if not path.startswith(left_out)}


def tracked_files() -> set[str]:
    """The files in Git, or added to the folder and not ignored."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    output = subprocess.check_output(command, cwd=ROOT, text=True)
    return {path for path in output.splitlines() if (ROOT / path).exists()}
