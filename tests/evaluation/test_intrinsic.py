"""Figures about chunks that need no questions, and what is recommended by them."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from rich.console import Console

from rag_splitters import (
    FixedSizeChunker,
    PropositionChunker,
    RecursiveChunker,
    SentenceChunker,
    SlidingWindowChunker,
)
from rag_splitters.evaluation import CachedEmbeddings, intrinsic, recommend
from rag_splitters.evaluation.measure.faults import (
    FAULTS,
    FIGURES,
    DocumentFigures,
    coherence,
    cohesion,
    context_windows,
    nearest_windows,
    referring_sentences,
    score,
)
from rag_splitters.testing import hostile_texts

TEXT = (
    "# Kettle\n\nBoil the water. It sings when it is hot. Pour slowly.\n\n## Care\n\n"
    "You need:\n\n- vinegar\n- a brush\n\nRinse it once a month.\n"
)
FIGURES_OF_TEXT = DocumentFigures(TEXT)
OPTIONS: dict[str, Any] = {"length_function": "words", "sizes": (3, 12), "context_size": 20}


def ranges(*parts: str) -> list[tuple[int, int]]:
    return [(TEXT.index(part), TEXT.index(part) + len(part)) for part in parts]


# Each figure on a text in which it can be counted by hand


@pytest.mark.parametrize(
    ("chunks", "share"),
    [
        ([TEXT], 1),
        (["# Kettle", TEXT[10:]], 1),
        ([TEXT[:30], TEXT[30:]], 6 / 7),  # the first paragraph is cut
        ([TEXT[:30], TEXT[25:]], 6 / 7),  # it is in neither chunk
        ([TEXT[:30], TEXT[8:]], 1),  # the second chunk holds all of it
        (["- vinegar"], 1 / 7),
        ([], 0),
    ],
)
def test_block_integrity(chunks: list[str], share: float) -> None:
    assert FIGURES_OF_TEXT.block_integrity(ranges(*chunks)) == pytest.approx(share)


def test_reference_completeness() -> None:
    first, second = (
        "Boil the water. It sings when it is hot.",
        "- a brush\n\nRinse it once a month.",
    )
    assert [TEXT[a:b] for a, b in referring_sentences(TEXT)] == [first, second]
    assert FIGURES_OF_TEXT.reference_completeness(ranges(first, second)) == 1
    assert FIGURES_OF_TEXT.reference_completeness(ranges(first, "Rinse it")) == 0.5
    assert FIGURES_OF_TEXT.reference_completeness(ranges("Boil the water.", "It sings")) == 0
    assert DocumentFigures("No reference. None.").reference_completeness([(0, 5)]) is None


def test_references_of_a_function() -> None:
    figures = DocumentFigures(TEXT, lambda text: [(0, 8), (12, 40)])
    assert figures.reference_completeness([(0, 20)]) == 0.5
    with pytest.raises(ValueError, match=r"references returned \(5, 999\)"):
        _ = DocumentFigures(TEXT, lambda text: [(5, 999)]).references


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Ann came. She left.", ["Ann came. She left."]),
        ("Ann came. In her room she slept.", ["Ann came. In her room she slept."]),
        ("Ann came. Bob left. The latter slept.", ["Bob left. The latter slept."]),
        ("Ann came. Theseus left.", []),
        ("Ann came. Bob thinks of it.", []),
        ("It rains.", []),
        ("# Ann\n\nShe left.", []),
    ],
)
def test_referring_sentences(text: str, found: list[str]) -> None:
    assert [text[start:end] for start, end in referring_sentences(text)] == found


def test_faults() -> None:
    good = ranges("# Kettle\n\nBoil the water.", "It sings when it is hot. Pour slowly.\n\n")
    bad = ranges("# Kettle", "water. It", "## Care\n", "You need:\n\n")
    assert FIGURES_OF_TEXT.mid_sentence(good) == 0
    assert FIGURES_OF_TEXT.mid_sentence(bad) == 0.25
    assert FIGURES_OF_TEXT.orphan_headings(good) == 0
    assert FIGURES_OF_TEXT.orphan_headings(bad) == 0.5
    assert FIGURES_OF_TEXT.lead_ins(good) == 0
    assert FIGURES_OF_TEXT.lead_ins(bad) == 0.75
    assert DocumentFigures("The end\n=======").orphan_headings([(0, 15)]) == 0  # nothing follows


def test_cohesion_and_coherence() -> None:
    east, north = np.eye(2, dtype=np.float32)
    between = (east + north) / np.sqrt(np.float32(2))
    sentences = [np.stack([east, north]), np.stack([east]), np.stack([east, east])]
    chunks = np.stack([between, east, east])
    assert cohesion(chunks, sentences) == pytest.approx((np.sqrt(0.5) + 1) / 2)
    assert cohesion(chunks[1:2], sentences[1:2]) is None  # a single sentence says nothing
    assert cohesion(-chunks, sentences) == 0
    assert coherence(chunks, np.stack([east, north]), [0, 1, 0]) == pytest.approx(
        (np.sqrt(0.5) + 0 + 1) / 3
    )


def test_windows_cover_the_text_and_chunks_are_near_their_middles() -> None:
    text = "word " * 100
    windows = context_windows(text, 20, "words")
    assert windows[0][0] == 0
    assert windows[-1][1] == len(text)
    assert all(len(text[a:b].split()) <= 20 for a, b in windows)
    assert [b - a for a, b in zip(windows[0], windows[1], strict=True)] == [50, 50]
    assert nearest_windows(windows, [(0, 5), (80, 90), (495, 500)]) == [0, 1, len(windows) - 1]


def test_score_counts_faults_inversely() -> None:
    perfect = {name: 0.0 if name in FAULTS else 1.0 for name in FIGURES}
    assert score(perfect) == 1
    assert score({**perfect, "fill": 0.1}) == 1
    assert score({**perfect, "tiny": 1.0}) == pytest.approx(8 / 9)
    assert score(dict.fromkeys(FIGURES)) is None


@given(hostile_texts())
def test_figures_of_any_text_are_shares(text: str) -> None:
    figures = DocumentFigures(text)
    chunks = [(each.start, each.end) for each in RecursiveChunker(chunk_size=9).chunk(text)]
    for own in (chunks, [(0, len(text))] if text else []):
        for name in (
            "block_integrity",
            "reference_completeness",
            "mid_sentence",
            "orphan_headings",
            "lead_ins",
        ):
            value = getattr(figures, name)(own)
            assert value is None or 0 <= value <= 1
    if text.strip():
        assert figures.block_integrity([(0, len(text))]) in (1, None)


# Reports


def test_figures_of_strategies_that_differ() -> None:
    chunkers = {
        "fixed": FixedSizeChunker(chunk_size=8, length_function="words"),
        "sentence": SentenceChunker(chunk_size=12, length_function="words"),
    }
    report = intrinsic(chunkers, {"kettle": TEXT, "tea": TEXT.upper()}, **OPTIONS)
    assert report.names == ["sentence", "fixed"]
    for name, better in {"mid_sentence": "less", "block_integrity": "more"}.items():
        values = [report.figure(each, name) or 0 for each in ("sentence", "fixed")]
        assert (values[0] < values[1]) if better == "less" else (values[0] > values[1])
    assert report.figure("fixed", "cohesion") is None
    assert report.counts["fixed"] == 2 * len(chunkers["fixed"].chunk(TEXT))
    one = report.figure("fixed", "block_integrity", "kettle")
    other = report.figure("fixed", "block_integrity", "tea")
    assert one is not None
    assert other is not None
    assert report.figure("fixed", "block_integrity") == pytest.approx((one + other) / 2)


def test_overlap_keeps_references_together() -> None:
    sizes: dict[str, Any] = {"chunk_size": 6, "length_function": "words"}
    text = "Rain fell. The kettle is red. It sings. Nobody came."
    chunkers = [SentenceChunker(**sizes), SentenceChunker(**sizes, overlap_sentences=1)]
    report = intrinsic(dict(zip("ab", chunkers, strict=True)), {"text": text}, **OPTIONS)
    figures = [report.figure(name, "reference_completeness") or 0 for name in "ab"]
    assert figures[0] < figures[1] == 1


def test_equal_texts_are_embedded_once_for_all_strategies() -> None:
    texts: list[str] = []

    def embed(batch: list[str]) -> list[list[float]]:
        texts.extend(batch)
        return [[1.0, float(len(text))] for text in batch]

    chunkers = [SentenceChunker(chunk_size=size) for size in (30, 60, 60)]
    report = intrinsic(chunkers, {"kettle": TEXT}, embed, **OPTIONS)
    assert len(texts) == len(set(texts)) > 0
    for name in report.names:
        for figure in ("cohesion", "coherence"):
            value = report.figure(name, figure)
            assert value is not None
            assert 0 < value <= 1


def test_work_grows_with_the_text() -> None:
    """Texts to embed, not seconds: windows, sentences and chunks are linear in the text."""
    counts = []
    for times in (1, 4):
        model = CachedEmbeddings(lambda texts: [[1.0] for _ in texts])
        total = 0
        embed = model.embed

        def counted(texts: Any, track: Any = iter, embed: Any = embed) -> Any:
            nonlocal total
            total += sum(map(len, texts))
            return embed(texts, track)

        model.embed = counted  # type: ignore[method-assign]
        intrinsic([SlidingWindowChunker(chunk_size=80)], {"t": TEXT * 20 * times}, model, **OPTIONS)
        counts.append(total)
    assert counts[1] < 4.5 * counts[0]


def test_report_is_written_in_three_forms(tmp_path: Any) -> None:
    chunkers = {"a|b": SentenceChunker(chunk_size=40), "c": SentenceChunker()}
    report = intrinsic(chunkers, {"kettle": TEXT}, **OPTIONS)
    values = json.loads(report.to_json(tmp_path / "r.json"))
    assert [each["name"] for each in values["strategies"]] == report.names
    assert values["strategies"][0]["figures"].keys() == FIGURES.keys()
    rows = list(csv.DictReader(io.StringIO(report.to_csv(tmp_path / "r.csv"))))
    assert len(rows) == 2 * 2 * len(FIGURES)
    lines = report.to_markdown(tmp_path / "r.md").splitlines()
    assert {line.replace("\\|", "").count("|") for line in lines} == {len(FIGURES) + 5}
    assert {path.name for path in tmp_path.iterdir()} == {"r.json", "r.csv", "r.md"}
    assert "No embedding model" in str(report)
    assert "block" in str(report)


def test_chunks_without_positions_hold_nothing() -> None:
    report = intrinsic([lambda text: ["words of its own", "Boil the water."]], {"kettle": TEXT})
    (name,) = report.names
    assert report.figure(name, "block_integrity") == 0
    rewriting = PropositionChunker(llm=lambda prompt: "1: The kettle boils.")
    assert intrinsic([rewriting], {"kettle": TEXT}).names == ["PropositionChunker"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chunkers": []}, "there are no strategies to compare"),
        ({"documents": {}}, "there are no documents"),
        ({"documents": {"blank": " \n"}}, "there are no documents"),
        ({"sizes": (9, 3)}, r"sizes must be \(smallest, largest\), got \(9, 3\)"),
        ({"context_size": 0}, "context_size must be a whole number of at least 1"),
        ({"chunkers": [lambda text: []]}, "gives no chunks for these documents"),
    ],
)
def test_what_cannot_be_compared_is_an_error(options: dict[str, Any], message: str) -> None:
    arguments = {"chunkers": [SentenceChunker()], "documents": {"kettle": TEXT}, **options}
    with pytest.raises(ValueError, match=message):
        intrinsic(**arguments)


def test_unknown_names_are_errors() -> None:
    report = intrinsic({"a": SentenceChunker()}, {"kettle": TEXT})
    for arguments in (("b", "tiny"), ("a", "b"), ("a", "tiny", "b")):
        with pytest.raises(ValueError, match="there is no "):
            report.figure(*arguments)


# Recommendations


def test_recommendation_says_why() -> None:
    sizes: dict[str, Any] = {"chunk_size": 10, "length_function": "words"}
    chunkers = {"sentence": SentenceChunker(**sizes), "fixed": FixedSizeChunker(**sizes)}
    found = recommend({"kettle": TEXT, "tea": TEXT}, chunkers=chunkers, **OPTIONS)
    assert (found.name, found.runner_up) == ("sentence", "fixed")
    assert found.chunker is chunkers["sentence"]
    assert found.best_for == {"kettle": "sentence", "tea": "sentence"}
    assert str(found).startswith("Best figures: sentence. Take sentence: its score, the mean of ")
    assert "It has the best score in 2 of 2 documents." in str(found)
    assert "It is better in mid-sentence (0.0% against" in str(found)
    assert str(found.report).startswith(found.headline), "the report begins with the verdict"
    assert "do not say what a search finds" in str(found)


def test_recommendation_between_equals_and_of_one() -> None:
    equal = recommend({"kettle": TEXT}, chunkers=[SentenceChunker(), SentenceChunker()])
    assert equal.headline == (
        "No clear winner: SentenceChunker and SentenceChunker 2 have about the same figures."
    )
    assert "No figure differs by half a point, so take the one that costs less." in str(equal)
    assert "nothing to choose from" in str(recommend({"k": TEXT}, chunkers=[SentenceChunker()]))


def test_default_strategies_have_one_size() -> None:
    report = recommend({"kettle": TEXT}, chunk_size=15).report
    assert {each.chunk_size for each in report.chunkers.values()} == {15}
    assert set(report.names) == {"content_aware", "recursive", "sentence", "paragraph"}


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_report_shows_as_many_figures_as_fit(width: int) -> None:
    report = recommend({"kettle": TEXT}, chunk_size=15).report
    file = io.StringIO()
    Console(file=file, width=width).print(report)
    lines = file.getvalue().splitlines()
    assert all(len(line) <= width for line in lines)
    assert "\u2026" not in file.getvalue(), "no name and no figure is cut"
    assert all(any(name in line for line in lines) for name in report.names)
    assert ("orphan" in file.getvalue().partition("Means over")[0]) == (width >= 100)
