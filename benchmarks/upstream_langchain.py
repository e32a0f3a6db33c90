"""LangChain's own tests of its splitters, run with ours in their place.

    python benchmarks/upstream_langchain.py [pytest's options]

The tests come from the source distributions on the package index, which pip downloads into a
temporary folder; nothing of them is kept. docs/migration/langchain.md explains each failure.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from rag_splitters import langchain as ours

TESTS = {
    "langchain-text-splitters==1.1.3": "tests/unit_tests",
    "langchain-experimental==0.4.2": "tests/unit_tests/test_text_splitter.py",
    "langchain-classic==1.0.8": "tests/unit_tests/retrievers/test_parent_document.py",
}
STAND_INS = {
    "RecursiveCharacterTextSplitter": ours.RecursiveTextSplitter,
    "CharacterTextSplitter": ours.SeparatorTextSplitter,
    "TokenTextSplitter": ours.TokenTextSplitter,
    "PythonCodeTextSplitter": partial(ours.RecursiveTextSplitter.from_language, "python"),
}


def download(requirement: str, folder: Path) -> Path:
    """Download a source distribution, and return the folder that it unpacks to."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary=:all:"]
    subprocess.run([*command, "--dest", str(folder), requirement], check=True)
    prefix = requirement.replace("-", "_").replace("==", "-")
    with tarfile.open(folder / f"{prefix}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder / prefix


def replace_splitters() -> None:
    """Put our classes where the tests import LangChain's from."""
    for name in ("", ".character", ".python"):
        module = import_module(f"langchain_text_splitters{name}")
        for splitter in STAND_INS.keys() & vars(module):
            setattr(module, splitter, STAND_INS[splitter])
    package, module = ModuleType("experimental"), ModuleType("text_splitter")
    module.__dict__["SemanticChunker"] = ours.SemanticTextSplitter
    sys.modules["langchain_experimental"] = package
    sys.modules["langchain_experimental.text_splitter"] = module


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        replace_splitters()
        sys.exit(pytest.main(sys.argv[2:]))
    with tempfile.TemporaryDirectory() as folder:
        for requirement, path in TESTS.items():
            command = [sys.executable, str(Path(__file__).resolve()), "--inside"]
            options = ["-q", "-p", "no:cacheprovider", "--no-header", "--tb=line", *sys.argv[1:]]
            print(requirement, flush=True)
            subprocess.run(
                [*command, *options, path], cwd=download(requirement, Path(folder)), check=False
            )
