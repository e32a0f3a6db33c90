"""One call to a report: figures, formats, what is embedded, and which strategy is suggested."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_text_splitters import CharacterTextSplitter
from llama_index.core.node_parser import SentenceSplitter
from rich.console import Console

from rag_splitters import (
    FixedSizeChunker,
    RecursiveChunker,
    SemanticChunker,
    SentenceChunker,
)
from rag_splitters.evaluation import (
    Estimate,
    Question,
    Report,
    candidates,
    compare,
    read_benchmark,
    suggest,
    suggestion,
    verdict,
)
from rag_splitters.evaluation.measure.uncertainty import leads_over, resampled
from rag_splitters.evaluation.measure.metrics import union
from rag_splitters.models import HashingEmbeddings, ModelError
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
    defaults: dict[str, Any] = {"k": 3, "budgets": (50, 100, 200), "resamples": 200}
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
        assert report.values("recursive", "hit_rate")[row] == (shared > 0)
        assert report.values("recursive", "retrieved")[row] == strategy.sizes[best].sum()


def test_compare_gives_the_same_report_again(report: Report) -> None:
    assert made().to_json() == report.to_json()
    assert made(seed=1).to_json() != report.to_json()


def test_figures_are_shares_in_their_intervals_and_budgets_only_help(report: Report) -> None:
    for strategy in report.strategies:
        for name in report.settings.metrics:
            values, figure = report.values(strategy.name, name), report.metric(strategy.name, name)
            assert figure.low <= figure.mean <= figure.high
            assert values.min() >= 0
            assert name == "retrieved" or values.max() <= 1
        recalls = [figure.mean for _, figure in report.curve(strategy.name)]
        assert recalls == sorted(recalls)
        at = dict(report.curve(strategy.name))[100]
        assert at == report.metric(strategy.name, "recall@100")


def test_figures_of_documents_make_up_the_whole(report: Report) -> None:
    halves = [
        report.metric("recursive", "recall", name).mean for name in report.documents_with_questions
    ]
    assert report.documents_with_questions == ["bakery", "lighthouse"]
    assert sum(halves) / 2 == pytest.approx(report.metric("recursive", "recall").mean)


def test_difference_is_paired(report: Report) -> None:
    more = report.difference("recursive", "invented", "precision")
    less = report.difference("invented", "recursive", "precision")
    assert more.mean == pytest.approx(-less.mean)
    assert report.difference("recursive", "recursive", "recall") == Estimate(0, 0, 0)


def test_unlocated_chunks_are_reported_and_answer_nothing(report: Report) -> None:
    strategy = report.strategy("invented")
    assert strategy.unlocated == 2 / 6
    assert all(report.strategy(name).unlocated == 0 for name in CHUNKERS if name != "invented")
    only = made({"lost": lambda text: ["Something that stands nowhere."]})
    assert only.metric("lost", "recall").mean == only.metric("lost", "ndcg").mean == 0
    assert only.metric("lost", "retrieved").mean > 0
    assert only.metric("lost", "recall@200").mean == 0


def test_a_strategy_that_keeps_documents_whole_finds_all_of_them() -> None:
    whole = made({"whole": lambda text: [text]}, k=2, budgets=(10_000,))
    assert whole.metric("whole", "recall").mean == whole.metric("whole", "recall@10000").mean == 1
    answers = sum(end - start for q in BENCHMARK.questions for start, end in union(q.references))
    characters = sum(map(len, BENCHMARK.documents.values()))
    expected = answers / len(BENCHMARK.questions) / characters
    assert whole.metric("whole", "precision").mean == pytest.approx(expected)


# What is embedded


class Counting(HashingEmbeddings):
    """Remembers what it was asked."""

    __slots__ = ()
    texts: list[str] = []  # noqa: RUF012

    def embed_documents(self, texts: Any) -> Any:
        self.texts.extend(texts)
        return super().embed_documents(texts)


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
    for cache, expected in (
        (tmp_path, cut | asked),
        (tmp_path, set()),
    ):
        Counting.texts.clear()
        compare(chunkers, BENCHMARK.documents, BENCHMARK.questions, Counting(), cache=cache)
        assert len(Counting.texts) == len(expected)
        assert set(Counting.texts) == expected


# What does not fit


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be a whole number of at least 1, got 0"),
        ({"budgets": ()}, "budgets must hold at least one number of units, got none"),
        ({"budgets": (0,)}, "every budget must be a whole number of at least 1, got 0"),
        ({"resamples": 0}, "resamples must be a whole number of at least 1, got 0"),
        ({"length_function": "token"}, "length_function must be"),
    ],
)
def test_compare_refuses_numbers_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(**options)


def test_compare_refuses_questions_and_strategies_that_do_not_fit() -> None:
    model, documents = HashingEmbeddings(), BENCHMARK.documents
    with pytest.raises(ValueError, match="there are no questions"):
        compare(CHUNKERS, documents, [], model)
    with pytest.raises(ValueError, match="there is no document 'atlas'"):
        compare(CHUNKERS, documents, [Question("Where?", "atlas", ((0, 3),))], model)
    with pytest.raises(ValueError, match="there are no strategies"):
        compare([], documents, BENCHMARK.questions, model)
    with pytest.raises(ValueError, match="mute gives no chunks"):
        made({"mute": lambda text: []})
    with pytest.raises(ModelError, match="out of order"):
        compare(CHUNKERS, documents, BENCHMARK.questions, _broken)


def _broken(texts: list[str]) -> list[list[float]]:
    raise RuntimeError("out of order")


def test_report_names_what_there_is(report: Report) -> None:
    with pytest.raises(ValueError, match="no strategy 'best': there are 'small"):
        report.metric("best", "recall")
    with pytest.raises(ValueError, match="no metric 'recall@70': there are recall, precision"):
        report.metric("recursive", "recall@70")
    with pytest.raises(ValueError, match="no questions about 'atlas'"):
        report.metric("recursive", "recall", "atlas")


# Formats


def test_report_prints_as_a_table(report: Report) -> None:
    shown = {}
    for width in (100, 200):
        file = io.StringIO()
        Console(file=file, width=width).print(report)
        shown[width] = file.getvalue()
        assert all(len(line) <= width for line in shown[width].splitlines())
        assert "(33.3%" in shown[width]
        assert "16 questions about 2 of 2 documents, 3 chunks retrieved" in shown[width]
    assert "nDCG" in shown[200]
    recall = report.metric("recursive", "recall").mean
    assert f"{100 * recall:.1f}" in shown[100]


def test_report_prints_as_a_table_without_rich_and_is_short_to_look_at(report: Report) -> None:
    assert f"{100 * report.metric('recursive', 'recall').mean:.1f}" in str(report)
    assert "\x1b" not in str(report)
    assert report._repr_markdown_() == report.to_markdown()
    assert repr(report) == f"Report(strategies={list(CHUNKERS)}, questions=16)"


def test_report_as_markdown_has_a_table_for_each_document(report: Report, tmp_path: Path) -> None:
    written = report.to_markdown(tmp_path / "report.md")
    assert (tmp_path / "report.md").read_text("utf-8") == written
    tables = written.split("| strategy |")[1:]
    assert len(tables) == 3
    for table in tables:
        rows = [line for line in table.splitlines() if line.startswith("| ")]
        assert len(rows) == len(CHUNKERS)
        assert rows[0].startswith("| small \\| *sentences* | ")
        assert {row.replace("\\|", "").count("|") for row in rows} == {14}
    assert "### lighthouse" in written


def test_report_as_json_holds_what_the_figures_are_made_of(report: Report) -> None:
    read = json.loads(report.to_json())
    assert read["settings"]["budgets"] == [50, 100, 200]
    assert len(read["questions"]) == 16
    first = read["strategies"][0]
    assert first["chunker"]["strategy"] == "SentenceChunker"
    assert first["chunker"]["chunk_size"] == 25
    mean, low, high = first["metrics"]["recall"]
    assert mean == pytest.approx(np.mean(first["values"]["recall"]))
    assert low < mean < high
    assert set(first["documents"]) == {"bakery", "lighthouse"}
    assert first["chunks"] == len(first["sizes"])
    assert read["strategies"][4]["unlocated"] == 2 / 6


def test_report_as_csv_has_a_line_for_each_figure(report: Report) -> None:
    rows = list(csv.DictReader(io.StringIO(report.to_csv())))
    assert len(rows) == len(CHUNKERS) * 3 * len(report.settings.metrics)
    known = report.metric("recursive", "recall", "bakery")
    row = next(
        row
        for row in rows
        if (row["strategy"], row["document"], row["metric"]) == ("recursive", "bakery", "recall")
    )
    assert [float(row[name]) for name in ("mean", "low", "high")] == [
        known.mean,
        known.low,
        known.high,
    ]


# Which to take


def rigged(sizes: dict[str, int] | None = None, **means: float) -> Report:
    """A report in which strategies have these means of recall at the middle budget."""
    report = made(
        {name: FixedSizeChunker(chunk_size=(sizes or {}).get(name, 100)) for name in means}
    )
    column = report.settings.curve_budgets.index(100)
    noise = np.random.default_rng(0).random(len(report.questions))
    noise -= noise.mean()
    for strategy in report.strategies:
        strategy.measurements.curve[:, column] = means[strategy.name] + 0.1 * noise
        noise = np.roll(noise, 1)
    return report


def test_suggestion_is_sure_where_the_lead_is_large() -> None:
    found = suggestion(rigged(low=0.2, best=0.9, middle=0.5))
    assert (found.name, found.runner_up, found.rivals) == ("best", "middle", ())
    assert found.is_certain
    assert found.folds == found.wins == 1
    assert found.score.mean == found.held_out.mean == pytest.approx(0.9)
    assert found.gap is not None
    assert found.gap.mean == pytest.approx(0.4)
    assert found.gap.low > 0.3
    assert (found.best, found.close) == ("best", ("best",))
    assert str(found).startswith(
        "Clear winner: best. Take it: its recall at 100 tokens is 90.0%, 40.0 points (95% interval "
    )
    assert "more than that of middle. On questions that were not used" in str(found)


def test_suggestion_says_that_strategies_are_tied_and_what_to_take_anyway() -> None:
    found = suggestion(rigged(one=0.5, two=0.501, low=0.1))
    assert (found.best, found.rivals) == ("two", ("one",))
    assert not found.is_certain
    assert 0.3 < found.wins < 0.8
    assert found.headline == (
        "No clear winner: 2 of 3 strategies are statistically tied for the best."
    )
    assert found.reasons.startswith(
        "Their recall at 100 tokens: two (50.1%), one (50.0%). Take two anyway: it has the highest "
        "mean, and no index is smaller ("
    )
    assert "More questions may decide." in found.reasons


def test_suggestion_takes_the_cheapest_of_those_within_one_standard_error() -> None:
    means = {"best": 0.52, "cheap": 0.515, "cheapest": 0.45, "bad": 0.1}
    report = rigged(**means, sizes={"best": 40, "cheap": 100, "cheapest": 400, "bad": 900})
    found = suggestion(report)
    assert found.best == "best"
    assert {"best", "cheap"} == set(found.close)
    assert found.name == "cheap"
    assert found.chunker.chunk_size == 100
    counts = {name: len(report.strategy(name).chunks) for name in means}
    assert (
        "Take cheap anyway: its mean is as high within one standard error, and its index is the "
        f"smallest: {counts['cheap']} chunks, against {counts['best']} for best."
    ) in str(found)


def test_suggestion_prefers_a_strategy_that_needs_no_model() -> None:
    model = HashingEmbeddings()
    chunkers = {
        "semantic": SemanticChunker(embeddings=model, chunk_size=2000),
        "plain": FixedSizeChunker(chunk_size=50),
    }
    report = made(chunkers)
    for strategy in report.strategies:
        strategy.measurements.curve[:] = 0.5
    found = suggestion(report)
    assert found.name == "plain"
    assert len(report.strategy("semantic").chunks) < len(report.strategy("plain").chunks)
    assert str(found).startswith(
        "No clear winner: both strategies are statistically tied. semantic and plain have the same "
        "result on every question. Take plain anyway: its mean is as high within one standard "
        "error, and it needs no model to cut."
    )


@pytest.mark.parametrize("count", [2, 9])
def test_best_strategy_is_seldom_discarded_however_many_are_compared(count: int) -> None:
    """Strategies that are equally good: each must stay in the running, but for a few percent."""
    rng = np.random.default_rng(0)
    trials, questions = 150, 40
    weights = resampled(questions, 500)
    discarded = naive = 0
    for _ in range(trials):
        values = np.clip(0.6 + 0.2 * rng.standard_normal((count, questions)), 0, 1)
        leads = leads_over(0, values, weights)
        discarded += any(lead.low > 0 for lead in leads.estimates)
        naive += any(
            lead.mean > 1.96 * error > 0
            for lead, error in zip(leads.estimates, leads.errors, strict=True)
        )
    assert discarded / trials < 0.07
    assert count == 2 or naive / trials > 0.08, "what one gets without the adjustment"


def test_leads_are_wider_with_more_strategies_and_narrower_with_more_questions() -> None:
    rng = np.random.default_rng(0)
    values = rng.random((12, 400))

    def width(strategies: int, questions: int) -> float:
        part = values[:strategies, :questions]
        lead = leads_over(0, part, resampled(questions)).estimates[1]
        assert lead.mean == pytest.approx((part[1] - part[0]).mean())
        return lead.high - lead.low

    assert width(2, 50) < width(12, 50) < 2 * width(2, 50)
    assert width(12, 400) < width(12, 50) / 2
    assert width(2, 3) > 2 * width(2, 50)


def test_suggestion_shares_ties_and_does_not_flatter_the_choice() -> None:
    report = made(
        {"one": FixedSizeChunker(chunk_size=100), "two": FixedSizeChunker(chunk_size=100)}
    )
    assert suggestion(report).wins == 0.5
    assert suggestion(report).gap == (0, 0, 0)
    assert "one and two have the same result on every question" in str(suggestion(report))
    assert "More questions" not in str(suggestion(report))
    rng = np.random.default_rng(1)
    many = made({str(number): FixedSizeChunker(chunk_size=100) for number in range(20)})
    column = many.settings.curve_budgets.index(100)
    for strategy in many.strategies:  # no strategy is better than another
        strategy.measurements.curve[:, column] = rng.random(len(many.questions))
    found = suggestion(many, folds=16)
    assert found.score.mean > 0.6
    assert found.held_out.mean < found.score.mean


def test_suggest_compares_the_candidates_and_picks_one_of_them() -> None:
    found = suggest(
        BENCHMARK.documents, BENCHMARK.questions, HashingEmbeddings(), metric="iou", resamples=100
    )
    assert [strategy.name for strategy in found.results.strategies] == list(candidates())
    assert found.chunker == candidates()[found.name]
    best = max(found.results.metric(name, "iou").mean for name in candidates())
    assert found.results.metric(found.best, "iou").mean == best
    assert found.score == found.results.metric(found.name, "iou")
    assert 0 <= found.folds <= 1


def test_suggestion_refuses_what_cannot_be_chosen_by(report: Report) -> None:
    with pytest.raises(ValueError, match="metric must be one of which more is better"):
        suggestion(report, "retrieved")
    with pytest.raises(ValueError, match="there is no metric 'recall@7'"):
        suggestion(report, "recall@7")
    with pytest.raises(ValueError, match="folds must be a whole number of at least 2, got 1"):
        suggestion(report, folds=1)


def test_verdict_says_where_there_is_no_choice(report: Report) -> None:
    assert verdict(report) == (suggestion(report).headline, suggestion(report).reasons)
    headline, reasons = verdict(made({"only": FixedSizeChunker(chunk_size=100)}))
    assert headline == "Only only was measured, so there is nothing to choose from."
    assert reasons.startswith("Its recall at 100 tokens is ")
    one = compare(CHUNKERS, BENCHMARK.documents, BENCHMARK.questions[:1], HashingEmbeddings())
    assert verdict(one)[0].startswith("No verdict: one question cannot show")
    assert str(one).startswith("No verdict")
    with pytest.raises(ValueError, match="cross-validation needs at least 2 questions"):
        suggestion(one)


def test_report_begins_with_the_verdict_in_every_form(report: Report) -> None:
    headline = suggestion(report).headline
    assert str(report).startswith(headline)
    assert report.to_markdown().startswith(f"**{headline}** ")
    page = report.to_html()
    assert page.index(headline) < page.index("<main>")


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
    assert real.metric("small", "recall").mean == 1
    assert words.metric("small", "recall").mean < 0.5
