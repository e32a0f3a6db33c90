"""Passages, the same text once, budgets: both front ends, with and without waiting."""

from __future__ import annotations

import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.stores import InMemoryByteStore
from langchain_text_splitters import CharacterTextSplitter

from rag_splitters import langchain, llama_index
from rag_splitters.langchain import parent_document_retriever
from rag_splitters.parent_child.budget import Budget, count_tokens, fit_results
from rag_splitters.parent_child.options import Retrieve
from rag_splitters.parent_child.passages import Hit, PassageBuilder, split_at_parents
from rag_splitters.parent_child.ranking import Ranking
from rag_splitters.parent_child.records import SOURCE_KEY, Entry
from rag_splitters.parent_child.results import read_matches
from rag_splitters.text.origin import line_range
from tests.support.front_ends import FRONT_ENDS, FrontEnd, every_front_end, in_turn, sentence

TEXTS = {f"d{d}": " ".join(sentence(30 * d + n) for n in range(30)) for d in range(4)}
DOCUMENTS = [(name, text, {"source": name}) for name, text in TEXTS.items()]

TEXT = "ab cd   efgh\n\nij kl mnop qrs  tu vwx yz " * 3
PARENTS = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 60), st.integers(5, 60)), min_size=1
)
CHILDREN = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 50), st.integers(1, 25), st.booleans()), max_size=25
)


@given(PARENTS, CHILDREN, st.integers(1, 6), st.integers(1, 90), st.booleans())
def test_passages_are_joined_of_children_that_touch(
    parent_places: list[tuple[str, int, int]],
    child_places: list[tuple[int, int, int, bool]],
    most: int,
    room: int,
    is_rewritten: bool,
) -> None:
    parents: dict[str, Entry] = {}
    for number, (name, start, length) in enumerate(parent_places):
        end = min(start + length, len(TEXT))
        positions = {} if is_rewritten else {"start_index": start, "end_index": end}
        parents[f"{number}"] = Entry(TEXT[start:end], {"doc": name, **positions}, f"{number}")
    builder, any_ranked = PassageBuilder(Budget(room, most, len)), False
    for rank, (of, start, length, is_ranked) in enumerate(child_places):
        parent = parents[f"{of % len(parents)}"]
        text = parent.text[start : start + length]
        if not text.strip():
            continue
        base = parent.metadata.get("start_index", 0)
        keys = ("_start", "_end") if is_rewritten else ("start_index", "end_index")
        places = dict(zip(keys, (base + start, base + start + len(text)), strict=True))
        metadata = {"parent_id": parent.id, SOURCE_KEY: parent.metadata["doc"], **places}
        scores: dict[str, float | None] = {f"{n}": 1.0 / (1 + n) for n in range(rank + is_ranked)}
        ranking = Ranking.of(scores, {}, is_complete=True)
        builder.add(Hit.of(Entry(text, metadata, f"{rank}"), ranking, parent, "parent_id"))
        any_ranked |= is_ranked
    passages = builder.passages()
    taken = [hit for passage in passages for hit in passage.children]
    assert bool(passages) == any_ranked
    assert len(passages) <= most
    best = [passage.matches[0].rank or 0 for passage in passages]
    assert best == sorted(best)
    places_taken: set[tuple[tuple[str, str], int]] = set()
    for passage in passages:
        own = {(passage.children[0].space, at) for at in range(passage.start, passage.end)}
        assert own, "no passage is empty"
        assert not own & places_taken, "no two passages share text"
        places_taken |= own
        for part in split_at_parents(passage):
            ends = [(max(hit.start, passage.start), hit.end) for hit in part.children]
            assert part.start == min(start for start, _ in ends)
            assert part.end == min(passage.end, max(end for _, end in ends))
    assert len(places_taken) <= max(room, len(passages) == 1 and len(places_taken))
    if not builder.is_full:
        for child in taken:
            own = {(child.space, at) for at in range(child.start, child.end)}
            assert own <= places_taken, "what was taken is there"


