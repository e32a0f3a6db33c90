"""What the reports share: their text without colours, and files of it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from rich.console import Console


def plain_text(renderable: Any) -> str:
    """What rich would print in a terminal, without colours; the same in a notebook."""
    console = Console(
        file=io.StringIO(),
        color_system=None,
        force_jupyter=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def write(content: str, path: str | Path | None) -> str:
    """The content, also written to `path` if there is one; lone surrogates are escaped there."""
    if path is not None:
        with Path(path).open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            file.write(content)
    return content
