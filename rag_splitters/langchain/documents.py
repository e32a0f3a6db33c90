"""LangChain documents from spans, with text, metadata, positions and ids; and from entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document

from rag_splitters.contract.chunker import without
from rag_splitters.contract.own_texts import LooseSpan, chunk_key
from rag_splitters.ids import ChunkIds
from rag_splitters.parameters.checks import check_has
from rag_splitters.parent_child.records import Entry
from rag_splitters.span import Source, Span
from rag_splitters.structure.stored_outline import repeated_metadata
from rag_splitters.text.sources import (
    copier,
    copies_of,
    copy_metadata,
    offset_in_source,
    users_keys,
)


def check_document(document: Any) -> None:
    """Raise a TypeError for anything that is not a document, such as a bare text."""
    expected = 'a LangChain Document, such as Document(page_content="...")'
    check_has(document, "page_content", expected)


def to_entry(document: Document) -> Entry:
    """Convert a document; the metadata is shared.

    Raises TypeError for anything that is not a document.
    """
    check_document(document)
    return Entry(document.page_content, document.metadata, document.id)


def to_document(entry: Entry) -> Document:
    """Convert an entry to a document that shares nothing with it."""
    return Document(page_content=entry.text, metadata=copy_metadata(entry.metadata), id=entry.id)


_new_document = copies_of(Document(page_content=""), ("page_content", "metadata", "id"))


def chunk_documents(
    source: Source, spans: Sequence[Span], ids: ChunkIds, add_positions: bool
) -> list[Document]:
    """Make a document of each span of a source.

    Parameters:
        source: the source; if it is itself a chunk, positions refer to the source of that.
        add_positions: whether to add `start_index`, `end_index` and `chunk_index`.

    A key of the source's metadata wins: ours of the same name is left out.
    """
    text, metadata = source.text, source.metadata
    copied = copier(repeated_metadata(metadata))
    offset, bound = offset_in_source(metadata.get("start_index"), metadata.get("end_index"), text)
    is_chunk = "start_index" in metadata and "end_index" in metadata and "chunk_index" in metadata
    is_piece = "start_index" in metadata and metadata.get("end_index") == offset + len(text)
    users = frozenset() if is_chunk else users_keys(metadata, ("end_index",) if is_piece else ())
    chunks: list[Document] = []
    for index, span in enumerate(spans):
        own = copied()
        details = span.to_metadata()
        if span.parent is not None:
            details["parent_id"] = chunks[span.parent].id
        if add_positions and not isinstance(span, LooseSpan):
            details["start_index"] = span.start + offset if bound is None else offset
            details["end_index"] = span.end + offset if bound is None else bound
        if add_positions:
            details["chunk_index"] = index
        own.update(details if users.isdisjoint(details) else without(details, users))
        new_id = ids.of(*chunk_key(span, index))
        fields = {"page_content": span.text_of(text), "metadata": own, "id": new_id}
        chunks.append(_new_document(fields))
    return chunks
