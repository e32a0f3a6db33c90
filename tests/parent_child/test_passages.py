"""Passages, the same text once, budgets: both front ends, with and without waiting."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.stores import InMemoryByteStore
from langchain_text_splitters import CharacterTextSplitter

from rag_splitters import langchain, llama_index
from rag_splitters.langchain import parent_document_retriever
from rag_splitters.parent_child.budget import count_tokens, fit_results
from rag_splitters.parent_child.passages import find_passages
from rag_splitters.parent_child.records import SOURCE_KEY, Entry
from rag_splitters.parent_child.results import build_passages, read_matches
from rag_splitters.parent_child.stores import Match, Stores
from tests.support.front_ends import FRONT_ENDS, FrontEnd, every_front_end, sentence

TEXTS = {f"d{d}": " ".join(sentence(30 * d + n) for n in range(30)) for d in range(4)}
DOCUMENTS = [(name, text, {"source": name}) for name, text in TEXTS.items()]

PARENTS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60), st.integers(5, 60)))
CHILDREN = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 50), st.integers(1, 25), st.floats(0, 1)),
    max_size=25,
)
TEXT = "ab cd   efgh\n\nij kl mnop qrs  tu vwx yz " * 3


@given(PARENTS, CHILDREN, st.integers(1, 6), st.integers(1, 60), st.floats(0, 1), st.booleans())
def test_passages_are_the_best_children_with_their_good_neighbours(
    made_parents: list[tuple[str, int, int]],
    made_children: list[tuple[int, int, int, float]],
    k: int,
    size: int,
    threshold: float,
    is_rewritten: bool,
) -> None:
    parents: dict[str, Entry] = {}
    for number, (name, start, length) in enumerate(made_parents):
        end = min(start + length, len(TEXT))
        positions = {} if is_rewritten else {"start_index": start, "end_index": end}
        parents[f"{number}"] = Entry(TEXT[start:end], {"doc": name, **positions}, f"{number}")
    found = []
    for number, (of, start, length, score) in enumerate(made_children):
        if not parents:
            continue
        parent = parents[f"{of % len(parents)}"]
        text = parent.text[start : start + length]
        if not text.strip():
            continue
        end = start + len(text)
        base = parent.metadata.get("start_index", 0)
        names = ("_start", "_end") if is_rewritten else ("start_index", "end_index")
        places = dict(zip(names, (base + start, base + end), strict=True))
        source = parent.metadata["doc"]
        metadata = {"parent_id": parent.id, SOURCE_KEY: source, **places, "child": number}
        found.append(Match(Entry(text, metadata, f"{number}"), score))
    found.sort(key=lambda match: -(match.score or 0))
    worst = found[-1].score if found else None
    passages = find_passages(found, parents, "parent_id", k, worst, size, threshold)
    texts = {match.child.text for match in found}
    assert bool(found) <= len(passages) <= min(k, len(texts))
    stores: Any = Stores(None, None, None, "parent_id")  # type: ignore[arg-type]
    results = build_passages(stores, passages, parents)
    scores = [result.metadata["score"] for result in results]
    assert scores == sorted(scores, reverse=True)
    assert len({result.id for result in results}) == len(results)
    taken: set[tuple[Any, int]] = set()
    for passage, result in zip(passages, results, strict=True):
        parent = parents[result.metadata["parent_id"]]
        base = parent.metadata.get("start_index", 0)
        assert result.text == parent.text[passage.start - base : passage.end - base] != ""
        space = result.metadata["doc"] if not is_rewritten else parent.id
        own = {(space, at) for at in range(passage.start, passage.end)}
        assert not own & taken, "no two passages share text"
        taken |= own
        best = passage.children[0]
        assert best.match.score == result.metadata["score"]
        for each in passage.children[1:]:
            good = threshold * (best.match.score - worst)
            is_grown = each.match.score - worst >= good - 1e-9 or len(result.text) <= size
            is_known = each.match.child.text in texts or not passage.holds(each)
            assert is_grown or is_known
        if len(result.text) > max(size, len(best.match.child.text)):
            assert len(passage.children) > 1, "only what was found makes a passage longer"
    if len(passages) < k:
        seen = {each.match.child.metadata["child"] for p in passages for each in p.children}
        assert seen == {match.child.metadata["child"] for match in found}, "nothing is lost"


@every_front_end
@pytest.mark.parametrize("kind", ["similarity", "similarity_score_threshold", "mmr", "hybrid"])
def test_a_passage_has_what_surrounds_the_best_child(front: FrontEnd, kind: str) -> None:
    retriever = front.build(
        DOCUMENTS, retrieve="passages", search_type=kind, passage_size=140, parent_size=400
    )
    results = front.find(front.varied(retriever, k=4), sentence(47))
    assert sentence(47) in results[0].text
    assert len(results[0].text) > len(sentence(47))
    for result in results:
        assert result.text == TEXTS[result.metadata["source"]][result.start : result.end]
        (parent,) = front.do(retriever, "get", [result.metadata["parent_id"]])
        content = parent.page_content if front.framework == "langchain" else parent.text
        assert result.text in content
        assert result.matches[0]["score"] == result.score
    for name in TEXTS:
        own = sorted((r.start, r.end) for r in results if r.metadata["source"] == name)
        assert all(end <= start for (_, end), (start, _) in pairwise(own))
    one = front.find(front.varied(retriever, k=1), sentence(47))
    assert one == results[:1]
    alone = front.varied(retriever, passage_size=1, passage_threshold=1.0, k=1)
    assert front.find(alone, sentence(47))[0].text == sentence(47)


@every_front_end
def test_a_passage_tells_its_headings_and_pages(front: FrontEnd) -> None:
    text = f"# Animals\n\n{sentence(1)}\n\n## Whales\n\n{sentence(2)}\f{sentence(3)}"
    metadata = {"source": "a.md", "page_start": 1, "page_end": 2}
    retriever = front.build([("d", text, metadata)], retrieve="passages", headings=True, k=1)
    (result,) = front.find(retriever, sentence(3))
    assert result.metadata["headings"] == ["Animals", "Whales"]
    assert result.text == text[result.start : result.end]


def test_a_passage_of_a_rewritten_parent_is_a_slice_of_it() -> None:
    page = f"<html><body><p>{' '.join(sentence(n) for n in range(30))}</p></body></html>"
    retriever = parent_document_retriever(
        [Document(page_content=page, metadata={"source": "a.html"}, id="a")],
        parent_splitter=langchain.ContentAwareTextSplitter(
            chunk_size=500, length_function="characters"
        ),
        child_splitter=langchain.SentenceTextSplitter(chunk_size=60, length_function="characters"),
        k=3,
        passage_size=100,
    )
    for result in retriever.invoke(sentence(7)):
        (parent,) = retriever.get([result.metadata["parent_id"]])
        assert result.page_content in parent.page_content
        assert len(result.page_content) < len(parent.page_content)
        assert result.metadata["start_index"] == parent.metadata["start_index"]


def test_children_of_other_splitters_give_their_whole_parent() -> None:
    stock = CharacterTextSplitter(separator=". ", chunk_size=40, chunk_overlap=0)
    retriever = FRONT_ENDS[0].build(
        DOCUMENTS[:1], child_splitter=stock, retrieve="passages", parent_size=150, k=50
    )
    results = FRONT_ENDS[0].find(retriever, sentence(3))
    assert "".join(TEXTS["d0"].split()) == "".join(
        "".join(sorted_text.split())
        for sorted_text in [r.text for r in sorted(results, key=lambda r: r.start or 0)]
    )


# The same text once


@every_front_end
@pytest.mark.parametrize("kind", ["similarity", "mmr", "hybrid"])
@pytest.mark.parametrize("retrieve", ["passages", "parents", "children"])
def test_the_same_text_is_returned_once(front: FrontEnd, kind: str, retrieve: str) -> None:
    copies = [(f"copy {n}", TEXTS["d1"], {"source": f"copy {n}"}) for n in range(12)]
    retriever = front.build(
        [*DOCUMENTS, *copies], retrieve=retrieve, search_type=kind, parent_size=100, k=6
    )
    results = front.find(retriever, sentence(35))
    assert len(results) == len({result.text for result in results}) == 6
    assert sentence(35) in results[0].text
    elsewhere = [match for match in results[0].matches if "parent_id" in match]
    assert elsewhere
    if kind != "mmr":
        assert len(elsewhere) == 12
    for match in elsewhere:
        (parent,) = front.do(retriever, "get", [match["parent_id"]])
        content = parent.page_content if front.framework == "langchain" else parent.text
        assert sentence(35) in content


# A budget


@every_front_end
@pytest.mark.parametrize("retrieve", ["passages", "parents", "children"])
def test_a_budget_of_tokens_is_kept(front: FrontEnd, retrieve: str) -> None:
    retriever = front.build(DOCUMENTS, retrieve=retrieve, search_type="hybrid")
    for budget in (1, 30, 100, 333, 10**6):
        results = front.find(front.varied(retriever, max_tokens=budget), sentence(47))
        total = sum(count_tokens(result.text) for result in results)
        assert results
        assert total <= budget or len(results) == 1
        assert total > budget - 60 or budget == 10**6
        for result in results:
            assert result.text == TEXTS[result.metadata["source"]][result.start : result.end]
            assert result.text.startswith("The ")
            assert result.text.endswith(".")
        assert len({result.id for result in results}) == len(results)
        if budget >= 30:
            assert sentence(47) in results[0].text
    few = front.find(front.varied(retriever, max_tokens=10**6, k=2), sentence(47))
    assert len(few) == 2


def test_a_budget_is_passed_with_the_question() -> None:
    retriever = FRONT_ENDS[0].build(DOCUMENTS, retrieve="passages", search_type="hybrid")
    results = retriever.invoke(sentence(47), max_tokens=100)
    assert 40 < sum(count_tokens(result.page_content) for result in results) <= 100
    with pytest.raises(ValueError, match="max_tokens must be a whole number of at least 1, got 0"):
        retriever.invoke(sentence(47), max_tokens=0)


@given(
    st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=8), min_size=1, max_size=6),
    st.integers(1, 400),
)
def test_what_is_fitted_is_whole_sentences_of_the_best(made: list[list[int]], budget: int) -> None:
    entries = [
        Entry(" ".join(sentence(n) for n in numbers), {}, f"{at}")
        for at, numbers in enumerate(made)
    ]
    fitted = fit_results(entries, budget)
    assert fitted
    assert len(fitted) == 1 or sum(count_tokens(entry.text) for entry in fitted) <= budget
    whole = {entry.text for entry in entries}
    all_sentences = {sentence(n) for n in range(41)}
    for entry in fitted:
        if entry.text not in whole:
            assert {f"{part}." for part in entry.text[:-1].split(". ")} <= all_sentences
    if count_tokens(entries[0].text) <= budget:
        assert fitted[0] is entries[0]


@every_front_end
def test_a_budget_comes_after_the_reranker(front: FrontEnd) -> None:
    def by_length(question: str, texts: list[str]) -> list[float]:
        return [len(text) for text in texts]

    retriever = front.build(DOCUMENTS, retrieve="passages", reranker=by_length, k=50)
    order = front.find(retriever, sentence(47))
    assert [len(r.text) for r in order] == sorted((len(r.text) for r in order), reverse=True)
    results = front.find(front.varied(retriever, max_tokens=120), sentence(47))
    assert results[0] == order[0]
    assert sum(count_tokens(result.text) for result in results) <= 120
    assert read_matches(results[0].metadata)


# What the factories choose


def test_factories_return_passages_unless_the_index_is_langchain_classic_s() -> None:
    assert parent_document_retriever().retrieve == "passages"
    assert parent_document_retriever(id_key="doc_id").retrieve == "parents"
    assert parent_document_retriever(id_key="doc_id", retrieve="passages").retrieve == "passages"
    assert parent_document_retriever(byte_store=InMemoryByteStore()).retrieve == "parents"
    assert llama_index.parent_document_retriever().retrieve_kind == "passages"
    assert llama_index.parent_document_retriever(id_key="doc_id").retrieve_kind == "parents"


# Scripts without spaces


@every_front_end
@pytest.mark.parametrize(
    ("question", "wanted", "others"),
    [
        ("茶", "他每天早上喝绿茶。", ["我们去看海。", "山上很冷。"]),
        ("茶", "喝茶要慢。", ["我们去看海。", "山上很冷。"]),
        ("猫", "庭に猫がいます。", ["犬は走ります。", "海が見えます。"]),
        ("ｺ", "コが見えます。", ["犬は走ります。", "海が見えます。"]),
        ("ก", "เขาเห็นไก่", ["ฝนตหนัร้อน", "เรือลำใหม่"]),
        ("물", "차가운 물", ["바다가 보인다.", "산이 높다."]),
    ],
)
def test_a_question_of_one_character_finds_it(
    front: FrontEnd, question: str, wanted: str, others: list[str]
) -> None:
    texts = [*others, wanted]
    documents = [(f"{n}", text, {"source": f"{n}"}) for n, text in enumerate(texts)]
    retriever = front.build(documents, search_type="hybrid", retrieve="passages", k=1)
    assert [result.text for result in front.find(retriever, question)] == [wanted]
    assert front.find(retriever, question)[0].score == pytest.approx(1.0)
