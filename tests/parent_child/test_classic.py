"""Beside `langchain_classic`'s `ParentDocumentRetriever`: its stores, its parameters, its calls."""

from __future__ import annotations

import asyncio
import pickle
import random
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_chroma import Chroma
from langchain_classic.retrievers import ParentDocumentRetriever as Classic
from langchain_classic.retrievers.multi_vector import SearchType
from langchain_classic.storage import LocalFileStore, create_kv_docstore
from langchain_core.documents import Document
from langchain_core.runnables import ConfigurableField, RunnablePassthrough
from langchain_core.stores import InMemoryByteStore, InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from rag_splitters.langchain import (
    ParentDocumentRetriever,
    RecursiveTextSplitter,
    RedisStore,
    parent_document_retriever,
)
from rag_splitters.models import HashingEmbeddings
from rag_splitters.parent_child.chroma import ChromaChildren
from rag_splitters.parent_child.keyword_index import KeywordIndex

SPLITTERS = {
    "child_splitter": RecursiveCharacterTextSplitter(chunk_size=70, chunk_overlap=0),
    "parent_splitter": RecursiveCharacterTextSplitter(chunk_size=300, chunk_overlap=0),
}


def sentence(number: int) -> str:
    """A sentence that has little in common with any other."""
    words = random.Random(number)
    return " ".join("".join(words.choices("bcdfgklmnprst", k=5)) for _ in range(5)) + f" n{number}."


DOCUMENTS = [
    Document(
        page_content="\n\n".join(sentence(20 * n + m) for m in range(20)),
        metadata={"source": f"{n}.txt", **({"page": n} if n else {})},
    )
    for n in range(3)
]
QUESTIONS = [f"{sentence(n)[:18]} {sentence(n + 9)[:9]}" for n in (1, 18, 33, 50)]


@pytest.fixture
def vectorstore() -> Iterator[Chroma]:
    store = Chroma(f"c{uuid.uuid4().hex}", HashingEmbeddings())  # type: ignore[arg-type]
    yield store
    store.delete_collection()


@pytest.fixture(params=["memory", "files", "bytes"])
def stores(request: pytest.FixtureRequest, vectorstore: Chroma, tmp_path: Path) -> dict[str, Any]:
    """The stores as either retriever takes them."""
    kinds: dict[str, Any] = {
        "memory": {"docstore": InMemoryStore()},
        "files": {"docstore": create_kv_docstore(LocalFileStore(tmp_path))},
        "bytes": {"byte_store": InMemoryByteStore()},
    }
    return {"vectorstore": vectorstore, **kinds[request.param]}


def contents(documents: list[Document]) -> list[tuple[str, Any]]:
    return [(document.page_content, document.metadata.get("source")) for document in documents]


def test_what_classic_wrote_is_answered_extended_and_deleted(stores: dict[str, Any]) -> None:
    theirs = Classic(**stores, **SPLITTERS, search_kwargs={"k": 60})
    theirs.add_documents(DOCUMENTS[:2])
    ours = ParentDocumentRetriever(**stores, **SPLITTERS, id_key="doc_id", k=3)
    keys = set(ours.docstore.yield_keys())
    for question in QUESTIONS:
        wanted = contents(theirs.invoke(question))[:3]
        assert contents(ours.invoke(question)) == wanted
        assert contents(asyncio.run(ours.ainvoke(question))) == wanted
    for retrieve in ("children", "passages"):
        for kind in ("similarity", "mmr", "hybrid"):
            other = ours.model_copy(update={"retrieve": retrieve, "search_type": kind})
            assert len(other.invoke(QUESTIONS[0])) == 3
    first = ours.invoke(QUESTIONS[0])[0]
    assert first.id in keys
    ours.add_documents([DOCUMENTS[2]], ids=["new"])
    assert contents(ours.invoke(sentence(55)))[0] == contents(theirs.invoke(sentence(55)))[0]
    assert ours.verify().is_sound, "rows of classic are not for us to judge"
    assert ours.delete([first.id])["succeeded"] == [first.id]
    assert first.page_content not in [text for text, _ in contents(theirs.invoke(QUESTIONS[0]))]
    assert not stores["vectorstore"].get(where={"doc_id": first.id})["ids"]
    assert asyncio.run(ours.adelete(["new", first.id]))["succeeded"] == ["new"]
    rows = {key for key in ours.docstore.yield_keys() if not key.startswith("state/")}
    assert rows == keys - {first.id}


