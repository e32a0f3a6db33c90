"""Parents and children of a document: their positions, their ids, their metadata."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_splitters.structure.outline import Outline
from rag_splitters.text.ids import chunk_id

__all__ = [
    "NESTED_KEY",
    "POSITION_KEYS",
    "SOURCE_KEY",
    "Draft",
    "Parent",
    "Passage",
    "base_of",
    "children_of",
    "contexts",
    "copied",
    "full_child",
    "parents_of",
    "storable_text",
]

SOURCE_KEY = "_source_id"
NESTED_KEY = "_nested"
_PLAIN = {str, int, float, bool, type(None)}
_LONGEST_HEADING = 120  # characters; what is longer says too little for what it costs
POSITION_KEYS = ("start_index", "end_index", "chunk_index")


@dataclass(frozen=True, slots=True)
class Passage:
    """A text with its metadata and its id: a source document, a parent or a child."""

    text: str
    metadata: dict[str, Any]
    id: str | None = None
    context: str = ""
    """What a child stands under; put before its text where that is embedded or indexed."""

    @property
    def searched(self) -> str:
        """The text that is searched for."""
        return f"{self.context}\n\n{self.text}" if self.context else self.text

    def unplaced(self) -> Passage:
        """Without positions, so that a splitter that reports none does not hand these on."""
        return Passage(self.text, _unplaced(self.metadata), self.id, self.context)


@dataclass(frozen=True, slots=True)
class Parent:
    """A parent chunk, and where it begins in the source if that is known."""

    passage: Passage
    base: int | None


@dataclass(frozen=True, slots=True)
class Draft:
    """A source document and the parents and children that it is to have."""

    identity: str
    source: Passage
    parents: list[Passage]
    children: list[Passage]


def parents_of(identity: str, source: Passage, chunks: list[Passage] | None) -> list[Parent]:
    """The parents of a document, from its chunks or, for None, the whole document as the only one.

    A source that is itself a chunk with exact positions passes its own start on.
    """
    offset = base_of(source)
    if chunks is None:
        places = {"start_index": 0, "end_index": len(source.text)}
        chunks = [replace(source, metadata=source.metadata | places)]
    parents = []
    for ordinal, chunk in enumerate(chunks):
        span = _span(chunk)
        exact = span is not None and source.text[slice(*span)] == chunk.text
        placed, new_id = _placed(identity, chunk, offset, ordinal)
        base = offset + span[0] if exact and span else None
        parents.append(Parent(Passage(chunk.text, copied(placed), new_id), base))
    return parents


def base_of(source: Passage) -> int:
    """Where a source begins in what it was cut from: 0 but for a chunk with exact positions."""
    span = _span(source)
    return span[0] if span and span[1] - span[0] == len(source.text) else 0


def children_of(
    identity: str,
    source: Passage,
    parents: Sequence[Parent],
    chunks: Sequence[Sequence[Passage]],
    id_key: str,
    inherited: frozenset[str] | None = None,
    context: Callable[[Passage], str] = lambda child: "",
) -> Draft:
    """The draft of a document from its parents and the chunks of each.

    Where parents overlap, a child that lies in two of them belongs to the first. A parent without
    children could never be found and is left out. With `inherited`, a child keeps only these keys
    of its document's metadata; `context` tells what it stands under.
    """
    kept: dict[str, Passage] = {}
    children: dict[str, Passage] = {}
    ordinal = 0
    for parent, pieces in zip(parents, chunks, strict=True):
        for piece in pieces:
            placed, new_id = _placed(identity, piece, parent.base, ordinal)
            ordinal += 1
            if new_id in children or not piece.text.strip():
                continue
            if inherited is not None:
                gone = source.metadata.keys() - inherited
                placed = {key: value for key, value in placed.items() if key not in gone}
            metadata = _child_metadata(placed, parent.passage.metadata)
            metadata |= {id_key: parent.passage.id or "", SOURCE_KEY: storable_text(identity)}
            child = Passage(piece.text, metadata, new_id)
            above = context(child)
            children[new_id] = replace(child, context=above) if above else child
            kept[parent.passage.id or ""] = parent.passage
    return Draft(identity, source, list(kept.values()), list(children.values()))


def contexts(source: Passage) -> Callable[[Passage], str]:
    """Tells the context of a source's children: its title and the headings that they stand under.

    >>> source = Passage("# Cats\\n\\nThey sleep.", {"title": "Animals"})
    >>> contexts(source)(Passage("They sleep.", {"start_index": 8, "end_index": 19}))
    'Animals > Cats'
    """
    outline = Outline.of(source.text, metadata=source.metadata)
    base = base_of(source)
    title = source.metadata.get("title")
    first = [title] if isinstance(title, str) else []

    def context(child: Passage) -> str:
        start = child.metadata.get("start_index")
        above = outline.above(start - base) if isinstance(start, int) else ()
        lines = [" ".join(part.split())[:_LONGEST_HEADING] for part in [*first, *above]]
        return " > ".join(dict.fromkeys(filter(None, lines)))

    return context


def full_child(child: Passage, parent: Passage, kept: frozenset[str] | None = None) -> Passage:
    """A child as it was before a vector store took it: with nested metadata and its exact text.

    Of its parent's metadata it has all or, if they are given, those that are `kept`.
    """
    own = copied(child.metadata)
    own.pop(SOURCE_KEY, None)
    own.pop(NESTED_KEY, None)
    inherited = copied(_unplaced(parent.metadata))
    if kept is not None:
        inherited = {key: value for key, value in inherited.items() if key in kept}
    for key, value in inherited.items():
        if key in own and _scalars(value) and own[key] == _clean(value):
            own[key] = value  # the store has it without lone surrogates
    nested = json.loads(child.metadata.get(NESTED_KEY) or "{}")
    text, start, outer = child.text, own.get("start_index"), parent.metadata.get("start_index")
    if isinstance(start, int) and isinstance(outer, int):
        exact = parent.text[start - outer : own["end_index"] - outer]
        text = exact if storable_text(exact) == text else text
    return Passage(text, inherited | own | nested, child.id)


def storable_text(text: str) -> str:
    """The text with U+FFFD in the place of lone surrogates, which no vector store takes."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
    return text


