"""The fields of a strategy's form: from parameters to the text of each field, and back.

A field is named after its side and its parameter, such as `a.chunk_size`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from math import log
from typing import Any

from rag_splitters.chunkers import CATALOGUE
from rag_splitters.chunkers.by_name import chunker_class, required_models
from rag_splitters.contract.sized import SIZES
from rag_splitters.playground.form import form
from rag_splitters.playground.model_set import ModelSet

NONE = "none"
"""The text of an optional chunker that is None."""

_NAMES = {"\n": r"\n", "\t": r"\t", "\f": r"\f", "\r": r"\r"}
_CHARACTERS = {name: character for character, name in _NAMES.items()} | {r"\\": "\\"}


def read_strategy(fields: Mapping[str, str], name: str) -> tuple[str, dict[str, Any]]:
    """Read a strategy and those of its parameters that differ from their defaults.

    If another strategy was chosen on the page, its sizes are those of the one before.

    Parameters:
        name: the name of the strategy's field.

    >>> read_strategy({"a": "page", "a.chunk_size": "300", "a.page_break": r"\f"}, "a")
    ('page', {'chunk_size': 300})
    """
    strategy = fields.get(name, "recursive")
    before = fields.get(f"{name}-before", strategy)
    if before != strategy and before in CATALOGUE:
        return strategy, sizes_of(before, _read_parameters(before, fields, name))
    return strategy, _read_parameters(strategy, fields, name)


def _read_parameters(strategy: str, fields: Mapping[str, str], name: str) -> dict[str, Any]:
    """Read the parameters of a strategy, also those that it does not have."""
    controls = {each["name"]: each for each in form(chunker_class(strategy))}
    values = {}
    for key in fields:
        if not key.startswith(f"{name}."):
            continue
        parameter = key.removeprefix(f"{name}.")
        if parameter not in controls:
            values[parameter] = fields[key]
            continue
        value = _read(controls[parameter], fields[key].replace("\r\n", "\n"))
        if value is not ... and value != controls[parameter]["default"]:
            values[parameter] = value
    return values


def write_fields(strategy: str, values: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return the texts of the fields for these parameters, as `read_strategy` reads them.

    >>> write_fields("titled", {"chunker": "page", "title": "Tea"}, "a")
    {'a': 'titled', 'a.chunker': 'page', 'a.title': 'Tea'}
    """
    controls = {each["name"]: each for each in form(chunker_class(strategy))}
    texts = {key: field_text(controls[key], values[key]) for key in controls if key in values}
    return {name: strategy, **{f"{name}.{key}": text for key, text in texts.items()}}


def rows(strategy: str, values: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return what the page draws for each parameter: its control, text and slider."""
    controls = form(chunker_class(strategy))
    size = next((each["default"] for each in controls if each["name"] == "chunk_size"), None)
    size = values.get("chunk_size") or size or 1000
    result = []
    for control in controls:
        text = field_text(control, values.get(control["name"], control["default"]))
        slider = _slider(control, size if isinstance(size, int | float) else 1000)
        key = f"{name}.{control['name']}"
        result.append({**control, "key": key, "text": text, "slider": slider})
    return result


def field_text(control: Mapping[str, Any], value: Any) -> str:
    """Return the text of a field that shows this value."""
    kind = control["control"]
    if value is None:
        return NONE if kind == "chunker" else ""
    if isinstance(value, bool):
        return str(value).lower()
    if kind in ("texts", "chunkers"):
        return "\n".join(_escape(str(each)) for each in value)
    if kind == "numbers":
        return ", ".join(map(str, value))
    return _escape(str(value)) if kind == "text" and not is_long(control) else str(value)


def is_long(control: Mapping[str, Any]) -> bool:
    """Whether the text of a field has lines of its own, as prompts have."""
    return control["control"] == "text" and "\n" in (control["default"] or "")


def sizes_of(strategy: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sizes of a strategy.

    An overlap is left out if it is the default, because a window strategy needs its own.
    """
    defaults = {each["name"]: each["default"] for each in form(chunker_class(strategy))}
    own = {name: values.get(name, defaults[name]) for name in SIZES if name in defaults}
    return {
        name: size
        for name, size in own.items()
        if size is not None and (name in values or name != "chunk_overlap")
    }


def _read(control: Mapping[str, Any], text: str) -> Any:
    """Read the value of one field; `...` for the default."""
    kind = control["control"]
    if kind == "flag":
        return text == "true"
    if kind == "choice":
        return text or ...
    if kind in ("number", "share"):
        return _number(text) if text.strip() else ...
    if kind == "numbers":
        return [_number(each) for each in text.split(",")] if text.strip() else ...
    if kind in ("texts", "chunkers"):
        none: Any = [] if control["default"] else ...
        return [_unescape(each) for each in text.split("\n")] if text else none
    if kind == "text":
        if is_long(control):
            return text
        return ... if text == "" and control["default"] is None else _unescape(text)
    return None if text == NONE and control["optional"] else text


def _number(text: str) -> int | float | str:
    """Return a number, or the text itself, about which the strategy complains."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text.strip())
    return text.strip()


def _escape(text: str) -> str:
    r"""Write control characters as \n, \t, \f and \r."""
    text = re.sub(r"\\(?=[ntfr\\]|$)", r"\\\\", text)
    return re.sub(r"[\n\t\f\r]", lambda match: _NAMES[match[0]], text)


def _unescape(text: str) -> str:
    return re.sub(r"\\[ntfr\\]", lambda match: _CHARACTERS[match[0]], text)


def _slider(control: Mapping[str, Any], size: float) -> Mapping[str, Any] | None:
    """Return the range of a number's slider, or None; `size` is the chunk size."""
    default, least, most = control["default"], control.get("least"), control.get("most")
    if control["control"] == "share":
        return {"low": 0, "high": 0.9, "digits": 2, "size": size}
    if control["control"] != "number" or control["words"]:
        return None
    if least is not None and most is not None:
        return {"low": least, "high": most, "digits": 2}
    if control["name"].endswith("_size") and default == 0:
        return {"low": 0, "high": size, "digits": 0}
    if control["name"].endswith("_size"):
        default = default or 1000  # None leaves it to the strategies inside
        low, high = max(1, round(default / 50)), default * 8
        return {"low": low, "high": high, "log": log(high / low)}
    return None


def strategy_options(models: ModelSet) -> list[str]:
    """Return the strategies whose models are there."""
    return [n for n, k in CATALOGUE.items() if not any(map(models.missing, required_models(k)))]
