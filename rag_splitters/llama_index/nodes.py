"""LlamaIndex nodes from spans: their class, their metadata, and what ties them together."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from llama_index.core.schema import (
    DEFAULT_TEXT_NODE_TMPL,
    BaseNode,
    ImageDocument,
    ImageNode,
    IndexNode,
    MetadataMode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)

from rag_splitters.span import Span
from rag_splitters.structure.outlined import repeated_metadata
from rag_splitters.text.ids import stable_uuid
from rag_splitters.text.sources import copier, copies_of, offset_in_source

_IMAGE = {"image_data": "image", "image_url": "image_url", "image_mimetype": "image_mimetype"}
"""Where an image chunk's metadata go in an `ImageNode`, out of its own metadata."""

_new_relation = copies_of(RelatedNodeInfo(node_id=""), ("node_id", "node_type", "metadata", "hash"))
_STRING = frozenset((str,))
_OWN = (
    "id_",
    "metadata",
    "start_char_idx",
    "end_char_idx",
    "excluded_embed_metadata_keys",
    "excluded_llm_metadata_keys",
    "relationships",
    "text",
)
"""The fields that differ between the chunks of a document."""


def text_of(node: BaseNode) -> str:
    """A node's text without its metadata."""
    return node.get_content(metadata_mode=MetadataMode.NONE)


def holds_more_than_text(node: BaseNode) -> bool:
    """Would dropping this node lose more than blank text? An image, a reference, a recording."""
    if isinstance(node, (ImageNode, IndexNode)):
        return True
    resources = ("image_resource", "audio_resource", "video_resource")
    return any(getattr(node, name, None) is not None for name in resources)


def metadata_text(node: BaseNode) -> str:
    """What an embedding model or an LLM reads beside a chunk's own text, whichever is longer.

    It is rendered by the node's templates, without the keys that the node excludes.
    """
    if not node.metadata:
        return ""
    embedded = _rendered(node, MetadataMode.EMBED)
    if node.excluded_embed_metadata_keys == node.excluded_llm_metadata_keys:
        return embedded
    return max(embedded, _rendered(node, MetadataMode.LLM), key=len)


def _rendered(node: BaseNode, mode: MetadataMode) -> str:
    metadata = node.get_metadata_str(mode=mode).strip()
    template: str = getattr(node, "text_template", DEFAULT_TEXT_NODE_TMPL)
    return template.format(content="", metadata_str=metadata) if metadata else ""


def chunk_nodes(
    node: BaseNode, text: str, spans: Sequence[Span], ids: Sequence[str], include_metadata: bool
) -> list[TextNode]:
    """The nodes of a document's spans, each tied to its source.

    Parameters:
        node: the document, or a chunk of one: then positions are those in its source.
        ids: an id for each.
        include_metadata: does a chunk take the document's metadata?
    """
    kind, shared = _kind(node)
    copied = copier(repeated_metadata(node.metadata) if include_metadata else {})
    source = node.source_node or _relation(node)
    copied_source, new_source = copier(source.metadata), copies_of(source, ("metadata",))
    own = vars(node)  # asking a model for a field that it lacks takes long
    offset, bound = offset_in_source(own.get("start_char_idx"), own.get("end_char_idx"), text)
    usual = _excluded(node, {})
    new_node = copies_of(TextNode(**shared), _OWN) if kind is TextNode else None
    chunks: list[TextNode] = []
    for index, (span, new_id) in enumerate(zip(spans, ids, strict=True)):
        cls, inherited, excluded = kind, shared, usual
        content, metadata = span.text_of(text), copied()
        if details := _flat(span.to_metadata()):
            if span.modality == "image":
                image = {field: details.pop(key, None) for key, field in _IMAGE.items()}
                cls, inherited = ImageNode, {**shared, **image}
            if span.context:  # as metadata: for the embedding model, not for the LLM
                content = content.removeprefix(f"{span.context}\n\n")
            metadata.update(details)
            excluded = _excluded(node, details)
        metadata["chunk_index"] = index
        fields = {
            "id_": new_id,
            "metadata": metadata,
            "start_char_idx": offset + span.start if bound is None else offset,
            "end_char_idx": offset + span.end if bound is None else bound,
            "excluded_embed_metadata_keys": excluded[0].copy(),
            "excluded_llm_metadata_keys": excluded[1].copy(),
            "relationships": {NodeRelationship.SOURCE: new_source({"metadata": copied_source()})},
            "text": content,
        }
        if cls is TextNode and new_node is not None and _is_valid(fields):
            chunks.append(new_node(fields))
        else:
            chunks.append(cls(**inherited, **fields))
    return chunks


def tie(chunks: Sequence[TextNode], spans: Sequence[Span], include_neighbours: bool) -> None:
    """Give each chunk of a tree its parent and its children, and each its neighbours if asked."""
    related = cache(lambda index: _relation(chunks[index]))  # each is described once
    children: dict[int, list[RelatedNodeInfo]] = defaultdict(list)
    for index, span in enumerate(spans):
        if span.parent is not None:
            children[span.parent].append(related(index))
            chunks[index].relationships[NodeRelationship.PARENT] = related(span.parent)
    for index, relations in children.items():
        chunks[index].relationships[NodeRelationship.CHILD] = relations
    if include_neighbours:
        _tie_neighbours(chunks, related)


def _tie_neighbours(chunks: Sequence[TextNode], related: Callable[[int], RelatedNodeInfo]) -> None:
    """In a tree, leaves have leaves for neighbours."""
    rows: dict[Any, list[int]] = defaultdict(list)
    for index, chunk in enumerate(chunks):
        is_inner = NodeRelationship.CHILD in chunk.relationships
        rows[chunk.metadata.get("level") if is_inner else None].append(index)
    for row in rows.values():
        for one, other in pairwise(row):
            chunks[one].relationships[NodeRelationship.NEXT] = related(other)
            chunks[other].relationships[NodeRelationship.PREVIOUS] = related(one)


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


def _excluded(node: BaseNode, details: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The keys of a chunk's metadata that the embedding model and the LLM are not shown."""
    added = ["chunk_index", *details]
    embedded = [key for key in added if key != "context"]
    return (
        list(dict.fromkeys([*node.excluded_embed_metadata_keys, *embedded])),
        list(dict.fromkeys([*node.excluded_llm_metadata_keys, *added])),
    )


def _relation(node: BaseNode) -> RelatedNodeInfo:
    """What other nodes know of this one; its metadata is a copy, its hash is taken once."""
    try:
        digest = node.hash
    except UnicodeEncodeError:  # lone surrogates
        digest = stable_uuid(text_of(node), str(node.metadata))
    fields = {
        "node_id": node.node_id,
        "node_type": node.get_type(),
        "metadata": copier(repeated_metadata(node.metadata))(),
        "hash": digest,
    }
    return _new_relation(fields)


def _is_valid(fields: Mapping[str, Any]) -> bool:
    """Whether the constructor would take these fields as they are; a user's function may have
    made the id, and metadata may have keys of any type."""
    return (
        type(fields["id_"]) is type(fields["text"]) is str
        and type(fields["start_char_idx"]) is type(fields["end_char_idx"]) is int
        and _STRING.issuperset(map(type, fields["metadata"]))
    )
