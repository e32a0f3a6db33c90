"""The server of the playground, of Azure's skill and of MCP."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette

from rag_splitters.web.http import one_line
from rag_splitters.web.server import run_server
from tests.support.logs import own_messages


class ReadyError(Exception):
    """Ends a server as soon as it has an address."""


@pytest.mark.parametrize(
    ("host", "exposure", "warns"),
    [
        ("0.0.0.0", "read the texts", True),
        ("0.0.0.0", "", False),
        ("127.0.0.1", "read the texts", False),
    ],
)
def test_a_warning_says_what_other_machines_can_do(
    host: str, exposure: str, warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    addresses: list[str] = []

    def stop(address: str) -> None:
        addresses.append(address)
        raise ReadyError

    with pytest.raises(ReadyError):
        run_server(Starlette(), host, 0, name="it", extra="play", ready=stop, exposure=exposure)
    warnings = [f"everyone who can reach {addresses[0]} can {exposure}"] if warns else []
    assert own_messages(caplog) == warnings


def test_an_error_is_one_line_of_limited_length() -> None:
    assert one_line(ValueError("too\n  long")) == "too long"
    assert one_line(ValueError("a " * 400)) == "a " * 300 + " …"
    assert one_line(ValueError()) == "ValueError"