@in_turn("kind", ["similarity", "similarity_score_threshold", "hybrid", "mmr"])
def test_a_passage_has_what_surrounds_the_best_child(front: FrontEnd, kind: str) -> None:
    retriever = front.build(DOCUMENTS, retrieve="passages", search_type=kind, parent_size=400)
    results = front.find(front.varied(retriever, k=2), sentence(47))
    assert sentence(47) in results[0].text
    assert kind == "mmr" or len(results[0].text) > len(sentence(47))
    total = sum(len(result.text) for result in results)
    assert total <= 1000
    assert kind == "mmr" or total > 300
    for result in results:
        assert result.text == TEXTS[result.metadata["source"]][result.start : result.end]
        assert result.matches[0]["score"] == result.score
    for name in TEXTS:
        own = sorted((r.start, r.end) for r in results if r.metadata["source"] == name)
        assert all(end <= start for (_, end), (start, _) in pairwise(own))
    few = front.find(front.varied(retriever, max_tokens=14), sentence(47))
    assert [result.text for result in few] == [sentence(47)]


@every_front_end
@pytest.mark.parametrize("kind", ["similarity", "hybrid"])
def test_a_passage_that_spans_parents_names_them_all(front: FrontEnd, kind: str) -> None:
    text = "\n\n\n".join(sentence(n) for n in range(40))
    retriever = front.build(
        [("d", text, {"source": "d"})], retrieve="passages", search_type=kind, parent_size=70, k=1
    )
    (result,) = front.find(retriever, sentence(20))
    assert result.text == text[result.start : result.end]
    assert result.metadata["parent_id"] in result.metadata["parent_ids"]
    parents = front.do(retriever, "get", result.metadata["parent_ids"])
    contents = [p.page_content if front.framework == "langchain" else p.text for p in parents]
    assert len(contents) > 2
    assert "".join(result.text.split()) in "".join("".join(contents).split())


@every_front_end
def test_neighbours_that_the_filter_leaves_out_are_not_returned(front: FrontEnd) -> None:
    pages = [f"{' '.join(sentence(20 * page + n) for n in range(20))}" for page in range(3)]
    documents = [(f"d{n}", text, {"page": n}) for n, text in enumerate(pages)]
    for kind in ("similarity", "hybrid"):
        retriever = front.build(
            documents, retrieve="passages", search_type=kind, where={"page": 1}, k=50
        )
        results = front.find(retriever, sentence(20))
        assert {result.metadata["page"] for result in results} == {1}


@every_front_end
def test_the_neighbours_of_a_copy_lend_nothing(front: FrontEnd) -> None:
    notice = "This notice stands in every document."
    documents = [
        (f"d{d}", " ".join([notice, *(sentence(9 * d + n) for n in range(9))]), {})
        for d in range(20)
    ]
    retriever = front.build(documents, retrieve="passages", search_type="hybrid", k=2)
    results = front.find(retriever, notice)
    assert sum(notice in result.text for result in results) == 1
    assert len([match for match in results[0].matches if "parent_id" in match]) >= 19


@pytest.mark.parametrize(("size", "k"), [(200, 4), (800, 4), (800, 1)])
def test_the_k_best_children_always_fit(size: int, k: int) -> None:
    front = FRONT_ENDS[0]
    retriever = front.build(
        DOCUMENTS, retrieve="passages", search_type="hybrid", child_size=size, parent_size=2000
    )
    results = front.find(front.varied(retriever, k=k), sentence(47))
    children = front.find(front.varied(retriever, k=k, retrieve="children"), sentence(47))
    budget = max(500 * k, sum(len(child.text) for child in children))
    assert budget - size <= sum(len(result.text) for result in results) <= budget


def test_a_passage_stands_where_its_own_child_does_if_a_copy_matches_better() -> None:
    ranking = Ranking.of({"b": 0.9, "a": 0.8}, {}, is_complete=True)
    builder = PassageBuilder(Budget(100, 4, len))
    for name in "ab":
        metadata = {"parent_id": name, SOURCE_KEY: name, "start_index": 0, "end_index": 4}
        parent = Entry("Tea.", {"start_index": 0, "end_index": 4}, name)
        builder.add(Hit.of(Entry("Tea.", metadata, name), ranking, parent, "parent_id"))
    (passage,) = builder.passages()
    assert [hit.id for hit in passage.matches] == ["b", "a"]
    assert passage.best.id == "a"


