"""Settings of the whole suite, and which tests run by default.

Tests that are slow, or that need servers, a browser, Ray, Spark or models, carry a marker. They run
with --all, with an expression of markers (-m server), or if they are named one by one (file::test).
"""

from __future__ import annotations

import gc
import os
import signal
import tempfile
from pathlib import Path

import certifi
import pytest
from hypothesis import HealthCheck, settings

from tests.support.browser import browser  # noqa: F401
from tests.support.clusters import ray, spark  # noqa: F401
from tests.support.groups import pytest_xdist_make_scheduler  # noqa: F401
from tests.support.servers import (  # noqa: F401
    chroma_process,
    chroma_server,
    collection_name,
    postgres_process,
    postgres_url,
    redis_process,
    redis_url,
)
from tests.support.stores import open_store, place  # noqa: F401

# The frameworks' millions of objects outlive all tests: looking through them again and again took a
# fifth of the time.
gc.set_threshold(20_000, 10, 10)

# No test needs TLS, but each client of a model loads all authorities that it may meet, which takes
# longer than most tests: one of them is enough.
_END = "-----END CERTIFICATE-----"
_authority = tempfile.NamedTemporaryFile("w", suffix=".pem")  # noqa: SIM115
_authority.write(Path(certifi.where()).read_text(encoding="utf-8").partition(_END)[0] + _END)
_authority.flush()
os.environ["SSL_CERT_FILE"] = _authority.name

collect_ignore = ["data"]  # documents, some of which are Python

# A shell lets its background jobs ignore Ctrl-C, and so would the processes that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes depends on what else the machine does.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("smoke", patient, derandomize=True, max_examples=5, print_blob=True)
settings.register_profile("quick", patient, derandomize=True, max_examples=25, print_blob=True)
settings.register_profile("dev", patient, max_examples=100)
settings.register_profile("thorough", patient, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

MARKERS = ("slow", "server", "browser", "ray", "spark", "model", "nightly")
"""The markers of tests that do not run by default; pyproject.toml explains them."""

MARKER_OF_FIXTURE = {
    "redis_process": "server",
    "postgres_process": "server",
    "chroma_process": "server",
    "browser": "browser",
    "ray": "ray",
    "spark": "spark",
}

left_out = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option --all."""
    parser.addoption(
        "--all",
        action="store_true",
        help=f"also run the tests marked {', '.join(MARKERS)}, which are left out by default",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by the fixtures they use, and leave out what does not run by default."""
    for item in items:
        for fixture in MARKER_OF_FIXTURE.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(MARKER_OF_FIXTURE[fixture])
    if not _runs_defaults_only(config):
        return
    marked = [item for item in items if any(map(item.get_closest_marker, MARKERS))]
    if marked:
        config.hook.pytest_deselected(items=marked)
        items[:] = [item for item in items if item not in set(marked)]
    config.stash[left_out] = len(marked)


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over what is loaded."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say that tests were left out, and how to run them."""
    count = config.stash.get(left_out, None)  # workers of pytest-xdist know the number, not we
    if _runs_defaults_only(config) and count != 0:
        terminalreporter.write_line(
            f"Left out: {'' if count is None else f'{count} '}tests marked {', '.join(MARKERS)}. "
            "Run all tests with --all, or one kind with -m server."
        )


def _runs_defaults_only(config: pytest.Config) -> bool:
    is_named = any("::" in str(argument) for argument in config.args)
    return not (config.getoption("all") or config.getoption("markexpr") or is_named)
