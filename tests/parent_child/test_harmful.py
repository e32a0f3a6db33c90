"""Documents whose metadata would break an index harm nobody else, in both front ends."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document

from rag_splitters.langchain import parent_document_retriever
from rag_splitters.parent_child.errors import RefusedDocumentsError
from rag_splitters.parent_child.metadata import flatten_metadata
from tests.parent_child.test_sync import state
from tests.support.front_ends import FRONT_ENDS, FrontEnd, Page, every_front_end, sentence
from tests.support.stores import check_children

GOOD: list[Page] = [
    (f"good{n}", " ".join(sentence(10 * n + m) for m in range(9)), {"team": "red"})
    for n in range(4)
]
BAD_TEXT = " ".join(sentence(90 + m) for m in range(9))


def deep(levels: int) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for _ in range(levels):
        nested = {"down": nested}
    return nested


STORABLE: dict[str, dict[str, Any]] = {
    "thousands of keys": {f"key{n}": n for n in range(8000)},
    "huge list": {"values": list(range(10_000))},
    "huge list of texts": {"values": [f"value {n}" for n in range(10_000)]},
    "many lists": {f"list{n}": list(range(100)) for n in range(200)},
    "huge text": {"body": "x" * 3_000_000},
    "huge key": {"k" * 1_000_000: 1},
    "dollar": {"$price": 5, "$and": [1], "$": "x"},
    "hash": {"#tag": "x", "#": 1},
    "chroma's own": {"chroma:document": "x", "chroma": "y"},
    "no key": {"": "x"},
    "mixed list": {"mixed": [1, "a", 2.5, None], "empty": [], "lists": [[1], [2]]},
    "nested": {"deep": deep(90), "none": None},
    "wide numbers": {"big": 2**80, "small": -(2**70), "infinite": 1e400},
    "our JSON, broken": {"_nested": "notjson"},
    "our JSON": {"_nested": '{"team": "injected", "start_index": 7}'},
    "our JSON, no text": {"_nested": 7},
    "our identity": {"_source_id": "good1"},
    "our numbers": {"_rag_splitters_entry": 3, "_row_id": "good1"},
    "anybody's exclusions": {"_excluded": "from the audit"},
    "our record": {
        "document_metadata": {}, "digest": "x", "parents": ["p"], "children": ["c"],
        "child_keys": [], "is_whole": False,
    },
    "our row": {"metadata": {"team": "injected"}, "id": "good2"},
    "our results": {"matches": "notjson", "score": "high"},
    "our links": {"parent_id": "good1", "doc_id": "good1"},
    "our positions": {"start_index": "a", "end_index": [], "chunk_index": {}},
    "our pages": {"page_start": "a", "page_end": None, "headings": 5, "title": ["a"]},
    "surrogates": {"\ud800": "\udfff", "list\ud800": ["\ud800"]},
}  # fmt: skip
REFUSED: dict[str, tuple[dict[Any, Any], str]] = {
    "integer key": ({"sizes": {1: "small"}}, r"metadata\['sizes'\] has the key 1 \(int\)"),
    "too deep": ({"deep": deep(5000)}, r"metadata\['deep'\] is nested more than 100 levels"),
    "array": ({"vector": np.zeros(3)}, r"metadata\['vector'\] is of type numpy.ndarray"),
    "set": ({"list": [{1, 2}]}, r"metadata\['list'\]\[0\] is of type set"),
}
SEARCHED: tuple[dict[str, Any], ...] = (
    {},
    {"search_type": "hybrid", "smoothing": 0.6, "headings": True},
)


def test_a_vector_store_gets_no_more_metadata_than_it_can_bear() -> None:
    texts = {f"key{n}": "x" * 996 for n in range(20)}
    assert flatten_metadata(texts, texts).keys() == set(list(texts)[:10])
    lists = {"a": list(range(150)), "b": list(range(60)), "c": list(range(50))}
    assert flatten_metadata(lists, lists).keys() == {"a", "c"}


@pytest.mark.parametrize(
    "front",
    [FRONT_ENDS[0], pytest.param(FRONT_ENDS[3], marks=pytest.mark.slow)],
    ids=["langchain", "llama_index"],
)
@pytest.mark.parametrize("metadata", STORABLE.values(), ids=list(STORABLE))
def test_any_metadata_is_kept_whole_and_harms_no_other_document(
    metadata: dict[str, Any], front: FrontEnd, tmp_path: Path
) -> None:
    bad: Page = ("bad", BAD_TEXT, metadata)
    options = {"path": tmp_path, **SEARCHED[len(metadata) % 2]}
    with closing(front.build([*GOOD[:2], bad, *GOOD[2:]], **options)) as retriever:
        (document,) = front.do(retriever, "get", ["bad"])
        assert document.metadata == metadata
        assert front.do(retriever, "verify").is_sound
        results = front.find(retriever, sentence(93))
        assert "n93." in results[0].text
        own = {"start_index", "end_index", "chunk_index", "score", "matches", "parent_id"}
        own |= {"page_start", "page_end", "headings", "_source_id"}
        for result in results:
            if "n9" in result.text:
                expected = {k: v for k, v in metadata.items() if k not in own}
                assert {k: v for k, v in result.metadata.items() if k in expected} == expected
            assert isinstance(result.start, int)
            assert all(isinstance(match["start_index"], int) for match in result.matches)
        for retrieve in ("children", "passages"):
            varied = front.varied(retriever, retrieve=retrieve)
            assert "n93." in front.find(varied, sentence(93))[0].text
        filtered = front.varied(retriever, where={"team": "red"})
        assert "n11." in front.find(filtered, sentence(11))[0].text
        assert all("n9" not in result.text for result in front.find(filtered, sentence(93)))
        assert front.do(retriever, "sync", front.documents(GOOD)).deleted == ["bad"]
        assert front.do(retriever, "verify").is_sound


@pytest.mark.parametrize(("metadata", "message"), REFUSED.values(), ids=list(REFUSED))
@every_front_end
def test_what_cannot_be_stored_is_refused_and_the_others_are_added(
    metadata: dict[Any, Any], message: str, front: FrontEnd, tmp_path: Path
) -> None:
    old: Page = ("bad", BAD_TEXT, {"team": "blue"})
    with closing(front.build([old], path=tmp_path, search_type="hybrid")) as retriever:
        before = state(front, retriever)
        documents = front.documents([*GOOD[:2], ("bad", "Anything else.", {}), *GOOD[2:]])
        documents[2].metadata = metadata
        with pytest.raises(RefusedDocumentsError, match=f"document 'bad': {message}") as caught:
            front.do(retriever, "add_documents", documents)
        assert caught.value.result == [name for name, _, _ in GOOD]
        after = state(front, retriever)
        assert before[1].items() <= after[1].items(), "of the refused document nothing is written"
        assert before[0].items() <= after[0].items()
        assert "n11." in front.find(retriever, sentence(11))[0].text
        with pytest.raises(RefusedDocumentsError, match="bad") as caught:
            front.do(retriever, "sync", documents[1:])
        assert caught.value.result.deleted == ["good0"], "what was there under its id stays"
        assert "n93." in front.find(retriever, sentence(93))[0].text
        assert front.do(retriever, "verify").is_sound


def test_a_document_without_id_is_refused_by_number_and_text() -> None:
    documents = [
        Document(page_content="Good words."),
        Document(page_content="Bad words.", metadata={1: 2}),
    ]
    retriever = parent_document_retriever()
    with pytest.raises(RefusedDocumentsError, match=r"document number 1 \('Bad words\.'\)"):
        retriever.add_documents(documents)
    assert [each.page_content for each in retriever.invoke("words")] == ["Good words."]


def test_a_store_in_memory_keeps_any_value() -> None:
    array, kind = np.arange(3), {"a": {1, 2}, "b": object}
    document = Document(page_content="Some words.", metadata={"array": array, **kind}, id="a")
    retriever = parent_document_retriever([document])
    assert retriever.get(["a"])[0].metadata["array"] is not None
    for retrieve in ("parents", "children"):
        (result,) = retriever.model_copy(update={"retrieve": retrieve}).invoke("words")
        assert (result.metadata["array"] == array).all()
        assert {key: result.metadata[key] for key in kind} == kind


@every_front_end
def test_repair_goes_on_after_a_document_that_fails(front: FrontEnd, tmp_path: Path) -> None:
    with closing(front.build(GOOD, path=tmp_path, smoothing=0.6)) as retriever:
        whole = state(front, retriever)
        collection = front.collection(retriever)
        collection.delete(ids=collection.get()["ids"])
        embed, word = retriever_model(front, retriever), "n21."

        def failing(texts: list[str]) -> Any:
            if any(word in text for text in texts):
                raise ValueError(f"no vector for {word}")
            return embed(texts)

        set_model(front, retriever, failing)
        report = front.do(retriever, "verify", repair=True)
        assert sorted(report.without_children) == [name for name, _, _ in GOOD]
        assert list(report.failed) == ["good2"]
        assert "no vector for n21." in report.failed["good2"]
        left = front.do(retriever, "verify")
        assert (left.unfinished, left.without_children) == ([], ["good2"])
        word = "none"
        assert front.do(retriever, "verify", repair=True).failed == {}
        assert front.do(retriever, "verify").is_sound
        healed = state(front, retriever)
        assert healed[1].keys() == whole[1].keys()
        check_children(healed[0], whole[0])


def retriever_model(front: FrontEnd, retriever: Any) -> Any:
    if front.framework == "langchain":
        return retriever.vectorstore.embeddings.embed_documents
    return retriever.embed_model.embed_documents


def set_model(front: FrontEnd, retriever: Any, embed: Any) -> None:
    from rag_splitters.models import Embedder

    if front.framework == "langchain":
        retriever.vectorstore._embedding_function = Embedder(embed)
    else:
        retriever.embed_model = Embedder(embed)
