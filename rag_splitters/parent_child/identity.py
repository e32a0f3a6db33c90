"""What an index is: one id, one collection, one model and one format, compared when it is opened.

The docstore has a row that says so, which is written with the first document. Chroma's collection
has the id in its metadata. Other vector stores cannot say to which index they belong.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from rag_splitters.calls import call
from rag_splitters.errors import InputError
from rag_splitters.parent_child.errors import (
    DamagedRowsError,
    IndexMismatchError,
    MissingParentsError,
)
from rag_splitters.parent_child.records import FORMAT, INDEX_KEY, SOURCE_KEY, Entry, Identity
from rag_splitters.parent_child.revisions import new_revision, revision_row
from rag_splitters.parent_child.stores.chroma import MODEL_LABEL
from rag_splitters.parent_child.stores.stores import Stores
from rag_splitters.parent_child.writing import Docstore

INDEX_LABEL = "rag_splitters_index"
"""The key in a collection's metadata that holds the id of its index."""


async def read_identity(docstore: Docstore) -> Identity | None:
    """Return what the docstore says; None if no document was ever added to it.

    Raises IndexMismatchError for an index in another format, and DamagedRowsError if the row is not
    what was written.
    """
    (row,) = await docstore.read([INDEX_KEY])
    if row is None:
        return None
    number = row.metadata.get("format")
    if isinstance(number, int) and number != FORMAT:
        raise IndexMismatchError(
            f"this index was written in format {number}, and this version of rag_splitters reads "
            f"format {FORMAT}: install the version that wrote it, or index the documents anew"
        )
    names = {each.name for each in fields(Identity)}
    if not isinstance(number, int) or not names <= row.metadata.keys():
        raise DamagedRowsError(
            "the row of the docstore that says what the index is is damaged: restore it from a "
            "backup, or index the documents into another collection",
            [INDEX_KEY],
        )
    return Identity(**{name: row.metadata[name] for name in names})


async def check_identity(stores: Stores) -> Identity | None:
    """Check that the stores belong together, and that this model wrote them.

    Returns what the index is; None if no document was ever added to it.

    Raises IndexMismatchError, which names both sides, if they do not.
    """
    identity = stores.writer.identity
    if identity is None:
        identity = await read_identity(stores.docstore)
        labels = await stores.children.read_labels() or {}
        await _compare(stores, identity, labels)
        stores.writer.identity = identity
    return identity


async def forget_lost_index(stores: Stores) -> None:
    """Let a new index begin, in the same collection, if the docstore has lost its rows."""
    if await read_identity(stores.docstore) is None:
        stores.writer.identity = None
        await stores.children.write_labels({INDEX_LABEL: ""})


async def _compare(stores: Stores, identity: Identity | None, labels: Mapping[str, Any]) -> None:
    children = stores.children
    index, name = labels.get(INDEX_LABEL), children.collection_name
    if identity is None:
        if index and await children.count():
            raise MissingParentsError(
                f"collection {name!r} holds the children of index {index}, and the docstore has "
                "no index: it has lost its rows, or it is not the one that belongs to this "
                "collection. Restore or pass the right docstore, or index into another collection; "
                "to remove the children, call verify(repair=True, remove_most=True)"
            )
        if labels.get(MODEL_LABEL) not in (None, children.model) and await children.count():
            raise _model_error(f"collection {name!r}", labels[MODEL_LABEL], children.model)
        return
    if identity.collection and name and identity.collection != name:
        raise IndexMismatchError(
            f"this docstore belongs to the index in collection {identity.collection!r}, not "
            f"{name!r}: open that collection, or pass a docstore (another table, namespace or "
            "file) for this one"
        )
    if index not in (None, "", identity.id):
        raise IndexMismatchError(
            f"collection {name!r} belongs to index {index}, and this docstore to index "
            f"{identity.id}: pass the docstore that belongs to the collection, or index into "
            "another collection"
        )
    if identity.model and children.model and identity.model != children.model:
        raise _model_error("this index", identity.model, children.model)
    if identity.is_reembedding:
        raise IndexMismatchError(
            "this index was being embedded with another model, and that was interrupted: open it "
            "with reembed=True again"
        )


