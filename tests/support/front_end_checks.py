"""The chunks of a front end, checked against the spans of the chunker that it is made of."""

from __future__ import annotations

import re
from itertools import pairwise

from langchain_core.documents import Document
from llama_index.core.schema import BaseNode

from rag_splitters import Chunker, Source

UUID5 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def check_documents(source: Document, documents: list[Document], chunker: Chunker) -> None:
    """Check text, positions, ids and metadata of the documents that a splitter made of one."""
    chunks = [
        (each.page_content, each.metadata.get("start_index"), each.metadata.get("end_index"))
        for each in documents
    ]
    assert chunks == _expected(chunker, Source(source.page_content, source.metadata))
    _check_ids([str(document.id) for document in documents])
    for index, document in enumerate(documents):
        expected = {"chunk_index": index} | source.metadata
        assert expected.items() <= document.metadata.items(), document


def check_nodes(source: BaseNode, nodes: list[BaseNode], chunker: Chunker) -> None:
    """Check text, positions, ids, metadata and relationships of the nodes of one document."""
    chunks = [
        (_text_with_context(n), n.start_char_idx, n.end_char_idx)  # type: ignore[attr-defined]
        for n in nodes
    ]
    assert chunks == _expected(chunker, Source(source.get_content(), source.metadata))
    _check_ids([node.node_id for node in nodes])
    for node in nodes:
        assert node.source_node is not None
        assert node.source_node.node_id == source.node_id
        own_keys = set(node.metadata) - set(source.metadata)
        assert own_keys - {"context"} <= set(node.excluded_embed_metadata_keys)
        assert own_keys <= set(node.excluded_llm_metadata_keys)
    leaves = [node for node in nodes if not node.child_nodes]
    for one, other in pairwise(leaves):
        assert one.next_node is not None, one
        assert other.prev_node is not None, other
        assert (one.next_node.node_id, other.prev_node.node_id) == (other.node_id, one.node_id)


def _expected(chunker: Chunker, source: Source) -> list[tuple[str, int, int]]:
    """Return text, start and end of each chunk of a source."""
    spans = next(chunker.split([source]))
    return [(span.text_of(source.text), span.start, span.end) for span in spans]


def _text_with_context(node: BaseNode) -> str:
    """Return a node's text after its context, which LlamaIndex keeps in the metadata."""
    context, text = node.metadata.get("context"), node.get_content()
    return f"{context}\n\n{text}" if context else text


def _check_ids(ids: list[str]) -> None:
    assert all(map(UUID5.fullmatch, ids)), ids
    assert len(set(ids)) == len(ids), ids
