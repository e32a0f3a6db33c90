"""LlamaIndex nodes from spans: their class, their metadata, and what ties them together."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeVar

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
from pydantic import BaseModel

from rag_splitters.span import Span
from rag_splitters.text.ids import stable_uuid
from rag_splitters.text.sources import added_metadata, copier, offset_in_source

__all__ = ["chunk_nodes", "holds_more_than_text", "text_of", "tie"]

_IMAGE = {"image_data": "image", "image_url": "image_url", "image_mimetype": "image_mimetype"}
"""Where an image chunk's metadata go in an `ImageNode`."""

_Model = TypeVar("_Model", bound=BaseModel)

_new, _set = object.__new__, object.__setattr__
_set_names, _set_extra, _set_private = (
    BaseModel.__dict__[f"__pydantic_{name}__"].__set__
    for name in ("fields_set", "extra", "private")
)
_STRING = frozenset((str,))
_NAMES: dict[type[BaseModel], set[str]] = {
    kind: set(kind.model_fields) for kind in (RelatedNodeInfo, TextNode)
}


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
    source = _copies(node.source_node or RelatedNodeInfo(**_facts(node)))
    own = vars(node)  # asking a model for a field that it lacks takes long
    offset, bound = offset_in_source(own.get("start_char_idx"), own.get("end_char_idx"), text)
    usual = _excluded(node, {})
    chunks: list[TextNode] = []
    for index, (span, new_id) in enumerate(zip(spans, ids, strict=True)):
        made, given, excluded = kind, shared, usual
        content, metadata = span.text_of(text), copied()
        if span.metadata:
            known = _flat(added_metadata(span.metadata))
            if known.get("modality") == "image":
                made, given = ImageNode, {**shared, **_image(known)}
            if "context" in known:  # as metadata: for the embedding model, not for the LLM
                content = content.removeprefix(f"{known['context']}\n\n")
            metadata.update(known)
            excluded = _excluded(node, known)
        metadata["chunk_index"] = index
        fields = {
            "id_": new_id,
            "text": content,
            "metadata": metadata,
            "start_char_idx": offset + span.start if bound is None else offset,
            "end_char_idx": offset + span.end if bound is None else bound,
            "excluded_embed_metadata_keys": excluded[0].copy(),
            "excluded_llm_metadata_keys": excluded[1].copy(),
            "relationships": {NodeRelationship.SOURCE: source()},
        }
        if made is TextNode and _is_plain(fields):
            chunks.append(_unchecked(TextNode, {**_text_node(**given), **fields}))
        else:
            chunks.append(made(**given, **fields))
    return chunks


def tie(chunks: Sequence[TextNode], spans: Sequence[Span], include_neighbours: bool) -> None:
    """Give each chunk of a tree its parent and its children, and each its neighbours if asked."""
    related = _Related(chunks)
    _tie_family(chunks, spans, related)
    if include_neighbours:
        _tie_neighbours(chunks, related)


class _Related(dict[int, RelatedNodeInfo]):
    """What nodes know of other nodes, by their number; each is described once."""

    def __init__(self, chunks: Sequence[TextNode]) -> None:
        self._chunks = chunks

    def __missing__(self, index: int) -> RelatedNodeInfo:
        found = self[index] = _unchecked(RelatedNodeInfo, _facts(self._chunks[index]))
        return found


def _tie_family(chunks: Sequence[TextNode], spans: Sequence[Span], related: _Related) -> None:
    children: dict[int, list[RelatedNodeInfo]] = defaultdict(list)
    for index, span in enumerate(spans):
        parent = span.metadata.get("parent")
        if parent is not None:
            children[parent].append(related[index])
            chunks[index].relationships[NodeRelationship.PARENT] = related[parent]
    for index, found in children.items():
        chunks[index].relationships[NodeRelationship.CHILD] = found


def _tie_neighbours(chunks: Sequence[TextNode], related: _Related) -> None:
    """In a tree, leaves have leaves for neighbours."""
    rows: dict[Any, list[int]] = defaultdict(list)
    for index, chunk in enumerate(chunks):
        is_inner = NodeRelationship.CHILD in chunk.relationships
        rows[chunk.metadata.get("level") if is_inner else None].append(index)
    for row in rows.values():
        for one, other in pairwise(row):
            chunks[one].relationships[NodeRelationship.NEXT] = related[other]
            chunks[other].relationships[NodeRelationship.PREVIOUS] = related[one]


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


def _image(known: dict[str, Any]) -> dict[str, Any]:
    """The fields of an image's node, which are taken out of its metadata."""
    return {field: known.pop(key, None) for key, field in _IMAGE.items()}


def _excluded(node: BaseNode, known: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The keys of a chunk's metadata that the embedding model and the LLM are not shown."""
    added = ["chunk_index", *known]
    embedded = [key for key in added if key != "context"]
    return (
        list(dict.fromkeys([*node.excluded_embed_metadata_keys, *embedded])),
        list(dict.fromkeys([*node.excluded_llm_metadata_keys, *added])),
    )


def _copies(related: RelatedNodeInfo) -> Callable[[], RelatedNodeInfo]:
    """Makes copies that share nothing that could be changed."""
    copied, facts = copier(related.metadata), vars(related)
    return lambda: _unchecked(RelatedNodeInfo, {**facts, "metadata": copied()})


def _facts(node: BaseNode) -> dict[str, Any]:
    """What other nodes know of this one; its metadata are a copy, its hash is taken once."""
    try:
        digest = node.hash
    except UnicodeEncodeError:  # lone surrogates
        digest = stable_uuid(text_of(node), str(node.metadata))
    return {
        "node_id": node.node_id,
        "node_type": node.get_type(),
        "metadata": copier(node.metadata)(),
        "hash": digest,
    }


def _is_plain(fields: Mapping[str, Any]) -> bool:
    """Would the constructor take these fields as they are? A user's function may have made them."""
    return (
        type(fields["id_"]) is type(fields["text"]) is str
        and type(fields["start_char_idx"]) is type(fields["end_char_idx"]) is int
        and _STRING.issuperset(map(type, fields["metadata"]))
    )


@lru_cache(maxsize=16)
def _text_node(**shared: str) -> dict[str, Any]:
    """All fields of a node that has these."""
    return vars(TextNode(**shared))


def _unchecked(kind: type[_Model], fields: Mapping[str, Any]) -> _Model:
    """What `kind(**fields)` makes, but unchecked; needs all fields, in their order.

    It brings one object into the garbage collector's view instead of three: the fields are set one
    by one because Python then keeps them without a dictionary, and the set of their names is
    shared, which no assignment changes because none is missing.
    """
    made = _new(kind)
    for name, value in fields.items():
        _set(made, name, value)
    _set_names(made, _NAMES[kind])
    _set_extra(made, None)
    _set_private(made, None)
    return made


# Python learns from the first few objects of a class what fields to keep without a dictionary.
_unchecked(RelatedNodeInfo, vars(RelatedNodeInfo(node_id="")))
_unchecked(TextNode, _text_node())
