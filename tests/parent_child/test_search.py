"""How parent-child retrieval finds and makes results: both front ends, with and without waiting."""

from __future__ import annotations

import asyncio
import math
import random
import sqlite3
import uuid
from collections.abc import Sequence
from contextlib import closing
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, get_args

import chromadb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.vector_stores.chroma import ChromaVectorStore

from rag_splitters import SentenceChunker, langchain, llama_index
from rag_splitters.models import HashingEmbeddings
from rag_splitters.parent_child.keywords import postings
from rag_splitters.parent_child.keywords.index import KeywordIndex
from rag_splitters.parent_child.options import SearchType
from rag_splitters.parent_child.records import Entry
from rag_splitters.reading.samples import SAMPLE_QUESTIONS, sample_texts
from rag_splitters.text.terms import final_characters, text_terms
from tests.support.front_ends import (
    FRONT_ENDS,
    FrontEnd,
    Result,
    every_front_end,
    in_turn,
    sentence,
)

TEXTS = {f"d{d}": " ".join(sentence(20 * d + n) for n in range(20)) for d in range(4)}
DOCUMENTS = [
    (name, text, {"source": name, "parity": "even" if name in "d0 d2" else "odd"})
    for name, text in TEXTS.items()
]
QUESTION = "Amber cedar grove n17"


@lru_cache
def filled(front: FrontEnd) -> Any:
    """One retriever for all tests that do not change it."""
    return front.build(DOCUMENTS)


def rows_of(front: FrontEnd, retriever: Any) -> dict[str, tuple[str, Any, Any]]:
    """Text, vector and metadata of every child."""
    rows = front.collection(retriever).get(include=["documents", "embeddings", "metadatas"])
    made = zip(rows["documents"], np.asarray(rows["embeddings"]), rows["metadatas"], strict=True)
    return dict(zip(rows["ids"], made, strict=True))


def assert_exact(results: Sequence[Result]) -> None:
    for result in results:
        assert result.text == TEXTS[result.metadata["source"]][result.start : result.end]


@pytest.mark.slow
@in_turn("retrieve, kind", product(["passages", "parents", "children"], get_args(SearchType)))
def test_k_counts_results_until_none_are_left(front: FrontEnd, kind: str, retrieve: str) -> None:
    options = {"search_type": kind, "retrieve": retrieve, "search_kwargs": {"score_threshold": -9}}
    retriever = front.varied(filled(front), **options)
    children = rows_of(front, retriever)
    most = {
        "children": len(children),
        "parents": len({m["parent_id"] for *_, m in children.values()}),
    }
    everything = front.find(front.varied(retriever, k=500), QUESTION)
    assert len(everything) == most.get(retrieve, len(everything))
    for k in (1, 3, 10):
        results = front.find(front.varied(retriever, k=k), QUESTION)
        assert len(results) == len({result.id for result in results}) <= k
        assert len(results) == k or retrieve == "passages", "passages join"
        assert_exact(results)
        scores = [result.score for result in results]
        if kind != "mmr":
            assert scores == sorted(scores, reverse=True)
        for result in results:
            assert result.matches[0]["score"] == result.score
            for match in result.matches:
                assert result.start <= match["start_index"] < match["end_index"] <= result.end
    assert_exact(everything)
    seen = {(r.metadata["source"], at) for r in everything for at in range(r.start, r.end)}
    words = {(name, at) for name, text in TEXTS.items() for at, c in enumerate(text) if c != " "}
    assert words <= seen, "with k large enough, everything is found"
    assert front.find(front.varied(retriever, k=3), QUESTION) == everything_again(front, retriever)


@every_front_end
@pytest.mark.parametrize("kind", ["similarity", "mmr", "hybrid"])
def test_children_are_fetched_until_there_are_k_parents(front: FrontEnd, kind: str) -> None:
    """One parent has 120 children that are all nearer than those of the others."""

    def model(texts: list[str]) -> list[list[float]]:
        numbers = [int(text.rpartition(" n")[2].rstrip(".") or 0) for text in texts]
        return [[1.0, number / 1000] for number in numbers]

    large = " ".join(f"Whales swim in sea n{n}." for n in range(120))
    others = [(f"o{n}", f"Another text n{900 + n}.", {}) for n in range(5)]
    retriever = front.build(
        [("large", large, {}), *others], parent_size=None, child_size=30, embeddings=model, k=3
    )
    found = front.find(front.varied(retriever, search_type=kind), "whales swim in which sea n0")
    assert [result.text for result in found][:1] == [large]
    assert len(found) == 3


