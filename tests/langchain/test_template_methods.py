"""Subclasses that override LangChain's template methods get what LangChain would give them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.indexing import InMemoryRecordManager, index
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from rag_splitters import Chunker, HybridChunker, Source, Span
from rag_splitters.langchain import (
    ChunkerTextSplitter,
    ContentAwareTextSplitter,
    HybridTextSplitter,
    RecursiveTextSplitter,
    SentenceTextSplitter,
    TitledTextSplitter,
)
from rag_splitters.reading import line_range

TEXT = "# Tea\n\nTea is old. Tea is hot.\n\n# Milk\n\nMilk is white. Tea is hot."
DOCUMENTS = [Document(page_content=TEXT, metadata={"source": "a.md"}, id="a")]

WAYS: dict[str, Callable[[Any], Any]] = {
    "split_documents": lambda splitter: splitter.split_documents(DOCUMENTS),
    "create_documents": lambda splitter: splitter.create_documents([TEXT], [{"source": "a.md"}]),
    "transform_documents": lambda splitter: splitter.transform_documents(DOCUMENTS),
    "atransform_documents": lambda s: asyncio.run(s.atransform_documents(DOCUMENTS)),
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


class NoHeadings(SentenceTextSplitter):
    """Leaves out some of our chunks."""

    def split_text(self, text: str) -> list[str]:
        return [each for each in super().split_text(text) if "#" not in each]


class OwnPieces(RecursiveTextSplitter):
    """Does not ask us."""

    def split_text(self, text: str) -> list[str]:
        return text.split("\n\n")


class Shouting(RecursiveTextSplitter):
    """Changes the text before and the chunks after we cut."""

    def split_text(self, text: str) -> list[str]:
        return [f"{each}!" for each in super().split_text(text.upper())]


def positions(documents: Iterable[Document]) -> list[Any]:
    return [d.metadata.get("start_index") for d in documents]


@every_way
def test_override_of_split_text_is_used(way: Any) -> None:
    splitter = NoHeadings(chunk_size=14)
    documents = way(splitter)
    assert [each.page_content for each in documents] == splitter.split_text(TEXT)
    assert [each.page_content for each in documents] == [
        "Tea is old.",
        "Tea is hot.",
        "Milk is white.",
        "Tea is hot.",
    ]
    assert positions(documents) == [7, 19, 40, 55]
    for number, each in enumerate(documents):
        start, end = each.metadata["start_index"], each.metadata["end_index"]
        assert TEXT[start:end] == each.page_content
        assert each.metadata["chunk_index"] == number
        assert each.metadata["source"] == "a.md"


@every_way
def test_position_that_is_not_certain_is_left_out(way: Any) -> None:
    documents = way(OwnPieces())
    assert [each.page_content for each in documents] == TEXT.split("\n\n")
    assert positions(documents) == [0, 7, 32, 40]

    class LastHot(NoHeadings):
        def split_text(self, text: str) -> list[str]:
            return [each for each in super().split_text(text) if "hot" in each][1:]

    documents = way(LastHot(chunk_size=14))
    assert [each.page_content for each in documents] == ["Tea is hot."]  # which of the two?
    assert positions(documents) == [None]
    assert "end_index" not in documents[0].metadata


@every_way
def test_rewritten_chunks_have_no_position_and_ids_of_their_own(way: Any) -> None:
    documents = way(Shouting(chunk_size=30))
    assert {each.page_content[-1] for each in documents} == {"!"}
    assert set(positions(documents)) == {None}

    class Twice(RecursiveTextSplitter):
        def split_text(self, text: str) -> list[str]:
            return ["the same", "the same"]

    one, other = way(Twice())
    assert one.id != other.id
    assert [each.id for each in way(Twice())] == [one.id, other.id]


def test_metadata_of_our_chunks_stays_with_them() -> None:
    class Long(ContentAwareTextSplitter):
        def split_text(self, text: str) -> list[str]:
            return [each for each in super().split_text(text) if len(each) > 3]

    documents = Long(chunk_size=30).split_documents(DOCUMENTS)
    expected = ContentAwareTextSplitter(chunk_size=30).split_documents(DOCUMENTS)
    assert [each.metadata for each in documents] == [each.metadata for each in expected]
    assert documents[0].metadata["headings"] == ["Tea"]


def test_split_text_sees_the_metadata_of_its_document() -> None:
    class Plain(TitledTextSplitter):
        def split_text(self, text: str) -> list[str]:
            return list(super().split_text(text))

    document = Document(page_content="One text. Two texts.", metadata={"title": "A title"})
    inner = RecursiveTextSplitter(chunk_size=20)
    expected = TitledTextSplitter(chunker=inner).split_documents([document])
    assert Plain(chunker=inner).split_documents([document]) == expected
    assert expected[-1].page_content.startswith("A title")


def test_page_breaks_and_chunks_of_chunks_work_with_it() -> None:
    document = Document(page_content="one two\fthree four", metadata={})

    class Words(RecursiveTextSplitter):
        def split_text(self, text: str) -> list[str]:
            return text.split()

    documents = Words(page_break="\f").split_documents([document])
    assert [(d.metadata["start_index"], d.metadata["page_start"]) for d in documents] == [
        (0, 1),
        (4, 1),
        (8, 2),
        (14, 2),
    ]
    for kind in (Words, RecursiveTextSplitter):
        splitter = kind(page_break="\f", chunk_size=10)
        chunks = splitter.chunk(document.page_content)
        assert [(c.text, c.metadata["page_start"]) for c in chunks] == [
            (d.page_content, d.metadata["page_start"]) for d in splitter.split_documents([document])
        ]
    part = Document(page_content="three four", metadata={"start_index": 8, "end_index": 18})
    pieces = Words().split_documents([part])
    assert [(d.metadata["start_index"], d.metadata["end_index"]) for d in pieces] == [
        (8, 13),
        (14, 18),
    ]


@pytest.mark.parametrize("name", ["create_documents", "split_documents", "transform_documents"])
def test_override_of_another_method_is_used_by_those_above_it(name: str) -> None:
    class Marked(RecursiveTextSplitter):
        pass

    def override(self: Any, *args: Any, **kwargs: Any) -> list[Document]:
        documents = getattr(RecursiveTextSplitter, name)(self, *args, **kwargs)
        return [Document(page_content=f"<{each.page_content}>") for each in documents]

    setattr(Marked, name, override)
    above = {
        "create_documents": list(WAYS),
        "split_documents": ["split_documents", "transform_documents", "atransform_documents"],
        "transform_documents": ["transform_documents", "atransform_documents"],
    }[name]
    for each in WAYS:
        texts = [document.page_content for document in WAYS[each](Marked(chunk_size=30))]
        assert all(text.startswith("<") for text in texts) == (each in above), each


def test_override_is_used_by_chains_indexes_and_comparisons() -> None:
    splitter = NoHeadings(chunk_size=14)
    chain = RunnableLambda(splitter.split_documents) | (lambda chunks: len(chunks))
    assert chain.invoke(DOCUMENTS) == 4
    assert asyncio.run(chain.ainvoke(DOCUMENTS)) == 4
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    manager = InMemoryRecordManager("test")
    manager.create_schema()
    for added in (4, 0):
        chunks = splitter.split_documents(DOCUMENTS)
        result = index(
            chunks, manager, store, cleanup="full", source_id_key="source", key_encoder="sha256"
        )
        assert result["num_added"] == added
    assert [chunk.text for chunk in splitter.chunk(TEXT)] == splitter.split_text(TEXT)
    assert len(next(splitter.split([Source(TEXT)]))) == 4


class Louder(Shouting):
    """Overrides a method that a class of the user's overrides already."""

    def split_text(self, text: str) -> list[str]:
        return [each.replace("!", "!!") for each in super().split_text(text)]


