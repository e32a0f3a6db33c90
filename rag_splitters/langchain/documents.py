"""LangChain documents from spans: their metadata, their positions, and their place in a tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from pydantic import BaseModel

from rag_splitters.span import Span
from rag_splitters.text.sources import added_metadata, copier, offset_in_source

__all__ = ["chunk_documents"]

# What `Document(...)` fills in by itself.
_blank = Document(page_content="")
_type, _extra, _private = _blank.type, _blank.__pydantic_extra__, _blank.__pydantic_private__
_new, _set = Document.__new__, object.__setattr__
_set_names, _set_extra, _set_private = (
    BaseModel.__dict__[f"__pydantic_{name}__"].__set__
    for name in ("fields_set", "extra", "private")
)


def chunk_documents(
    text: str,
    metadata: Mapping[str, Any],
    spans: Sequence[Span],
    new_id: Callable[[int, int, str | None], str],
    add_positions: bool,
) -> list[Document]:
    """The documents of a document's spans.

    Parameters:
        text: the document's text.
        metadata: its metadata; of a chunk, positions are counted on in its source.
        spans: the spans.
        new_id: makes an id of start, end and, where it is not the document's, text.
        add_positions: add `start_index`, `end_index` and `chunk_index`?
    """
    copied = copier(metadata)
    offset, bound = offset_in_source(metadata.get("start_index"), metadata.get("end_index"), text)
    chunks: list[Document] = []
    names = {"id", "metadata", "page_content"}
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
        chunks.append(_document(content, own, new_id(start, end, span.content), names))
    return chunks


def _document(
    content: str, metadata: dict[str, Any], new_id: str, given_names: set[str]
) -> Document:
    """What `Document(page_content=content, metadata=metadata, id=new_id)` makes, but unchecked.

    It takes a third of the time, and brings one object into the garbage collector's view instead
    of three: the set of the names is shared, and the fields are set one by one because Python then
    keeps them without a dictionary.
    """
    document = _new(Document)
    _set(document, "id", new_id)
    _set(document, "metadata", metadata)
    _set(document, "page_content", content)
    _set(document, "type", _type)
    _set_names(document, given_names)
    _set_extra(document, _extra)
    _set_private(document, _private)
    return document


# Python learns from the first few objects of a class what fields to keep without a dictionary.
_document("", {}, "", set())
