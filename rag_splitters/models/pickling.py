"""What travels to other processes: a factory of a model, or a model that survives its own pickling.

A copy that was unpickled must not talk to another server than the original, or answer otherwise. So
a model is pickled only if its copy describes itself as it does, and every copy is checked again
where it is loaded. Any other model travels as a factory.
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from functools import partial
from types import MethodType
from typing import Any

from typing_extensions import Self

from rag_splitters.errors import InputError, InputTypeError
from rag_splitters.models.describing import describe_model
from rag_splitters.models.secrets import (
    SAFE_HEADERS,
    is_secret,
    parts_of,
    secrets_of,
    without_login,
    without_secrets,
)

_MAX_DEPTH = 5


@dataclass(frozen=True, repr=False)
class ModelHolder:
    """A model that can be pickled: `Embedder` and `ChatModel`.

    Parameters:
        model: the model, or a factory that makes it here, and again wherever a pickle is loaded:
            a function without parameters, or a class with its arguments as `functools.partial`.
        factory: the factory, if one was passed as `model`.
    """

    model: Any
    factory: Callable[[], Any] | None = field(default=None, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        if _is_factory(self.model):
            object.__setattr__(self, "factory", self.model)
            object.__setattr__(self, "model", self.model())

    @property
    def description(self) -> str:
        """The model's stable name."""
        return describe_model(self.model)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.description})"

    def __hash__(self) -> int:
        return hash(self.description)

    def __reduce__(self) -> tuple[Any, ...]:
        options = [getattr(self, each.name) for each in fields(self) if not each.kw_only][1:]
        if self.factory is None:
            return _restore, (type(self), self.model, _check_copy(self.model), *options)
        if _holds_secret(self.factory):
            raise InputTypeError(
                f"the factory of {self.description} cannot be pickled, because it holds a secret: "
                "let it read keys and passwords from the environment"
            )
        return type(self), (self.factory, *options)

    def __copy__(self) -> Self:
        return self  # a new object would not have the model's key

    def __deepcopy__(self, memo: object) -> Self:
        return self


def _is_factory(value: Any) -> bool:
    """Whether it makes a model: a class with its arguments, or a function without parameters.

    >>> _is_factory(lambda: "a model"), _is_factory(lambda texts: [])
    (True, False)
    >>> _is_factory(partial(dict, model="m"))
    True
    """
    if isinstance(value, partial) and isinstance(value.func, type):
        return True
    if not (inspect.isroutine(value) or isinstance(value, partial)):
        return False
    try:
        signature = inspect.signature(value)
    except ValueError:  # some builtins have none
        return False
    return all(each.kind is each.KEYWORD_ONLY for each in signature.parameters.values())


def _restore(
    kind: type[ModelHolder], model: Any, details: dict[str, str], *options: Any
) -> ModelHolder:
    """Wrap a model that was unpickled. Raises ValueError if it is not as it was pickled."""
    if changed := _changes(details, model):
        message = (
            f"{describe_model(model)} was unpickled with another server, other settings or another "
            f"version of its package (another {changed}): give this process the same environment, "
            "or pass a factory"
        )
        raise InputError(without_secrets(message, model))
    return kind(model, *options)


def _check_copy(model: Any) -> dict[str, str]:
    """Return the details of a model that survives its own pickling.

    Raises TypeError, which shows the factory to pass, if it does not, or if its pickle would hold a
    secret.
    """
    try:
        restored = pickle.loads(pickle.dumps(model))  # noqa: S301  (written in this line)
    except Exception as error:  # a foreign class may raise anything
        raise _refusal(model, f"{type(error).__name__}: {error}") from None
    if _holds_secret(model):
        raise _refusal(model, "its pickle would hold a secret")
    details = dict(_details("", model))
    if changed := _changes(details, restored):
        raise _refusal(model, f"its copy has another {changed}")
    return details


def _changes(details: dict[str, str], copy: Any) -> str:
    """Return which details of a model are not those of its copy."""
    others = dict(_details("", copy))
    return ", ".join([k for k in {**details, **others} if details.get(k) != others.get(k)][:5])


def _refusal(model: Any, reason: str) -> InputTypeError:
    """Return the error for a model that must not be pickled, with the factory to pass."""
    message = (
        f"{describe_model(model)} ({type(model).__qualname__}) cannot be pickled safely, because "
        f"{reason}: pass a factory instead of the model, such as functools.partial("
        f"{type(model).__name__}, ...) or a function at the top level of a module that has no "
        "parameters and returns the model. It makes the model in every process, with keys from the "
        "environment"
    )
    return InputTypeError(without_secrets(message, model))


def _details(name: str, value: Any, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield what a model consists of, by its place in the model, without secrets.

    These are all attributes, also private ones such as an HTTP client, with their parts.
    """
    own = name.rpartition(".")[2]
    if is_secret(own, value):
        yield name, "a secret" if value else "none"
    elif isinstance(value, str):
        yield name, without_login(value)
    elif value is None or isinstance(value, (bool, int, float)):
        yield name, repr(value)
    elif isinstance(value, type) or inspect.isfunction(value) or inspect.isbuiltin(value):
        yield name, f"{value.__module__}.{value.__qualname__}"
    else:
        yield name, type(value).__qualname__
        is_leaf = depth == _MAX_DEPTH or isinstance(value, (set, frozenset))  # those have no order
        for key, _, part in () if is_leaf else parts_of(own, value):
            is_header = own.lower().endswith("headers") and key.lower() not in SAFE_HEADERS
            place = f"{name}.{key}" if name else key
            if is_header:
                yield place, "a header"
            else:
                yield from _details(place, part, depth + 1)


def _holds_secret(value: Any) -> bool:
    """Whether a pickle of an object, or of a function that is pickled with its code, has a secret.

    A function at the top level of a module is pickled as a name, except by Ray and Spark, which
    pickle those of the main module and those inside of other functions with all they refer to.
    """
    secrets = set(secrets_of(value))
    if not secrets:
        return False
    if inspect.isroutine(value) and not isinstance(value, MethodType):
        name, module = getattr(value, "__qualname__", "<>"), getattr(value, "__module__", "")
        return "<" in name or module == "__main__"
    try:
        pickled = pickle.dumps(value)
    except Exception:  # a foreign class may raise anything
        return True
    return any(secret.encode("utf-8", "surrogatepass") in pickled for secret in secrets)
