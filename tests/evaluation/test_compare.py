"""One call to a report: figures, formats, what is embedded, and which strategy is suggested."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_text_splitters import CharacterTextSplitter
from llama_index.core import Document as LlamaDocument
from llama_index.core.node_parser import SentenceSplitter
from rich.console import Console

from rag_splitters import (
    Chunker,
    FixedSizeChunker,
    RecursiveChunker,
    SemanticChunker,
    SentenceChunker,
    TitledChunker,
    langchain,
    llama_index,
)
from rag_splitters.evaluation import Question, Report, candidates, compare, read_benchmark, verdict
from rag_splitters.evaluation.measure.metrics import overlap, total, union
from rag_splitters.evaluation.measure.uncertainty import estimates
from rag_splitters.models import HashingEmbeddings, ModelError
from tests.support.embedding_doubles import CountingEmbeddings
from tests.support.minilm import minilm

FOLDER = Path(__file__).parents[1] / "data" / "evaluation"
BENCHMARK = read_benchmark(FOLDER)
CHUNKERS = {
    "small | *sentences*": SentenceChunker(chunk_size=25, length_function="tokens"),
    "recursive": RecursiveChunker(chunk_size=60, length_function="tokens"),
    "langchain": CharacterTextSplitter(separator="\n\n", chunk_size=300, chunk_overlap=0),
    "llama_index": SentenceSplitter(
        chunk_size=60, chunk_overlap=20, chunking_tokenizer_fn=lambda text: text.splitlines(True)
    ),
    "invented": lambda text: ["Something that stands nowhere.", text[:100], text[100:]],
}


def made(chunkers: Any = None, **options: Any) -> Report:
    defaults: dict[str, Any] = {"k": 3, "budgets": (50, 100, 200)}
    return compare(
        chunkers or CHUNKERS,
        BENCHMARK.documents,
        BENCHMARK.questions,
        HashingEmbeddings(),
        **{**defaults, **options},
    )


@pytest.fixture(scope="module")
def report() -> Report:
    return made()


# Figures


def test_compare_measures_what_a_naive_retrieval_finds(report: Report) -> None:
    """Recall, precision and hits of one strategy, by sets of positions and a plain sort."""
    strategy = report.strategy("recursive")
    model = HashingEmbeddings()
    vectors = np.array(model.embed_documents([chunk.text for chunk in strategy.chunks]))
    for row, question in enumerate(BENCHMARK.questions):
        likeness = vectors @ np.array(model.embed_query(question.text))
        best = np.argsort(-likeness, kind="stable")[:3]
        wanted = {at for reference in question.references for at in range(*reference)}
        found: set[int] = set()
        characters = 0
        for number in best:
            chunk = strategy.chunks[number]
            assert chunk.position is not None
            characters += len(chunk.text)
            if chunk.document == question.document:
                found |= set(range(*chunk.position))
        shared = len(found & wanted)
        assert report.values("recursive", "recall")[row] == shared / len(wanted)
        assert report.values("recursive", "precision")[row] == shared / characters
        assert report.values("recursive", "retrieved")[row] == strategy.sizes[best].sum()


def test_compare_gives_the_same_report_again(report: Report) -> None:
    assert made().to_json() == report.to_json()
    assert made() != report


def test_metrics_are_shares_and_budgets_only_help(report: Report) -> None:
    for strategy in report.strategies:
        for name in report.settings.metrics:
            values = report.values(strategy.name, name)
            assert report.metric(strategy.name, name) == pytest.approx(values.mean())
            assert values.min() >= 0
            assert name == "retrieved" or values.max() <= 1
        recalls = [recall for _, recall in report.curve(strategy.name)]
        assert recalls == sorted(recalls)
        at = dict(report.curve(strategy.name))[100]
        assert at == pytest.approx(report.metric(strategy.name, "recall@100"))


def test_unlocated_chunks_are_reported_and_answer_nothing(report: Report) -> None:
    strategy = report.strategy("invented")
    assert strategy.unlocated == 2 / 6
    assert all(report.strategy(name).unlocated == 0 for name in CHUNKERS if name != "invented")
    only = made({"lost": lambda text: ["Something that stands nowhere."]})
    assert only.metric("lost", "recall") == 0
    assert only.metric("lost", "retrieved") > 0
    assert only.metric("lost", "recall@200") == 0


def test_a_strategy_that_keeps_documents_whole_finds_all_of_them() -> None:
    whole = made({"whole": lambda text: [text]}, k=2, budgets=(10_000,))
    assert whole.metric("whole", "recall") == whole.metric("whole", "recall@10000") == 1
    answers = sum(end - start for q in BENCHMARK.questions for start, end in union(q.references))
    characters = sum(map(len, BENCHMARK.documents.values()))
    expected = answers / len(BENCHMARK.questions) / characters
    assert whole.metric("whole", "precision") == pytest.approx(expected)


# What is embedded


def test_compare_embeds_each_distinct_text_of_twenty_strategies_once(tmp_path: Path) -> None:
    chunkers = {
        f"{kind.__name__} {size} {copy}": kind(chunk_size=size)
        for kind in (SentenceChunker, RecursiveChunker)
        for size in (100, 150, 200, 300, 400)
        for copy in (1, 2)
    }
    texts = BENCHMARK.documents.values()
    cut = {chunk.text for kind in chunkers.values() for text in texts for chunk in kind.chunk(text)}
    asked = {question.text for question in BENCHMARK.questions}
    for cache, expected in ((tmp_path, cut | asked), (tmp_path, set())):
        model = CountingEmbeddings()
        compare(chunkers, BENCHMARK.documents, BENCHMARK.questions, model, cache=cache)
        assert sorted(model.texts) == sorted(expected)


# What does not fit


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be a whole number of at least 1, got 0"),
        ({"budgets": ()}, "budgets must hold at least one number of units, got none"),
        ({"budgets": (0,)}, "every budget must be a whole number of at least 1, got 0"),
        ({"length_function": "token"}, "length_function must be"),
    ],
)
def test_compare_refuses_numbers_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(**options)


def test_compare_refuses_questions_and_strategies_that_do_not_fit() -> None:
    model, documents = HashingEmbeddings(), BENCHMARK.documents
    with pytest.raises(ValueError, match="questions need an embedding model: pass embeddings="):
        compare(CHUNKERS, documents, BENCHMARK.questions)
    with pytest.raises(ValueError, match="there are no documents"):
        compare(CHUNKERS, {"blank": " \n"})
    with pytest.raises(TypeError, match="expected metadata by the names of documents, got 'a"):
        compare(CHUNKERS, documents, metadata="author")
    with pytest.raises(ValueError, match="there is no document 'atlas'"):
        compare(CHUNKERS, documents, [Question("Where?", "atlas", ((0, 3),))], model)
    with pytest.raises(ValueError, match="there are no strategies"):
        compare([], documents, BENCHMARK.questions, model)
    with pytest.raises(ValueError, match="mute gives no chunks"):
        made({"mute": lambda text: []})
    with pytest.raises(
        TypeError, match=r"expected a list of chunks from function:.*, got .# Brenner"
    ):
        made({"whole": lambda text: text})
    with pytest.raises(ModelError, match="out of order"):
        compare(CHUNKERS, documents, BENCHMARK.questions, _broken)


def _broken(texts: list[str]) -> list[list[float]]:
    raise RuntimeError("out of order")


def test_report_names_what_there_is(report: Report) -> None:
    with pytest.raises(ValueError, match="unknown strategy 'best': choose one of 'small"):
        report.metric("best", "recall")
    with pytest.raises(ValueError, match="unknown metric 'recall@70': choose one of recall, "):
        report.metric("recursive", "recall@70")


# Formats


def printed(report: Report, width: int) -> str:
    file = io.StringIO()
    Console(file=file, width=width).print(report)
    return file.getvalue()


def test_report_prints_as_a_table(report: Report) -> None:
    shown = printed(report, 100)
    assert "(33.3%" in shown
    assert "16 questions about 2 of 2 documents, HashingEmbeddings(dimensions=1024)" in shown
    caption = shown.partition("16 questions")[2].splitlines()
    assert max(map(len, caption)) > 80, "as wide as the terminal"
    assert "precision" not in shown
    assert f"{100 * report.metric('recursive', 'recall@50'):.1f}" in shown


def test_report_prints_as_a_table_without_rich_and_is_short_to_look_at(report: Report) -> None:
    assert f"{100 * report.metric('recursive', 'recall@50'):.1f}" in str(report)
    assert "\x1b" not in str(report)
    assert "100" in report._repr_mimebundle_([], [])["text/html"], "what a notebook shows"
    assert repr(report) == f"Report(strategies={list(CHUNKERS)}, questions=16)"


def test_no_column_is_cut_off_at_the_edge_of_a_terminal() -> None:
    few = BENCHMARK.questions[:4]  # which makes the intervals wide
    report = compare(CHUNKERS, BENCHMARK.documents, few, HashingEmbeddings())
    faults = compare({"content_aware 2000": CHUNKERS["recursive"]}, {"note": "It is old. " * 9000})
    for each, last in ((report, "1,500"), (faults, "tiny")):
        for width in (80, 160):
            lines = printed(each, width).splitlines()
            heading = next(line for line in lines if line.startswith(" strategy"))
            assert heading.split()[-1] == last
            assert "…" not in "".join(lines)
            assert max(map(len, lines)) <= width


def test_report_prints_what_may_be_best_bold_in_every_column() -> None:
    page = rigged(good=0.9, tied=0.899, bad=0.2).to_html()
    rows = re.findall(r'<th scope="row" role="rowheader">(\w+)</th>(.*?)</tr>', page, re.DOTALL)
    cells = {
        name: dict(re.findall(r'data-title="([^"]+)">\s*(.*?)\s*</td>', row, re.DOTALL))
        for name, row in rows
        if "recall at" in row
    }
    title = "recall at 100 tokens"
    assert cells["good"][title] == "<strong>90.0</strong>"
    assert re.search(r'<strong>89\.9</strong>\s*<span class="gap">-0\.1 ± ', cells["tied"][title])
    assert re.match(r'20\.0\s*<span class="gap">-70\.0 ± \d+\.\d<', cells["bad"][title])
    assert not any("strong" in row["retrieved tokens"] for row in cells.values())
    assert "those of the best 3 chunks." in page


def test_report_as_json_holds_what_the_metrics_are_made_of(report: Report) -> None:
    values = json.loads(report.to_json())
    assert values["settings"]["budgets"] == [50, 100, 200]
    assert len(values["questions"]) == 16
    first = values["strategies"][0]
    assert first["strategy"]["chunker"] == "SentenceChunker"
    assert first["strategy"]["parameters"]["chunk_size"] == 25
    whole = first["metrics"]["recall"]
    assert whole["mean"] == pytest.approx(np.mean(first["values"]["recall"]))
    assert whole["gap"] == list(report.gap(report.names[0], "recall") or ())
    assert first["chunks"] == len(first["sizes"])
    assert values["strategies"][4]["unlocated"] == 2 / 6


def _count_words(text: str) -> int:
    return len(text.split())


def test_report_as_json_names_functions_and_models_among_the_parameters() -> None:
    chunkers = {
        "function": RecursiveChunker(chunk_size=90, length_function=_count_words),
        "lambda": RecursiveChunker(chunk_size=90, length_function=lambda text: len(text)),
        "model": SemanticChunker(embeddings=HashingEmbeddings()),
        "inner": TitledChunker(chunker=RecursiveChunker(chunk_size=80)),
        "peer": CharacterTextSplitter(separator=" ", length_function=len),
    }
    rows = json.loads(made(chunkers).to_json())["strategies"]
    strategies = [row["strategy"] for row in rows]
    assert "_count_words" in strategies[0]["parameters"]["length_function"]
    assert "lambda" in strategies[1]["parameters"]["length_function"]
    assert "HashingEmbeddings" in strategies[2]["parameters"]["embeddings"]
    assert strategies[3]["chunker"] == "TitledChunker"
    assert strategies[3]["parameters"]["chunker"]["parameters"]["chunk_size"] == 80


# The verdict


def rigged(sizes: dict[str, int] | None = None, **means: float) -> Report:
    """A report in which strategies have these means of recall at the middle budget."""
    report = made(
        {name: FixedSizeChunker(chunk_size=(sizes or {}).get(name, 100)) for name in means}
    )
    noise = np.random.default_rng(0).random(len(report.questions))
    noise -= noise.mean()
    for strategy in report.strategies:
        strategy.measurements["recall@100"][:] = means[strategy.name] + 0.1 * noise
        noise = np.roll(noise, 1)
    return report


def test_verdict_is_sure_where_the_lead_is_large() -> None:
    choice = verdict(rigged(low=0.2, best=0.9, middle=0.5))
    assert (choice.best, choice.rivals, choice.cheaper) == ("best", (), None)
    assert re.fullmatch(
        r"Clear winner: best\. Choose it: its recall at 100 tokens is 90\.0%, 40\.0 points "
        r"\(95% interval 3\d\.\d to 4\d\.\d\) more than that of middle\.",
        str(choice),
    )


def test_verdict_names_the_strategies_that_are_tied_and_a_cheaper_one() -> None:
    means = {"best": 0.52, "small": 0.519, "large": 0.518, "bad": 0.1}
    report = rigged(**means, sizes={"best": 100, "small": 40, "large": 400, "bad": 900})
    choice = verdict(report)
    assert (choice.best, choice.rivals, choice.cheaper) == ("best", ("small", "large"), "large")
    assert choice.headline == (
        "No clear winner: 3 of 4 strategies are statistically tied for the best."
    )
    counts = {name: len(report.strategy(name).chunks) for name in means}
    assert choice.reasons == (
        "Their recall at 100 tokens: best (52.0%), small (51.9%), large (51.8%). No mean is higher "
        f"than that of best. large is cheaper: it has {counts['large']} chunks, against "
        f"{counts['best']}. More questions may separate them."
    )


@pytest.mark.parametrize("wrap", [lambda inner: inner, lambda inner: TitledChunker(chunker=inner)])
def test_verdict_names_a_strategy_that_needs_no_model(wrap: Callable[[Chunker], Chunker]) -> None:
    chunkers = {
        "semantic": wrap(SemanticChunker(embeddings=HashingEmbeddings(), chunk_size=2000)),
        "plain": FixedSizeChunker(chunk_size=50),
    }
    report = made(chunkers)
    set_all(report, 0.5)
    assert len(report.strategy("semantic").chunks) < len(report.strategy("plain").chunks)
    assert str(verdict(report)) == (
        "No clear winner: both strategies are statistically tied. They have the same result on "
        "every question; their recall at 100 tokens is 50.0%. plain is cheaper: it needs no model "
        "to cut."
    )


def set_all(report: Report, value: float) -> None:
    """Set each measurement of a report."""
    for strategy in report.strategies:
        for values in strategy.measurements.values():
            values[:] = value


def test_verdict_of_equal_results_names_no_best_mean() -> None:
    report = made()
    set_all(report, 1.0)
    assert verdict(report).reasons.startswith("They have the same result on every question; ")
    assert len(verdict(report).rivals) == len(CHUNKERS) - 1


def test_verdict_says_where_there_is_no_choice() -> None:
    choice = verdict(made({"only": FixedSizeChunker(chunk_size=100)}))
    assert choice.headline == "Only only was measured, so there is nothing to choose from."
    assert choice.reasons.startswith("Its recall at 100 tokens is ")
    one = compare(CHUNKERS, BENCHMARK.documents, BENCHMARK.questions[:1], HashingEmbeddings())
    assert str(one).startswith("No verdict: one question cannot show")
    assert verdict(one).best is None
    assert one.gap("recursive", "recall") == (0, float("-inf"), float("inf"))
    assert "Infinity" not in one.to_json()
    assert "behind the best" not in str(one), "which needs an interval"


def test_report_begins_with_the_verdict_in_every_form(report: Report) -> None:
    headline = verdict(report).headline
    assert str(report).startswith(headline)
    page = report.to_html()
    assert page.index(headline) < page.index("<main>")


def test_gaps_are_those_behind_the_best(report: Report) -> None:
    means = {name: report.metric(name, "iou") for name in report.names}
    for name, mean in means.items():
        gap = report.gap(name, "iou")
        assert gap is not None
        assert gap.mean == pytest.approx(mean - max(means.values()))
        assert gap.low <= gap.mean <= gap.high
    assert report.gap("recursive", "retrieved") is None


# The intervals


@pytest.mark.parametrize("count", [2, 9])
def test_best_strategy_is_seldom_discarded_however_many_are_compared(count: int) -> None:
    """Strategies that are equally good: each must stay in the running, but for a few percent."""
    rng = np.random.default_rng(0)
    trials, questions = 100, 40
    discarded = naive = 0
    for _ in range(trials):
        values = np.clip(0.6 + 0.2 * rng.standard_normal((count, questions)), 0, 1)
        discarded += any(lead.low > 0 for lead in estimates(values - values[0]))
        naive += any(estimates([row - values[0]])[0].low > 0 for row in values)
    assert discarded / trials < 0.07
    assert count == 2 or naive / trials > 0.08, "what one gets without the adjustment"


@pytest.mark.parametrize("questions", [3, 5, 10, 100])
def test_intervals_of_few_questions_are_wide_enough(questions: int) -> None:
    """A mean of 0 must be in 95% of the intervals. Without Student's correction, 3 miss 20%."""
    rng = np.random.default_rng(0)
    samples = rng.standard_normal((400, questions))
    misses = sum(not (own := estimates([row])[0]).low <= 0 <= own.high for row in samples)
    assert misses / 400 < 0.09