def everything_again(front: FrontEnd, retriever: Any) -> list[Result]:
    """The same query of the synchronous twin."""
    twin = FrontEnd(front.framework, not front.asynchronous)
    return twin.find(twin.varied(retriever, k=3), QUESTION)


@pytest.mark.slow
@pytest.mark.parametrize("front", FRONT_ENDS[::2], ids=lambda front: front.framework)
@pytest.mark.parametrize("kind", ["similarity", "hybrid"])
def test_equal_scores_are_in_the_order_of_ids(front: FrontEnd, kind: str) -> None:
    ends = list(product(".!?", repeat=5))[:150]  # which score the same, but are different texts
    same = [(f"d{n}", f"The very same words{''.join(end)}", {}) for n, end in enumerate(ends)]
    orders = (same, same[::-1], random.Random(1).sample(same, len(same)))
    found = []
    for documents in orders:
        retriever = front.build(documents, retrieve="children", search_type=kind, k=7)
        ids = [result.id for result in front.find(retriever, "same words")]
        assert ids == sorted(rows_of(front, retriever))[:7]
        found.append(ids)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("balance", [0.0, 0.4, 1.0])
def test_mmr_is_that_of_a_naive_implementation(balance: float) -> None:
    told = {"fetch_k": 30, "lambda_mult": balance}
    options = {"search_type": "mmr", "retrieve": "children", "k": 6, "search_kwargs": told}
    found = [f.find(f.varied(filled(f), **options), QUESTION) for f in FRONT_ENDS]
    assert found[0] == found[1]
    assert found[2] == found[3]
    ids = [result.id for result in found[0]]
    assert [result.id for result in found[2]] == ids
    rows = rows_of(FRONT_ENDS[0], filled(FRONT_ENDS[0]))
    vectors = {name: vector / np.linalg.norm(vector) for name, (_, vector, _) in rows.items()}
    question = np.asarray(HashingEmbeddings().embed_query(QUESTION))
    likeness = {name: float(v @ question) / np.linalg.norm(question) for name, v in vectors.items()}
    nearest = FRONT_ENDS[0].varied(filled(FRONT_ENDS[0]), retrieve="children", k=30)
    pool = [result.id for result in FRONT_ENDS[0].find(nearest, QUESTION)]
    for place, chosen in enumerate(ids):
        worth = {
            name: balance * likeness[name]
            - (1 - balance) * max([float(vectors[name] @ vectors[c]) for c in ids[:place]] or [0])
            for name in pool
            if name not in ids[:place]
        }
        assert worth[chosen] == pytest.approx(max(worth.values()), abs=1e-5)
        assert found[0][place].score == pytest.approx(likeness[chosen], abs=1e-5)


@pytest.fixture(params=["cosine", "l2", "ip"])
def collection(request: pytest.FixtureRequest) -> chromadb.Collection:
    """An empty collection of each space."""
    return chromadb.EphemeralClient().create_collection(
        f"c{uuid.uuid4().hex}",
        embedding_function=None,
        configuration={"hnsw": {"space": request.param}},
    )


def all_children(front: FrontEnd, collection: chromadb.Collection, **options: Any) -> Any:
    """A retriever over this collection that finds all children."""
    store = ChromaVectorStore(chroma_collection=collection)
    options |= {"embeddings": HashingEmbeddings(), "retrieve": "children", "k": 500}
    return front.build(DOCUMENTS, vector_store=store, **options)


@pytest.mark.parametrize("where", [None, {"parity": "odd"}])
def test_children_that_chroma_misses_are_found_too(collection: Any, where: Any) -> None:
    front = FrontEnd("llama_index")
    retriever = all_children(front, collection, where=where)
    everything = front.find(retriever, QUESTION)
    assert len(everything) == (80 if where is None else 40)

    class Forgetful(chromadb.Collection):
        def query(self, **kwargs: Any) -> Any:
            rows = super().query(**kwargs)
            return {k: v and [v[0][2:-9]] for k, v in rows.items() if isinstance(v, list | None)}

    collection.__class__ = Forgetful
    again = front.find(retriever, QUESTION)
    assert sorted(r.id for r in again) == sorted(r.id for r in everything)
    assert [r.score for r in again] == pytest.approx([r.score for r in everything], abs=1e-5)


