"""Pickles of models, which hold no secret and lead to the same server."""

from __future__ import annotations

import inspect
import os
import pickle
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

from pydantic import BaseModel
from typing_extensions import Self

from rag_splitters.errors import InputError, InputTypeError
from rag_splitters.models.describing import describe_model
from rag_splitters.models.secrets import SAFE_HEADERS, is_secret, secrets_of

_CLIENTS = ("client", "async_client", "root_client", "root_async_client", "_client", "_aclient")
"""Attributes that hold the clients that a model creates itself."""

_CONNECTION = re.compile(r"prox(?:y|ies)$|http_(?:\w+_)?client|(?:default|extra)_query|cookies")
"""Names of settings that often hold credentials, or lead to another server."""

_ADDRESS = re.compile(r"[A-Za-z][\w+.-]*://\S+")
_LOGIN = re.compile(r"://[^/\s]*@")


class _Call:
    """A call that creates an object when it is unpickled."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.parts = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.parts


def _is_factory(value: Any) -> bool:
    """Whether it is a function without parameters, which returns a model and is not one itself.

    >>> _is_factory(lambda: "a model"), _is_factory(lambda texts: [])
    (True, False)
    """
    if not (inspect.isroutine(value) or isinstance(value, partial)):
        return False
    try:
        signature = inspect.signature(value)
    except ValueError:  # some builtins have none
        return False
    return all(each.kind is each.KEYWORD_ONLY for each in signature.parameters.values())


@dataclass(frozen=True, repr=False)
class ModelHolder:
    """A model that can be pickled: `Embedder` and `ChatModel`.

    Parameters:
        model: the model, or a factory: a function without parameters that returns it. The factory
            is called here, and again wherever a pickle is loaded.
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
        others = [getattr(self, each.name) for each in fields(self) if not each.kw_only]
        return type(self), (self.factory or _pack_model(self.model), *others[1:])

    def __copy__(self) -> Self:
        return self  # a new object would not have the model's key

    def __deepcopy__(self, memo: object) -> Self:
        return self


def _pack_model(model: Any) -> Any:
    """Return what to pickle instead of a model, so that the pickle holds no secret.

    A model of LangChain or LlamaIndex that holds a secret, has a server's address or cannot be
    pickled by itself is created again from its class and settings when it is unpickled. So are the
    models inside LangChain's bindings, sequences and fallbacks, methods and partials. The class
    reads keys from the environment. User and password are removed from an address; they are
    restored if an environment variable holds the whole address.

    Raises TypeError, which names the settings that cannot be pickled safely: those of the
    connection other than the address, headers that may hold a secret, secrets in nested settings,
    and objects that cannot be pickled.
    """
    packer = _Packer()
    packed = packer.pack(model)
    if packer.problems:
        raise InputTypeError(
            f"{describe_model(model)} ({type(model).__qualname__}) cannot be pickled safely because"
            f" of {', '.join(packer.problems)}: pass a factory instead of the model, which is a "
            "function without parameters at the top level of a module that returns it"
        )
    return packed


class _Packer:
    """Replaces what cannot be pickled safely, and collects the paths of other problems."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def pack(self, value: Any, path: str = "") -> Any:
        """Return what to pickle instead of a value, which is the value itself if it is safe."""
        name = path.rpartition(".")[2]
        if value is None or isinstance(value, (bool, int, float, type)):
            return value
        is_login = isinstance(value, str) and _LOGIN.search(value)
        if is_login or is_secret(name, value) or (value and _CONNECTION.search(name)):
            self.problems.append(path)
        elif isinstance(value, BaseModel):
            return self._pack_settings(value, path)
        elif isinstance(value, (dict, list, tuple)):
            return self._pack_parts(value, path)
        elif inspect.ismethod(value) and not isinstance(value.__self__, type):
            owner = self.pack(value.__self__, path)
            return value if owner is value.__self__ else _Call(getattr, owner, value.__name__)
        elif isinstance(value, partial):
            parts = [value.func, value.args, value.keywords]
            packed = [self.pack(part, path) for part in parts]
            is_safe = all(each is part for each, part in zip(packed, parts, strict=True))
            return value if is_safe else _Call(_new_partial, *packed)
        elif _holds_secret(value):
            self.problems.append(path or "a secret among its attributes")
        elif path and not _can_be_pickled(value):
            self.problems.append(path)
        return value

    def _pack_parts(self, value: Any, path: str) -> Any:
        """Return a dictionary, list or tuple with its parts packed."""
        is_dict = isinstance(value, dict)
        if is_dict and path.endswith("headers"):
            names = [name for name in value if str(name).lower() not in SAFE_HEADERS]
            self.problems += [f"{path}[{name!r}]" for name in names]
            return value
        items = dict(value if is_dict else enumerate(value))
        packed = {key: self.pack(part, _join(path, key)) for key, part in items.items()}
        if all(packed[key] is part for key, part in items.items()):
            return value
        return packed if is_dict else type(value)(packed.values())

    def _pack_settings(self, model: BaseModel, path: str) -> Any:
        """Return a call that creates a model from its settings, or the model if it is safe."""
        if _pickles_itself(model):
            if _holds_secret(model):
                self.problems.append(path or "a secret among its attributes")
            return model
        settings: dict[str, Any] = {}
        problems, is_safe = len(self.problems), True
        for name, value in _settings(model):
            place = _join(path, name)
            if is_secret(name, value):
                is_safe = is_safe and not value
                continue
            if _is_address(value) and not _CONNECTION.search(name):
                packed: Any = _without_login(value)
                if "?" in value:
                    self.problems.append(f"the query in {place}")
                is_safe = False
            else:
                packed = self.pack(value, place)
                is_safe = is_safe and packed is value
            settings[_keyword(type(model), name)] = packed
        self._check_clients(model, path, tuple(filter(_is_address, settings.values())))
        if is_safe and len(self.problems) == problems and _can_be_pickled(model):
            return model
        return _Call(_create, type(model), settings, _servers(model))

    def _check_clients(self, model: BaseModel, path: str, addresses: tuple[str, ...]) -> None:
        """Refuse a client that the user made: in a private attribute, or with other addresses."""
        for name, value in (model.__pydantic_private__ or {}).items():
            if value is not None and _CONNECTION.search(name):
                self.problems.append(_join(path, name.lstrip("_")))
        if addresses and not all(server.startswith(addresses) for server in _servers(model)):
            self.problems.append(_join(path, "client"))


def _settings(model: BaseModel) -> Iterator[tuple[str, Any]]:
    """Yield the fields that were set, and those with a secret or a server's address."""
    for name in type(model).model_fields:
        value = getattr(model, name)
        if type(value).__name__.endswith(("Url", "URL")):
            value = str(value)
        if name in _CLIENTS or name == "callback_manager":  # the class creates it
            continue
        is_special = _is_address(value) or is_secret(name, value) or _CONNECTION.search(name)
        if name in model.model_fields_set or (value and is_special):
            yield name, value