# Strategies of every kind


def test_compare_accepts_a_single_strategy() -> None:
    for strategy in (
        RecursiveChunker(chunk_size=90),
        CharacterTextSplitter(separator=" "),
        SentenceSplitter(chunk_size=60, chunk_overlap=0),
        str.splitlines,
    ):
        assert len(made(strategy).strategies) == 1
    assert made(RecursiveChunker(chunk_size=90)).names == ["RecursiveChunker(chunk_size=90)"]


def test_candidates_are_what_the_documentation_recommends() -> None:
    chunkers = candidates([100])
    kinds = [type(chunker).__name__.removesuffix("Chunker") for chunker in chunkers.values()]
    assert kinds == ["Auto", "ContentAware", "Recursive", "Sentence"]
    assert all(chunker.chunk_size == 100 for chunker in chunkers.values())


def _langchain_retriever(embeddings: Any = None, **options: Any) -> Any:
    documents = [Document(text, id=name) for name, text in BENCHMARK.documents.items()]
    return langchain.parent_document_retriever(documents, embeddings=embeddings, **options)


def _llama_index_retriever(embeddings: Any = None, **options: Any) -> Any:
    nodes = [LlamaDocument(text=text, id_=name) for name, text in BENCHMARK.documents.items()]
    return llama_index.parent_document_retriever(nodes, embed_model=embeddings, **options)