def test_what_ours_wrote_opens_with_classic(stores: dict[str, Any]) -> None:
    ours = ParentDocumentRetriever(**stores, **SPLITTERS, k=4)
    ours.add_documents(DOCUMENTS)
    theirs = Classic(**stores, **SPLITTERS, id_key="parent_id", search_kwargs={"k": 200})
    for question in QUESTIONS:
        assert contents(theirs.invoke(question))[:4] == contents(ours.invoke(question))


@pytest.mark.parametrize("search_type", ["similarity", "mmr"])
def test_search_kwargs_of_classic_give_the_parents_of_classic(
    vectorstore: Chroma, search_type: Any
) -> None:
    stores: dict[str, Any] = {"vectorstore": vectorstore, "byte_store": InMemoryByteStore()}
    options: dict[str, Any] = {**stores, **SPLITTERS, "id_key": "doc_id"}
    theirs = Classic(**options, search_type=search_type)
    ours = ParentDocumentRetriever(**options, search_type=search_type)
    theirs.add_documents(DOCUMENTS)
    # Each of these sentences is less like the question than the one before.
    question = " ".join(f"{sentence(5 * n)} " * (20 - n) for n in range(12))
    for k in (3, 10):
        theirs.search_kwargs = ours.search_kwargs = {"k": k}
        one, other = contents(ours.invoke(question)), contents(theirs.invoke(question))
        # LangChain's Chroma returns what it selects for diversity in the order of similarity.
        assert one == other if search_type == "similarity" else sorted(one) == sorted(other)
    assert len(ours.invoke(question)) > 4


def test_a_wrong_id_key_is_named_with_the_keys_that_are_there(vectorstore: Chroma) -> None:
    options: dict[str, Any] = {"vectorstore": vectorstore, "docstore": InMemoryStore()}
    Classic(**options, **SPLITTERS).add_documents(DOCUMENTS)
    ours = ParentDocumentRetriever(**options, **SPLITTERS)
    message = "none of the .* id_key='parent_id'; the first has doc_id, .*source"
    for kind in ("similarity", "mmr", "hybrid"):
        with pytest.raises(ValueError, match=message):
            ours.model_copy(update={"search_type": kind}).invoke("amber")


def test_parameters_and_calls_of_classic_are_taken(vectorstore: Chroma) -> None:
    ours = ParentDocumentRetriever(
        vectorstore=vectorstore,
        byte_store=InMemoryByteStore(),
        docstore=None,  # type: ignore[arg-type]
        **SPLITTERS,
        id_key="doc_id",
        search_type=SearchType.mmr,  # type: ignore[arg-type]
        search_kwargs={"fetch_k": 30, "lambda_mult": 0.3, "filter": {"page": 1}},
        child_metadata_fields=["page"],
    )
    names = [f"id{n}" for n in range(3)]
    assert ours.add_documents(DOCUMENTS, names, True) == names
    assert asyncio.run(ours.aadd_documents(documents=DOCUMENTS, ids=names)) == names
    metadatas = vectorstore.get()["metadatas"]
    assert {m.get("page") for m in metadatas} == {None, 1, 2}, "not every document has the key"
    assert not any("source" in metadata for metadata in metadatas)
    found = ours.invoke("amber n33")
    assert {document.metadata["source"] for document in found} == {"1.txt"}
    for add in (ours.add_documents, lambda *args: asyncio.run(ours.aadd_documents(*args))):
        with pytest.raises(ValueError, match=r"add_to_docstore=False .*: leave it out"):
            add(DOCUMENTS, names, False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"search_kwargs": {"k": "9"}}, r'search_kwargs\["k"\] must be a whole number .*"9"|9'),
        ({"byte_store": InMemoryByteStore()}, "pass docstore or byte_store, not both"),
        ({"search_type": "other"}, "search_type must be .*similarity.* got 'other'"),
        ({"id_key": ""}, "id_key must not be empty"),
        ({"smoothing": 0.5}, "smoothing=0.5 needs Chroma: InMemoryVectorStore"),
        ({"chlid_splitter": None}, "did you mean 'child_splitter'"),
    ],
)
def test_what_is_not_taken_is_refused_with_a_reason(options: dict[str, Any], message: str) -> None:
    store = InMemoryVectorStore(HashingEmbeddings())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=message) as failure:
        ParentDocumentRetriever(
            **{"vectorstore": store, "docstore": InMemoryStore(), **SPLITTERS, **options}
        )
    assert "pydantic" not in str(failure.value)