def _model_error(place: str, old: str, new: str) -> IndexMismatchError:
    return IndexMismatchError(
        f"{place} was written with the embedding model {old} and cannot be searched with {new}: "
        "open it with the first, pass reembed=True to embed everything anew, or index into "
        "another collection"
    )


def classic_children(stores: Stores, children: Sequence[Entry]) -> list[Entry]:
    """Return those of the children that `langchain_classic` wrote: they name no document."""
    return [
        child
        for child in children
        if isinstance(child.metadata.get(stores.id_key), str) and SOURCE_KEY not in child.metadata
    ]


async def is_classic(stores: Stores) -> bool:
    """Whether the stores hold an index that `langchain_classic` wrote, and none of ours."""
    if await check_identity(stores) is not None:
        return False
    return bool(classic_children(stores, await stores.children.read_some()))


async def refuse_classic(stores: Stores) -> None:
    """Raise an InputError, which says what to call, if `langchain_classic` wrote the stores."""
    if await is_classic(stores):
        raise InputError(
            "this vector store holds children that langchain_classic wrote: call "
            "import_classic() once, which makes documents of their parents, and then go on"
        )


async def ensure_identity(
    stores: Stores, dimension: int | None = None, *, may_be_classic: bool = False
) -> Identity:
    """Return what the index is; a new index gets its identity.

    Parameters:
        dimension: how long new vectors are; None: there are none.

    Raises InputError if `langchain_classic` wrote the stores, unless that is expected, and
    IndexMismatchError if new vectors are not as long as those in the index.
    """
    identity = await check_identity(stores) or await _begin_index(stores, dimension, may_be_classic)
    if dimension is not None and identity.dimension is None:
        identity = await _note_dimension(stores, identity, dimension)
    if None not in (dimension, identity.dimension) and dimension != identity.dimension:
        raise IndexMismatchError(
            f"this index was written with vectors of {identity.dimension} numbers, and the "
            f"embedding model {stores.children.model} now returns {dimension}: use the model that "
            "wrote it; or open the index with another model_name for this one and reembed=True, "
            "which embeds everything anew"
        )
    return identity


async def write_identity(stores: Stores, identity: Identity) -> None:
    """Write what an index is from now on."""
    stores.writer.identity = identity  # it also names the lock
    try:
        await stores.in_turn(lambda held: held.docstore.write([identity.to_row()]))
    except BaseException:
        stores.writer.identity = None
        raise


async def _note_dimension(stores: Stores, identity: Identity, dimension: int) -> Identity:
    """Note the length of the first vectors of an index that began without any."""
    noted = replace(identity, dimension=dimension)

    async def write(held: Stores) -> bool:
        expected = dict([identity.to_row()])
        is_current = await read_identity(held.docstore) == identity
        return is_current and await held.docstore.write([noted.to_row()], expected=expected)

    if await stores.in_turn(write):
        stores.writer.identity = noted
        return noted
    stores.writer.identity = None  # another process has changed it
    return await check_identity(stores) or identity


async def _begin_index(stores: Stores, dimension: int | None, may_be_classic: bool) -> Identity:
    """Give a new index its identity, unless another process is faster."""
    model = stores.children.model
    is_nameless = "<lambda>" in model or "<locals>" in model
    if is_nameless and not stores.docstore.is_in_memory:
        raise InputError(
            f"the embedding function {model} has no name by which it can be recognised when the "
            'index is opened again: pass model_name="...", or a function that can be imported'
        )
    if not may_be_classic:
        await refuse_classic(stores)

    async def begin(held: Stores) -> Identity:
        if (identity := await check_identity(held)) is not None:
            return identity  # another process was faster
        identity = Identity(uuid.uuid4().hex, stores.children.collection_name, model, dimension)
        first = new_revision()
        await held.docstore.write([revision_row(first), identity.to_row()])
        labels = {INDEX_LABEL: identity.id, MODEL_LABEL: identity.model}
        await stores.children.write_labels({k: v for k, v in labels.items() if v})
        if stores.keywords is not None and stores.keywords.revision is None:
            await call(stores.keywords.update, {}, first)  # it is as empty
        return identity

    stores.writer.identity = await stores.in_turn(begin)
    return stores.writer.identity
