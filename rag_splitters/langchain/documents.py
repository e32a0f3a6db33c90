"""LangChain documents from spans: their text, metadata, positions and ids."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.documents import Document

from rag_splitters.contract.own_texts import LooseSpan, chunk_key
from rag_splitters.ids import ChunkIds
from rag_splitters.span import Source, Span
from rag_splitters.structure.outlined import repeated_metadata
from rag_splitters.text.sources import copier, copies_of, offset_in_source

_new_document = copies_of(Document(page_content=""), ("page_content", "metadata", "id"))


def chunk_documents(
    source: Source, spans: Sequence[Span], ids: ChunkIds, add_positions: bool
) -> list[Document]:
    """Make a document of each span of a source.

    Parameters:
        source: the source; if it is itself a chunk, positions refer to the source of that.
        spans: its spans.
        ids: creates the ids of the chunks.
        add_positions: whether to add `start_index`, `end_index` and `chunk_index`.
    """
    text, metadata = source.text, source.metadata
    copied = copier(repeated_metadata(metadata))
    offset, bound = offset_in_source(metadata.get("start_index"), metadata.get("end_index"), text)
    chunks: list[Document] = []
    for index, span in enumerate(spans):
        own = copied()
        if details := span.to_metadata():
            own.update(details)
        if span.parent is not None:
            own["parent_id"] = chunks[span.parent].id
        if add_positions and not isinstance(span, LooseSpan):
            own["start_index"] = span.start + offset if bound is None else offset
            own["end_index"] = span.end + offset if bound is None else bound
        if add_positions:
            own["chunk_index"] = index
        new_id = ids.of(*chunk_key(span, index))
        fields = {"page_content": span.text_of(text), "metadata": own, "id": new_id}
        chunks.append(_new_document(fields))
    return chunks
