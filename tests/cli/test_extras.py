"""The command in error messages that installs an extra."""

from __future__ import annotations

import re

import pytest

from rag_splitters import extras
from rag_splitters.extras import install_command
from tests.support.processes import ROOT

PACKAGE = ROOT / "rag_splitters"


@pytest.mark.parametrize(("system", "quote"), [("posix", "'"), ("nt", '"')])
def test_command_is_quoted_for_the_shell(
    system: str, quote: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras.os, "name", system)
    assert install_command("ner") == f"pip install {quote}rag-splitters[ner]{quote}"


def test_every_hint_comes_from_this_function_and_names_an_extra() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    names: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        code = path.read_text(encoding="utf-8")
        assert not re.search(r"""["'].*: pip install 'rag-splitters\[""", code), path
        names |= set(re.findall(r"""install_command\(["'](\w+)["']\)""", code))
        if path.name != "extras.py":
            names |= set(re.findall(r"""with needs\([^\n]*, "(\w+)"\):""", code))
    assert {"code", "ner", "office", "pdf", "play", "ray", "redis"} <= names
    assert all(re.search(rf"^{name} = \[", project, re.MULTILINE) for name in names)
