"""The parents and children that a document is to have: their texts, positions, ids and metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rag_splitters.ids import chunk_id, source_identity, stable_uuid
from rag_splitters.parent_child.records import (
    FORMAT,
    PLACE_KEYS,
    POSITION_KEYS,
    REPRESENTS_KEY,
    SOURCE_KEY,
    Entry,
    Record,
    cut_parts,
    fingerprint,
    flatten_metadata,
    metadata_hash,
)
from rag_splitters.parent_child.representations import Representations
from rag_splitters.parent_child.stores import Stores
from rag_splitters.parent_child.vectors import Draft, embedded_text
from rag_splitters.structure.outline import Outline
from rag_splitters.text.origin import PLACES, places_of
from rag_splitters.text.sources import copy_metadata
from rag_splitters.text.surrogates import without_surrogates

_MAX_HEADING = 120  # characters; a longer one says too little for what it costs


_Parent = tuple[Entry, int | None]
"""A parent, and where it begins in its document, if that is known exactly."""


async def draft_documents(stores: Stores, documents: Mapping[str, Entry]) -> list[Draft]:
    """Cut documents, by identity, into parents and children with one call of each splitter.

    Representations that the documents' records do not have are written in one call, too.
    """
    sources = list(documents.items())
    chunks = await stores.split("parents", [source.without_positions() for _, source in sources])
    chunks_per_source = [None] * len(sources) if chunks is None else chunks
    parents_per_source = [
        _make_parents(identity, source, chunks)
        for (identity, source), chunks in zip(sources, chunks_per_source, strict=True)
    ]
    parents = [parent for parents in parents_per_source for parent in parents]
    whole = [parent.without_positions() for parent, _ in parents]
    chunks_per_parent = iter(await stores.split("children", whole) or [])
    drafts = [
        _make_draft(stores, identity, source, [(each, next(chunks_per_parent)) for each in parents])
        for (identity, source), parents in zip(sources, parents_per_source, strict=True)
    ]
    if stores.representations is not None:
        await _add_representations(stores, stores.representations, drafts)
    for draft in drafts:
        draft.record = _make_record(stores, draft)
    return drafts


async def _add_representations(
    stores: Stores, representations: Representations, drafts: Sequence[Draft]
) -> None:
    """Add children that stand where their pieces do, with the texts that represent these."""
    records = await stores.read_records([draft.identity for draft in drafts])
    texts = {k: v for record in records if record is not None for k, v in record.representations}
    key = representations.key
    pieces = [(draft.identity, piece.text) for draft in drafts for piece in draft.pieces]
    new = {key(text): (document, text) for document, text in pieces}
    texts |= await representations.write({k: v for k, v in new.items() if k not in texts})
    for draft in drafts:
        for piece in draft.pieces:
            own = texts[key(piece.text)]
            draft.representations.append((key(piece.text), own))
            metadata = piece.metadata | {REPRESENTS_KEY: piece.id or ""}
            owner = f"{REPRESENTS_KEY} {piece.id}"  # a child of the piece may have the same text
            draft.children.extend(
                Entry(text, metadata, chunk_id(owner, number, number, text), piece.context)
                for number, text in enumerate(own)
            )


def _make_record(stores: Stores, draft: Draft) -> Record:
    """Return the record that a document has once it is written.

    Its digest stays the same as long as nothing about the document changes. It is made of the
    document's text and metadata, the ids and metadata of all that it is cut into, and the settings
    of the index. The ids are made of positions and texts, so they stand for the splitters.
    """
    source, settings = draft.source, f"{FORMAT} {stores.children.smoothing:g} {stores.headings:d}"
    spans = tuple(_span_in(source, parent) for parent in draft.parents)
    rest = cut_parts(source.text, [span for span in spans if span is not None])
    parents = tuple(parent.id or "" for parent in draft.parents)
    children = tuple(child.id or "" for child in draft.children)
    details = tuple(metadata_hash(child.metadata) for child in draft.children)
    content = source_identity(source.text, source.metadata)
    keys_of_pieces = [key for key, _ in draft.representations]
    return Record(
        identity=draft.identity,
        rest=rest,
        metadata=source.metadata,
        digest=stable_uuid(settings, content, *parents, "", *children, *details, *keys_of_pieces),
        parents=parents,
        spans=spans,
        children=children,
        child_keys=tuple(sorted({key for child in draft.children for key in child.metadata})),
        texts=tuple(fingerprint(embedded_text(child)) for child in draft.children),
        details=details,
        representations=tuple(draft.representations),
        settings=f"{settings} {stores.children.model}",
        checksum=fingerprint(rest),
        metadata_hashes=tuple(metadata_hash(each.metadata) for each in (source, *draft.parents)),
    )


def _span_in(source: Entry, parent: Entry) -> tuple[int, int] | None:
    """Return which part of the document the parent is; None if its text is another one."""
    if parent.span is None:
        return None
    start, end = parent.span[0] - source.offset, parent.span[1] - source.offset
    return (start, end) if start >= 0 and source.text[start:end] == parent.text else None


def headings_of(source: Entry) -> Callable[[Mapping[str, Any]], tuple[list[str], str]]:
    """Return a function from a child's metadata to its headings, and to what stands before it.

    That stands there where the child is embedded and indexed: the document's title, and the
    headings.

    >>> source = Entry("# Cats\\n\\nThey sleep.", {"title": "Animals"})
    >>> headings_of(source)({"start_index": 8})
    (['Cats'], 'Animals > Cats')
    """
    outline = Outline.of(source.text, metadata=source.metadata)
    offset, title = source.offset, source.metadata.get("title")
    titles = [title] if isinstance(title, str) else []

    def shorten(lines: Iterable[str]) -> list[str]:
        return [" ".join(line.split())[:_MAX_HEADING] for line in lines]

    def above(metadata: Mapping[str, Any]) -> tuple[list[str], str]:
        start = metadata.get("start_index")
        headings = shorten(outline.above(start - offset) if isinstance(start, int) else ())
        lines = filter(None, [*shorten(titles), *headings])
        return headings, " > ".join(dict.fromkeys(lines))

    return above


def _make_parents(identity: str, source: Entry, chunks: list[Entry] | None) -> list[_Parent]:
    """Make the parents of a document from its chunks; without chunks, it is its only parent.

    A document that is itself a chunk with exact positions passes its own start on.
    """
    if chunks is None:
        positions = {"start_index": 0, "end_index": len(source.text)}
        chunks = [replace(source, metadata=source.metadata | positions)]
    parents = []
    for number, chunk in enumerate(chunks):
        span = chunk.span
        is_exact = span is not None and source.text[slice(*span)] == chunk.text
        metadata, new_id = _identify(identity, chunk, span, source.offset, number)
        start = source.offset + span[0] if is_exact and span else None
        parents.append((Entry(chunk.text, copy_metadata(metadata), new_id), start))
    return parents


def _make_draft(
    stores: Stores,
    identity: str,
    source: Entry,
    chunks_per_parent: Sequence[tuple[_Parent, Sequence[Entry]]],
) -> Draft:
    """Make the children of a document from the chunks of each of its parents.

    Where parents overlap, a child that lies in two of them belongs to the first. A parent without
    children could never be found, and is left out.
    """
    above = headings_of(source) if stores.headings else lambda metadata: ([], "")
    inherited_keys = stores.inherited_keys
    dropped_keys = set() if inherited_keys is None else source.metadata.keys() - inherited_keys
    dropped_keys -= set(PLACES)  # the document has its own, and so has each child
    has_headings, offset = "headings" in source.metadata, source.offset
    name = without_surrogates(identity)
    parents: dict[str, _Parent] = {}
    children: dict[str, Entry] = {}
    chunks = [(parent, chunk) for parent, chunks in chunks_per_parent for chunk in chunks]
    places: set[tuple[Any, ...]] = set()

    def make_child(parent: Entry, parent_start: int | None, chunk: Entry, number: int) -> Entry:
        # The child of another parent is another child: until the new parent is there, the old ones
        # must stay as they are.
        span = chunk.span
        metadata, new_id = _identify(parent.id or "", chunk, span, parent_start, number)
        for key in dropped_keys & metadata.keys():
            del metadata[key]
        if parent_start is not None and span is not None:
            start = metadata["start_index"] - offset
            end = metadata["end_index"] - offset
            low = parent_start - offset
            whole = places_of(source.metadata, source.text, low, low + len(parent.text))
            places = places_of(source.metadata, source.text, start, end)
            metadata |= {k: v for k, v in places.items() if metadata.get(k, whole[k]) == whole[k]}
        headings, context = above(metadata)
        if not has_headings:
            _add_headings(metadata, headings)
        metadata = flatten_metadata(metadata, parent.metadata)
        if parent_start is None and span is not None:
            metadata |= zip(PLACE_KEYS, span, strict=True)
        metadata |= {stores.id_key: parent.id, SOURCE_KEY: name}
        return Entry(chunk.text, metadata, new_id, context)

    for number, ((parent, parent_start), chunk) in enumerate(chunks):
        span = chunk.span
        exact = number if parent_start is None or span is None else parent_start + span[0]
        place = (exact, chunk.text)
        if place in places or not chunk.text.strip():
            continue
        places.add(place)
        child = make_child(parent, parent_start, chunk, number)
        children[child.id or ""] = child
        parents[parent.id or ""] = parent, parent_start
    pieces = list(children.values())
    if stores.representations is not None and stores.representations.of == "parents":
        pieces = []
        for number, (parent, parent_start) in enumerate(parents.values()):
            positions = {"start_index": 0, "end_index": len(parent.text)}
            whole = replace(parent, metadata=parent.metadata | positions)
            piece = make_child(parent, parent_start, whole, number)
            pieces.append(replace(piece, id=parent.id))
    own = [parent for parent, _ in parents.values()]
    return Draft(identity, source, own, list(children.values()), pieces)


def _add_headings(metadata: dict[str, Any], headings: list[str]) -> None:
    """Write the headings above a child, unless its splitter or its parent's knows others.

    >>> metadata = {"headings": ["Tea"]}
    >>> _add_headings(metadata, ["Tea", "Green"])
    >>> metadata
    {'headings': ['Tea', 'Green']}
    """
    others = metadata.get("headings", [])
    if isinstance(others, str):  # as LlamaIndex's nodes have them
        others = others.split(" > ")
    if headings and headings[: len(others)] == others:
        metadata["headings"] = headings


def _identify(
    owner: str, chunk: Entry, span: tuple[int, int] | None, base: int | None, number: int
) -> tuple[dict[str, Any], str]:
    """Return a chunk's metadata, with its positions in the document if known, and its id.

    The id is made of that of its document or its parent, the place, and the text.
    """
    metadata = {k: v for k, v in chunk.metadata.items() if k not in POSITION_KEYS}
    metadata["chunk_index"] = number
    if base is None or span is None:
        return metadata, chunk_id(owner, number, number, chunk.text)
    start, end = base + span[0], base + span[1]
    metadata |= {"start_index": start, "end_index": end}
    return metadata, chunk_id(owner, start, end, chunk.text)