def test_parents_of_classic_in_a_store_that_cannot_tell_their_children_stay() -> None:
    store = InMemoryVectorStore(HashingEmbeddings())  # type: ignore[arg-type]
    options: dict[str, Any] = {"vectorstore": store, "docstore": InMemoryStore(), **SPLITTERS}
    Classic(**options).add_documents(DOCUMENTS[:1])
    ours = ParentDocumentRetriever(**options, id_key="doc_id")
    (first, *_) = ours.docstore.yield_keys()
    with pytest.raises(ValueError, match=f"{first}: .* cannot look up their children"):
        ours.delete([first])
    assert ours.docstore.mget([first]) != [None]


# In LangChain's world


def filled(**options: Any) -> ParentDocumentRetriever:
    return parent_document_retriever(DOCUMENTS, **SPLITTERS, **options)


def test_a_retriever_is_a_link_of_a_chain() -> None:
    retriever = filled(k=2)
    shown = retriever | (lambda found: "\n".join(document.page_content for document in found))
    chain = {"context": shown, "question": RunnablePassthrough()} | RunnablePassthrough()
    told = chain.invoke("amber n33")
    assert told["context"] == "\n".join(d.page_content for d in retriever.invoke("amber n33"))
    assert retriever.batch(QUESTIONS) == [retriever.invoke(each) for each in QUESTIONS]
    assert asyncio.run(retriever.abatch(QUESTIONS)) == retriever.batch(QUESTIONS)
    assert retriever.with_retry().invoke("amber") == retriever.invoke("amber")
    assert list(retriever.stream("amber")) == [retriever.invoke("amber")]


@pytest.mark.parametrize("bytes_too", [False, True])
def test_options_can_be_made_configurable(bytes_too: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"byte_store": InMemoryByteStore()} if bytes_too else {}
    made = filled(search_type="hybrid")
    if bytes_too:
        made = ParentDocumentRetriever(
            vectorstore=made.vectorstore, **options, **SPLITTERS, search_type="hybrid"
        )
        made.add_documents(DOCUMENTS)
    cleared: list[int] = []
    clear = KeywordIndex.clear
    monkeypatch.setattr(KeywordIndex, "clear", lambda self: (cleared.append(1), clear(self)))
    retriever = made.configurable_fields(
        k=ConfigurableField(id="k"), search_kwargs=ConfigurableField(id="told")
    )
    for k in (1, 3):
        assert len(retriever.invoke("amber", {"configurable": {"k": k}})) == k
    told = {"configurable": {"told": {"filter": {"source": "1.txt"}}}}
    assert {d.metadata["source"] for d in retriever.invoke("amber", told)} == {"1.txt"}
    assert len(cleared) <= 1, "the keyword index is shared, and not built for each question"
    with pytest.raises(ValueError, match="k must be a whole number of at least 1, got 0"):
        retriever.invoke("amber", {"configurable": {"k": 0}})


def test_calls_may_bring_their_own_options() -> None:
    retriever = filled(k=4)
    assert len(retriever.invoke("amber", k=2)) == 2
    found = retriever.invoke("amber", k=50, filter={"source": "2.txt"})
    assert {document.metadata["source"] for document in found} == {"2.txt"}
    with pytest.raises(ValueError, match=r"unknown search_kwargs \['fliter'\]"):
        retriever.invoke("amber", fliter={"source": "2.txt"})


def test_pickling_is_refused_with_the_way_out() -> None:
    with pytest.raises(TypeError, match=r"cannot be pickled: .* parent_document_retriever"):
        pickle.dumps(filled())


def test_what_is_shown_of_a_retriever_holds_no_secret() -> None:
    retriever = ParentDocumentRetriever(
        vectorstore=InMemoryVectorStore(HashingEmbeddings()),  # type: ignore[arg-type]
        docstore=RedisStore("redis://me:secret@127.0.0.1:1/0", timeout=1),
        **SPLITTERS,
    )
    assert "secret" not in repr(retriever)
    with pytest.raises(OSError, match=r"127\.0\.0\.1:1") as failure:
        retriever.add_documents(DOCUMENTS)
    assert "secret" not in str(failure.value)