@every_front_end
def test_a_passage_tells_its_headings_and_pages(front: FrontEnd) -> None:
    text = f"# Animals\n\n{sentence(1)}\n\n## Whales\n\n{sentence(2)}\f{sentence(3)}"
    metadata = {"source": "a.md", "page_start": 1, "page_end": 2}
    retriever = front.build([("d", text, metadata)], retrieve="passages", headings=True, k=1)
    (result,) = front.find(retriever, sentence(3))
    assert result.metadata["headings"] == ["Animals", "Whales"]
    assert result.text == text[result.start : result.end]


@pytest.mark.parametrize("retrieve", ["passages", "children"])
def test_a_result_from_a_rewritten_parent_is_a_slice_of_it(retrieve: Retrieve) -> None:
    page = f"<html><body><p>{' '.join(sentence(n) for n in range(30))}</p></body></html>"
    retriever = parent_document_retriever(
        [Document(page_content=page, metadata={"source": "a.html"}, id="a")],
        parent_splitter=langchain.ContentAwareTextSplitter(
            chunk_size=500, length_function="characters"
        ),
        child_splitter=langchain.SentenceTextSplitter(chunk_size=60, length_function="characters"),
        max_tokens=60,
        retrieve=retrieve,
    )
    for result in retriever.invoke(sentence(7)):
        (parent,) = retriever.get([result.metadata["parent_id"]])
        assert result.page_content in parent.page_content
        assert len(result.page_content) < len(parent.page_content)
        for key in ("start_index", "end_index"):
            assert result.metadata[key] == parent.metadata[key]


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


@every_front_end
def test_a_passage_inside_a_table_begins_with_its_header(front: FrontEnd) -> None:
    header = "| Grade | Salary |\n| --- | --- |\n"
    rows = "\n".join(f"| G{n} | {21 + n},000 in the year that {n} precedes |" for n in range(1, 31))
    text = f"# Pay\n\nWhat every grade earns.\n\n{header}{rows}\n\nAsk the office."
    if front.framework == "langchain":
        options = {"child_splitter": langchain.ContentAwareTextSplitter(chunk_size=100)}
    else:
        options = {"child_parser": llama_index.ContentAwareNodeParser(chunk_size=100)}
    retriever = front.build(
        [("d", text, {"source": "d.md"})],
        retrieve="passages",
        search_type="hybrid",
        parent_size=2000,
        **options,
    )
    for budget in (100, 200, 400):
        best = front.find(front.varied(retriever, max_tokens=budget), "grade G17")[0]
        assert count_tokens(best.text) <= budget
        assert best.text.startswith(header)
        assert "| G17 | 38,000" in best.text
        assert best.metadata["table_header"] == header
        assert best.text == header + text[best.start : best.end]
    everything = front.find(front.varied(retriever, max_tokens=10_000), "grade G17")
    assert not any("table_header" in result.metadata for result in everything)


# The same text once


@pytest.mark.slow
@in_turn(
    "kind, retrieve",
    [
        ("similarity", "passages"),
        ("mmr", "parents"),
        ("hybrid", "children"),
        ("hybrid", "passages"),
    ],
)
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
        assert len(elsewhere) >= 12
    for match in elsewhere:
        (parent,) = front.do(retriever, "get", [match["parent_id"]])
        content = parent.page_content if front.framework == "langchain" else parent.text
        assert TEXTS["d1"][match["start_index"] : match["end_index"]] in content


@in_turn("retrieve", ["passages", "parents", "children"])
def test_the_users_keys_stay_theirs(front: FrontEnd, retrieve: str) -> None:
    users = {"score": "A+", "matches": ["Chelsea 2:1"], "parent_id": 7}
    users |= {"_score": 1, "_matches": "theirs"}
    pages = [(name, text, dict(users)) for name, text, _ in DOCUMENTS]
    retriever = front.build(pages, retrieve=retrieve, reranker=shortest_first)
    plain = front.build(DOCUMENTS, retrieve=retrieve, reranker=shortest_first)
    method = "invoke" if front.framework == "langchain" else "retrieve"
    results = front.do(retriever, method, sentence(35))
    others = front.do(plain, method, sentence(35))
    assert len(results) == len(others) > 1
    for result, other in zip(results, others, strict=True):
        one, two = (getattr(each, "node", each) for each in (result, other))
        assert users.items() <= one.metadata.items()
        assert result.score == other.score
        assert one.matches == two.matches
        assert one.metadata.get("_parent_id") == two.metadata.get("parent_id")


