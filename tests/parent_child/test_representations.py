"""Representations: summaries and questions by which pieces are found, in both front ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore

from rag_splitters import langchain, llama_index
from rag_splitters.errors import InputError
from rag_splitters.langchain import Representations
from rag_splitters.langchain import parent_document_retriever as open_in_langchain
from rag_splitters.models import HashingEmbeddings, ModelError, chat_model
from rag_splitters.parent_child import MissingChildrenError
from tests.support.chat_doubles import AsyncFunction, Function, LangChainDouble, LlamaIndexDouble
from tests.support.embedding_doubles import CountingEmbeddings
from tests.support.front_ends import FrontEnd, every_front_end, in_turn, sentence

QUESTION = "zebra quokka"


def about(text: str) -> list[str]:
    """Two representations with words that no document has; "n7" of a document tells the piece."""
    name = text.rstrip(".").rsplit(" ", 1)[-1]
    return [f"zebra {name}", f"Is there a quokka in {name}?"]


def page(*numbers: int) -> str:
    return " ".join(map(sentence, numbers))


PAGES = [("a", page(*range(20)), {"source": "a.md"}), ("b", page(*range(30, 34)), {})]


@in_turn("of", ["parents", "children"])
def test_a_piece_is_found_by_what_represents_it_alone(front: FrontEnd, of: Any) -> None:
    writer = Function(about)
    index = front.build(PAGES, representations=Representations(function=writer, of=of), k=1)
    wanted = next(text for text in writer.prompts if sentence(31) in text)
    assert (len(wanted) > 60) == (of == "parents")
    place = PAGES[1][1].index(wanted)
    kinds = product(("hybrid", "similarity", "mmr"), ("parents", "children", "passages"))
    for search_type, retrieve in kinds:
        retriever = front.varied(index, search_type=search_type, retrieve=retrieve)
        (result,) = front.find(retriever, about(wanted)[1])
        assert "quokka" not in result.text
        assert result.start is not None
        assert result.end is not None
        assert PAGES[1][1][result.start : result.end] == result.text
        assert wanted in result.text
        if retrieve == "children":
            assert result.text == wanted
        best = result.matches[0]
        assert (best["start_index"], best["end_index"]) == (place, place + len(wanted))
        assert not any(key.startswith("_represents") for key in result.metadata)
    assert front.do(index, "verify").is_sound


@pytest.mark.parametrize("of", ["parents", "children"])
def test_a_representation_may_say_what_its_piece_says(of: Any) -> None:
    page = "<html><body><h1>Tea</h1><p>Tea is <b>hot</b>.</p></body></html>"
    itself = Representations(function=lambda text: text, of=of)
    with open_in_langchain(representations=itself) as retriever:
        retriever.add_documents([Document(page, id="a", metadata={"source": "a.html"})])
        assert retriever.verify().is_sound
        assert retriever.vectorstore._collection.count() == 2  # type: ignore[attr-defined]


@every_front_end
def test_an_edit_pays_only_for_what_changed(front: FrontEnd, tmp_path: Path) -> None:
    writer, embeddings = Function(about), CountingEmbeddings()
    options: dict[str, Any] = {
        "embeddings": embeddings,
        "path": tmp_path,
        "representations": Representations(function=writer, of="children"),
    }
    retriever = front.build(PAGES, **options)
    pieces, embedded = len(writer.prompts), len(embeddings.texts)
    assert embedded == pieces + 2 * pieces, "children and two representations of each"
    front.do(retriever, "add_documents", front.documents(PAGES))
    front.do(retriever, "sync", front.documents(PAGES))
    assert (len(writer.prompts), len(embeddings.texts)) == (pieces, embedded)
    longer = ("a", PAGES[0][1] + " " + sentence(99), PAGES[0][2])  # the last parent changes
    front.do(retriever, "add_documents", front.documents([longer]))
    assert writer.prompts[pieces:] == [sentence(99)]
    assert sorted(embeddings.texts[embedded:]) == sorted([sentence(99), *about(sentence(99))])
    moved = ("a", sentence(98) + "\n\n" + longer[1], PAGES[0][2])  # all positions change
    pieces, embedded = len(writer.prompts), len(embeddings.texts)
    front.do(retriever, "add_documents", front.documents([moved]))
    assert len(writer.prompts) - pieces < 8
    assert len(embeddings.texts) - embedded == 3 * (len(writer.prompts) - pieces)
    assert front.do(retriever, "verify").is_sound
    retriever.close()
    pieces = len(writer.prompts)
    with front.build([moved], **options) as again:  # another process, as it were
        assert len(writer.prompts) == pieces
        (result, *_) = front.find(again, "zebra n98")
        assert result.text.startswith(sentence(98))
        front.delete(again, ["a", "b"])
        assert front.collection(again).count() == 0
        assert front.do(again, "verify").is_sound
        assert front.find(again, QUESTION) == []


@every_front_end
def test_lost_children_are_made_again_without_another_call(front: FrontEnd) -> None:
    writer = Function(about)
    retriever = front.build(PAGES, representations=writer)
    calls = len(writer.prompts)
    collection = front.collection(retriever)
    rows = collection.get(include=["metadatas"])
    pairs = zip(rows["ids"], rows["metadatas"], strict=True)
    collection.delete([name for name, metadata in pairs if "_represents" in metadata])
    with pytest.raises(MissingChildrenError):
        front.find(front.varied(retriever, k=1000), QUESTION)
    assert front.do(retriever, "verify").without_children == ["a", "b"]
    front.do(retriever, "verify", repair=True)
    assert front.do(retriever, "verify").is_sound
    assert len(writer.prompts) == calls
    assert sorted(collection.get()["ids"]) == sorted(rows["ids"])


@every_front_end
@pytest.mark.parametrize("search_type", ["hybrid", "similarity"])
def test_the_reranker_and_the_filter_see_the_piece(front: FrontEnd, search_type: str) -> None:
    seen: list[str] = []

    def rerank(question: str, texts: list[str]) -> list[float]:
        seen.extend(texts)
        return [float("n31" in text) for text in texts]

    retriever = front.build(
        PAGES, representations=about, reranker=rerank, search_type=search_type, k=1
    )
    assert sentence(31) in front.find(retriever, QUESTION)[0].text
    assert seen
    assert all(any(text in page_text for _, page_text, _ in PAGES) for text in seen)
    filtered = front.varied(retriever, where={"source": "a.md"}, reranker=None, k=9)
    assert {each.metadata["source"] for each in front.find(filtered, QUESTION)} == {"a.md"}


@pytest.mark.slow
@every_front_end
@pytest.mark.parametrize("smoothing", [0.0, 0.6])
def test_neighbours_neither_lend_to_nor_mix_with_representations(
    front: FrontEnd, smoothing: float
) -> None:
    """The children are as they would be without them, to the vector."""
    options: dict[str, Any] = {"smoothing": smoothing, "headings": True, "search_type": "hybrid"}
    plain = front.build(PAGES, **options)
    other = front.build(
        PAGES, representations=Representations(function=about, of="children"), **options
    )
    vectors = [
        dict(zip(rows["ids"], map(list, rows["embeddings"]), strict=True))
        for rows in (front.collection(each).get(include=["embeddings"]) for each in (plain, other))
    ]
    assert len(vectors[1]) == 3 * len(vectors[0])
    assert all(vectors[1][name] == vector for name, vector in vectors[0].items())
    edited = [("a", page(*range(10), *range(40, 43)), {}), PAGES[1]]
    for retriever in (plain, other):
        front.do(retriever, "sync", front.documents(edited))
        assert front.do(retriever, "verify").is_sound
    wide = {"retrieve": "passages", "max_tokens": 60, "k": None}
    found = front.find(front.varied(other, **wide), "zebra n5")[0]
    assert sentence(5) in found.text
    assert len(found.text) > len(sentence(5)), "the piece's neighbours come with it"


@every_front_end
def test_a_failing_function_says_where_and_loses_nothing(front: FrontEnd, tmp_path: Path) -> None:
    def fail(text: str) -> list[str]:
        if "n31" in text and broken:
            raise RuntimeError("out of ink")
        return about(text)

    broken = True
    writer = Function(fail)
    retriever = front.build(PAGES[:1], representations=writer, path=tmp_path, model_name="m")
    calls, count = len(writer.prompts), front.collection(retriever).count()
    new = front.documents([("c", page(50, 51), {}), PAGES[1]])
    with pytest.raises(ModelError, match=r"representations of document 'b': .*out of ink"):
        front.do(retriever, "add_documents", new)
    assert front.collection(retriever).count() == count
    assert front.do(retriever, "verify").is_sound
    tried = writer.prompts[calls:]
    broken = False
    front.do(retriever, "add_documents", new)
    again = writer.prompts[calls + len(tried) :]
    assert len(again) == 1, "the others were answered before"
    assert "n31" in again[0]
    assert front.do(retriever, "verify").is_sound


@pytest.mark.parametrize("wrong", [None, 7, {"a": "b"}, ["text", 3], b"bytes"])
def test_a_wrong_answer_of_a_function_is_named(wrong: Any) -> None:
    with open_in_langchain(representations=lambda _: wrong) as retriever:
        with pytest.raises(ModelError, match=r"'tea': .* a text or a list of texts, and returned"):
            retriever.add_documents([Document("Tea.", id="tea")])
        assert retriever.get(["tea"]) == []
        assert retriever.verify().is_sound


def test_an_answer_that_was_paid_for_survives_a_failing_embedder() -> None:
    writer, fails = Function(about), [True]

    def embed(texts: list[str]) -> list[list[float]]:
        if fails:
            raise ValueError("no embedding")
        return HashingEmbeddings().embed_documents(texts)

    with open_in_langchain(embeddings=embed, model_name="m", representations=writer) as retriever:
        with pytest.raises(ModelError):
            retriever.add_documents([Document("Tea.", id="tea")])
        fails.clear()
        retriever.add_documents([Document("Tea.", id="tea")])
        assert writer.prompts == ["Tea."]


def test_a_piece_without_representations_is_paid_once() -> None:
    writer = Function(lambda _: [])
    with open_in_langchain(representations=writer) as retriever:
        for _ in range(3):
            retriever.add_documents([Document("Tea.", id="tea")])
        assert writer.prompts == ["Tea."]
        assert len(retriever.vectorstore.get()["ids"]) == 1  # type: ignore[attr-defined]


@in_turn("kind", ["langchain", "llama_index", "function", "async"])
def test_a_chat_model_writes_lines(front: FrontEnd, kind: str) -> None:
    def script(prompt: str) -> str:
        assert "<text>" in prompt
        return "1. Where does the zebra live?\n\n2. Who feeds the quokka?\n"

    doubles: dict[str, Callable[[], Any]] = {
        "langchain": lambda: LangChainDouble(script=script),
        "llama_index": lambda: LlamaIndexDouble(script=script),
        "function": lambda: chat_model(Function(script)),
        "async": lambda: chat_model(AsyncFunction(script)),
    }
    model = doubles[kind]()
    retriever = front.build(representations=model, k=1, retrieve="passages")
    front.do(retriever, "add_documents", front.documents(PAGES[1:]))
    documents = front.collection(retriever).get()["documents"]
    assert documents.count("Who feeds the quokka?") >= 1
    assert "zebra" not in front.find(retriever, "Where does the zebra live?")[0].text


def test_pieces_of_all_documents_are_asked_for_concurrently() -> None:
    running, most, are_five = 0, 0, asyncio.Event()

    async def write(text: str) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if most == 5:
            are_five.set()
        await asyncio.wait_for(are_five.wait(), timeout=60)
        running -= 1
        return "zebra"

    with open_in_langchain(
        representations=Representations(function=write, max_concurrency=5)
    ) as retriever:
        documents = [Document(sentence(n), id=str(n)) for n in range(12)]
        asyncio.run(retriever.aadd_documents(documents))
        assert most == 5
        assert len(retriever.invoke("zebra")) == 4


def test_the_setting_is_part_of_what_a_document_is(tmp_path: Path) -> None:
    """Another prompt or writer writes anew; the children are not embedded again."""
    embeddings, document = CountingEmbeddings(), Document(page(1, 2, 3), id="a")
    texts: list[str] = []

    def answer(prompt: str) -> str:
        texts.append(prompt)
        return "zebra"

    def opened(**options: Any) -> Any:
        representations = Representations(**options) if options else None
        return open_in_langchain(
            path=tmp_path, embeddings=embeddings, model_name="m", representations=representations
        )

    with opened() as retriever:
        retriever.add_documents([document])
        children = len(embeddings.texts)
    for options in (
        {"llm": answer},
        {"llm": answer, "prompt": "Ask about {text}"},
        {"function": answer},
        {"llm": answer, "prompt": "Ask of {text}", "of": "children"},
    ):
        with opened(**options) as retriever:
            before = len(texts)
            assert retriever.sync([document]).changed == ["a"], options
            assert retriever.sync([document]).unchanged == ["a"]
            assert len(texts) > before
    assert set(embeddings.texts[children:]) == {"zebra"}
    with opened() as retriever:
        assert retriever.sync([document]).changed == ["a"]
        assert retriever.vectorstore._collection.count() == children


def test_it_works_with_any_vector_store() -> None:
    document = Document(page(1, 2, 3), id="a")
    retriever: Any = open_in_langchain(
        [document],
        vectorstore=InMemoryVectorStore(HashingEmbeddings()),  # type: ignore[arg-type]
        representations=about,
        k=1,
    )
    assert retriever.invoke("zebra n3")[0].page_content == document.page_content
    assert retriever.delete(["a"])["succeeded"] == ["a"]
    assert retriever.vectorstore.store == {}


def test_a_parent_whose_text_was_rewritten_is_returned_as_it_is_stored() -> None:
    html = "<h1>Ferry</h1><p>It leaves &amp; returns at seven.</p>" + "<p>More of it.</p>" * 40
    for of in ("parents", "children"):
        with open_in_langchain(
            [Document(html, id="page.html")],
            representations=Representations(function=lambda _: "zebra", of=of),
            k=1,
        ) as retriever:
            for retrieve in ("passages", "parents", "children"):
                found = retriever.model_copy(update={"retrieve": retrieve}).invoke("zebra")[0]
                assert "<p>" not in found.page_content
                assert "zebra" not in found.page_content
                assert found.page_content.strip()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "pass either function or llm"),
        ({"function": about, "llm": str.upper}, "pass either function or llm"),
        ({"llm": str.upper, "prompt": "Summarize!"}, r"prompt must contain \{text\}"),
        ({"function": 3}, "function"),
        ({"function": about, "of": "documents"}, "of"),
    ],
)
def test_wrong_settings_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Representations(**options)
    for module in (langchain, llama_index):
        with pytest.raises(InputError, match="function"):
            module.parent_document_retriever(representations=3)
