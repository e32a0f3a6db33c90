"""LlamaIndex nodes from spans: their class, metadata and relationships."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import groupby, pairwise
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

from rag_splitters.contract.chunker import without
from rag_splitters.contract.own_texts import LooseSpan
from rag_splitters.errors import InputError
from rag_splitters.ids import stable_uuid
from rag_splitters.parameters.checks import check_has
from rag_splitters.span import Span
from rag_splitters.structure.stored_outline import repeated_metadata
from rag_splitters.text.sources import copier, copies_of, offset_in_source, users_keys

_IMAGE = {"image_data": "image", "image_url": "image_url", "image_mimetype": "image_mimetype"}
"""Fields of an `ImageNode` for the metadata of an image's chunk."""

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


def check_node(node: Any) -> None:
    """Raise a TypeError for anything that is not a node, such as a bare text."""
    expected = 'a LlamaIndex Document or node, such as Document(text="...")'
    check_has(node, "get_metadata_str", expected)


def text_of(node: BaseNode) -> str:
    """Return a node's text without its metadata."""
    check_node(node)
    return node.get_content(metadata_mode=MetadataMode.NONE)


def user_id(node: BaseNode) -> str | None:
    """Return a node's id, unless it is LlamaIndex's random one."""
    return node.node_id if "id_" in node.model_fields_set else None


def holds_more_than_text(node: BaseNode) -> bool:
    """Whether a node without text still holds something: an image, a reference, a recording."""
    if isinstance(node, (ImageNode, IndexNode)):
        return True
    resources = ("image_resource", "audio_resource", "video_resource")
    return any(getattr(node, name, None) is not None for name in resources)


def metadata_text(node: BaseNode, *, with_own: bool = True, with_context: bool = False) -> str:
    """Return the metadata as an embedding model or an LLM sees it, whichever is longer.

    It is rendered with the node's templates, without the keys that the node excludes.

    Parameters:
        with_own: whether the chunks will have the node's own metadata.
        with_context: whether the chunks will have a `context`, the last of the metadata that are
            embedded. If so, what is embedded before it, such as "context: ", is included.
    """
    own = node.metadata if with_own else {}
    if with_context and "context" not in own:
        labelled = node.model_copy(update={"metadata": {**own, "context": ""}})
        embedded = _fill(node, labelled.get_metadata_str(mode=MetadataMode.EMBED).lstrip())
        embedded = embedded.removesuffix("\n\n")  # the context brings a blank line of its own
    elif own:
        embedded = _render(node, MetadataMode.EMBED)
        if node.excluded_embed_metadata_keys == node.excluded_llm_metadata_keys:
            return embedded
    else:
        return ""
    return max(embedded, _render(node, MetadataMode.LLM), key=len) if own else embedded


def _render(node: BaseNode, mode: MetadataMode) -> str:
    return _fill(node, node.get_metadata_str(mode=mode).strip())


def _fill(node: BaseNode, metadata: str) -> str:
    """Put metadata into a node's template."""
    template: str = getattr(node, "text_template", DEFAULT_TEXT_NODE_TMPL)
    try:
        return template.format(content="", metadata_str=metadata) if metadata else ""
    except (LookupError, ValueError) as error:
        raise InputError(
            f"the text_template of document {node.node_id!r} must be a format string of "
            f"{{content}} and {{metadata_str}}, got {template!r}"
        ) from error


