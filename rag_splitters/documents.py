"""LangChain documents from spans: their metadata, their positions, and their place in a tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from rag_splitters.frontend import added_metadata, copier, offset_in_source
from rag_splitters.span import Span

__all__ = ["chunk_documents"]

# What `Document(...)` does, without the three calls in Python on the way: half of the time.
_new = Document.__new__
_fill = Document.__pydantic_validator__.validate_python


def chunk_documents(
    text: str,
    metadata: Mapping[str, Any],
    spans: Sequence[Span],
    new_id: Callable[[int, int, str], str],
    add_positions: bool,
) -> list[Document]:
    """The documents of a document's spans.

    Parameters:
        text: the document's text.
        metadata: its metadata; of a chunk, positions are counted on in its source.
        spans: the spans.
        new_id: makes an id of start, end and text.
        add_positions: add `start_index`, `end_index` and `chunk_index`?
    """
    copied = copier(metadata)
    offset, bound = offset_in_source(metadata.get("start_index"), metadata.get("end_index"), text)
    chunks: list[Document] = []
    for index, span in enumerate(spans):
        start, end, own = span.start, span.end, copied()
        content = text[start:end] if span.content is None else span.content
        if span.metadata:
            own.update(added_metadata(span.metadata))
            if (parent := span.metadata.get("parent")) is not None:
                own["parent_id"] = chunks[parent].id
        if add_positions:
            own["start_index"] = start + offset if bound is None else offset
            own["end_index"] = end + offset if bound is None else bound
            own["chunk_index"] = index
        fields = {"page_content": content, "metadata": own, "id": new_id(start, end, content)}
        chunks.append(document := _new(Document))
        _fill(fields, self_instance=document)
    return chunks