def copied(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A copy that shares nothing that can be changed."""
    return {key: _copied(value) for key, value in metadata.items()}


def _copied(value: Any) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is list:
        return [_copied(item) for item in value]
    if kind is dict:
        return {key: _copied(item) for key, item in value.items()}
    return copy.deepcopy(value)


def _unplaced(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if key not in POSITION_KEYS}


def _span(passage: Passage) -> tuple[int, int] | None:
    """The positions that a splitter reported, if it reported both ends.

    A start alone is how the frameworks' own splitters report what they guessed with `str.find`.
    """
    start, end = passage.metadata.get("start_index"), passage.metadata.get("end_index")
    if type(start) is int and type(end) is int and 0 <= start <= end:
        return start, end
    return None


def _placed(
    identity: str, chunk: Passage, base: int | None, ordinal: int
) -> tuple[dict[str, Any], str]:
    """A chunk's metadata with positions in the source, where they are known, and its id."""
    metadata = {**_unplaced(chunk.metadata), "chunk_index": ordinal}
    span = _span(chunk)
    if base is None or span is None:
        return metadata, chunk_id(identity, ordinal, ordinal, chunk.text)
    start, end = base + span[0], base + span[1]
    metadata |= {"start_index": start, "end_index": end}
    return metadata, chunk_id(identity, start, end, chunk.text)


def _child_metadata(metadata: Mapping[str, Any], inherited: Mapping[str, Any]) -> dict[str, Any]:
    """What vector stores take, as it is; the rest as JSON, unless the parent has the same."""
    flat: dict[str, Any] = {}
    nested: dict[str, Any] = {}
    for key, value in metadata.items():
        if _scalars(value) and _storable_key(key):
            flat[key] = _clean(value)
        elif key not in inherited or not _same(inherited[key], value):
            nested[key] = value
    return flat | {NESTED_KEY: json.dumps(nested, sort_keys=True)} if nested else flat


def _scalars(value: object) -> bool:
    """Whether Chroma takes it: a string, a bounded number, or a list of one kind of them."""
    if isinstance(value, list):
        kinds = {type(item) for item in value}
        return len(kinds) == 1 and not kinds & {list} and all(map(_scalars, value))
    if type(value) is int:
        return -(2**63) <= value < 2**63
    return type(value) in (str, bool) or (type(value) is float and math.isfinite(value))


def _storable_key(key: str) -> bool:
    return bool(key) and not key.startswith("chroma:") and key == storable_text(key)


def _clean(value: Any) -> Any:
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return storable_text(value) if isinstance(value, str) else value


def _same(one: object, other: object) -> bool:
    try:
        return bool(one == other)
    except (TypeError, ValueError):  # arrays compare item by item
        return False