# Documents of an index that classic wrote


def migrated(stores: dict[str, Any], **options: Any) -> ParentDocumentRetriever:
    """Our retriever over an index that classic's wrote."""
    Classic(**stores, **SPLITTERS).add_documents(DOCUMENTS)
    return ParentDocumentRetriever(**stores, **{**SPLITTERS, "id_key": "doc_id", **options})


def keys(retriever: ParentDocumentRetriever) -> set[str]:
    """The keys of all parents."""
    others = ("source/", "state/")
    return {key for key in retriever.docstore.yield_keys() if not key.startswith(others)}


OURS = {
    "same": SPLITTERS,
    "whole": {**SPLITTERS, "parent_splitter": None},
    "other": {
        "child_splitter": RecursiveTextSplitter(chunk_size=90),
        "parent_splitter": RecursiveTextSplitter(chunk_size=500),
    },
}


@pytest.mark.parametrize("splitters", OURS)
@pytest.mark.parametrize("search_type", ["similarity", "hybrid"])
def test_adding_the_same_documents_replaces_what_classic_wrote(
    stores: dict[str, Any], splitters: str, search_type: Any
) -> None:
    ours = migrated(stores, **OURS[splitters], search_type=search_type)
    before = keys(ours)
    fresh = ParentDocumentRetriever(
        vectorstore=Chroma(f"c{uuid.uuid4().hex}", HashingEmbeddings()),  # type: ignore[arg-type]
        docstore=InMemoryStore(),
        **OURS[splitters],
        search_type=search_type,
    )
    first = ours.add_documents(DOCUMENTS[:1])
    assert ours.verify().is_sound
    assert ours.verify().classic_parents == len(before & keys(ours)) > 0
    assert first + ours.add_documents(DOCUMENTS[1:]) == fresh.add_documents(DOCUMENTS)
    assert keys(ours) == keys(fresh)
    counts = [r.vectorstore._collection.count() for r in (ours, fresh)]  # type: ignore[attr-defined]
    assert counts[0] == counts[1]
    assert ours.verify() == fresh.verify()
    for question in QUESTIONS:
        assert contents(ours.invoke(question)) == contents(fresh.invoke(question))
    assert ours.sync(DOCUMENTS).unchanged == first + fresh.sync(DOCUMENTS).unchanged[1:]


def test_only_what_belongs_to_a_document_is_replaced(stores: dict[str, Any]) -> None:
    ours = migrated(stores)
    before = keys(ours)
    text = DOCUMENTS[0].page_content
    ours.add_documents(
        [
            Document(page_content=text, metadata={"source": "copy.txt"}),
            Document(page_content=text[:200], metadata={"source": "0.txt"}),
            Document(page_content=sentence(99), metadata={"source": "0.txt"}),
        ]
    )
    assert before < keys(ours)
    ours.add_documents([Document(page_content=f"New.\n\n{text}", metadata={"source": "0.txt"})])
    left = {d.metadata["source"] for d in ours.docstore.mget(sorted(before)) if d is not None}
    assert left == {"1.txt", "2.txt"}


def test_a_document_replaces_the_one_that_classic_wrote_under_its_id(
    stores: dict[str, Any],
) -> None:
    names = [str(uuid.uuid5(uuid.NAMESPACE_URL, f"{n}")) for n in range(3)]
    whole = {**SPLITTERS, "parent_splitter": None}
    Classic(**stores, **whole).add_documents(DOCUMENTS, ids=names)
    ours = ParentDocumentRetriever(**stores, **whole, id_key="doc_id")
    new = [Document(page_content=f"Revised {n}.", metadata={"page": n}) for n in range(3)]
    assert ours.add_documents(new, ids=names) == names
    assert not keys(ours) & set(names)
    assert {text for text, _ in contents(ours.invoke("amber", k=9))} == {
        document.page_content for document in new
    }