def test_children_that_are_removed_during_a_query_are_left_out(collection: Any) -> None:
    front = FrontEnd("llama_index")
    retriever = all_children(front, collection)
    everything = [result.id for result in front.find(retriever, QUESTION)]

    class Shrinking(chromadb.Collection):
        def query(self, **kwargs: Any) -> Any:
            rows = super().query(**kwargs)
            return {k: v and [v[0][:-9]] for k, v in rows.items() if isinstance(v, list | None)}

        def get(self, ids: Any = None, include: Any = (), **kwargs: Any) -> Any:
            if "embeddings" in include:  # those that the query missed: another process removed them
                ids = ["gone"]
            return super().get(ids=ids, include=include, **kwargs)

    collection.__class__ = Shrinking
    assert [result.id for result in front.find(retriever, QUESTION)] == everything[:-9]


def test_hybrid_search_with_a_filter_needs_chroma() -> None:
    store = InMemoryVectorStore(HashingEmbeddings())  # type: ignore[arg-type]
    retriever = FRONT_ENDS[0].build(DOCUMENTS, vectorstore=store, search_type="hybrid")
    assert len(FRONT_ENDS[0].find(retriever, QUESTION)) == 4
    with pytest.raises(ValueError, match=r"a filter needs Chroma: .* which children the filter"):
        retriever.invoke(QUESTION, filter=lambda document: True)


def test_chroma_filters_by_text_too() -> None:
    front = FRONT_ENDS[0]
    for kind in ("similarity", "hybrid"):
        told = {"where_document": {"$contains": "n33."}}
        retriever = front.varied(filled(front), search_kwargs=told, search_type=kind)
        (parent,) = front.find(retriever, QUESTION)
        assert [TEXTS["d1"][m["start_index"] : m["end_index"]] for m in parent.matches] == [
            sentence(33)
        ]


# Keywords


def naive_bm25(texts: dict[str, str], question: str) -> dict[str, float]:
    terms = {name: text_terms(text, {}) + final_characters(text) for name, text in texts.items()}
    mean = sum(map(len, terms.values())) / len(terms)
    scores: dict[str, float] = {}
    for word in set(text_terms(question, {})):
        holders = [name for name in terms if word in terms[name]]
        rarity = math.log((len(terms) - len(holders) + 0.5) / (len(holders) + 0.5))
        for name in holders:
            count, length = terms[name].count(word), len(terms[name])
            worth = count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / mean))
            scores[name] = scores.get(name, 0.0) + max(rarity, 1e-6) * worth
    return scores


@given(
    st.lists(
        st.lists(
            st.sampled_from("ash birch cedar delta 東京都 กรุงเทพ e\u0301 \ud800x x1.2 the".split()),
            max_size=8,
        ),
        max_size=12,
    ),
    st.lists(st.sampled_from("ash birch cedar 東京 กรุง the zzz".split()), max_size=4),
    st.integers(0, 3),
)
def test_keyword_scores_are_those_of_a_naive_bm25(
    made: list[list[str]], asked: list[str], rounds: int
) -> None:
    texts = {f"{n:02}": " ".join(words) for n, words in enumerate(made)}
    index = KeywordIndex(None)
    for _ in range(rounds):  # rewritten and removed: counts must follow
        old = {name: [Entry(f"old birch {text}", {}, name)] for name, text in texts.items()}
        index.update(old | {"99": ()})
        index.update({"99": [Entry("ash birch", {}, "99")]} | dict.fromkeys(list(texts)[:2], ()))
    new = {name: [Entry(text, {}, name)] for name, text in texts.items()}
    index.update(new | {"99": ()})
    question = " ".join(asked)
    found, wanted = index.find(question, 100), naive_bm25(texts, question) if texts else {}
    assert found.best == pytest.approx(wanted)
    scores = list(found.best.values())
    assert scores == sorted(scores, reverse=True)
    few = index.find(question, 2, list(texts))
    assert list(few.best.items()) == list(found.best.items())[:2]
    assert few.others == pytest.approx({name: wanted.get(name, 0.0) for name in texts})
    assert bool(wanted) <= (0.0 < found.coverage <= 1.0 + 1e-9)