_OPEN = pytest.mark.parametrize("open_retriever", [_langchain_retriever, _llama_index_retriever])


@_OPEN
@pytest.mark.parametrize("retrieve", ["passages", "parents", "children"])
def test_compare_measures_a_parent_child_retriever_at_equal_budgets(
    open_retriever: Any, retrieve: str
) -> None:
    retriever = open_retriever(retrieve=retrieve)
    report = made({"chunks": FixedSizeChunker(chunk_size=300), "retriever": retriever})
    strategy = report.strategy("retriever")
    assert (strategy.chunks, strategy.faults) == ((), None)
    assert 0.5 < report.metric("retriever", "recall@200") <= 1
    assert report.metric("retriever", "recall@50") < report.metric("retriever", "recall@200")
    assert report.metric("retriever", "retrieved") > 0
    assert np.isnan(report.metric("retriever", "precision_omega"))
    assert report.gap("retriever", "precision_omega") is None
    assert report.gap("retriever", "recall@100") is not None
    assert (
        json.loads(report.to_json())["strategies"][1]["metrics"]["precision_omega"]["mean"] is None
    )
    assert "retriever" in report.to_html()


@_OPEN
def test_a_parent_child_retriever_is_asked_once_for_each_budget(open_retriever: Any) -> None:
    model, budgets = CountingEmbeddings(), (50, 100, 200)
    retrievers = {str(size): open_retriever(model, max_tokens=size) for size in (50, 200, 400)}
    retrievers["None"] = open_retriever(model)
    if open_retriever is _langchain_retriever:
        retrievers["None"].search_kwargs = {"max_tokens": 60}
    model.calls.clear()
    report = made(retrievers, budgets=budgets)
    assert model.count() == len(retrievers) * len(budgets) * len(BENCHMARK.questions)
    for name in report.names:
        for metric in report.settings.metrics:
            expected = report.values("50", metric)
            assert np.array_equal(report.values(name, metric), expected, equal_nan=True)
        assert [budget for budget, _ in report.curve(name)] == list(budgets)
    assert [retriever.max_tokens for retriever in retrievers.values()] == [50, 200, 400, None]
    for budget in budgets:  # each as if the user had asked for it
        alone = made(open_retriever(model), budgets=[budget])
        metric = f"recall@{budget}"
        assert np.array_equal(report.values("50", metric), alone.values(alone.names[0], metric))
    assert np.array_equal(report.values("50", "recall"), alone.values(alone.names[0], "recall"))


