"""The fields of a strategy's form: from parameters to the text of each field, and back.

A field is named after its parameter and what it is inside of: `a.chunk_size`, `a.chunker` for the
strategy of a chunker inside another one, `a.chunker.chunk_size`, `a.stages.0.chunk_size`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from math import log
from typing import Any

from rag_splitters.chunkers import CATALOGUE
from rag_splitters.chunkers.by_name import chunker_class, required_models
from rag_splitters.contract.sized import SIZES, CompositeChunker
from rag_splitters.playground.form import form
from rag_splitters.playground.model_set import ModelSet

NONE = "none"
"""The text of an optional chunker that is None."""

_NAMES = {"\n": r"\n", "\t": r"\t", "\f": r"\f", "\r": r"\r"}
_CHARACTERS = {name: character for character, name in _NAMES.items()} | {r"\\": "\\"}
MAX_STAGES = 20


def read_strategy(fields: Mapping[str, str], name: str) -> dict[str, Any]:
    """Read a strategy and its parameters that differ from their defaults.

    If another strategy was chosen on the page, its sizes are those of the one before.

    Parameters:
        name: the name of the strategy's field.

    >>> read_strategy({"a": "page", "a.chunk_size": "300", "a.page_break": r"\f"}, "a")
    {'strategy': 'page', 'chunk_size': 300}
    """
    strategy = fields.get(name, "recursive")
    before = fields.get(f"{name}-before", strategy)
    if before != strategy and before in CATALOGUE:
        sizes = sizes_of(before, _read_parameters(before, fields, name))
        return {"strategy": strategy, **sizes}
    return {"strategy": strategy, **_read_parameters(strategy, fields, name)}


def _read_parameters(strategy: str, fields: Mapping[str, str], name: str) -> dict[str, Any]:
    """Read the parameters of a strategy, also those that it does not have."""
    controls = {each["name"]: each for each in form(chunker_class(strategy))}
    values = {}
    for key in fields:
        parameter = key.removeprefix(f"{name}.").partition(".")[0]
        if not key.startswith(f"{name}.") or parameter.endswith("-before"):
            continue
        if parameter not in controls:
            values[parameter] = fields[key]
        elif key == f"{name}.{parameter}":
            value = _read(controls[parameter], fields, key)
            if value is not ... and value != controls[parameter]["default"]:
                values[parameter] = value
    return values


def write_fields(strategy: str, values: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return the texts of the fields for these parameters, as `read_strategy` reads them.

    >>> write_fields("titled", {"chunker": {"strategy": "page", "page_break": "\\n"}}, "a")
    {'a': 'titled', 'a.chunker': 'page', 'a.chunker.page_break': '\\\\n'}
    """
    fields = {name: strategy}
    for control in form(chunker_class(strategy)):
        key = f"{name}.{control['name']}"
        if control["name"] in values:
            value = values[control["name"]]
            fields[key] = field_text(control, value)
            for inner_key, inner in inner_chunkers(value, key):
                fields |= write_fields(inner["strategy"], inner, inner_key)
    return fields


def rows(
    strategy: str, values: Mapping[str, Any], name: str, given: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Return what the page draws for each parameter: its control, text, slider and inner forms.

    The sizes that are `given` to it by the strategy around it are left out.
    """
    kind = chunker_class(strategy)
    controls = [each for each in form(kind) if each["name"] not in given]
    if issubclass(kind, CompositeChunker):
        given = {*given, *(each for each in SIZES if values.get(each) is not None)}
    size = next((each["default"] for each in controls if each["name"] == "chunk_size"), None)
    size = values.get("chunk_size") or size or 1000
    result = []
    for control in controls:
        key = f"{name}.{control['name']}"
        value = values.get(control["name"], control["default"])
        inner = [
            {
                "key": inner_key,
                "strategy": each["strategy"],
                "rows": rows(each["strategy"], each, inner_key, given),
            }
            for inner_key, each in inner_chunkers(value, key)
        ]
        slider = _slider(control, size if isinstance(size, int | float) else 1000)
        text = field_text(control, value)
        result.append({**control, "key": key, "text": text, "inner": inner, "slider": slider})
    return result


def field_text(control: Mapping[str, Any], value: Any) -> str:
    """Return the text of a field that shows this value."""
    kind = control["control"]
    if kind == "chunkers":
        return str(len(value)) if isinstance(value, list) else "0"
    if isinstance(value, Mapping):
        return str(value.get("strategy", ""))
    if value is None:
        return NONE if kind == "chunker" else ""
    if isinstance(value, bool):
        return str(value).lower()
    if kind == "texts":
        return "\n".join(_escape(str(each)) for each in value)
    if kind == "numbers":
        return ", ".join(map(str, value))
    return _escape(str(value)) if kind == "text" and not is_long(control) else str(value)


def is_long(control: Mapping[str, Any]) -> bool:
    """Whether the text of a field has lines of its own, as prompts have."""
    return control["control"] == "text" and "\n" in (control["default"] or "")


def inner_chunkers(value: Any, key: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the chunkers in a parameter's value, each with the name of its own field."""
    if isinstance(value, Mapping):
        return [(key, value)]
    numbered = enumerate(value) if isinstance(value, list) else ()
    return [(f"{key}.{at}", each) for at, each in numbered if isinstance(each, Mapping)]


def sizes_of(strategy: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sizes of a strategy; those that it leaves to others are of the last one inside.

    An overlap is left out if it is the default, because a window strategy needs its own.
    """
    kind = chunker_class(strategy)
    defaults = {each["name"]: each["default"] for each in form(kind)}
    own = {name: values.get(name, defaults[name]) for name in SIZES if name in defaults}
    sizes = {
        name: size
        for name, size in own.items()
        if size is not None and (name in values or name != "chunk_overlap")
    }
    inside = [
        inner
        for name, default in defaults.items()
        for _, inner in inner_chunkers(values.get(name, default), name)
        if issubclass(kind, CompositeChunker)
    ]
    return {**sizes_of(inside[-1]["strategy"], inside[-1]), **sizes} if inside else sizes


def _read(control: Mapping[str, Any], fields: Mapping[str, str], key: str) -> Any:
    """Read the value of one field; `...` for the default."""
    kind, text = control["control"], fields[key].replace("\r\n", "\n")
    if kind == "flag":
        return text == "true"
    if kind == "choice":
        return text or ...
    if kind in ("number", "share"):
        return _number(text) if text.strip() else ...
    if kind == "numbers":
        return [_number(each) for each in text.split(",")] if text.strip() else ...
    if kind == "texts":
        none: Any = [] if control["default"] else ...
        return [_unescape(each) for each in text.split("\n")] if text else none
    if kind == "text":
        if is_long(control):
            return text
        return ... if text == "" and control["default"] is None else _unescape(text)
    if kind == "chunker":
        if text == NONE and control["optional"]:
            return None
        return text if text in control["words"] else read_strategy(fields, key)
    if kind == "chunkers":
        count = min(int(text), MAX_STAGES) if text.isdecimal() else 0
        return [read_strategy(fields, f"{key}.{at}") for at in range(count)]
    return text


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
    if control["name"].endswith("_size") and default:
        low, high = max(1, round(default / 50)), default * 8
        return {"low": low, "high": high, "log": log(high / low)}
    return None


def strategy_options(models: ModelSet) -> list[str]:
    """Return the strategies whose models are there."""
    return [n for n, k in CATALOGUE.items() if not any(map(models.missing, required_models(k)))]
