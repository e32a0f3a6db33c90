"""An index is one thing: what belongs together, which model wrote it, and what an id may be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import chromadb
import pytest
from langchain_classic.storage import LocalFileStore, create_kv_docstore
from langchain_core.vectorstores import InMemoryVectorStore

from rag_splitters import langchain, llama_index
from rag_splitters.langchain import DocumentStore
from rag_splitters.models import HashingEmbeddings, ModelError
from rag_splitters.parent_child import (
    DamagedRowsError,
    IndexMismatchError,
    MissingParentsError,
    RefusedDocumentsError,
    StoreError,
)
from rag_splitters.parent_child.stores.keyvalue import KeyValueStore, SQLiteStore
from tests.parent_child.test_llama_index import ListVectorStore
from tests.support.front_ends import FrontEnd, Page, every_front_end, in_turn, sentence
from tests.support.stores import OpenStore

PAGES: list[Page] = [
    (f"p{n}", " ".join(sentence(9 * n + m) for m in range(9)), {"n": n}) for n in range(4)
]
QUESTION = "amber n10"


class Named:
    """A model that has a name and makes vectors of its own."""

    def __init__(self, name: str, sign: float = 1.0, dimensions: int = 32) -> None:
        self.description = name
        self._sign, self._model = sign, HashingEmbeddings(dimensions=dimensions)

    def __call__(self, texts: list[str]) -> list[list[float]]:
        vectors = self._model.embed_documents(texts)
        return [[self._sign * number for number in vector] for vector in vectors]


def docstore_for(front: FrontEnd, store: KeyValueStore) -> Any:
    return DocumentStore(store) if front.framework == "langchain" else store


@pytest.fixture
def client() -> Iterator[Any]:
    """Chroma in memory, empty."""
    client = chromadb.EphemeralClient()
    before = {each.name for each in client.list_collections()}
    yield client
    for each in client.list_collections():
        if each.name not in before:
            client.delete_collection(each.name)


def ids(front: FrontEnd, retriever: Any) -> list[str]:
    found = front.find(front.varied(retriever, k=50), "amber birch cedar")
    return sorted({f"p{result.metadata['n']}" for result in found})


@every_front_end
def test_the_collections_of_a_folder_are_indexes_of_their_own(
    front: FrontEnd, tmp_path: Path
) -> None:
    with closing(front.build(PAGES[:2], path=tmp_path, collection_name="cats")) as cats:
        with closing(front.build(PAGES[2:], path=tmp_path, collection_name="dogs")) as dogs:
            front.do(dogs, "sync", front.documents(PAGES[3:]))
            assert front.do(dogs, "verify", repair=True).is_sound
            assert ids(front, dogs) == ["p3"]
        assert front.do(cats, "verify").is_sound
        assert ids(front, cats) == ["p0", "p1"]
    for name, expected in (("cats", ["p0", "p1"]), ("dogs", ["p3"])):
        with closing(front.build(path=tmp_path, collection_name=name)) as retriever:
            assert ids(front, retriever) == expected


@every_front_end
def test_a_docstore_of_another_collection_is_refused(
    front: FrontEnd, open_store: OpenStore, tmp_path: Path
) -> None:
    # A folder is a Chroma whose collections last; the docstore is the user's own.
    def build(name: str, documents: list[Page] = []) -> Any:  # noqa: B006
        docstore = docstore_for(front, open_store())
        return front.build(documents, path=tmp_path, collection_name=name, docstore=docstore)

    with closing(build("cats", PAGES[:2])) as cats:
        before = dict.fromkeys(open_store().yield_keys())
        for documents in ([], PAGES[2:]):
            with pytest.raises(IndexMismatchError, match="'cats', not 'dogs'"):
                build("dogs", documents)
        assert dict.fromkeys(open_store().yield_keys()) == before, "nothing is touched"
        assert ids(front, cats) == ["p0", "p1"]
        assert front.do(cats, "verify").is_sound


@every_front_end
def test_a_collection_of_another_docstore_is_refused(
    front: FrontEnd, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stores = [docstore_for(front, SQLiteStore(tmp_path / str(n))) for n in range(3)]
    with closing(front.build(PAGES[:2], path=tmp_path / "a", docstore=stores[0])):
        pass
    with closing(front.build(PAGES[2:], path=tmp_path / "b", docstore=stores[1])):
        pass
    with pytest.raises(IndexMismatchError, match=r"belongs to index .* this docstore to index"):
        front.build(path=tmp_path / "a", docstore=stores[1])
    assert not caplog.messages
    with closing(front.build(path=tmp_path / "a", docstore=stores[2])) as empty:
        assert ["has lost its rows, or it is not the" in text for text in caplog.messages] == [True]
        for operation, arguments in (
            ("add_documents", [front.documents(PAGES)]),
            ("sync", [front.documents(PAGES)]),
            ("verify", []),
        ):
            with pytest.raises(MissingParentsError, match="has lost its rows, or it is not the"):
                front.do(empty, operation, *arguments)
        with pytest.raises(MissingParentsError, match="has lost its rows, or it is not the"):
            front.find(empty, QUESTION)
    with closing(front.build(path=tmp_path / "a", docstore=stores[0])) as right:
        assert ids(front, right) == ["p0", "p1"]


@every_front_end
def test_a_lost_docstore_is_an_error_and_repair_removes_nothing(
    front: FrontEnd, client: Any, open_store: OpenStore
) -> None:
    store = open_store()
    retriever = front.build(PAGES, client=client, docstore=docstore_for(front, store))
    assert front.find(retriever, QUESTION)
    store.mdelete(list(store.yield_keys()))  # as a server without persistence does
    with pytest.raises(MissingParentsError, match="the docstore has lost its rows"):
        front.find(retriever, QUESTION)
    count = front.collection(retriever).count()
    with pytest.raises(MissingParentsError, match=r"would remove \d+ children.* remove_most=True"):
        front.do(retriever, "verify", repair=True)
    assert front.collection(retriever).count() == count
    report = front.do(retriever, "verify", repair=True, remove_most=True)
    assert len(report.orphans) == count
    assert front.collection(retriever).count() == 0
    front.do(retriever, "add_documents", front.documents(PAGES))
    assert front.do(retriever, "verify").is_sound
    assert ids(front, retriever) == ["p0", "p1", "p2", "p3"]


@every_front_end
def test_another_model_is_refused_by_name_and_reembeds_on_request(
    front: FrontEnd, tmp_path: Path
) -> None:
    options = {"path": tmp_path, "search_type": "similarity"}
    with closing(front.build(PAGES, embeddings=Named("A"), **options)) as first:
        found = front.find(first, QUESTION)
    for other in (Named("B", -1.0), Named("B", 1.0, 64)):
        with pytest.raises(IndexMismatchError, match=r"model A and cannot .* with B.*reembed"):
            front.build(embeddings=other, **options)
    for model in (Named("B", -1.0), Named("C", 1.0, 64), Named("A")):
        with closing(front.build(embeddings=model, reembed=True, **options)) as retriever:
            assert front.do(retriever, "verify").is_sound
            assert ids(front, retriever) == ["p0", "p1", "p2", "p3"]
            done = front.do(retriever, "sync", front.documents(PAGES))
            assert done.unchanged == ["p0", "p1", "p2", "p3"]
        with closing(front.build(embeddings=model, **options)) as retriever:
            again = front.find(retriever, QUESTION)
    assert [result.id for result in again] == [result.id for result in found]


@pytest.mark.parametrize("is_own_store", [False, True])
@every_front_end
def test_an_own_vector_store_says_which_model_wrote_it(
    front: FrontEnd, is_own_store: bool, client: Any, tmp_path: Path
) -> None:
    def build(model: Any) -> Any:
        options: dict[str, Any] = {"client": client, "embeddings": model}
        if is_own_store and front.framework == "langchain":
            options = {"vectorstore": InMemoryVectorStore(model)}
        elif is_own_store:
            options = {"vector_store": ListVectorStore(kept={}), "embeddings": model}
        store = SQLiteStore(tmp_path / "docs.sqlite")
        return front.build(docstore=docstore_for(front, store), **options)

    models = [HashingEmbeddings(dimensions=size) for size in (32, 64)]
    front.do(build(models[0]), "add_documents", front.documents(PAGES))
    with pytest.raises(IndexMismatchError, match=r"dimensions=32.* cannot be .*dimensions=64"):
        build(models[1])
    build(models[0])


@every_front_end
def test_an_interrupted_reembedding_is_finished_before_anything_else(
    front: FrontEnd, tmp_path: Path
) -> None:
    class Failing(Named):
        def __call__(self, texts: list[str]) -> list[list[float]]:
            raise ConnectionError("the model is gone")

    options = {"path": tmp_path, "search_type": "similarity"}
    front.build(PAGES, embeddings=Named("A"), **options).close()
    with pytest.raises(ModelError):
        front.build(embeddings=Failing("B"), reembed=True, **options)
    with pytest.raises(IndexMismatchError, match="was interrupted: open it with reembed=True"):
        front.build(embeddings=Named("B"), **options)
    with closing(front.build(embeddings=Named("B"), reembed=True, **options)) as retriever:
        assert front.do(retriever, "verify").is_sound
        assert ids(front, retriever) == ["p0", "p1", "p2", "p3"]


@pytest.mark.parametrize("begins", ["empty", "embedded anew"])
@every_front_end
def test_an_index_that_began_without_vectors_refuses_those_of_another_length(
    front: FrontEnd, begins: str, tmp_path: Path
) -> None:
    stores: dict[str, Any] = {"path": tmp_path}
    if front.framework == "llama_index" and begins == "empty":  # which would refuse none itself
        stores = {"docstore": SQLiteStore(tmp_path / "docs.sqlite")}
        stores["vector_store"] = ListVectorStore(kept={})
    if begins == "empty":
        front.build([("blank", "", {})], embeddings=Named("A"), **stores).close()
    else:
        front.build(PAGES, embeddings=Named("B", 1.0, 64), **stores).close()
        front.build(embeddings=Named("A"), reembed=True, **stores).close()
    with closing(front.build(PAGES, embeddings=Named("A"), **stores)) as retriever:
        assert front.do(retriever, "verify").is_sound
    new = ("new", "A new text.", {})
    longer = Named("A", 1.0, 64)
    with pytest.raises(IndexMismatchError, match=r"of 32 numbers, and .* A now returns 64: .*name"):
        front.build([new], embeddings=longer, **stores)
    with closing(front.build([new], embeddings=Named("A"), **stores)) as retriever:
        assert front.do(retriever, "verify").is_sound
    renamed = {"embeddings": longer, "model_name": "A longer", "reembed": True}
    with closing(front.build([new], **renamed, **stores)) as retriever:
        assert front.do(retriever, "verify").is_sound


@every_front_end
def test_reembedding_leaves_out_what_was_being_removed(front: FrontEnd, tmp_path: Path) -> None:
    options = {"path": tmp_path, "search_type": "similarity"}
    with closing(front.build(PAGES, embeddings=Named("A"), **options)) as retriever:
        store = getattr(retriever.docstore, "rows", retriever.docstore)
        key = next(key for key in store.yield_keys("source/") if store.mget([key])[0]["id"] == "p3")
        (row,) = store.mget([key])
        row["metadata"]["digest"] = ""
        store.mset([(key, row)])
        store.mdelete(row["metadata"]["parents"])
    with closing(front.build(embeddings=Named("B"), reembed=True, **options)) as retriever:
        assert front.do(retriever, "verify", repair=True).unfinished == ["p3"]
        assert front.do(retriever, "verify").is_sound
        assert ids(front, retriever) == ["p0", "p1", "p2"]


@every_front_end
def test_a_durable_index_needs_a_name_of_its_model(front: FrontEnd, tmp_path: Path) -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        return Named("x")(texts)

    assert front.find(front.build(PAGES, embeddings=embed), QUESTION), "in memory it needs none"
    for model in (embed, lambda texts: embed(texts)):
        with pytest.raises(ValueError, match=r'pass model_name="'):
            front.build(PAGES, path=tmp_path, embeddings=model)
    options = {"path": tmp_path, "embeddings": embed}
    front.build(PAGES, model_name="mine", **options).close()
    with pytest.raises(IndexMismatchError, match="model mine and cannot be searched with other"):
        front.build(model_name="other", **options)
    with closing(front.build(model_name="mine", **options)) as retriever:
        assert front.find(retriever, QUESTION)


STRANGE_IDS = ["https://a.b/c?d=e f", "../../etc", "state/index", "source/x", "\ud800", "a\0b", ""]


@every_front_end
def test_any_id_works_with_any_store_and_names_no_row_of_others(
    front: FrontEnd, tmp_path: Path, open_store: OpenStore
) -> None:
    docstore = docstore_for(front, open_store())
    if front.framework == "langchain":
        docstore = create_kv_docstore(LocalFileStore(tmp_path / "files"))
    pages = [(name, sentence(n), {"n": n}) for n, name in enumerate(STRANGE_IDS)]
    with closing(front.build(pages, docstore=docstore)) as retriever:
        assert len(front.do(retriever, "get", STRANGE_IDS)) == len(pages)
        assert front.delete(retriever, STRANGE_IDS[:3]) == STRANGE_IDS[:3]
        assert len(front.do(retriever, "get", STRANGE_IDS)) == len(pages) - 3
        assert front.do(retriever, "verify").is_sound


@every_front_end
def test_no_id_reaches_the_rows_of_others_or_of_the_index(
    front: FrontEnd, open_store: OpenStore
) -> None:
    store = open_store()
    row = {"text": "a session", "metadata": {"secret": 1}, "id": None}
    store.mset([("session:42", row)])
    retriever = front.build(PAGES, docstore=docstore_for(front, store))
    keys = list(store.yield_keys())
    parents = {result.id for result in front.find(front.varied(retriever, k=50), "amber birch")}
    assert len(front.do(retriever, "get", keys)) == len(parents.intersection(keys)) > 0
    inner = [key for key in keys if key not in parents]
    assert front.do(retriever, "get", inner) == []
    assert front.delete(retriever, keys) == []
    assert front.delete(retriever, inner) == []
    assert list(store.yield_keys()) == keys
    assert store.mget(["session:42"]) == [row]
    assert front.do(retriever, "verify").is_sound


# What the errors and the documentation promise


@pytest.mark.parametrize("module", [langchain, llama_index])
def test_the_factory_hands_over_the_retriever_although_a_document_is_refused(module: Any) -> None:
    front = FrontEnd(module.__name__.rpartition(".")[2])
    bad: Page = ("bad", "Bad.", {"deep": [{"number": 10**5000}]})
    with pytest.raises(
        RefusedDocumentsError, match=r"'bad': metadata\['deep'\]\[0\]\['number'\].*digits"
    ) as error:
        module.parent_document_retriever(front.documents([bad, *PAGES]))
    with closing(error.value.result) as retriever:
        assert ids(front, retriever) == ["p0", "p1", "p2", "p3"]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "no JSON": lambda value: b"\x01\x02",
    "deep": lambda value: b"[" * 100_000,
    "no text": lambda value: value.replace(b'"text"', b'"txet"'),
    "no record": lambda value: b'{"text": "", "metadata": {}, "id": "p1"}',
    "a number as id": lambda value: b'{"text": "", "metadata": {}, "id": 1}',
}


@in_turn(
    "damage, row",
    [*product(DAMAGES, ["source/"]), *product(["no JSON", "no record"], ["state/revision"])],
)
def test_damaged_rows_are_named_and_repaired(
    front: FrontEnd, damage: str, row: str, tmp_path: Path
) -> None:
    """That of a document, and the one that says which state the docstore is in."""
    new = front.documents([*PAGES, ("p9", sentence(90), {"n": 9})])
    with closing(front.build(PAGES, path=tmp_path, search_type="hybrid")) as retriever:
        store = getattr(retriever.docstore, "rows", retriever.docstore)
        key = next(k for k in store.yield_keys(row) if store.mget([k])[0]["id"] in ("p1", row))
        value = DAMAGES[damage](store._read([key.encode()])[key.encode()])
        store._change({}, {key.encode(): value}, [])
        if row == "source/":
            with pytest.raises(DamagedRowsError, match=r"verify\(repair=True\)"):
                front.do(retriever, "get", ["p1"])
        with pytest.raises(DamagedRowsError, match=r"verify\(repair=True\)"):
            front.do(retriever, "add_documents", new)
        assert front.do(retriever, "verify").damaged == [key]
        front.do(retriever, "verify", repair=True)
        front.do(retriever, "add_documents", new)
        assert front.do(retriever, "verify").is_sound
        assert sentence(90) in front.find(retriever, sentence(90))[0].text
        assert ids(front, retriever) == ["p0", "p1", "p2", "p3", "p9"]


@in_turn("column", ["format", "is_reembedding", "model"])
def test_a_damaged_row_of_the_identity_is_named(
    front: FrontEnd, column: str, tmp_path: Path
) -> None:
    """As by one flipped bit in the file."""
    front.build(PAGES, path=tmp_path).close()
    with closing(SQLiteStore(tmp_path / "parents" / "rag_splitters.sqlite")) as store:
        key = b"state/index"
        value = store._read([key])[key]
        store._change({}, {key: value.replace(column.encode(), b"x" + column[1:].encode())}, [])
    with pytest.raises(DamagedRowsError, match="says what the index is is damaged: restore it"):
        front.build(path=tmp_path)


@every_front_end
def test_a_query_reads_again_while_children_are_deleted(
    front: FrontEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    from chromadb.api.models.Collection import Collection
    from chromadb.errors import InternalError

    retriever, query, failures = front.build(PAGES), Collection.query, iter(range(3))

    def fail_at_first(self: Collection, **kwargs: Any) -> Any:
        if next(failures, None) is not None:
            raise InternalError("Error executing plan: Internal error: Error finding id")
        return query(self, **kwargs)

    monkeypatch.setattr(Collection, "query", fail_at_first)
    assert front.find(retriever, sentence(0))
    failures = iter(range(1000))
    with pytest.raises(StoreError, match="ask again"):
        front.find(retriever, sentence(1))


@every_front_end
@pytest.mark.parametrize("question", [None, {"question": QUESTION}])
def test_a_question_that_is_no_text_is_refused(front: FrontEnd, question: Any) -> None:
    message = "the question must be a string, got (None|{'qu)|str_or_query_bundle"  # LlamaIndex's
    with pytest.raises(ValueError, match=message):
        front.find(front.build(PAGES), question)


@every_front_end
@pytest.mark.parametrize("place", ["memory", "folder"])
def test_an_index_inherits_no_headings_from_a_collection_that_was_deleted(
    front: FrontEnd, place: str, tmp_path: Path
) -> None:
    """Chroma leaves the lists in the metadata of a deleted collection to the next rows."""
    with_heading: list[Page] = [(f"h{n}", f"# Tea\n\n{sentence(n)}", {}) for n in range(8)]
    options: dict[str, Any] = {"retrieve": "children", "headings": True, "k": 100}
    if place == "memory":
        with front.build():  # as long as it is open, all share a database
            front.build(with_heading, **options).close()
            retriever = front.build(PAGES, **options)
    else:
        options["path"] = tmp_path
        with front.build([*with_heading, *PAGES], embeddings=Named("one"), **options) as former:
            front.delete(former, [name for name, _, _ in with_heading[::2]])
        retriever = front.build(embeddings=Named("two"), reembed=True, **options)
    results = [each for each in front.find(retriever, QUESTION) if "n" in each.metadata]
    assert len(results) > 30
    assert all("headings" not in each.metadata for each in results)
    retriever.close()
