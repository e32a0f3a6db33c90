"""The parents and children that a document is to have: their texts, positions, ids and metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rag_splitters.ids import chunk_id, source_identity, stable_uuid
from rag_splitters.parent_child.metadata import flatten_metadata
from rag_splitters.parent_child.records import (
    FORMAT,
    NUMBER_KEY,
    PLACE_KEYS,
    POSITION_KEYS,
    REPRESENTS_KEY,
    SOURCE_KEY,
    Entry,
    Record,
    cut_parts,
    fingerprint,
    id_of_chunk,
    metadata_hash,
)
from rag_splitters.parent_child.representations import Representations
from rag_splitters.parent_child.stores.stores import Stores
from rag_splitters.parent_child.vectors import Draft, embedded_text
from rag_splitters.structure.outline import Outline
from rag_splitters.text.origin import PLACES, places_of
from rag_splitters.text.sources import copy_metadata
from rag_splitters.text.surrogates import without_surrogates

_MAX_HEADING = 120  # characters; a longer one says too little for what it costs


_Part = tuple[int, int] | None
"""Which part of its document a parent is; None if its text is another one."""


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
    whole = [parent.without_positions() for parent in parents]
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
    spans = tuple(_part_of(source, parent) for parent in draft.parents)
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


def _part_of(source: Entry, parent: Entry) -> _Part:
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
    >>> headings_of(Entry("---\\ntitle: Cats\\n---\\n\\nThey sleep.", {}))({})
    ([], 'Cats')
    """
    outline = Outline.of(source.text, metadata=source.metadata)
    offset, title = source.offset, source.metadata.get("title")
    titles = [title] if title and isinstance(title, str) else [outline.declared]

    def shorten(lines: Iterable[str]) -> list[str]:
        return [" ".join(line.split())[:_MAX_HEADING] for line in lines]

    def above(metadata: Mapping[str, Any]) -> tuple[list[str], str]:
        start = metadata.get("start_index")
        headings = shorten(outline.above(start - offset) if isinstance(start, int) else ())
        lines = filter(None, [*shorten(titles), *headings])
        return headings, " > ".join(dict.fromkeys(lines))

    return above


def _make_parents(identity: str, source: Entry, chunks: list[Entry] | None) -> list[Entry]:
    """Make the parents of a document from its chunks; without chunks, it is its only parent.

    A document that is itself a chunk with exact positions passes its own start on. Of parents with
    the same text at the same place, as a strategy that rewrites text may make, there is one.
    """
    if chunks is None:
        positions = {"start_index": 0, "end_index": len(source.text)}
        chunks = [replace(source, metadata=source.metadata | positions)]
    parents: dict[str, Entry] = {}
    for number, chunk in enumerate(chunks):
        parent = _placed(identity, chunk, source.offset, number)
        parents.setdefault(parent.id or "", parent)
    return [replace(parent, metadata=copy_metadata(parent.metadata)) for parent in parents.values()]


def _make_draft(
    stores: Stores,
    identity: str,
    source: Entry,
    chunks_per_parent: Sequence[tuple[Entry, Sequence[Entry]]],
) -> Draft:
    """Make the children of a document from the chunks of each of its parents.

    Where parents overlap, a child that lies in two of them belongs to the first. A parent without
    children could never be found, and is left out.
    """
    above = headings_of(source) if stores.headings else lambda metadata: ([], "")
    inherited_keys = stores.inherited_keys
    dropped_keys = set() if inherited_keys is None else source.metadata.keys() - inherited_keys
    dropped_keys -= {*PLACES, *POSITION_KEYS}  # the document has its own, and so has each child
    name = without_surrogates(identity)
    parents: dict[str, Entry] = {}
    children: dict[str, Entry] = {}
    places: set[tuple[int, str]] = set()

    def make_child(parent: Entry, part: _Part, chunk: Entry, number: int) -> Entry:
        # The child of another parent is another child: until the new parent is there, the old ones
        # must stay as they are.
        base = None if part is None else source.offset + part[0]
        child = _placed(parent.id or "", chunk, base, number)
        metadata = {k: v for k, v in child.metadata.items() if k not in dropped_keys}
        if part is not None and chunk.span is not None:
            start, end = (part[0] + place for place in chunk.span)
            whole = places_of(source.metadata, source.text, *part)
            own = places_of(source.metadata, source.text, start, end)
            metadata |= {k: v for k, v in own.items() if metadata.get(k, whole[k]) == whole[k]}
        headings, context = above(metadata)
        if "headings" not in source.metadata:
            _add_headings(metadata, headings)
        metadata = flatten_metadata(metadata, parent.metadata)
        if part is None and chunk.span is not None:
            metadata |= zip(PLACE_KEYS, chunk.span, strict=True)
        metadata |= {stores.id_key: parent.id, SOURCE_KEY: name}
        return replace(child, metadata=metadata, context=context)

    chunks = [
        (parent, part, chunk)
        for parent, own in chunks_per_parent
        for part in [_part_of(source, parent)]
        for chunk in own
    ]
    for number, (parent, part, chunk) in enumerate(chunks):
        exact = number if part is None or chunk.span is None else part[0] + chunk.span[0]
        place = (exact, chunk.text)
        if place in places or not chunk.text.strip():
            continue
        places.add(place)
        child = make_child(parent, part, chunk, number)
        children[child.id or ""] = child
        parents[parent.id or ""] = parent
    pieces = list(children.values())
    if stores.representations is not None and stores.representations.of == "parents":
        pieces = []
        for number, parent in enumerate(parents.values()):
            positions = {"start_index": 0, "end_index": len(parent.text)}
            whole = replace(parent, metadata=parent.metadata | positions)
            piece = make_child(parent, _part_of(source, parent), whole, number)
            pieces.append(replace(piece, id=parent.id))
    return Draft(identity, source, list(parents.values()), list(children.values()), pieces)


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


def _placed(owner: str, chunk: Entry, base: int | None, number: int) -> Entry:
    """Return a chunk with its number, its positions in the document if known, and its id.

    Parameters:
        owner: the id of its document or, for a child, of its parent.
        base: where in the document its own positions count from; None if that is not known.
    """
    metadata = {**chunk.without_positions().metadata, NUMBER_KEY: number}
    if base is not None and chunk.span is not None:
        start, end = chunk.span
        metadata |= {"start_index": base + start, "end_index": base + end}
    placed = Entry(chunk.text, metadata)
    return replace(placed, id=id_of_chunk(owner, placed))
