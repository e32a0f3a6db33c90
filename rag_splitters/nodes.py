"""LlamaIndex nodes from spans: their class, their metadata, and what ties them together."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from llama_index.core.schema import (
    BaseNode,
    ImageDocument,
    ImageNode,
    IndexNode,
    MetadataMode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)

from rag_splitters.frontend import added_metadata, copier, offset_in_source
from rag_splitters.ids import stable_uuid
from rag_splitters.span import Span

__all__ = ["chunk_nodes", "holds_more_than_text", "text_of", "tie_family", "tie_neighbours"]

_IMAGE = {"image_data": "image", "image_url": "image_url", "image_mimetype": "image_mimetype"}
"""Where an image chunk's metadata go in an `ImageNode`."""


def text_of(node: BaseNode) -> str:
    """A node's text without its metadata."""
    return node.get_content(metadata_mode=MetadataMode.NONE)


def holds_more_than_text(node: BaseNode) -> bool:
    """Would dropping this node lose more than blank text? An image, a reference, a recording."""
    if isinstance(node, (ImageNode, IndexNode)):
        return True
    resources = ("image_resource", "audio_resource", "video_resource")
    return any(getattr(node, name, None) is not None for name in resources)


def chunk_nodes(
    node: BaseNode, text: str, spans: Sequence[Span], ids: Sequence[str], include_metadata: bool
) -> list[TextNode]:
    """The nodes of a document's spans, each tied to its source.

    Parameters:
        node: the document, or a chunk of one: then positions are those in its source.
        text: its text.
        spans: the spans.
        ids: an id for each.
        include_metadata: does a chunk take the document's metadata?
    """
    kind, shared = _kind(node)
    copied = copier(node.metadata if include_metadata else {})
    source = _copies(node.source_node or _related(node))
    own = (getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None))
    offset, bound = offset_in_source(own[0], own[1], text)
    chunks: list[TextNode] = []
    for index, (span, new_id) in enumerate(zip(spans, ids, strict=True)):
        known = _flat(added_metadata(span.metadata))
        made, fields = _image(known) if known.get("modality") == "image" else (kind, {})
        added = ["chunk_index", *known]
        content = span.text_of(text)
        if "context" in known:  # as metadata: for the embedding model, not for the LLM
            content = content.removeprefix(f"{known['context']}\n\n")
        embedded = [key for key in added if key != "context"]
        chunks.append(
            made(
                **{**shared, **fields},
                id_=new_id,
                text=content,
                metadata={**copied(), **known, "chunk_index": index},
                start_char_idx=offset + span.start if bound is None else offset,
                end_char_idx=offset + span.end if bound is None else bound,
                excluded_embed_metadata_keys=_union(node.excluded_embed_metadata_keys, embedded),
                excluded_llm_metadata_keys=_union(node.excluded_llm_metadata_keys, added),
                relationships={NodeRelationship.SOURCE: source()},
            )
        )
    return chunks


def tie_family(chunks: Sequence[TextNode], spans: Sequence[Span]) -> None:
    """Give each chunk of a tree its parent and its children."""
    children: dict[int, list[RelatedNodeInfo]] = defaultdict(list)
    related = _Related(chunks)
    for index, span in enumerate(spans):
        parent = span.metadata.get("parent")
        if parent is not None:
            children[parent].append(related(index))
            chunks[index].relationships[NodeRelationship.PARENT] = related(parent)
    for index, found in children.items():
        chunks[index].relationships[NodeRelationship.CHILD] = found


def tie_neighbours(chunks: Sequence[TextNode]) -> None:
    """Give each chunk its previous and next one; in a tree, leaves have leaves for neighbours."""
    related = _Related(chunks)
    rows: dict[Any, list[int]] = defaultdict(list)
    for index, chunk in enumerate(chunks):
        is_inner = NodeRelationship.CHILD in chunk.relationships
        rows[chunk.metadata.get("level") if is_inner else None].append(index)
    for row in rows.values():
        for one, other in pairwise(row):
            chunks[one].relationships[NodeRelationship.NEXT] = related(other)
            chunks[other].relationships[NodeRelationship.PREVIOUS] = related(one)


class _Related:
    """What nodes know of other nodes; each is described once."""

    def __init__(self, chunks: Sequence[TextNode]) -> None:
        self._chunks = chunks
        self._known: dict[int, RelatedNodeInfo] = {}

    def __call__(self, index: int) -> RelatedNodeInfo:
        if index not in self._known:
            self._known[index] = _related(self._chunks[index])
        return self._known[index]


def _kind(node: BaseNode) -> tuple[Callable[..., TextNode], dict[str, Any]]:
    """The class of a node's chunks, and the fields that they take from it."""
    shared = {
        name: getattr(node, name)
        for name in ("metadata_template", "text_template")
        if hasattr(node, name)
    }
    shared["metadata_seperator"] = node.metadata_separator  # the name that every version takes
    if isinstance(node, (ImageNode, ImageDocument)):
        for name in ("image", "image_path", "image_url", "image_mimetype"):
            shared[name] = getattr(node, name, None)
        return ImageNode, shared
    if isinstance(node, IndexNode):
        return IndexNode, {**shared, "index_id": node.index_id, "obj": node.obj}
    return TextNode, shared


def _flat(metadata: dict[str, Any]) -> dict[str, Any]:
    """Lists as text: LlamaIndex's vector stores take no others. Headings become "A > B"."""
    return {
        key: " > ".join(value)
        if key == "headings"
        else json.dumps(value)
        if isinstance(value, (list, tuple, dict))
        else value
        for key, value in metadata.items()
    }


def _image(known: dict[str, Any]) -> tuple[Callable[..., TextNode], dict[str, Any]]:
    """The class of an image's chunk and its own fields, which are taken out of the metadata."""
    return ImageNode, {field: known.pop(key, None) for key, field in _IMAGE.items()}


def _union(keys: Sequence[str], added: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*keys, *added]))


def _copies(related: RelatedNodeInfo) -> Callable[[], RelatedNodeInfo]:
    """Makes copies that share nothing that could be changed."""
    copied, facts = copier(related.metadata), dict(related)
    return lambda: RelatedNodeInfo(**{**facts, "metadata": copied()})


def _related(node: BaseNode) -> RelatedNodeInfo:
    """What other nodes know of this one; its metadata are a copy, its hash is taken once."""
    try:
        digest = node.hash
    except UnicodeEncodeError:  # lone surrogates
        digest = stable_uuid(text_of(node), str(node.metadata))
    return RelatedNodeInfo(
        node_id=node.node_id,
        node_type=node.get_type(),
        metadata=copier(node.metadata)(),
        hash=digest,
    )
