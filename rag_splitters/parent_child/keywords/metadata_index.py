"""An index of the children's metadata, as arrays, on which Chroma's filters are evaluated.

Children are identified by number. Consecutive children often have the same value, so the arrays
hold runs: the first and the last child of a run, and the value that they share.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_splitters.parent_child.metadata import LIST, value_kind
from rag_splitters.text.surrogates import without_surrogates

_PLACE = [("first", "<u4"), ("last", "<u4")]
# A text is kept as a digest, because filters only ask whether it is the same.
_RUNS = {
    kind: np.dtype([*_PLACE, ("value", value)])
    for kind, value in {"int": "<i8", "float": "<f8", "bool": "?", "str": "S16"}.items()
}
"""The runs of one metadata key, by the kind of its values."""
ReadRuns = Callable[[str, str], NDArray[np.void]]
"""(kind, key) -> its runs; the kind of what stands in a list ends with "[]"."""

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "$eq": operator.eq,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_OPPOSITES = {"$ne": "$eq", "$nin": "$in", "$not_contains": "$contains"}
_NUMBERS = ("int", "float")
_MAX_PAINTED = 100  # runs that are marked one by one


def collect_runs(children: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], NDArray[np.void]]:
    """Return the runs of each kind and key; the children are numbered from 0.

    Values that no filter can ask for are left out.

    Parameters:
        children: the metadata of each child.

    >>> collect_runs([{"page": 1}, {"page": 1}, {"page": 2}])["int", "page"].tolist()
    [(0, 1, 1), (2, 2, 2)]
    """
    runs: dict[tuple[str, str], list[tuple[int, int, Any]]] = {}
    for number, metadata in enumerate(children):
        for key, value in metadata.items():
            kind = value_kind(value)
            if kind is None:
                continue
            own = runs.setdefault((kind, key), [])
            if own and own[-1][1] == number - 1 and own[-1][2] == value:
                own[-1] = own[-1][0], number, value
            else:
                own.append((number, number, value))
    return {name: _to_array(name[0], own) for name, own in runs.items()}


def runs_dtype(kind: str) -> np.dtype[np.void]:
    """Return the type of the runs of values of this kind, or of lists of them."""
    return _RUNS[kind.removesuffix(LIST)]


def _to_array(kind: str, runs: Sequence[tuple[int, int, Any]]) -> NDArray[np.void]:
    if kind.endswith(LIST):
        kind = kind.removesuffix(LIST)
        runs = [(first, last, item) for first, last, items in runs for item in items]
    if kind == "str":
        runs = [(first, last, _digest(text)) for first, last, text in runs]
    return np.array(runs, dtype=_RUNS[kind])


def _digest(text: str) -> bytes:
    return blake2b(without_surrogates(text).encode(), digest_size=16).digest()


def _split_condition(condition: Any) -> tuple[str, Any]:
    """Return the operator and the operand of a condition on one key."""
    if not isinstance(condition, Mapping):
        return "$eq", condition
    return next(iter(condition.items())) if len(condition) == 1 else ("", None)


def filter_keys(where: object) -> frozenset[str]:
    """Return the metadata keys that a filter of Chroma's names.

    >>> sorted(filter_keys({"$and": [{"team": "red"}, {"$or": [{"year": {"$gt": 2000}}]}]}))
    ['team', 'year']
    """
    keys: set[str] = set()
    for key, value in where.items() if isinstance(where, Mapping) else ():
        if key in ("$and", "$or") and isinstance(value, list):
            keys.update(*map(filter_keys, value))
        elif isinstance(key, str) and not key.startswith("$"):
            keys.add(key)
    return frozenset(keys)


def can_evaluate(where: object) -> bool:
    """Whether it is a filter of Chroma's on metadata alone, with operators that are known here.

    >>> can_evaluate({"$or": [{"page": {"$gt": 2}}, {"team": "red"}]})
    True
    >>> can_evaluate({"#document": {"$contains": "tea"}})
    False
    """
    if not isinstance(where, Mapping) or len(where) != 1:
        return False
    ((key, condition),) = where.items()
    if key in ("$and", "$or"):
        return (
            isinstance(condition, list) and len(condition) > 1 and all(map(can_evaluate, condition))
        )
    if not isinstance(key, str) or key.startswith(("$", "#")):
        return False
    name, operand = _split_condition(condition)
    kind = value_kind(operand)
    name = _OPPOSITES.get(name, name)
    if name in ("$gt", "$gte", "$lt", "$lte"):
        return kind in _NUMBERS
    if name == "$in":
        return kind is not None and kind.endswith(LIST)
    return name in ("$eq", "$contains") and kind is not None and not kind.endswith(LIST)


def evaluate(where: Mapping[str, Any], size: int, read_runs: ReadRuns) -> NDArray[np.bool_]:
    """Return for each number below `size` whether a filter of Chroma's lets the child through.

    Numbers are compared by value, whether whole or not. A child without the key passes what is
    negated (`$ne`, `$nin`, `$not_contains`) and nothing else. The filter must pass `can_evaluate`.
    """
    ((key, condition),) = where.items()
    if key in ("$and", "$or"):
        parts = (evaluate(part, size, read_runs) for part in condition)
        return reduce(np.logical_and if key == "$and" else np.logical_or, parts)
    name, operand = _split_condition(condition)
    if name in _OPPOSITES:
        opposite = {key: {_OPPOSITES[name]: operand}}
        return ~evaluate(opposite, size, read_runs)
    is_allowed = np.zeros(size, dtype=bool)
    if name == "$contains":
        kind = value_kind(operand)
        runs = read_runs(f"{kind}{LIST}", key)
        _mark(is_allowed, runs[_compare(runs["value"], str(kind), "$eq", operand)])
        return is_allowed
    operands, name = (operand, "$eq") if name == "$in" else ([operand], name)
    own_kind = str(value_kind(operands[0]))
    for kind in _NUMBERS if own_kind in _NUMBERS else (own_kind,):
        runs = read_runs(kind, key)
        is_match = np.zeros(len(runs), dtype=bool)
        for each in operands:
            is_match |= _compare(runs["value"], kind, name, each)
        _mark(is_allowed, runs[is_match])
    return is_allowed


def _compare(values: NDArray[Any], kind: str, name: str, operand: Any) -> NDArray[np.bool_]:
    if kind == "str":
        operand = _digest(operand)
    elif kind == "float":
        operand = float(operand)  # as Chroma does it, also where that is not exact
    elif value_kind(operand) != kind:  # Python compares whole numbers with others exactly
        pairs = (_COMPARE[name](value, operand) for value in values.tolist())
        return np.fromiter(pairs, dtype=bool, count=len(values))
    return np.asarray(_COMPARE[name](values, operand), dtype=bool)


def _mark(is_allowed: NDArray[np.bool_], runs: NDArray[np.void]) -> None:
    """Set the children of all the runs."""
    if len(runs) <= _MAX_PAINTED:
        for first, last in zip(runs["first"].tolist(), runs["last"].tolist(), strict=True):
            is_allowed[first : last + 1] = True
        return
    size = len(is_allowed) + 1
    begins = np.bincount(runs["first"], minlength=size)
    ends = np.bincount(runs["last"].astype(np.int64) + 1, minlength=size)
    is_allowed |= np.cumsum(begins - ends)[:-1] > 0
