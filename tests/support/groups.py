"""Tests that share what is slow to make: one worker of pytest-xdist runs them, one by one.

The marker `xdist_group` has no effect with pytest 9.2: pytest-xdist 3.8 puts the group's name
behind a test's id, which cannot be changed any more. So the ids themselves tell the group.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

__all__ = ["GroupScheduling", "group_of", "pytest_xdist_make_scheduler"]

GROUPS = {
    "cluster": r"distributed/test_(clusters|index)\.py",
    "crashes": r"test_crash\.py",
    "site": r"test_docs\.py::test_(page_is_accessible|site_builds)",
    "distributions": r"documentation/test_(typing|release)\.py",
    "vectors": r"test_boundaries\.py.*minilm",
    "writers": r"test_writers\.py",
}
"""What they share, and the tests: a Ray cluster and a Spark session, the built site, the wheel, the
vectors of a slow model, and processes that have imported what takes long."""


def group_of(nodeid: str) -> str:
    """The group of a test, by its id; most tests have one of their own."""
    return next((name for name, pattern in GROUPS.items() if re.search(pattern, nodeid)), nodeid)


class GroupScheduling(LoadScopeScheduling):
    """Gives each group to one worker, and all other tests to whichever is idle."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> GroupScheduling | None:
    """Keep the groups together with --dist loadgroup."""
    return GroupScheduling(config, log) if config.getoption("dist") == "loadgroup" else None