def shortest_first(question: str, texts: list[str]) -> list[float]:
    return [-float(len(text)) for text in texts]


# A budget


@in_turn("retrieve", ["passages", "parents", "children"])
def test_a_budget_of_tokens_is_kept(front: FrontEnd, retrieve: str) -> None:
    retriever = front.build(DOCUMENTS, retrieve=retrieve, search_type="hybrid")
    for budget in (1, 30, 100, 333, sys.maxsize):
        results = front.find(front.varied(retriever, max_tokens=budget), sentence(47))
        total = sum(count_tokens(result.text) for result in results)
        assert results
        assert total <= budget or len(results) == 1
        assert total > budget - 60 or budget == sys.maxsize
        for result in results:
            assert result.text == TEXTS[result.metadata["source"]][result.start : result.end]
            assert result.text.startswith("The ")
            assert result.text.endswith(".")
        assert len({result.id for result in results}) == len(results)
        if budget >= 30:
            assert sentence(47) in results[0].text
    few = front.find(front.varied(retriever, max_tokens=10**6, k=2), sentence(47))
    assert len(few) == 2


@every_front_end
def test_a_shortened_result_has_its_own_lines(front: FrontEnd) -> None:
    text = "\n".join(map(sentence, range(6)))
    for metadata, lines in ((line_range(text, 10), (13, 13)), ({"line_start": "x"}, ("x", None))):
        retriever = front.build([("log", text, metadata)], retrieve="parents")
        (result,) = front.find(front.varied(retriever, max_tokens=14), sentence(3))
        assert result.text == sentence(3)
        found = result.metadata
        assert (found.get("line_start"), found.get("line_end")) == lines


@in_turn("retrieve", ["passages", "parents"])
def test_a_shortened_result_has_its_own_pages_and_lines(front: FrontEnd, retrieve: str) -> None:
    text = "\f\n".join(map(sentence, range(8)))
    places = {**line_range(text), "page_start": 1, "page_end": 8}
    retriever = front.build([("d", text, places)], retrieve=retrieve, child_size=150)
    for budget in (15, 30, 45, 60):
        for result in front.find(front.varied(retriever, max_tokens=budget), sentence(0)):
            assert result.text == text[result.start : result.end]
            for key, mark in (("page", "\f"), ("line", "\n")):
                first, last = result.metadata[f"{key}_start"], result.metadata[f"{key}_end"]
                assert first == 1 + text[: result.start].count(mark)
                assert last == first + result.text.count(mark)


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

    retriever = front.build(DOCUMENTS, retrieve="passages", reranker=by_length)
    results = front.find(front.varied(retriever, max_tokens=120), sentence(47))
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


@in_turn(
    "question, wanted, others",
    [
        ("茶", "他每天早上喝绿茶。", ["我们去看海。", "山上很冷。"]),
        ("茶", "喝茶要慢。", ["我们去看海。", "山上很冷。"]),
        ("猫", "庭に猫がいます。", ["犬は走ります。", "海が見えます。"]),
        ("ｺ", "コが見えます。", ["犬は走ります。", "海が見えます。"]),
        ("ก", "เขาเห็นไก่", ["ฝนตหนัร้อน", "เรือลำใหม่"]),
        ("물", "차가운 물", ["바다가 보인다.", "산이 높다."]),
        ("東京", "東京都は日本の首都です。", ["大阪は大きい。"]),
        ("STRASSE", "Die Straße ist leer.", ["Das Meer ist blau."]),
    ],
)
def test_a_question_of_one_character_or_word_finds_it(
    front: FrontEnd, question: str, wanted: str, others: list[str]
) -> None:
    texts = [*others, wanted]
    documents = [(f"{n}", text, {"source": f"{n}"}) for n, text in enumerate(texts)]
    retriever = front.build(documents, search_type="hybrid", retrieve="passages", k=1)
    assert [result.text for result in front.find(retriever, question)] == [wanted]
    assert front.find(retriever, question)[0].score == pytest.approx(1.0)
