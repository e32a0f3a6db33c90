"""How to install an optional dependency, for error messages: from an index or from a checkout."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from rag_splitters.errors import MissingExtraError

__all__ = ["install_command", "needs"]

_NAME = "rag-splitters"


def install_command(extra: str) -> str:
    """Return the command that installs this package once more, together with an extra.

    It takes the package from where it came from: an index, a folder, a repository or a file.

    >>> from rag_splitters.extras import install_command
    >>> install_command("ner").endswith("[ner]'")
    True
    """
    folder = Path(__file__).parents[1]
    if _is_checkout(folder):
        return f"pip install -e {_quoted(f'{folder}[{extra}]')}"
    origin = _origin()
    url = origin.get("url", "")
    if url and "dir_info" in origin:
        return f"pip install {_quoted(f'{url2pathname(urlsplit(url).path)}[{extra}]')}"
    if url and "vcs_info" in origin:
        url = f"{origin['vcs_info']['vcs']}+{url}@{origin['vcs_info']['commit_id']}"
    source = f" @ {url}" if url else ""
    return f"pip install {_quoted(f'{_NAME}[{extra}]{source}')}"


@contextmanager
def needs(sentence: str, extra: str) -> Iterator[None]:
    """Turn an ImportError into one that says what needs the extra, and how to install it.

    >>> from rag_splitters.extras import needs
    >>> with needs("making tea needs a kettle", "tea"):  # doctest: +ELLIPSIS
    ...     import kettle
    Traceback (most recent call last):
    rag_splitters.errors.MissingExtraError: making tea needs a kettle: pip install ...
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(f"{sentence}: {install_command(extra)}") from error


def _is_checkout(folder: Path) -> bool:
    """Whether the package is imported from its own source tree, as after `pip install -e`."""
    try:
        return f'name = "{_NAME}"' in (folder / "pyproject.toml").read_text(encoding="utf-8")
    except OSError:
        return False


def _origin() -> dict[str, Any]:
    """Return where pip or uv took the package from, unless that was an index (PEP 610)."""
    try:
        text = distribution(_NAME).read_text("direct_url.json")
    except PackageNotFoundError:
        return {}
    return dict(json.loads(text)) if text else {}


def _quoted(argument: str) -> str:
    """Return an argument for the shell of this system, always in quotes."""
    if os.name == "nt":
        return f'"{argument}"'
    return shlex.quote(argument)
