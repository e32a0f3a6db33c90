"""The contract of a strategy: shared batches, bounded groups, metadata, and the event loop."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from langchain_core.documents import Document
from llama_index.core import Document as LlamaIndexDocument

from rag_splitters import (
    CATALOGUE,
    Chunker,
    ContextualChunker,
    HybridChunker,
    ModalityChunker,
    PageChunker,
    SemanticChunker,
    Source,
    Span,
    TitledChunker,
)
from rag_splitters.contract.sized import SizedChunker
from rag_splitters.langchain import ChunkerTextSplitter, RecursiveTextSplitter, SemanticTextSplitter
from rag_splitters.llama_index import ChunkerNodeParser, RecursiveNodeParser, SemanticNodeParser
from rag_splitters.models import HashingEmbeddings
from tests.support.embedding_doubles import CountingEmbeddings
from tests.support.embedding_doubles import embed as embed_texts
from tests.support.splitting import asplit_texts, split_either, split_texts

SUBJECTS = ("tea", "rain", "chess", "bread", "glass")


def article(number: int) -> str:
    """A short article with a title of its own length."""
    subject = SUBJECTS[number % len(SUBJECTS)]
    title = f"Everything about {subject} " + "and more " * (number % 7)
    sentences = [
        f"Sentence {place} of article {number} says something long about {subject}."
        for place in range(12)
    ]
    return f"# {title}\n\n" + " ".join(sentences)


ARTICLES = [article(number) for number in range(50)]


def requests_of(make: Any, is_async: bool) -> list[int]:
    """How many texts each request to the model holds when the articles are split."""
    model = CountingEmbeddings()
    split_either(make(model), ARTICLES, is_async)
    return [len(texts) for texts in model.calls]


def semantic(model: Any) -> Chunker:
    return SemanticChunker(embeddings=model, chunk_size=300)


NESTED = {
    "titled": lambda model: TitledChunker(chunker=semantic(model)),
    "contextual": lambda model: ContextualChunker(
        chunker=TitledChunker(chunker=semantic(model)), llm=lambda prompt: "About it."
    ),
    "modality": lambda model: ModalityChunker(text=semantic(model), format="markdown"),
    "hybrid": lambda model: HybridChunker(stages=[PageChunker(chunk_size=10_000), semantic(model)]),
}


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("name", NESTED)
def test_nested_strategies_ask_as_often_as_the_inner_one_alone(name: str, is_async: bool) -> None:
    requests = requests_of(NESTED[name], is_async)
    assert len(requests) == len(requests_of(semantic, is_async)) == 2  # of at most 512 texts each


def test_one_model_in_two_fields_is_asked_once() -> None:
    texts = [f"{text}\n\n```\n{text}\n```\n" for text in ARTICLES]
    model = CountingEmbeddings()
    chunker = ModalityChunker(text=semantic(model), code=semantic(model), format="markdown")
    split_texts(chunker, texts)
    assert {len(each) for each in model.calls[:-1]} == {512}  # full ones and a rest


def test_what_a_strategy_gives_does_not_depend_on_the_other_sources() -> None:
    for make in NESTED.values():
        chunker = make(HashingEmbeddings(dimensions=64))
        assert split_texts(chunker, ARTICLES[:5]) == [chunker.spans(text) for text in ARTICLES[:5]]


# Memory


class Text(str):
    """A text that can be watched."""

    __slots__ = ("__weakref__",)


def watched(count: int, alive: weakref.WeakSet[Text]) -> Iterator[Source]:
    for number in range(count):
        text = Text(f"Text {number} says this. And that.")
        alive.add(text)
        yield Source(text, number=number)


class Planned(Chunker):
    """A strategy with a plan that needs no model."""

    async def plan(self, sources: Sequence[Source]) -> list[list[Span]]:
        return [[Span(0, len(source.text))] for source in sources]


@pytest.mark.parametrize("chunker", [Planned(), TitledChunker(), CATALOGUE["recursive"]()])
def test_memory_does_not_grow_with_the_number_of_sources(chunker: Chunker) -> None:
    alive: weakref.WeakSet[Text] = weakref.WeakSet()
    assert max(len(alive) for _ in chunker.split(watched(3000, alive))) <= 1100


async def test_memory_does_not_grow_with_the_number_of_sources_when_awaited() -> None:
    alive: weakref.WeakSet[Text] = weakref.WeakSet()
    counts = [len(alive) async for _ in Planned().asplit(watched(3000, alive))]
    assert max(counts) <= 1100


def test_groups_are_bounded_by_characters() -> None:
    sizes: list[int] = []

    class Noting(Chunker):
        """Notes how many sources it is handed at a time."""

        async def plan(self, sources: Sequence[Source]) -> list[list[Span]]:
            sizes.append(len(sources))
            return [[Span(0, 1)] for _ in sources]

    list(Noting().split(Source("x" * 900_000, number=number) for number in range(7)))
    assert sizes == [3, 3, 1]


# Metadata


class Named(Chunker):
    """A user's own strategy that reads the metadata."""

    async def plan(self, sources: Sequence[Source]) -> list[list[Span]]:
        return [[Span(0, len(s.text), {"keyword": s.metadata["name"]})] for s in sources]


