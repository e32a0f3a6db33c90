"""LlamaIndex's documents and parsers as parent-child retrieval asks for them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from llama_index.core.node_parser import NodeParser
from llama_index.core.schema import (
    BaseNode,
    Document,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)

from rag_splitters.llama_index.nodes import text_of
from rag_splitters.llama_index.parsers import ChunkerNodeParser
from rag_splitters.parent_child.passages import POSITION_KEYS, SOURCE_KEY, Passage, copied
from rag_splitters.parent_child.stores import Level, Split

__all__ = ["Call", "caller", "named_passages", "splitting", "to_document", "to_node"]

Call = Callable[..., Awaitable[Any]]


def caller(asynchronous: bool) -> Call:
    """Calls a method or, for an asynchronous operation, its twin named with "a" or "async_"."""

    async def call(target: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        if asynchronous:
            twin = getattr(target, f"a{name}", None) or getattr(target, f"async_{name}")
            return await twin(*args, **kwargs)
        return getattr(target, name)(*args, **kwargs)

    return call


def splitting(parsers: Mapping[Level, NodeParser | None], call: Call) -> Split:
    """Cuts passages with LlamaIndex's parsers; a model that one asks is asked for all at once.

    Positions are those of our own parsers; the others' are found by a search, and guesses.
    """

    async def split(level: Level, passages: list[Passage]) -> list[list[Passage]] | None:
        parser = parsers.get(level)
        if parser is None:
            return None
        numbered = [
            Document(id_=str(number), text=p.text, metadata=copied(p.metadata))
            for number, p in enumerate(passages)
        ]
        chunks: list[list[Passage]] = [[] for _ in passages]
        is_exact = isinstance(parser, ChunkerNodeParser)
        for node in await call(parser, "get_nodes_from_documents", numbered):
            chunks[int(node.ref_doc_id)].append(_chunk(node, is_exact))
        return chunks

    return split


def _chunk(node: BaseNode, is_exact: bool) -> Passage:
    metadata = dict(node.metadata)
    start, end = getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None)
    if is_exact and start is not None and end is not None:
        metadata |= {"start_index": start, "end_index": end}
    text = text_of(node)
    if is_exact and _is_for_embedding(node, "context"):  # LangChain's splitter leaves it there
        text = f"{metadata['context']}\n\n{text}"
    return Passage(text, metadata)


def _is_for_embedding(node: BaseNode, key: str) -> bool:
    """Is this key in the metadata for the embedding model alone?"""
    embedded = key not in node.excluded_embed_metadata_keys
    return embedded and key in node.excluded_llm_metadata_keys


def named_passages(documents: Iterable[BaseNode], ids: Sequence[str] | None) -> Iterable[Passage]:
    """Documents of LlamaIndex as passages.

    Their names are the ids, if there are any; else the id that a document was given. The random one
    that it has without is none: the document is known by its text and metadata.
    """
    if ids is None:
        return map(_named, documents)
    documents = list(documents)
    if len(ids) != len(documents):
        raise ValueError(f"ids must be one for each of {len(documents)} documents, got {len(ids)}")
    pairs = zip(documents, ids, strict=True)
    return [Passage(text_of(document), document.metadata, i) for document, i in pairs]


def _named(document: BaseNode) -> Passage:
    given = document.node_id if "id_" in document.model_fields_set else None
    return Passage(text_of(document), document.metadata, given)


def to_document(passage: Passage) -> Document:
    """A passage as a document of LlamaIndex that shares nothing with it."""
    return Document(id_=passage.id or "", text=passage.text, metadata=copied(passage.metadata))


def to_node(passage: Passage, id_key: str) -> TextNode:
    """A result as a node: its positions are the node's own, and what we added is for no model."""
    metadata = copied(passage.metadata)
    start, end = metadata.pop("start_index", None), metadata.pop("end_index", None)
    source = metadata.pop(SOURCE_KEY, None)
    metadata.pop("score", None)
    added = [key for key in (*POSITION_KEYS, id_key, "matches") if key in metadata]
    tied = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=source)} if source else {}
    return TextNode(
        id_=passage.id or "",
        text=passage.text,
        metadata=metadata,
        start_char_idx=start,
        end_char_idx=end,
        excluded_embed_metadata_keys=added,
        excluded_llm_metadata_keys=added,
        relationships=tied,
    )