class Cutting(Shouting):
    """Cuts by rules of its own, and keeps the other class's `split_text`."""

    def spans(self, text: str) -> list[Span]:
        return [Span(0, 5)]


class Pieces:
    """Overrides the method before the class of ours."""

    def split_text(self, text: str) -> list[str]:
        return ["TEA!"]


class WithPieces(Pieces, RecursiveTextSplitter):
    """Inherits the method that overrides ours."""


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (Shouting, ["# TEA\n\nTEA IS OLD.!", "TEA IS HOT.!", "# MILK!", "MILK IS WHITE.!"]),
        (Louder, ["# TEA\n\nTEA IS OLD.!!", "TEA IS HOT.!!", "# MILK!!", "MILK IS WHITE.!!"]),
        (Cutting, ["# TEA!"]),
        (WithPieces, ["TEA!"]),
    ],
)
def test_override_is_used_by_the_strategy_around_it(kind: Any, texts: list[str]) -> None:
    inner = kind(chunk_size=20)
    text = TEXT.removesuffix(" Tea is hot.")
    assert inner.split_text(text) == texts
    for around in (HybridChunker(stages=[inner]), HybridTextSplitter(stages=[inner])):
        assert [chunk.text for chunk in around.chunk(text)] == texts
        (spans,) = asyncio.run(_asplit(around, text))
        assert [span.text_of(text) for span in spans] == texts


