"""Beside `langchain_classic`'s `ParentDocumentRetriever`: its stores, its parameters, its calls."""

from __future__ import annotations

import asyncio
import pickle
import random
import uuid
from collections.abc import Iterator
from datetime import date
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

from rag_splitters.langchain import ParentDocumentRetriever, parent_document_retriever
from rag_splitters.models import HashingEmbeddings
from rag_splitters.parent_child.errors import RefusedDocumentsError
from rag_splitters.parent_child.keywords.index import KeywordIndex
from rag_splitters.parent_child.stores.chroma import ChromaChildren
from rag_splitters.parent_child.vectors import Vectors
from tests.support.counting import record_calls

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


def test_what_classic_wrote_is_answered_as_it_is(stores: dict[str, Any]) -> None:
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
    assert set(ours.docstore.yield_keys()) == keys, "a search writes nothing"


@pytest.mark.parametrize("retrieve", ["parents", "children", "passages"])
def test_positions_that_classic_only_guessed_are_passed_on(
    vectorstore: Chroma, retrieve: Any
) -> None:
    """LangChain's splitters report a start, and no end."""
    sizes = {"child_splitter": 70, "parent_splitter": 300}
    splitters: dict[str, Any] = {
        name: RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=0, add_start_index=True)
        for name, size in sizes.items()
    }
    options: dict[str, Any] = {"vectorstore": vectorstore, "docstore": InMemoryStore()}
    Classic(**options, **splitters).add_documents(DOCUMENTS)
    ours = ParentDocumentRetriever(
        **options,
        **splitters,
        id_key="doc_id",
        retrieve=retrieve,
        reranker=lambda question, texts: [len(text) for text in texts],
        k=3,
    )
    results = ours.invoke(QUESTIONS[0])
    assert len(results) == 3
    for result in results:
        assert any(result.page_content in document.page_content for document in DOCUMENTS)


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
    with pytest.raises(ValueError, match=message):
        ours.import_classic()
    right = ParentDocumentRetriever(**options, **SPLITTERS, id_key="doc_id")
    with pytest.raises(ValueError, match=r"call import_classic\(\)"):  # no index was begun
        right.add_documents(DOCUMENTS)
    assert len(right.import_classic()) > 0
    assert right.verify().is_sound


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
        ({"id_key": ""}, "id_key must not be empty"),
        ({"smoothing": 0.5}, "smoothing=0.5 needs Chroma: InMemoryVectorStore"),
    ],
)
def test_what_is_not_taken_is_refused_with_a_reason(options: dict[str, Any], message: str) -> None:
    store = InMemoryVectorStore(HashingEmbeddings())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=message) as failure:
        ParentDocumentRetriever(
            **{"vectorstore": store, "docstore": InMemoryStore(), **SPLITTERS, **options}
        )
    assert "pydantic" not in str(failure.value)


@pytest.mark.parametrize(("option", "value"), [("smoothing", 0.5), ("headings", True)])
def test_what_a_store_cannot_do_is_refused_when_it_is_assigned_too(option: str, value: Any) -> None:
    store = InMemoryVectorStore(HashingEmbeddings())  # type: ignore[arg-type]
    retriever = parent_document_retriever(vectorstore=store)
    setattr(retriever, option, value)
    with pytest.raises(ValueError, match=f"{option}=.* needs Chroma: InMemoryVectorStore"):
        retriever.add_documents(DOCUMENTS)


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
    made = filled(**options, search_type="hybrid")
    cleared = record_calls(monkeypatch, KeywordIndex, "clear")
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


def test_a_call_may_ask_for_hybrid_search() -> None:
    retriever, hybrid = filled(k=4, search_type="similarity"), filled(k=4, search_type="hybrid")
    for question in QUESTIONS:
        expected = contents(hybrid.invoke(question))
        assert contents(retriever.invoke(question, search_type="hybrid")) == expected
    by_vector = contents(filled(k=4, search_type="similarity").invoke(QUESTIONS[0]))
    assert contents(retriever.invoke(QUESTIONS[0])) == by_vector


@pytest.mark.parametrize("kind", ["files", "bytes"])
def test_what_a_store_of_bytes_cannot_keep_is_refused_before_it_is_written(
    kind: str, tmp_path: Path
) -> None:
    stores: dict[str, Any] = {
        "files": {"docstore": create_kv_docstore(LocalFileStore(tmp_path))},
        "bytes": {"byte_store": InMemoryByteStore()},
    }[kind]
    retriever = parent_document_retriever(DOCUMENTS[:1], **stores)
    dated = Document(page_content="Built in May.", id="dated", metadata={"d": date(1839, 5, 1)})
    with pytest.raises(RefusedDocumentsError, match=r"metadata\['d'\] is of type datetime.date"):
        retriever.add_documents([dated])
    assert retriever.delete(["dated"])["num_deleted"] == 0
    assert retriever.invoke(QUESTIONS[0])


