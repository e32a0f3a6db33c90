"""Removal of secrets, such as API keys, from messages, logs and pickles."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from itertools import islice
from types import FunctionType, MethodType, ModuleType
from typing import Any

from pydantic import BaseModel

SAFE_HEADERS = frozenset(
    "accept accept-encoding accept-language anthropic-beta anthropic-version connection "
    "content-length content-type http-referer openai-beta openai-organization openai-project "
    "user-agent x-title".split()
)
"""The headers that hold no secret; any other may hold a gateway's key."""

_SECRET = re.compile(
    r"(?:api|subscription|access|private)[_-]?key|(?:^|[_-])(?:token|cookies?|bearer)$|secret|passw"
    r"|authorization|credential(?!s?_profile)",
    re.IGNORECASE,
)
_KEY = re.compile(r"(?:^|[_-])(?:key|auth)$", re.IGNORECASE)
_RANDOM = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[\w.~+/=-]{16,}")
"""Values that look like a key; a name such as "key" often means something else."""

_SPECIAL_TOKEN = re.compile(r"[<\[].*[>\]]")  # a tokenizer's pad_token, for example

_PASSWORD = re.compile(r"://[^/@\s]*:([^/@\s]+)@")
_SHAPES = re.compile(
    r"\b(?:sk|pk|rk|xai|gsk|hf|ghp|gho|ghs|github_pat|glpat|xox[abps]|r8|pplx|nvapi|tvly)[-_]"
    r"[\w.-]{8,}|\bAIza[\w-]{20,}|\bAKIA[A-Z0-9]{12,}|\beyJ[\w-]{8,}\.[\w.-]{8,}"
)
"""The keys of well-known services, and JSON web tokens."""

_QUOTED = re.compile(
    r"((?:api|subscription|access|private|functions)[ _-]?key(?: provided)?[\"']?\s*[:=]\s*[\"']?"
    r"|(?:token|secret|password|authorization|cookie)[\"']?\s*[:=]\s*[\"']?"
    r"|[?&](?:key|sig|token)=)(?:Bearer |Basic )?[^\s\"',;&)}\]]{6,}|(\b(?:Bearer|Basic) )"
    r"(?=[\w.~+/-]*[\d=])[\w.~+/=-]{8,}",
    re.IGNORECASE,
)
"""A secret in a message, after the words that announce it."""

_MAX_DEPTH, _MAX_OBJECTS, _MAX_PARTS = 7, 3000, 1000


def without_secrets(message: str, model: Any = None) -> str:
    """Replace every secret in a message by `***`.

    Secrets are those of the model and of the environment, and anything that looks like one.
    """
    secrets = {*secrets_of(model), *_environment_secrets()}
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) > 3:
            message = message.replace(secret, "***")
    message = _SHAPES.sub("***", message)
    message = _QUOTED.sub(lambda match: f"{match.group(1) or match.group(2)}***", message)
    return _PASSWORD.sub(lambda match: match.group().replace(match.group(1), "***"), message)


def without_login(address: str) -> str:
    """Return an address without its user and password, and any other text unchanged.

    >>> without_login("https://user:password@host/v1")
    'https://host/v1'
    """
    return re.sub(r"://[^/?#@\s]*(?::[^/?#\s]*)?@", "://", address)


def is_secret(name: str, value: Any) -> bool:
    """Whether a field is secret by its name or by the type of its value."""
    if hasattr(type(value), "get_secret_value"):
        return True
    if _SECRET.search(name):
        return not (isinstance(value, str) and _SPECIAL_TOKEN.fullmatch(value))
    is_key = isinstance(value, str) and _RANDOM.fullmatch(value) is not None
    return is_key and _KEY.search(name) is not None


def secrets_of(model: Any) -> Iterator[str]:
    """Yield the secrets that a model holds in its attributes, or that a function refers to.

    Secrets are values with the name or the looks of one, values of headers that are not known to be
    harmless, and passwords in addresses.
    """
    return _Search().secrets("", model, 0)