def test_words_of_neighbours_in_the_document_count_less_the_farther_away_they_are() -> None:
    texts = {name: f"word{name}" for name in "abcdefghij"}
    index = KeywordIndex(None)
    documents = {
        names: [Entry(texts[name], {}, name) for name in names] for names in ("abcdefg", "hi", "j")
    }
    index.update(documents)
    middle = index.find("wordd", 10, with_neighbours=True)
    last = index.find("wordg", 10, with_neighbours=True)
    assert list(index.find("wordd", 10).best) == ["d"]
    assert list(middle.best) == ["d", "c", "e", "b", "f"]
    assert list(last.best) == ["g", "f", "e"], "the next document is no neighbour"
    assert middle.best["d"] > 1.4 * middle.best["c"] > 1.8 * middle.best["b"]
    assert last.coverage == pytest.approx(1.0)
    index.update({"abcdefg": ()})
    assert index.find("wordd", 10).best == {}
    others = index.find("wordh wordj", 10, with_neighbours=True)
    assert set(others.best) == {"h", "i", "j"}


def test_frequent_words_of_neighbours_count_as_much_as_rare_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index = KeywordIndex(None)
    children = [Entry("common" if n % 9 == 4 else "other", {}, f"{n:02}") for n in range(90)]
    index.update({"a": children[:40], "b": children[40:41], "c": children[41:]})
    found = {}
    for sparse in (1, 1000):  # no word is frequent, and every word is
        monkeypatch.setattr(postings, "_SPARSE", sparse)
        found[sparse] = index.find("common", 90, with_neighbours=True)
    assert found[1].best == pytest.approx(found[1000].best)
    assert len(found[1].best) == 10 * 5 - 4, "document b has one child"


def test_words_count_more_beside_hashed_words_than_beside_a_model() -> None:
    texts = ["The harbour is old.", "Harbor lights.", "Nothing at all."]
    documents = [Document(text, id=text) for text in texts]
    scores = []
    for model in (None, HashingEmbeddings().embed_documents):  # a function is a model
        with langchain.parent_document_retriever(
            documents, embeddings=model, retrieve="children", smoothing=0
        ) as retriever:
            results = retriever.invoke("harbour")
            scores.append({each.page_content: each.metadata["score"] for each in results})
    hashed, modelled = scores
    assert hashed["The harbour is old."] == pytest.approx(modelled["The harbour is old."])
    assert modelled["Harbor lights."] > 0, "only its vector matches"
    assert hashed["Harbor lights."] == pytest.approx(0.3 / 0.5 * modelled["Harbor lights."])


def test_coverage_is_the_share_of_a_question_that_the_best_child_has() -> None:
    index = KeywordIndex(None)
    index.update({"d": [Entry(f"common word{n}", {}, f"c{n}") for n in range(50)]})
    assert index.find("word7", 1).coverage == pytest.approx(1.0)
    assert index.find("common word7", 1).coverage == pytest.approx(1.0)
    assert index.find("word7 unheard", 1).coverage == pytest.approx(0.5, abs=0.1)
    assert index.find("common unheard", 1).coverage < 0.2
    assert index.find("unheard", 1).coverage == 0.0


CODES = [f"ERR-{4000 + 7 * n}" for n in range(70)]
CODES += [f"§ {n}{'abcdefg'[n % 7]}" for n in range(10, 75)]
CODES += [f"{'KXZ'[n % 3]}{317 + 11 * n}.{n % 9 + 1}" for n in range(65)]