class _Recorder:
    """A retriever that keeps what it is asked."""

    def __init__(self) -> None:
        self.questions: list[str] = []

    def invoke(self, question: str) -> list[str]:
        self.questions.append(question)
        return list(BENCHMARK.documents.values())


def test_other_retrievers_and_those_with_other_budgets_are_asked_once() -> None:
    recorder = _Recorder()
    reports = [made(recorder), made(_langchain_retriever(), length_function="words")]
    assert recorder.questions == [question.text for question in BENCHMARK.questions]
    for report in reports:
        measured = [budget for budget, _ in report.curve(report.names[0])]
        assert measured == report.settings.curve_budgets


def test_a_retriever_without_questions_is_left_out_or_refused() -> None:
    recorder = _Recorder()
    with pytest.raises(ValueError, match="retrievers need questions: pass questions="):
        compare(recorder, BENCHMARK.documents)
    report = compare({"split": str.splitlines, "own": recorder}, BENCHMARK.documents)
    assert "Left out, because retrievers need questions: own." in str(verdict(report))
    assert recorder.questions == []


def test_results_of_any_retriever_are_located_by_their_text() -> None:
    text = BENCHMARK.documents["bakery"]

    class Plain:
        def invoke(self, question: str) -> list[str]:
            return [text[200:400], "nowhere", BENCHMARK.documents["lighthouse"][:100]]

    report = made(Plain())
    assert report.names == ["Plain"]
    row = next(n for n, each in enumerate(report.questions) if each.document == "bakery")
    references = union(report.questions[row].references)
    shared = overlap(references, [(200, 400)])
    assert report.values("Plain", "recall")[row] == shared / total(references)


