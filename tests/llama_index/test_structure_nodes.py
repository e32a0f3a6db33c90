"""Trees and images in the front ends: relationships, parents' ids, image nodes; sync and async."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core import Document
from llama_index.core.schema import ImageNode, IndexNode, RelatedNodeInfo, TextNode

from rag_splitters.llama_index import (
    HierarchicalNodeParser,
    ModalityNodeParser,
    RecursiveNodeParser,
)

TEXT = "# Tea\n\nBoil water.\n\n## Green\n\nWait less.\n\nNever boil it.\n\n# Milk\n\nIf you like."


async def test_hierarchical_nodes_know_their_family_sync_and_async() -> None:
    parser = HierarchicalNodeParser(chunk_sizes=None)
    documents = [Document(text=TEXT, id_="one")]
    nodes = parser.get_nodes_from_documents(documents)
    again = await parser.aget_nodes_from_documents(documents)
    assert [node.to_dict() for node in nodes] == [node.to_dict() for node in again]
    by_id = {node.node_id: node for node in nodes}
    assert sum(node.parent_node is None for node in nodes) == 1
    for node in nodes:
        for child in node.child_nodes or []:
            assert by_id[child.node_id].parent_node.node_id == node.node_id
        if node.parent_node is not None:
            parent = by_id[node.parent_node.node_id]
            assert parent.start_char_idx <= node.start_char_idx < node.end_char_idx
            assert node.end_char_idx <= parent.end_char_idx
            assert node.node_id in [child.node_id for child in parent.child_nodes]


@pytest.mark.parametrize("metadata", [{}, {"level": "mine"}], ids=["plain", "key taken"])
def test_neighbours_in_a_tree_are_of_one_level(metadata: dict[str, Any]) -> None:
    parser = HierarchicalNodeParser(chunk_sizes=[120, 40, 15], length_function="characters")
    parser.count_metadata = False
    nodes = parser.get_nodes_from_documents([Document(text=TEXT * 4, metadata=metadata)])
    depths: dict[str, int] = {}
    rows: dict[Any, list[TextNode]] = {}
    for node in nodes:
        parent = node.parent_node
        depths[node.node_id] = 0 if parent is None else depths[parent.node_id] + 1
        rows.setdefault(depths[node.node_id] if node.child_nodes else "leaf", []).append(node)
    assert {0, 1, "leaf"} <= rows.keys()
    for row in rows.values():
        names = [node.node_id for node in row]
        assert len(row) > 2
        assert [n.prev_node and n.prev_node.node_id for n in row] == [None, *names[:-1]]
        assert [n.next_node and n.next_node.node_id for n in row] == [*names[1:], None]


def test_images_become_image_nodes_with_their_data() -> None:
    text = "A cat:\n\n![Tom](tom.png)\n\nAnd:\n\n![Dot](data:image/png;base64,iVBORw0KGgo=)\n"
    nodes = ModalityNodeParser().get_nodes_from_documents([Document(text=text, id_="one")])
    images = [node for node in nodes if isinstance(node, ImageNode)]
    assert [image.image_url for image in images] == ["tom.png", None]
    assert images[1].image == "iVBORw0KGgo="
    assert images[1].image_mimetype == "image/png"
    assert all("iVBOR" not in node.text for node in nodes)
    assert all("image_data" not in node.metadata for node in nodes)


@pytest.mark.parametrize(
    "parser",
    [
        RecursiveNodeParser(chunk_size=8, count_metadata=False),
        HierarchicalNodeParser(chunk_sizes=None),
    ],
)
@pytest.mark.parametrize(
    "source",
    [
        Document(text=TEXT, metadata={"a": 1, "tags": ["x"]}, metadata_separator="; "),
        ImageNode(text=TEXT, image_url="tom.png"),
        IndexNode(text=TEXT, index_id="there", obj=TextNode(text="held")),
    ],
    ids=["text", "image", "index"],
)
def test_nodes_are_what_the_checked_constructors_make(parser: Any, source: Any) -> None:
    nodes = parser.get_nodes_from_documents([source])
    assert len(nodes) > 1
    for node in nodes:
        checked = type(node)(**vars(node))
        related = [
            each
            for found in node.relationships.values()
            for each in (found if isinstance(found, list) else [found])
        ]
        pairs = [(node, checked), *((each, RelatedNodeInfo(**vars(each))) for each in related)]
        for made, wanted in pairs:
            assert type(made) is type(wanted)
            assert list(vars(made).items()) == list(vars(wanted).items())
            assert made.__pydantic_extra__ is wanted.__pydantic_extra__ is None
            assert made.__pydantic_private__ is wanted.__pydantic_private__ is None
            assert made.to_json() == wanted.to_json()
            assert type(made).from_dict(made.to_dict()).to_dict() == wanted.to_dict()


def test_assigning_to_a_node_changes_no_other() -> None:
    one, other, *_ = RecursiveNodeParser(chunk_size=30, length_function="characters")(
        [Document(text=TEXT)]
    )
    before = (other.to_dict(), set(other.model_fields_set))
    one.embedding, one.mimetype, one.text = [1.0], "text/html", "other"
    assert (other.to_dict(), other.model_fields_set) == before
    assert one.embedding == [1.0]


@pytest.mark.parametrize(
    "parser",
    [
        RecursiveNodeParser(chunk_size=8, count_metadata=False),
        HierarchicalNodeParser(chunk_sizes=None),
    ],
)
def test_each_node_is_hashed_once(parser: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []
    take = TextNode.hash.fget
    monkeypatch.setattr(
        TextNode, "hash", property(lambda node: (hashed.append(node.node_id), take(node))[1])
    )
    nodes = parser([Document(text=TEXT)])
    assert len(nodes) > 2
    assert sorted(hashed) == sorted(node.node_id for node in nodes)


def test_ids_that_are_no_strings_are_refused() -> None:
    parser = RecursiveNodeParser(id_func=lambda index, document: index)
    with pytest.raises(ValueError, match="id_func must return a string, got 0"):
        parser([Document(text=TEXT)])