@pytest.mark.slow
def test_codes_that_occur_once_are_found() -> None:
    rng = random.Random(3)
    texts = [" ".join(sentence(rng.randrange(5000)) for _ in range(18)) for _ in CODES]
    documents = [
        Document(page_content=f"{text[:250]} See {code} for this. {text[250:]}", id=code)
        for text, code in zip(texts, CODES, strict=True)
    ]
    retriever = langchain.parent_document_retriever(documents, k=4)
    assert len(CODES) == 200
    alone = [code in retriever.invoke(code)[0].page_content for code in CODES]
    asked = [
        any(code in found.page_content for found in retriever.invoke(f"What does {code} mean?"))
        for code in CODES
    ]
    assert sum(alone) >= 160
    assert sum(asked) >= 170


ELSEWHERE = """How do I bake a wedding cake? Who painted the Mona Lisa? What is the capital of Peru?
When was the printing press invented? How tall is Mount Kenya? Which enzymes digest lactose?
Who won the chess olympiad? What causes a solar eclipse? How is parchment made? Where do eels spawn?
What does a notary certify? Which strings does a cello have? How fast do glaciers move?
Who wrote Faust? What is a derivative? Why do cats purr? How are diamonds cut? What is umami?
Where is the Aral Sea? How does a fridge cool? What is inflation? Who discovered penicillin?
When do swallows migrate? How do vaccines work? What is a sonnet? Which metal is liquid?
How is cheese ripened? What is the Doppler effect? Who founded Rome? How deep is Lake Baikal?
What do beekeepers harvest? How is silk woven? What is a mortgage? Which planets have moons?
Why is the sky blue? How do you tune a violin? What is gluten? Who invented dynamite?
How old is the universe? What is a haiku? Where do penguins nest? How is steel hardened?
What is a constitution? Which vitamins are in kale? How do submarines dive? Who composed Aida?
What is photosynthesis? How is paper recycled? What is a fjord? Why do leaves fall?"""


def test_scores_tell_whether_a_question_is_about_the_documents() -> None:
    documents = [Document(page_content=text, id=name) for name, text in sample_texts().items()]
    others = [question.strip() + "?" for question in ELSEWHERE.split("?") if question.strip()]
    assert len(others) == 50
    retriever = langchain.parent_document_retriever(documents, k=1)

    def score(question: str) -> float:
        return max([each.metadata["score"] for each in retriever.invoke(question)], default=0.0)

    own, elsewhere = list(map(score, SAMPLE_QUESTIONS)), list(map(score, others))
    assert all(0.0 <= each <= 1.0 for each in own + elsewhere)
    assert min(own) > 0.5
    assert sorted(elsewhere)[25] < 0.1
    assert sorted(elsewhere)[-2] < 0.4, "leaves that fall are in the texts, in another sense"
    retriever.search_kwargs = {"score_threshold": 0.5}
    assert all(retriever.invoke(question) for question in SAMPLE_QUESTIONS)
    assert [each for each in others if retriever.invoke(each)] == ["Why do leaves fall?"]


@pytest.mark.parametrize("count", [1, 3])
def test_children_that_cannot_be_told_apart_have_the_score_of_their_match(count: int) -> None:
    documents = [Document(page_content=f"The red kettle boils{'.' * n}") for n in range(count)]
    retriever = langchain.parent_document_retriever(documents)
    scores = [each.metadata["score"] for each in retriever.invoke("red kettle boils")]
    assert scores == pytest.approx([1.0] * count, abs=0.05)
    assert retriever.invoke("a wedding cake")[0].metadata["score"] < 0.2


def test_hybrid_search_takes_a_stores_distances_for_what_they_are() -> None:
    class Distant(InMemoryVectorStore):
        def similarity_search_with_score(self, *args: Any, **kwargs: Any) -> Any:
            pairs = super().similarity_search_with_score(*args, **kwargs)
            return [(document, 1 - score) for document, score in pairs]

    documents = [Document(page_content=sentence(n), id=str(n)) for n in range(200)]
    ours, theirs = (
        langchain.parent_document_retriever(
            documents,
            vectorstore=kind(HashingEmbeddings()),  # type: ignore[arg-type]
            search_type="hybrid",
            k=6,
        )
        for kind in (InMemoryVectorStore, Distant)
    )
    for question in (QUESTION, "birch fjord n5", "heath inlet"):
        results = [result.page_content for result in ours.invoke(question)]
        assert [result.page_content for result in theirs.invoke(question)] == results != []