@pytest.mark.parametrize("asynchronous", [False, True])
def test_delete_and_sync_know_what_classic_wrote(
    stores: dict[str, Any], asynchronous: bool
) -> None:
    ours = migrated(stores, search_type="hybrid")
    before = keys(ours)
    of_first = {k for k in before if ours.docstore.mget([k])[0].metadata["source"] == "0.txt"}  # type: ignore[union-attr]
    if asynchronous:
        response = asyncio.run(ours.adelete(source="0.txt"))
    else:
        response = ours.delete(source="0.txt")
    assert set(response["succeeded"]) == of_first
    assert keys(ours) == before - of_first
    assert not stores["vectorstore"].get(where={"source": "0.txt"})["ids"]
    scope = {"source": "1.txt"}
    report = ours.sync([], scope=scope)
    assert {*report.deleted, *keys(ours)} == before - of_first
    assert ours.verify().classic_parents == len(keys(ours)) == len(before) / 3
    report = (
        asyncio.run(ours.async_sync(DOCUMENTS[:1])) if asynchronous else ours.sync(DOCUMENTS[:1])
    )
    assert (len(report.added), len(report.deleted)) == (1, len(before) / 3)
    assert {source for _, source in contents(ours.invoke("amber", k=50))} == {"0.txt"}


def test_verify_reports_and_repairs_what_classic_left(stores: dict[str, Any]) -> None:
    ours = migrated(stores)
    report = ours.verify()
    assert report.is_sound
    assert report.classic_parents == len(keys(ours))
    lost, *_ = sorted(keys(ours))
    ids = stores["vectorstore"].get(where={"doc_id": lost})["ids"]
    ours.docstore.mdelete([lost])
    assert set(ours.verify(repair=True).orphans or ()) == set(ids)
    assert not stores["vectorstore"].get(where={"doc_id": lost})["ids"]
    assert ours.verify().is_sound
    elsewhere = ParentDocumentRetriever(
        vectorstore=stores["vectorstore"], docstore=InMemoryStore(), **SPLITTERS, id_key="doc_id"
    )
    assert elsewhere.verify(repair=True).orphans == [], "they have parents in another docstore"


def test_hybrid_search_finds_by_keyword_what_classic_wrote(vectorstore: Chroma) -> None:
    stores: dict[str, Any] = {"vectorstore": vectorstore, "docstore": InMemoryStore()}
    ours = migrated(stores, search_type="hybrid", k=1)
    assert ours.verify().is_sound, "the first search makes the keyword index"
    word = sentence(33)[:5]
    (best,) = ours.invoke(word)
    assert word in best.page_content
    ids = vectorstore.get()["ids"]
    assert set(ours.shared.keywords.list_ids()) == set(ids)
    assert ours.verify().is_sound
    late = Document(page_content=sentence(77), metadata={"source": "late.txt"})
    Classic(**stores, **SPLITTERS).add_documents([late])
    assert not ours.verify().is_sound
    ours.verify(repair=True)
    assert ours.verify().is_sound
    assert contents(ours.invoke(sentence(77)[:5])) == [(sentence(77), "late.txt")]
    ours.delete([best.id or ""])
    assert word not in ours.invoke(word)[0].page_content


def test_a_store_that_cannot_tell_children_refuses_with_the_way_out() -> None:
    store = InMemoryVectorStore(HashingEmbeddings())  # type: ignore[arg-type]
    ours = migrated({"vectorstore": store, "docstore": InMemoryStore()})
    message = "cannot look up their children.* add the documents to a new vector store"
    for call in (
        lambda: ours.add_documents(DOCUMENTS),
        lambda: ours.delete(source="0.txt"),
        lambda: ours.sync([]),
        lambda: ours.model_copy(update={"search_type": "hybrid"}).invoke("amber"),
    ):
        before = dict(store.store), keys(ours)
        with pytest.raises(ValueError, match=message):
            call()
        assert (store.store, keys(ours)) == before
    ours.add_documents([Document(page_content="new")])
    assert ours.delete(source="other.txt")["succeeded"] == []


def test_a_crash_while_classic_is_replaced_is_repaired(
    stores: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = migrated(stores)
    before = keys(ours)

    async def fail(self: Any, ids: Any) -> None:
        raise OSError("the process died")

    for name in ("write", "remove"):
        with monkeypatch.context() as patch:
            patch.setattr(ChromaChildren, name, fail)
            with pytest.raises(OSError, match="died"):
                ours.add_documents(DOCUMENTS[:1])
        assert before <= keys(ours), "no child is without its parent"
        assert len(ours.verify().unfinished) == 1
    assert len(ours.invoke(QUESTIONS[0])) == 4
    again = ParentDocumentRetriever(**stores, **SPLITTERS, id_key="doc_id")
    again.verify(repair=True)
    assert again.verify().is_sound
    again.add_documents(DOCUMENTS)
    assert not keys(again) & before