def _keyword(kind: type[BaseModel], name: str) -> str:
    """The name of a field as an argument of the class."""
    config = kind.model_config
    by_name = config.get("populate_by_name") or config.get("validate_by_name")
    return name if by_name else kind.model_fields[name].alias or name


def _servers(model: BaseModel) -> set[str]:
    """Return the addresses that a model's clients use, as far as they are known."""
    parts = {**model.__dict__, **(model.__pydantic_private__ or {})}
    clients = [parts.get(name) for name in _CLIENTS]
    # An object with its own address may share an HTTP client that was made for another one.
    clients = [
        each if hasattr(each, "base_url") else getattr(each, "_client", "") for each in clients
    ]
    addresses = [str(getattr(client, "base_url", "")) for client in clients]
    return {_without_login(address) for address in addresses if _is_address(address)}


def _create(kind: type[BaseModel], settings: Mapping[str, Any], servers: set[str]) -> BaseModel:
    """Create a model, with its secrets from the environment of this process.

    Raises ValueError if the class cannot be created, or if it would talk to another server.
    """
    settings = {name: _with_login(value) for name, value in settings.items()}
    try:
        model = kind(**settings)
    except Exception as error:  # a foreign class may raise anything
        raise InputError(
            f"{kind.__qualname__} cannot be created from its pickle, which holds no keys or "
            f"passwords: set them in the environment of this process ({error})"
        ) from error
    if servers and (others := _servers(model) - servers):
        raise InputError(
            f"{kind.__qualname__} was pickled with the server {', '.join(sorted(servers))}, and "
            f"the environment of this process would lead to {', '.join(sorted(others))}"
        )
    return model


def _new_partial(function: Any, arguments: Any, keywords: Mapping[str, Any]) -> partial[Any]:
    return partial(function, *arguments, **keywords)


def _holds_secret(value: Any) -> bool:
    """Whether a pickle of an object, or of a function that is pickled with its code, has a secret.

    A function at the top level of a module is pickled as a name, except by Ray and Spark, which
    pickle those of the main module and those inside of other functions with all they refer to.
    """
    secrets = set(secrets_of(value))
    if not secrets:
        return False
    if inspect.isroutine(value):
        name, module = getattr(value, "__qualname__", "<>"), getattr(value, "__module__", "")
        return "<" in name or module == "__main__"
    try:
        pickled = pickle.dumps(value)
    except Exception:  # a foreign class may raise anything
        return True
    return any(secret.encode("utf-8", "surrogatepass") in pickled for secret in secrets)


def _pickles_itself(value: Any) -> bool:
    """Whether the class defines how it is pickled, other than by the rules of pydantic."""
    hooks = ["__reduce__", "__reduce_ex__"]
    if not isinstance(value, BaseModel):
        hooks.append("__getstate__")
    return any(
        getattr(type(value), name, None) is not getattr(object, name, None) for name in hooks
    )


def _can_be_pickled(value: Any) -> bool:
    try:
        pickle.dumps(value)
    except Exception:  # a foreign class may raise anything
        return False
    return True


def _join(path: str, name: object) -> str:
    return f"{path}.{name}" if path else str(name)


def _is_address(value: Any) -> bool:
    return isinstance(value, str) and _ADDRESS.fullmatch(value) is not None


def _without_login(address: str) -> str:
    """The address without user, password and final slash."""
    return re.sub("//[^/?#]*@", "//", address, count=1).rstrip("/")


def _with_login(value: Any) -> Any:
    """Return an address with its user and password from an environment variable, if any."""
    if not _is_address(value):
        return value
    addresses = (each for each in os.environ.values() if _is_address(each) and _LOGIN.search(each))
    return next((each for each in addresses if _without_login(each) == value), value)