@in_turn("search_type", get_args(SearchType))
def test_a_threshold_holds_for_every_search_type(front: FrontEnd, search_type: Any) -> None:
    retriever = front.varied(filled(front), retrieve="children", k=8, search_type=search_type)
    scores = [result.score for result in front.find(retriever, QUESTION)]
    for threshold in (-1.0, sorted(scores)[4], max(scores) + 0.01):
        limited = front.varied(retriever, search_kwargs={"score_threshold": threshold})
        good = [result.score for result in front.find(limited, QUESTION)]
        assert all(score >= threshold for score in good)
        assert (good == []) == (threshold > max(scores))
        if search_type != "mmr":  # which then chooses from others
            assert good == [score for score in scores if score >= threshold]


CODED = [
    (f"c{n}", f"{sentence(n)} The part is called ZX{n:04}Q. {sentence(n + 1)}", {"half": n % 2})
    for n in range(60)
]


@every_front_end
def test_hybrid_finds_a_code_word_and_follows_every_change(front: FrontEnd) -> None:
    def flat(texts: list[str]) -> list[list[float]]:
        return [[1.0, 0.1 * len(text) / 60] for text in texts]  # tells nothing about words

    retriever = front.build(CODED, search_type="hybrid", embeddings=flat, child_size=30, k=2)
    plain = front.varied(retriever, search_type="similarity")

    def best(code: str) -> str:
        return " ".join(result.text for result in front.find(retriever, f"Where is {code}?"))

    assert not any("0042" in result.text for result in front.find(plain, "Where is ZX0042Q?"))
    assert "ZX0042Q" in best("ZX0042Q")
    changed = ("c42", "The part is called YY7777Q now.", {"half": 0})
    front.do(retriever, "add_documents", front.documents([changed]))
    assert "0042" not in best("ZX0042Q")
    assert "7777" in best("YY7777Q")
    front.do(retriever, "sync", front.documents(CODED[:40]))
    assert "7777" not in best("YY7777Q")
    assert "0055" not in best("ZX0055Q")
    front.do(plain, "add_documents", front.documents(CODED[50:]))
    assert "0055" in best("ZX0055Q"), "one without hybrid search wrote"


@pytest.mark.slow
@in_turn(
    "question",
    [
        "",
        " ",
        "?!...",
        "\ud800",
        "\0",
        '"',
        "a OR b AND NOT (",
        "東京",
        "กรุงเทพ",
        "the of",
        "w" * 40_000,
        " ".join(f"word{n}" for n in range(5000)),
    ],
)
def test_any_question_is_answered(front: FrontEnd, question: str) -> None:
    for kind in ("similarity", "hybrid", "mmr"):
        assert len(front.find(front.varied(filled(front), search_type=kind, k=2), question)) == 2


