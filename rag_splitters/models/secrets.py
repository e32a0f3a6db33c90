"""The secrets that a model holds, such as an API key: kept out of messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

_SECRET = re.compile(
    r"api_?-?key|(?:^|[_-])token$|secret|passw|authorization|credential(?!s?_profile)",
    re.IGNORECASE,
)
_PASSWORD = re.compile(r"://[^/@\s]*:([^/@\s]+)@")


def without_secrets(message: str, model: Any) -> str:
    """The message with every secret of the model replaced by `***`."""
    for secret in sorted(set(secrets_of(model)), key=len, reverse=True):
        if len(secret) > 3:
            message = message.replace(secret, "***")
    return message


def is_secret(name: str, value: Any) -> bool:
    """Whether a field is secret by its name or by the type of its value."""
    return bool(_SECRET.search(name)) or hasattr(value, "get_secret_value")


def secrets_of(model: Any) -> Iterator[str]:
    """The secrets among the attributes of a model, also those inside its dictionaries."""
    state = getattr(model, "__dict__", None)
    return _secrets(state if isinstance(state, Mapping) else {})


def _secrets(state: Mapping[Any, Any]) -> Iterator[str]:
    for name, value in state.items():
        if hasattr(value, "get_secret_value"):
            value = value.get_secret_value()
            if isinstance(value, str):
                yield value
        elif isinstance(value, str):
            if _SECRET.search(str(name)):
                yield from (value, *value.split())  # "Bearer abc" contains "abc"
            else:
                yield from _PASSWORD.findall(value)
        elif isinstance(value, Mapping):
            yield from _secrets(value)
        elif isinstance(value, BaseModel):  # inside LangChain's bindings, for example
            yield from secrets_of(value)