class NamedTextSplitter(Named, ChunkerTextSplitter):
    """The same for LangChain."""


class NamedNodeParser(Named, ChunkerNodeParser):
    """The same for LlamaIndex."""


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda inner: inner,
        lambda inner: TitledChunker(chunker=inner),
        lambda inner: ContextualChunker(chunker=inner, llm=lambda prompt: "About it."),
        lambda inner: HybridChunker(stages=[PageChunker(), inner]),
        lambda inner: ModalityChunker(text=inner),
    ],
    ids=["alone", "titled", "contextual", "hybrid", "modality"],
)
def test_metadata_reaches_every_strategy(wrap: Any, is_async: bool) -> None:
    chunker, texts, metadatas = wrap(Named()), ["One.", "Two."], [{"name": "a"}, {"name": "b"}]
    results = split_either(chunker, texts, is_async, metadatas)
    assert [[span.metadata["keyword"] for span in spans] for spans in results] == [["a"], ["b"]]


async def test_metadata_reaches_a_users_strategy_in_both_frameworks() -> None:
    document = Document(page_content="One.", metadata={"name": "a"})
    node = LlamaIndexDocument(text="One.", metadata={"name": "a"})
    for chunk in (
        NamedTextSplitter().split_documents([document])[0],
        (await NamedTextSplitter().atransform_documents([document]))[0],
        NamedNodeParser().get_nodes_from_documents([node])[0],
        (await NamedNodeParser().aget_nodes_from_documents([node]))[0],
    ):
        assert chunk.metadata["keyword"] == "a"


# The event loop's thread


class Watching(SizedChunker):
    """Cuts at spaces, and notes the threads that it runs on."""

    def spans(self, text: str) -> list[Span]:
        THREADS.add(threading.get_ident())
        return [Span(0, len(text))]


THREADS: set[int] = set()


@pytest.mark.parametrize(
    "chunker",
    [
        Watching(),
        TitledChunker(chunker=Watching()),
        HybridChunker(stages=[Watching(), Watching()]),
        ModalityChunker(text=Watching()),
        ContextualChunker(chunker=Watching(), llm=lambda prompt: "About it."),
    ],
    ids=lambda chunker: type(chunker).__name__,
)
async def test_no_splitting_on_the_event_loops_thread(chunker: Chunker) -> None:
    THREADS.clear()
    assert await asplit_texts(chunker, ["One two.", "Three."])
    assert THREADS
    assert threading.get_ident() not in THREADS


@pytest.mark.parametrize("name", NESTED)
async def test_no_blocking_model_on_the_event_loops_thread(name: str) -> None:
    threads: set[int] = set()

    def model(texts: list[str]) -> list[list[float]]:
        threads.add(threading.get_ident())
        return embed_texts(texts)

    await asplit_texts(NESTED[name](model), ARTICLES[:3])
    assert threads
    assert threading.get_ident() not in threads


async def test_no_assembling_on_the_event_loops_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    import rag_splitters.langchain.splitters as splitters
    import rag_splitters.llama_index.parsers as parsers

    threads: list[int] = []

    def noting(function: Any) -> Any:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            threads.append(threading.get_ident())
            return function(*args, **kwargs)

        return wrapped

    monkeypatch.setattr(splitters, "chunk_documents", noting(splitters.chunk_documents))
    monkeypatch.setattr(parsers, "chunk_nodes", noting(parsers.chunk_nodes))
    model = HashingEmbeddings(dimensions=64)
    document, node = Document(page_content=ARTICLES[0]), LlamaIndexDocument(text=ARTICLES[0])
    for splitter in (RecursiveTextSplitter(), SemanticTextSplitter(embeddings=model)):
        assert await splitter.atransform_documents([document])
    for parser in (RecursiveNodeParser(), SemanticNodeParser(embeddings=model)):
        assert await parser.aget_nodes_from_documents([node])
    assert len(threads) == 4
    assert threading.get_ident() not in threads
