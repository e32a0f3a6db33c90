"""Subclasses that override LlamaIndex's template methods get what LlamaIndex would give them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser.node_utils import build_nodes_from_splits
from llama_index.core.schema import BaseNode, Document, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore

from rag_splitters import Span
from rag_splitters.llama_index import (
    HierarchicalNodeParser,
    RecursiveNodeParser,
    SentenceNodeParser,
    SentenceWindowNodeParser,
    TokenNodeParser,
)

TEXT = "Tea is old. Tea is hot.\n\nMilk is white. Tea is hot."
DOCUMENT = Document(text=TEXT, id_="a", metadata={"author": "Ann"})


def pipeline(parser: Any) -> IngestionPipeline:
    return IngestionPipeline(transformations=[parser])


WAYS: dict[str, Callable[[Any], Any]] = {
    "get_nodes_from_documents": lambda parser: parser.get_nodes_from_documents([DOCUMENT]),
    "aget_nodes_from_documents": lambda p: asyncio.run(p.aget_nodes_from_documents([DOCUMENT])),
    "call": lambda parser: parser([DOCUMENT]),
    "acall": lambda parser: asyncio.run(parser.acall([DOCUMENT])),
    "pipeline": lambda parser: pipeline(parser).run(documents=[DOCUMENT]),
    "arun": lambda parser: asyncio.run(pipeline(parser).arun(documents=[DOCUMENT])),
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


class TeaOnly(SentenceNodeParser):
    """Leaves out some of our chunks."""

    def split_text(self, text: str) -> list[str]:
        return [each for each in super().split_text(text) if "Tea" in each]


class Aware(SentenceNodeParser):
    """Overrides the method that LlamaIndex itself calls."""

    def split_text_metadata_aware(self, text: str, metadata_str: str) -> list[str]:
        assert "author: Ann" in metadata_str
        return text.split("\n\n")


class Marked(SentenceNodeParser):
    """Adds to the nodes; as LlamaIndex does, the caller names all parameters but the first."""

    def _parse_nodes(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[BaseNode]:
        parsed = super()._parse_nodes(nodes, **kwargs)
        for node in parsed:
            node.metadata["mark"] = True
        return parsed


class Builds(SentenceNodeParser):
    """Makes its own nodes, as LlamaIndex's parsers do."""

    def _parse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        return [
            each
            for node in nodes
            for each in build_nodes_from_splits(node.get_content().split(". "), node)
        ]


class Postprocessed(SentenceNodeParser):
    """Filters the nodes at the end."""

    def _postprocess_parsed_nodes(
        self, nodes: list[BaseNode], parent_doc_map: dict[str, Document]
    ) -> list[BaseNode]:
        return [node for node in nodes if "Milk" in node.get_content()]


def contents(nodes: Sequence[TextNode]) -> list[Any]:
    return [(node.text, node.start_char_idx, node.end_char_idx) for node in nodes]


SMALL: dict[str, Any] = {"chunk_size": 4, "chunk_overlap": 0, "count_metadata": False}


@every_way
def test_override_of_split_text_is_used(way: Any) -> None:
    nodes = way(TeaOnly(**SMALL, length_function="words"))
    assert contents(nodes) == [
        ("Tea is old.", 0, 11),
        ("Tea is hot.", 12, 23),
        ("Tea is hot.", 40, 51),
    ]
    assert [node.metadata["chunk_index"] for node in nodes] == [0, 1, 2]
    assert {node.ref_doc_id for node in nodes} == {"a"}
    assert nodes[0].next_node.node_id == nodes[1].node_id


@pytest.mark.parametrize(
    ("result", "got"),
    [
        (None, "None"),
        ("Tea is old.", "'Tea is old.'"),
        ([DOCUMENT], "a list of Document"),  # what some of LangChain's splitters return
        (["Tea is old.", None], r"\['Tea is old.', None\]"),
    ],
)
def test_override_of_split_text_must_return_a_list_of_texts(result: Any, got: str) -> None:
    class Wrong(SentenceNodeParser):
        def split_text(self, text: str) -> list[str]:
            return result  # type: ignore[no-any-return]

    with pytest.raises(TypeError, match=f"expected a list of texts from Wrong, got {got}"):
        Wrong()([DOCUMENT])


@every_way
def test_override_of_split_text_metadata_aware_is_used(way: Any) -> None:
    nodes = way(Aware(page_break="\n\n"))
    assert [node.metadata["page_start"] for node in nodes] == [1, 2]
    assert contents(nodes) == [
        ("Tea is old. Tea is hot.", 0, 23),
        ("Milk is white. Tea is hot.", 25, 51),
    ]


class Halved(SentenceWindowNodeParser):
    """Cuts without windows."""

    def spans(self, text: str) -> list[Span]:
        return [Span(0, 23), Span(25, 51)]


