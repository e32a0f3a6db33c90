"""What our own package has logged."""

from __future__ import annotations

import pytest


def own_messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The messages of our package; threads of others log at any time."""
    ours = (each for each in caplog.records if each.name.startswith("rag_splitters"))
    return [each.getMessage() for each in ours]