async def _asplit(chunker: Chunker, text: str) -> list[list[Span]]:
    return [spans async for spans in chunker.asplit([Source(text)])]


def test_override_leaves_room_for_what_the_strategy_around_it_adds() -> None:
    class Plain(RecursiveTextSplitter):
        def split_text(self, text: str) -> list[str]:
            return list(super().split_text(text))

    text = "# Tea\n\n" + "Tea is hot. " * 20
    ours, plain = (
        TitledTextSplitter(chunker=kind(chunk_size=40, chunk_overlap=0)).split_text(text)
        for kind in (RecursiveTextSplitter, Plain)
    )
    assert plain == ours


@pytest.mark.parametrize(
    "name", ["_split_text", "_merge_splits", "_join_docs", "_get_single_sentences_list"]
)
def test_private_method_of_langchain_is_refused_unless_the_subclass_cuts_itself(name: str) -> None:
    def method(self: Any, *args: Any) -> Any:
        return args[0].split("\n\n")

    ported = type("Ported", (RecursiveTextSplitter,), {name: method})
    with pytest.raises(TypeError, match=rf"Ported\.{name} would never .* override split_text"):
        ported(chunk_size=30)
    with pytest.raises(TypeError, match=name):
        ported.from_tiktoken_encoder()

    class Calls(ported):  # type: ignore[misc, valid-type]
        def split_text(self, text: str) -> list[str]:
            return getattr(self, name)(text)  # type: ignore[no-any-return]

    assert Calls().split_text("Tea.\n\nMilk.") == ["Tea.", "Milk."]


def test_strategy_of_a_user_may_have_a_helper_with_the_name_of_a_private_method() -> None:
    class Own(Chunker):
        def _split_text(self, text: str) -> list[Span]:
            return [Span(0, len(text))]

        def spans(self, text: str) -> list[Span]:
            return self._split_text(text)

    class OwnTextSplitter(Own, ChunkerTextSplitter):
        pass

    assert OwnTextSplitter().split_text("Tea.") == ["Tea."]


def test_subclass_that_is_also_the_class_of_langchain_cuts_as_ours() -> None:
    class Both(RecursiveTextSplitter, RecursiveCharacterTextSplitter):
        pass

    splitter = Both(chunk_size=12, chunk_overlap=0)
    assert isinstance(splitter, RecursiveCharacterTextSplitter)
    assert splitter.split_text("Tea is hot. So it is.") == ["Tea is hot.", "So it is."]


def test_own_pieces_know_their_lines() -> None:
    document = Document(TEXT, metadata=line_range(TEXT))
    pieces = OwnPieces().split_documents([document])
    assert [piece.metadata["line_start"] for piece in pieces] == [1, 3, 5, 7]