class Loud(SentenceWindowNodeParser):
    """Rewrites the chunks, so that nothing is known about them."""

    def split_text(self, text: str) -> list[str]:
        return [each.upper() for each in super().split_text(text)]


@every_way
@pytest.mark.parametrize("kind", [Halved, Loud])
def test_overrides_of_sentence_windows_may_give_no_windows(way: Any, kind: Any) -> None:
    for node in way(kind()):
        assert node.metadata["original_text"] == node.text
        assert "window" not in node.metadata


@every_way
def test_override_of_parse_nodes_is_used(way: Any) -> None:
    nodes = way(Marked(**SMALL, length_function="words"))
    assert len(nodes) == 4
    assert all(node.metadata["mark"] for node in nodes)


@every_way
def test_nodes_of_an_override_are_completed_as_by_llama_index(way: Any) -> None:
    nodes = way(Builds())
    assert contents(nodes)[:2] == [
        ("Tea is old", None, None),
        ("Tea is hot.\n\nMilk is white", None, None),
    ]
    assert [node.metadata for node in nodes] == [{"author": "Ann"}] * 3
    assert {node.ref_doc_id for node in nodes} == {"a"}
    for one, other in pairwise(nodes):
        assert (one.next_node.node_id, other.prev_node.node_id) == (other.node_id, one.node_id)


def test_nodes_of_an_override_keep_their_own_positions_and_source() -> None:
    class Half(Builds):
        def _parse_nodes(self, nodes: Sequence[BaseNode], *args: Any, **kwargs: Any) -> Any:
            ours = SentenceNodeParser._parse_nodes(self, nodes[:1], *args, **kwargs)
            return [*ours, *super()._parse_nodes(nodes[1:], *args, **kwargs)]

    parts = TokenNodeParser(chunk_size=8, chunk_overlap=0)([DOCUMENT])
    nodes = Half()(parts)
    assert contents(nodes)[0] == contents(parts)[0]
    assert len(nodes) > 2
    assert {node.ref_doc_id for node in nodes} == {"a"}
    assert Builds(include_metadata=False)([DOCUMENT])[0].metadata == {}


@every_way
def test_override_of_postprocessing_is_used(way: Any) -> None:
    nodes = way(Postprocessed(**SMALL, length_function="words"))
    assert contents(nodes) == [("Milk is white.", 25, 39)]


def drop_and_rename(nodes: Sequence[BaseNode]) -> list[BaseNode]:
    kept = [node for node in nodes if "Milk" not in node.get_content()]
    for number, node in enumerate(kept):
        node.id_ = f"node-{number}"
    return kept


class Renamed(SentenceNodeParser):
    """Leaves out some of our nodes, and gives the others ids of its own."""

    def _parse_nodes(self, *args: Any, **kwargs: Any) -> list[BaseNode]:
        return drop_and_rename(super()._parse_nodes(*args, **kwargs))


class RenamedLater(SentenceNodeParser):
    """The same, before the nodes are completed."""

    def _postprocess_parsed_nodes(self, nodes: Any, *args: Any) -> list[BaseNode]:
        return super()._postprocess_parsed_nodes(drop_and_rename(nodes), *args)


@every_way
@pytest.mark.parametrize("kind", [Renamed, RenamedLater])
def test_neighbours_are_those_that_an_override_leaves(way: Any, kind: Any) -> None:
    nodes = way(kind(**SMALL, length_function="words"))
    ids = ["node-0", "node-1", "node-2"]
    assert [node.node_id for node in nodes] == ids
    assert [node.next_node and node.next_node.node_id for node in nodes] == [*ids[1:], None]
    assert [node.prev_node and node.prev_node.node_id for node in nodes] == [None, *ids[:-1]]
    without = kind(**SMALL, length_function="words", include_prev_next_rel=False)
    assert not any(node.next_node or node.prev_node for node in way(without))


@pytest.mark.parametrize("metadata", [{}, {"level": "mine"}], ids=["plain", "key taken"])
def test_override_that_changes_nothing_keeps_the_links_of_trees_and_parts(metadata: Any) -> None:
    class Same(HierarchicalNodeParser):
        def _parse_nodes(self, *args: Any, **kwargs: Any) -> list[BaseNode]:
            return super()._parse_nodes(*args, **kwargs)

    document = Document(text=f"# Tea\n\n{TEXT}\n\n## Milk\n\n{TEXT}", id_="a", metadata=metadata)
    sizes: dict[str, Any] = {"chunk_overlap": 0, "count_metadata": False}
    parts = TokenNodeParser(chunk_size=16, **sizes)([document])
    for sources, levels in (([document], [24, 12, 6]), (parts, [6])):
        same, expected = (
            [node.relationships for node in kind(chunk_sizes=levels, **sizes)(sources)]
            for kind in (Same, HierarchicalNodeParser)
        )
        assert same == expected
        assert len(same) > 4