@pytest.mark.parametrize("texts", [[], ["nowhere"]])
def test_a_retriever_without_the_documents_is_named(texts: list[str]) -> None:
    class Other:
        def invoke(self, question: str) -> list[str]:
            return texts

    with pytest.raises(ValueError, match=r"^Other returned no text of these documents: add them"):
        made(Other())


@pytest.mark.parametrize("answer", ["one text", None])
def test_a_retriever_that_returns_no_list_is_named(answer: Any) -> None:
    class Single:
        def invoke(self, question: str) -> Any:
            return answer

    with pytest.raises(TypeError, match=f"^expected a list of texts from Single, got {answer!r}"):
        made(Single())


# With a real model


@pytest.mark.model
def test_compare_with_minilm_finds_what_is_asked_in_other_words() -> None:
    asked = {
        ("How tall is the tower?", "lighthouse"): "thirty-four metres high",
        ("Which animals eat the unsold goods?", "bakery"): "goes to the hens",
        ("Why was no fruit harvested?", "lighthouse"): "Salt killed the apple trees twice",
        ("Which employee got an award?", "bakery"): "won a medal for a braided loaf",
    }
    questions = []
    for (text, name), quoted in asked.items():
        start = BENCHMARK.documents[name].index(quoted)
        questions.append(Question(text, name, ((start, start + len(quoted)),)))
    chunkers = {"small": SentenceChunker(chunk_size=30, length_function="tokens")}
    real = compare(chunkers, BENCHMARK.documents, questions, minilm(), k=3)
    words = compare(chunkers, BENCHMARK.documents, questions, HashingEmbeddings(), k=3)
    assert real.metric("small", "recall") == 1
    assert words.metric("small", "recall") < 0.5
