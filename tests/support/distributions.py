"""The source distribution and the wheel of this checkout, as pytest's fixture."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from uv import find_uv_bin

from tests.support.processes import ROOT

__all__ = ["Distributions", "distributions"]


class Distributions(NamedTuple):
    """What is published.

    Parameters:
        sdist: the source distribution.
        wheel: the wheel, which is built from it.
    """

    sdist: Path
    wheel: Path


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    """Build both, as the release does."""
    folder = tmp_path_factory.mktemp("dist")
    command = [find_uv_bin(), "build", "--quiet", "--python", sys.executable]
    done = subprocess.run(
        [*command, "--out-dir", str(folder), str(ROOT)],
        env={**os.environ, "UV_LINK_MODE": "copy"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return Distributions(sdist, wheel)