@every_way
def test_equal_texts_that_an_override_cuts_one_by_one_have_ids_of_their_own(way: Any) -> None:
    class Twice(SentenceNodeParser):
        def _parse_nodes(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[BaseNode]:
            return super()._parse_nodes(nodes, **kwargs) + super()._parse_nodes(nodes, **kwargs)

    nodes = way(Twice(**SMALL, length_function="words"))
    assert [node.text for node in nodes[:4]] == [node.text for node in nodes[4:]]
    ids = [node.node_id for node in nodes]
    assert len(set(ids)) == 8
    assert [node.node_id for node in way(Twice(**SMALL, length_function="words"))] == ids


@every_way
def test_override_of_the_metadata_that_count_is_used(way: Any) -> None:
    class Uncounted(SentenceNodeParser):
        def _get_metadata_str(self, node: BaseNode) -> str:
            assert node.metadata == {"author": "Ann"}
            return ""

    sizes: dict[str, Any] = {"chunk_size": 4, "chunk_overlap": 0, "length_function": "words"}
    nodes = way(Uncounted(**sizes))
    assert contents(nodes) == contents(way(SentenceNodeParser(**sizes, count_metadata=False)))
    assert contents(nodes) != contents(way(SentenceNodeParser(**sizes)))


def test_chunks_of_an_override_leave_room_for_metadata() -> None:
    class Plain(RecursiveNodeParser):
        def split_text(self, text: str) -> list[str]:
            return list(super().split_text(text))

    document = Document(text="word " * 100, metadata={"title": "a long title " * 3})
    options: dict[str, Any] = {"chunk_size": 60, "chunk_overlap": 0}
    nodes, expected = Plain(**options)([document]), RecursiveNodeParser(**options)([document])
    assert [contents([node]) for node in nodes] == [contents([node]) for node in expected]


def test_position_that_is_not_certain_is_left_out() -> None:
    class Other(RecursiveNodeParser):
        def split_text(self, text: str) -> list[str]:
            return ["Milk is white.", "not in the text", "Tea is hot.", "not in the text"]

    nodes = Other()([DOCUMENT])
    assert contents(nodes) == [
        ("Milk is white.", 25, 39),
        ("not in the text", None, None),
        ("Tea is hot.", None, None),
        ("not in the text", None, None),
    ]
    assert len({node.node_id for node in nodes}) == 4
    assert [node.node_id for node in Other()([DOCUMENT])] == [node.node_id for node in nodes]


def test_pipeline_with_cache_and_docstore_uses_the_override(tmp_path: Any) -> None:
    parser = TeaOnly(**SMALL, length_function="words")
    upserting = IngestionPipeline(
        transformations=[parser, MockEmbedding(embed_dim=4)],
        docstore=SimpleDocumentStore(),
        docstore_strategy=DocstoreStrategy.UPSERTS,
        vector_store=SimpleVectorStore(),
    )
    assert len(upserting.run(documents=[DOCUMENT])) == 3
    assert upserting.run(documents=[DOCUMENT]) == []
    changed = Document(text=TEXT + " Tea is cold.", id_="a")
    assert [node.get_content() for node in upserting.run(documents=[changed])][-1] == "Tea is cold."
    upserting.persist(str(tmp_path))
    plain = pipeline(SentenceNodeParser(**SMALL, length_function="words"))
    plain.load(str(tmp_path))  # another class has another key in the cache
    plain.docstore = None
    assert len(plain.run(documents=[DOCUMENT])) == 4


@pytest.mark.parametrize(
    "name",
    [
        *("_split_text", "_split", "_merge", "_postprocess_chunks", "_token_size", "_chunk_node"),
        *("build_semantic_nodes_from_documents", "build_window_nodes_from_documents"),
        *("_build_sentence_groups", "_recursively_get_nodes_from_nodes", "get_nodes_from_node"),
        "_build_node_from_split",
    ],
)
def test_other_method_of_llama_index_is_refused_unless_the_subclass_cuts_itself(name: str) -> None:
    def method(self: Any, *args: Any) -> Any:
        return args[0].split("\n\n")

    ported = type("Ported", (SentenceNodeParser,), {name: method})
    with pytest.raises(TypeError, match=rf"Ported\.{name} would never .* override split_text"):
        ported()

    class Calls(ported):  # type: ignore[misc, valid-type]
        def split_text_metadata_aware(self, text: str, metadata_str: str) -> list[str]:
            return getattr(self, name)(text)  # type: ignore[no-any-return]

    assert [node.text for node in Calls()([DOCUMENT])] == TEXT.split("\n\n")