def test_pickling_is_refused_with_the_way_out() -> None:
    with pytest.raises(TypeError, match=r"cannot be pickled: .* parent_document_retriever"):
        pickle.dumps(filled())


# Documents of an index that classic wrote


def migrated(stores: dict[str, Any], **options: Any) -> ParentDocumentRetriever:
    """Our retriever over an index that classic's wrote."""
    Classic(**stores, **SPLITTERS).add_documents(DOCUMENTS)
    return ParentDocumentRetriever(**stores, **{**SPLITTERS, "id_key": "doc_id", **options})


def keys(retriever: ParentDocumentRetriever) -> set[str]:
    """The keys of all parents."""
    others = ("source/", "state/")
    return {key for key in retriever.docstore.yield_keys() if not key.startswith(others)}


@pytest.mark.slow
@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("search_type", ["similarity", "hybrid"])
def test_an_import_makes_documents_of_what_classic_wrote(
    stores: dict[str, Any], search_type: Any, asynchronous: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = migrated(stores, search_type=search_type, k=3)
    before, found = keys(ours), [contents(ours.invoke(question)) for question in QUESTIONS]
    embedded = record_calls(monkeypatch, Vectors, "embed_texts")
    imported = asyncio.run(ours.aimport_classic()) if asynchronous else ours.import_classic()
    assert set(imported) == before
    assert embedded == [], "the children have the same texts, and keep their vectors"
    assert not keys(ours) & before
    assert [contents(ours.invoke(question)) for question in QUESTIONS] == found
    report = ours.verify()
    assert (report.is_sound, report.documents) == (True, len(before))
    assert ours.import_classic() == []
    assert {document.id for document in ours.get(imported)} == before
    ours.add_documents([DOCUMENTS[0]], ids=["new"])
    assert ours.delete(imported)["num_deleted"] == len(before)
    assert ours.verify().documents == 1


def test_classic_parents_with_ids_like_ours_are_imported_once(vectorstore: Chroma) -> None:
    options: dict[str, Any] = {"vectorstore": vectorstore, "docstore": InMemoryStore()}
    splitters = {"child_splitter": SPLITTERS["child_splitter"]}
    ids = [str(uuid.uuid5(uuid.NAMESPACE_URL, str(number))) for number in range(3)]
    Classic(**options, **splitters).add_documents(DOCUMENTS, ids=ids)
    ours = ParentDocumentRetriever(**options, **splitters, id_key="doc_id", k=9)
    assert ours.import_classic() == ids
    assert sorted(result.page_content for result in ours.invoke("n1")) == sorted(
        document.page_content for document in DOCUMENTS
    )


def test_whoever_writes_before_the_import_is_told_what_to_call(
    stores: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    migrated(stores)
    ours = parent_document_retriever(**stores, **SPLITTERS, id_key="doc_id")
    assert "import_classic()" in caplog.text
    rows = set(ours.docstore.yield_keys())
    for write in (
        lambda: ours.add_documents(DOCUMENTS),
        lambda: ours.delete([next(iter(rows))]),
        lambda: ours.delete(source="0.txt"),
        lambda: ours.sync([]),
        lambda: ours.verify(repair=True),
    ):
        with pytest.raises(ValueError, match=r"langchain_classic wrote: call import_classic\(\)"):
            write()
    assert set(ours.docstore.yield_keys()) == rows
    assert ours.invoke(QUESTIONS[0])


def test_an_interrupted_import_is_finished_by_the_next(
    stores: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = migrated(stores)
    before = keys(ours)
    with monkeypatch.context() as failing:
        failing.setattr(ChromaChildren, "remove", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ours.import_classic()
    assert set(ours.import_classic()) == before
    assert ours.verify(repair=True).documents == len(before)
    assert ours.verify().is_sound
    assert not keys(ours) & before


def test_a_store_that_cannot_list_children_cannot_be_imported() -> None:
    store = InMemoryVectorStore(HashingEmbeddings())  # type: ignore[arg-type]
    ours = migrated({"vectorstore": store, "docstore": InMemoryStore()})
    before = dict(store.store), keys(ours)
    with pytest.raises(ValueError, match=r"cannot list .* add the documents to a new vector store"):
        ours.import_classic()
    assert (store.store, keys(ours)) == before