class _Search:
    """A search for secrets in an object and in the objects that it holds."""

    def __init__(self) -> None:
        self._seen: dict[int, Any] = {}

    def secrets(self, name: str, value: Any, depth: int, is_header: bool = False) -> Iterator[str]:
        """Yield the secrets in a value that is stored under this name."""
        if hasattr(type(value), "get_secret_value"):
            value, is_header = value.get_secret_value(), True
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        if isinstance(value, str):
            yield from _in_text(name, value, is_header)
        elif not self._is_leaf(value, depth):
            self._seen[id(value)] = value
            limit = _MAX_PARTS if isinstance(value, Collection) else None
            for _, key, part in islice(parts_of(name, value), limit):
                is_own = name.lower().rstrip("_").endswith(("headers", "header", "cookies"))
                inside = (is_header or is_own) and key.lower() not in SAFE_HEADERS
                yield from self.secrets(key, part, depth + 1, inside)

    def _is_leaf(self, value: Any, depth: int) -> bool:
        is_plain = value is None or isinstance(value, (bool, int, float, type, ModuleType))
        is_enough = depth > _MAX_DEPTH or len(self._seen) > _MAX_OBJECTS
        return is_plain or is_enough or id(value) in self._seen


def _in_text(name: str, value: str, is_header: bool) -> Iterator[str]:
    if value and (is_header or is_secret(name, value)):
        yield from (value, *value.split())  # "Bearer abc" contains "abc"
    else:
        yield from _PASSWORD.findall(value)
        yield from _SHAPES.findall(value)


def parts_of(name: str, value: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield the parts of an object of this name: a key, a name that may say what it is, and it."""
    if isinstance(value, Mapping):  # also the headers of HTTP clients
        yield from ((str(key), str(key), part) for key, part in list(value.items()))
    elif isinstance(value, (list, tuple, set, frozenset)):
        own = "password" if isinstance(value, tuple) and name.endswith("auth") else name
        yield from ((str(number), own, part) for number, part in enumerate(list(value)))
    elif isinstance(value, FunctionType):
        yield from ((key, key, part) for key, part in _references(value))
    elif isinstance(value, MethodType):
        yield from (("self", "", value.__self__), ("func", "", value.__func__))
    elif isinstance(value, partial):
        yield from (("func", "", value.func), ("args", "", value.args))
        yield "keywords", "", value.keywords
    else:
        yield from ((str(key), str(key), part) for key, part in _attributes_of(value))


def _references(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield what a function refers to: constants, defaults, closure and global variables."""
    try:
        variables = inspect.getclosurevars(function)
    except (TypeError, ValueError):  # an empty cell
        return
    yield from variables.nonlocals.items()
    yield from variables.globals.items()
    for module in variables.globals.values():
        if isinstance(module, ModuleType):
            names = (each for each in function.__code__.co_names if each in vars(module))
            yield from ((each, vars(module)[each]) for each in names)
    parameters = function.__code__.co_varnames[: function.__code__.co_argcount]
    defaults = function.__defaults__ or ()
    yield from zip(parameters[-len(defaults) :] if defaults else (), defaults, strict=False)
    yield from (function.__kwdefaults__ or {}).items()
    yield from (("", each) for each in function.__code__.co_consts if isinstance(each, str))


def _attributes_of(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of an object with their names, also private ones and those in slots."""
    state = getattr(value, "__dict__", None)
    own = dict(state) if isinstance(state, Mapping) else {}
    if isinstance(value, BaseModel):
        own |= value.__pydantic_private__ or {}
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if slot not in own and hasattr(value, slot):
                own[slot] = getattr(value, slot)
    for name, part in vars(type(value)).items():
        if isinstance(part, (str, dict)) and not name.startswith("__"):
            own.setdefault(name, part)
    headers = attribute_of(value, "headers")  # of an HTTP client, where it is a property
    if isinstance(headers, Mapping):
        own.setdefault("headers", headers)
    yield from own.items()


def attribute_of(value: Any, *names: str) -> Any:
    """Return an attribute of an attribute; None if it is missing, or raises.

    The request of an error of httpx does if the error was made without one, and the text of a
    response if that was not read.
    """
    for name in names:
        try:
            value = getattr(value, name, None)
        except Exception:  # foreign properties may raise anything
            return None
    return value


def _environment_secrets() -> Iterator[str]:
    """Yield the values of environment variables whose names are those of secrets."""
    for name, value in os.environ.items():
        if len(value) >= 8 and is_secret(name, value):
            yield value
