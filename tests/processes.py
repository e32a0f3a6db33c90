"""Python code in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def run_python(
    code: str, *, cwd: Path = ROOT, stdin: str | None = None, **environment: str | None
) -> str:
    """What a process prints that must succeed; None removes a variable from its environment."""
    merged = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        input=stdin,
        env={name: value for name, value in merged.items() if value is not None},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