@pytest.mark.slow
@in_turn(
    "damage",
    ["missing", "empty", "half", "first page", "garbage", "holes", "behind", "other format"],
)
def test_the_keyword_file_is_built_again(front: FrontEnd, damage: str, tmp_path: Path) -> None:
    retriever = front.build(CODED, search_type="hybrid", path=tmp_path)
    before = front.find(retriever, "ZX0042Q")
    retriever.close()
    file = tmp_path / "keywords" / "rag_splitters.sqlite"
    size = file.stat().st_size
    if damage == "missing":
        file.unlink()
    elif damage == "other format":
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("DELETE FROM children")
            connection.execute("PRAGMA user_version = 1")
            connection.commit()
    elif damage == "behind":
        old = file.read_bytes()
        retriever = front.build(path=tmp_path, search_type="hybrid")
        front.delete(retriever, ["c42"])
        front.do(retriever, "add_documents", front.documents([CODED[42]]))
        retriever.close()
        file.write_bytes(old)
    else:
        content = bytearray(file.read_bytes())
        if damage == "holes":
            for start in range(4096, size, 8192):
                content[start : start + 2048] = random.Random(start).randbytes(2048)
        kept = {"empty": 0, "half": size // 2, "first page": 4096, "holes": size}
        file.write_bytes(content[: kept[damage]] if damage in kept else b"garbage " * 999)
    retriever = front.build(path=tmp_path, search_type="hybrid")
    assert front.find(retriever, "ZX0042Q") == before
    assert front.delete(retriever, ["c42"]) == ["c42"]
    assert "0042" not in front.find(retriever, "ZX0042Q")[0].text
    retriever.close()


# Smoothing


@pytest.mark.slow
@pytest.mark.parametrize("front", FRONT_ENDS[::2], ids=lambda front: front.framework)
@pytest.mark.parametrize("width", [0.0, 0.6, 2.0])
def test_smoothed_vectors_are_those_of_a_naive_gaussian(front: FrontEnd, width: float) -> None:
    documents = [*DOCUMENTS, ("one", "Alone.", {}), ("two", "Left here. Right there.", {})]
    model = HashingEmbeddings(dimensions=48)
    for batch in (1, 3, 7, None):
        options = {"embeddings": model, "smoothing": width, "child_size": 40}
        retriever = front.build(**options)
        retriever = front.varied(retriever, batch_size=batch)
        front.do(retriever, "add_documents", front.documents(documents))
        rows = rows_of(front, retriever)
        for name, *_ in documents:
            ours = [row for row in rows.values() if row[2]["_source_id"] == name]
            ours.sort(key=lambda row: row[2]["start_index"])
            units = np.asarray(model.embed_documents([text for text, *_ in ours]))
            for i, (_, vector, _) in enumerate(ours):
                weights = [
                    math.exp(-((i - j) ** 2) / (2 * width**2)) if width else float(i == j)
                    for j in range(len(ours))
                ]
                mixed = np.array([w if w >= 0.001 else 0.0 for w in weights]) @ units
                np.testing.assert_allclose(vector, mixed / np.linalg.norm(mixed), atol=1e-5)


# Rerankers


def by_number(question: str, texts: list[str]) -> list[float]:
    """Scores a text by the highest number of a sentence in it."""
    return [
        max(float(word[1:-1]) for word in text.split() if word[1:-1].isdigit()) for text in texts
    ]


async def later(question: str, texts: list[str]) -> list[float]:
    await asyncio.sleep(0)
    return by_number(question, texts)


class Later:
    """An object that is called as a coroutine function is."""

    async def __call__(self, question: str, texts: list[str]) -> list[float]:
        return await later(question, texts)


@every_front_end
@pytest.mark.parametrize("retrieve", ["passages", "parents", "children"])
def test_a_reranker_scores_children_before_results_are_made(front: FrontEnd, retrieve: str) -> None:
    plain = filled(front)
    for rerank_k, reranker in ((None, by_number), (10, later), (2, Later())):
        count = 100 if rerank_k is None else rerank_k
        children = front.find(front.varied(plain, retrieve="children", k=count), QUESTION)
        scores = sorted(by_number("", [r.text for r in children]), reverse=True)
        retriever = front.varied(
            plain, retrieve=retrieve, k=3, reranker=reranker, rerank_k=rerank_k
        )
        results = front.find(retriever, QUESTION)
        assert results[0].score == scores[0]
        assert [r.score for r in results] == sorted((r.score or 0 for r in results), reverse=True)
        assert {match["score"] for r in results for match in r.matches} <= set(scores)
        assert by_number("", [results[0].text])[0] >= scores[0]


@every_front_end
def test_a_reranker_that_rewrites_texts_is_refused(front: FrontEnd) -> None:
    kind = Shortest if front.framework == "langchain" else ShortestNodes
    reranker = kind(rewrites=True)
    with pytest.raises(ValueError, match="returned a text that it was not given, 'THE"):
        front.find(front.varied(filled(front), reranker=reranker), QUESTION)


@every_front_end
def test_a_reranker_that_cannot_be_used_is_named(front: FrontEnd) -> None:
    for wrong in ([], [1.0], [1.0] * 999):
        retriever = front.varied(filled(front), reranker=lambda question, texts, w=wrong: w)
        with pytest.raises(
            ValueError, match=rf"score for each of \d+ texts, and returned {len(wrong)}"
        ):
            front.find(retriever, QUESTION)
    retriever = front.varied(filled(front), reranker=lambda question, texts: [np.nan] * len(texts))
    with pytest.raises(ValueError, match="must return finite numbers, and returned nan"):
        front.find(retriever, QUESTION)


class Shortest(BaseDocumentCompressor):
    """Keeps the two shortest, with scores of NumPy's, as cross-encoders return them."""

    rewrites: bool = False

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> Any:
        assert query == QUESTION
        kept = sorted(documents, key=lambda document: len(document.page_content))[:2]
        for document, score in zip(kept, np.float32([0.5, 0.25]), strict=True):
            document.metadata["relevance_score"] = score
            if self.rewrites:
                document.page_content = document.page_content.upper()
        return kept


class ShortestNodes(BaseNodePostprocessor):
    """The same for LlamaIndex."""

    rewrites: bool = False

    def _postprocess_nodes(self, nodes: Any, query_bundle: Any = None) -> Any:
        assert query_bundle.query_str == QUESTION
        kept = sorted(nodes, key=lambda node: len(node.node.text))[:2]
        for node, score in zip(kept, np.float32([0.5, 0.25]), strict=True):
            node.score = score
            if self.rewrites:
                node.node.text = node.node.text.upper()
        return kept


@every_front_end
def test_the_rerankers_of_a_framework_are_taken(front: FrontEnd) -> None:
    reranker = Shortest() if front.framework == "langchain" else ShortestNodes()
    options = {"retrieve": "children", "k": 100}
    children = front.find(front.varied(filled(front), **options), QUESTION)
    results = front.find(front.varied(filled(front), reranker=reranker, **options), QUESTION)
    assert [len(r.text) for r in results] == sorted(len(r.text) for r in children)[:2]
    assert [r.score for r in results] == [0.5, 0.25]


class Above(BaseDocumentCompressor):
    """Keeps what has at least a score, as LlamaIndex's SimilarityPostprocessor does."""

    cutoff: float

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> Any:
        return [document for document in documents if document.score >= self.cutoff]


@every_front_end
@pytest.mark.parametrize("own", [{}, {"score": 7}])
def test_a_reranker_of_a_framework_sees_the_scores(front: FrontEnd, own: dict[str, Any]) -> None:
    retriever = front.build([(name, text, own) for name, text in TEXTS.items()], k=50)
    results = front.find(retriever, QUESTION)
    cutoff = results[2].score
    assert cutoff is not None
    reranker: Any = SimilarityPostprocessor(similarity_cutoff=cutoff)
    if front.framework == "langchain":
        reranker = Above(cutoff=cutoff)
    good = front.find(front.varied(retriever, reranker=reranker), QUESTION)
    assert [r.score for r in good] == [r.score for r in results if (r.score or 0) >= cutoff]
    assert all(r.metadata.get("score") == own["score"] for r in good if own)


@in_turn(
    "options, message",
    [
        ({"search_type": "bm25"}, "search_type must be 'similarity', .*'hybrid', got 'bm25'"),
        ({"retrieve": "all"}, "retrieve must be 'passages', 'parents' or 'children', got 'all'"),
        ({"k": 0}, "k must be a whole number of at least 1, got 0"),
        ({"max_tokens": 0}, "max_tokens must be a whole number of at least 1, got 0"),
    ],
)
def test_options_that_were_changed_later_are_checked(
    front: FrontEnd, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        front.find(front.varied(filled(front), **options), QUESTION)


def test_the_context_of_a_child_is_found_in_both_front_ends() -> None:
    chunker = SentenceChunker(chunk_size=60)
    told = []
    for front in FRONT_ENDS[::2]:
        options: dict[str, Any] = {
            "child_splitter": langchain.ContextualTextSplitter(llm=told_of_whales, chunker=chunker)
        }
        if front.framework == "llama_index":
            parser = llama_index.ContextualNodeParser(llm=told_of_whales, chunker=chunker)
            options = {"child_parser": parser}
        retriever = front.build(DOCUMENTS[:1], retrieve="children", k=50, **options)
        found = front.find(retriever, "whales")
        told.append([(r.id, r.text, r.start, r.end, r.score) for r in found])
        assert "whales" in found[0].text
        assert sentence(3) in found[0].text
        assert all("whales" not in result.text for result in found[1:])
    assert told[0] == told[1]


def told_of_whales(prompt: str) -> str:
    """A model that has something to say on one sentence alone."""
    chunk = prompt.rpartition("<chunk>")[2]
    return "All about whales." if sentence(3) in chunk else "Nothing."
