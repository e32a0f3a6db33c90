"""The command in error messages that installs an extra: it fits how the package was installed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rag_splitters import extras
from rag_splitters.extras import install_command
from tests.support.processes import ROOT

PACKAGE = ROOT / "rag_splitters"


class Distribution:
    """An installed distribution with this origin."""

    def __init__(self, origin: dict[str, object] | None) -> None:
        self.origin = origin

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return None if self.origin is None else json.dumps(self.origin)


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'rag-splitters[ner]'"),
        ({"url": "file:///srv/my%20code", "dir_info": {}}, "pip install '/srv/my code[ner]'"),
        (
            {"url": "https://a.example/r.git", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}},
            "pip install 'rag-splitters[ner] @ git+https://a.example/r.git@c0ffee'",
        ),
        (
            {"url": "https://a.example/r.whl", "archive_info": {}},
            "pip install 'rag-splitters[ner] @ https://a.example/r.whl'",
        ),
    ],
    ids=["index", "folder", "repository", "file"],
)
def test_command_takes_the_package_from_where_it_came(
    origin: dict[str, object] | None,
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(extras, "__file__", str(tmp_path / "rag_splitters" / "extras.py"))
    monkeypatch.setattr(extras, "distribution", lambda name: Distribution(origin))
    monkeypatch.setattr(extras.os, "name", "posix")
    assert install_command("ner") == command


def test_in_a_checkout_the_command_installs_the_checkout() -> None:
    assert install_command("ner") == f"pip install -e '{ROOT}[ner]'"


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