def chunk_nodes(
    node: BaseNode, text: str, spans: Sequence[Span], ids: Sequence[str], include_metadata: bool
) -> list[TextNode]:
    """Make a node of each span of a document, linked to its source.

    Parameters:
        node: the document; if it is itself a chunk, positions refer to the source of that.
        include_metadata: whether nodes get the document's metadata.
    """
    kind, shared = _kind(node)
    copied = copier(repeated_metadata(node.metadata) if include_metadata else {})
    source = node.source_node or _relation(node)
    copied_source, new_source = copier(source.metadata), copies_of(source, ("metadata",))
    own = vars(node)  # pydantic is slow to say that a field is missing
    offset, bound = offset_in_source(own.get("start_char_idx"), own.get("end_char_idx"), text)
    usual = _excluded(node, ("chunk_index",))
    is_chunk = own.get("start_char_idx") is not None
    added = node.excluded_llm_metadata_keys if is_chunk else ()
    users = users_keys(node.metadata, added) if include_metadata else frozenset()
    new_node = _new_node(**shared) if kind is TextNode else None
    chunks: list[TextNode] = []
    for index, (span, new_id) in enumerate(zip(spans, ids, strict=True)):
        cls, inherited, excluded, is_apart = kind, shared, usual, False
        content, metadata = span.text_of(text), copied()
        if details := _flat(span.to_metadata()):
            if span.modality == "image":
                image = {field: details.pop(key, None) for key, field in _IMAGE.items()}
                cls, inherited = ImageNode, {**shared, **image}
            if span.context is not None and "context" not in users:
                # It stays in the metadata: for the embedding model, not for the LLM.
                is_apart = content.startswith(f"{span.context}\n\n")
                content = content.removeprefix(f"{span.context}\n\n")
        details["chunk_index"] = index
        if not users.isdisjoint(details):
            details = without(details, users)
        if details.keys() != {"chunk_index"}:
            excluded = _excluded(node, details, ("context",) if is_apart else ())
        metadata.update(details)
        position: tuple[int | None, int | None] = offset, bound
        if bound is None:
            position = offset + span.start, offset + span.end
        if isinstance(span, LooseSpan):
            position = None, None
        fields = {
            "id_": new_id,
            "metadata": metadata,
            "start_char_idx": position[0],
            "end_char_idx": position[1],
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


@lru_cache(maxsize=8)
def _new_node(**shared: str) -> Callable[[Mapping[str, Any]], TextNode]:
    """Return a function that makes nodes with these templates."""
    return copies_of(TextNode(**shared), _OWN)


def link_nodes(chunks: Sequence[TextNode], spans: Sequence[Span], include_neighbours: bool) -> None:
    """Link the chunks of a tree to parents and children and, on request, to neighbours."""
    if len(chunks) < 2:
        return
    related = cache(lambda index: _relation(chunks[index]))
    children: dict[int, list[RelatedNodeInfo]] = defaultdict(list)
    for index, span in enumerate(spans):
        if span.parent is not None:
            children[span.parent].append(related(index))
            chunks[index].relationships[NodeRelationship.PARENT] = related(span.parent)
    for index, relations in children.items():
        chunks[index].relationships[NodeRelationship.CHILD] = relations
    if include_neighbours:
        _link_neighbours(chunks, related)


def link_parts(before: Sequence[TextNode], after: Sequence[TextNode]) -> None:
    """Link the chunks of neighbouring parts of one document, such as sections, to each other."""
    first = next((each for each in after if NodeRelationship.CHILD not in each.relationships), None)
    if before and first is not None and before[-1].ref_doc_id == first.ref_doc_id:
        before[-1].relationships[NodeRelationship.NEXT] = _relation(first)
        first.relationships[NodeRelationship.PREVIOUS] = _relation(before[-1])


def link_again(nodes: Sequence[BaseNode]) -> None:
    """Link neighbours anew, after a subclass has left out some nodes or given them other ids."""
    for document, group in groupby(nodes, lambda node: node.ref_doc_id):
        chunks = list(group)
        if document is not None:
            for chunk in chunks:
                chunk.relationships.pop(NodeRelationship.PREVIOUS, None)
                chunk.relationships.pop(NodeRelationship.NEXT, None)
            _link_neighbours(chunks, list(map(_relation, chunks)).__getitem__)


def _link_neighbours(chunks: Sequence[BaseNode], related: Callable[[int], RelatedNodeInfo]) -> None:
    """Link neighbours; in a tree, those of the same level, or leaves with leaves."""
    rows: dict[int | None, list[int]] = defaultdict(list)
    levels: dict[str, int] = {}
    for index, chunk in enumerate(chunks):
        parent = chunk.parent_node
        levels[chunk.node_id] = 0 if parent is None else levels.get(parent.node_id, -1) + 1
        is_inner = NodeRelationship.CHILD in chunk.relationships
        rows[levels[chunk.node_id] if is_inner else None].append(index)
    for row in rows.values():
        for one, other in pairwise(row):
            chunks[one].relationships[NodeRelationship.NEXT] = related(other)
            chunks[other].relationships[NodeRelationship.PREVIOUS] = related(one)


def _kind(node: BaseNode) -> tuple[Callable[..., TextNode], dict[str, Any]]:
    """Return the class of a node's chunks, and the fields that they take over from it."""
    shared = {
        name: getattr(node, name)
        for name in ("metadata_template", "text_template")
        if hasattr(node, name)
    }
    shared["metadata_seperator"] = node.metadata_separator  # all versions accept this spelling
    if isinstance(node, (ImageNode, ImageDocument)):
        for name in ("image", "image_path", "image_url", "image_mimetype"):
            shared[name] = getattr(node, name, None)
        return ImageNode, shared
    if isinstance(node, IndexNode):
        return IndexNode, {**shared, "index_id": node.index_id, "obj": node.obj}
    return TextNode, shared


def _flat(metadata: dict[str, Any]) -> dict[str, Any]:
    """Write lists as text, as LlamaIndex's vector stores need; headings become "A > B"."""
    return {
        key: " > ".join(value)
        if key == "headings"
        else json.dumps(value)
        if isinstance(value, (list, tuple, dict))
        else value
        for key, value in metadata.items()
    }


def _excluded(
    node: BaseNode, own_keys: Iterable[str], embedded: Collection[str] = ()
) -> tuple[list[str], list[str]]:
    """Return the keys to hide from the embedding model, and those to hide from the LLM."""
    hidden = [key for key in own_keys if key not in embedded]
    return (
        list(dict.fromkeys([*node.excluded_embed_metadata_keys, *hidden])),
        list(dict.fromkeys([*node.excluded_llm_metadata_keys, *own_keys])),
    )


def _relation(node: BaseNode) -> RelatedNodeInfo:
    """Describe a node for its relatives, with a copy of its metadata."""
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
