"""EntityChunker: chains, mentions that are never cut, recognisers of every kind, guarantees."""

from __future__ import annotations

import copy
import json
import pickle
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rag_splitters import HybridChunker, ModalityChunker, PageChunker
from rag_splitters.chunkers.entity import EntityChunker
from rag_splitters.meaning.entities import describe_recogniser, find_mentions
from rag_splitters.meaning.mentions import Mention, mention_windows, remove_overlaps
from rag_splitters.span import Source
from rag_splitters.testing import HOSTILE_PIECES, hostile_texts
from rag_splitters.text.sizing import sizer
from tests.support.checks import check_chunker
from tests.support.splitting import split_texts

_NAMES = re.compile(r"(?:New York|Ada Lovelace|Lovelace|Ada|Bern|The same|Longerword)")

Answer = list[tuple[int, int, str]]


def names(text: str) -> Answer:
    """A recogniser by a list of names."""
    return [(*match.span(), "NAME") for match in _NAMES.finditer(text)]


class Known:
    """A recogniser that knows its answer."""

    def __init__(self, answer: Sequence[tuple[int, int, str]]) -> None:
        self.answer = answer

    def __call__(self, text: str) -> Answer:
        return [each for each in self.answer if each[1] <= len(text)]


def texts_of(text: str, **parameters: Any) -> list[str]:
    return [chunk.text for chunk in EntityChunker(ner=names, **parameters).chunk(text)]


# Which sentences stay together


@pytest.mark.parametrize(
    ("text", "max_gap", "chunks"),
    [
        ("Ada came. Ada left. Bern is old.", 3, ["Ada came. Ada left.", "Bern is old."]),
        ("Ada came. It rained. Bern is old.", 3, ["Ada came. It rained.", "Bern is old."]),
        ("It rained. Ada came.", 3, ["It rained. Ada came."]),
        ("Ada came. Bern is old. Ada left.", 2, ["Ada came. Bern is old. Ada left."]),
        ("Ada came. Bern is old. Ada left.", 1, ["Ada came.", "Bern is old.", "Ada left."]),
        ("Ada came to Bern. Bern is old.", 1, ["Ada came to Bern. Bern is old."]),
        ("Ada Lovelace came. Lovelace left.", 1, ["Ada Lovelace came. Lovelace left."]),
        ("Ada Lovelace came. Ada left.", 1, ["Ada Lovelace came. Ada left."]),
        ("Nobody came. It rained.", 1, ["Nobody came. It rained."]),
    ],
)
def test_entity_chain_holds_sentences_together(text: str, max_gap: int, chunks: list[str]) -> None:
    assert texts_of(text, max_gap=max_gap) == chunks


# Metadata


@given(text=st.lists(st.sampled_from([*HOSTILE_PIECES, "New York", "Ada ", "Bern. "])).map("".join))
def test_entity_metadata_has_exact_positions(text: str) -> None:
    wanted = find_mentions(names, [Source(text)], [])[0]
    for span in EntityChunker(ner=names, chunk_size=20, chunk_overlap=9).spans(text):
        found = span.metadata.get("entities", [])
        assert [(e["start"], e["end"], e["label"]) for e in found] == [
            tuple(each) for each in wanted if span.start <= each.start and each.end <= span.end
        ]
        assert all(text[e["start"] : e["end"]] == e["text"] for e in found)
    json.dumps([dict(span.metadata) for span in EntityChunker(ner=names).spans("Ada. Bern.")])


# No mention is cut


def clusters(text: str) -> list[int]:
    return [0, *(match.end() for match in regex.finditer(r"\X", text, regex.DOTALL))]


@st.composite
def mentioned(draw: st.DrawFn) -> tuple[str, Answer]:
    """A text and mentions in it, between grapheme clusters; some overlap."""
    pieces = [
        *("word", "x", " ", ". ", "\n", "New York", "e\u0301", "👍🏽", "日本", "The end. "),
        *("-", "a b"),
    ]
    text = draw(st.lists(st.sampled_from(pieces) | st.sampled_from(HOSTILE_PIECES)).map("".join))
    edge = st.sampled_from(clusters(text))
    pairs = draw(st.lists(st.tuples(edge, edge), max_size=8))
    return text, [(min(pair), max(pair), "X") for pair in pairs if pair[0] != pair[1]]


def odd_length(text: str) -> int:
    """Not monotone: more text may measure less."""
    return len(text) - 3 * text.count("w") if len(text) > 3 * text.count("w") else 0


@pytest.mark.slow
@settings(max_examples=300)
@example(("| a | b |\nwordwordwordword", [(1, 11, "X")]), 11, 0.5, 0, "characters")
@example(("- \u0301word\n# Heading\n", [(3, 9, "X")]), 7, 0, 0, "characters")
@example(("word# Heading\nword", [(5, 15, "X")]), 15, 0.5, 0, "characters")
@example(("wordThe same passage again. ", [(9, 14, "X")]), 2, 0.5, 0, "words")
@given(
    case=mentioned(),
    size=st.integers(1, 30),
    overlap=st.floats(0, 0.9),
    least=st.floats(0, 1),
    unit=st.sampled_from(["characters", "words", "tokens", odd_length]),
)
def test_entity_mention_is_never_cut(
    case: tuple[str, Answer], size: int, overlap: float, least: float, unit: Any
) -> None:
    text, answer = case
    chunker = EntityChunker(
        ner=Known(answer),
        chunk_size=size,
        chunk_overlap=overlap,
        min_chunk_size=int(least * size),
        length_function=unit,
    )
    spans = check_chunker(chunker, text)
    measure, edges = sizer(unit)(text), set(clusters(text))
    for start, end, _ in find_mentions(chunker.ner, [Source(text)], [])[0]:
        if not {start, end} <= edges or measure.length(start, end) > size:
            continue
        for span in spans:
            assert not start < span.start < end, (start, end, spans)
            assert not start < span.end < end, (start, end, spans)
        assert any(span.start <= start and end <= span.end for span in spans)


def test_entity_mention_that_is_too_long_is_cut_as_any_text() -> None:
    text = "In New York City they met."
    start = text.index("New")
    chunker = EntityChunker(ner=Known([(start, start + 13, "GPE")]), chunk_size=8)
    assert [chunk.text for chunk in chunker.chunk(text)] == [
        "In New",
        "York",
        "City",
        "they",
        "met.",
    ]


@given(text=hostile_texts(), size=st.integers(8, 40))
def test_windows_hold_the_text(text: str, size: int) -> None:
    windows = mention_windows(text, size)
    assert all(0 <= start < end <= len(text) for start, end in windows if text)
    covered = 0
    for start, end in [*windows, (len(text), len(text))]:
        assert not text[covered:start].strip()
        covered = end
    alone = [end - start for start, end in windows if end - start > size]
    assert all(max(b - a for a, b in pairwise(clusters(text))) >= each for each in alone)


# Answers


@pytest.mark.parametrize(
    "answer",
    [(0, 4, "X"), (-1, 2, "X"), (2, 2, "X"), (2, 1, "X"), (0.5, 2, "X"), (0, 2), "Ada", None],
)
def test_entity_wrong_answer_is_named(answer: Any) -> None:
    with pytest.raises(ValueError, match=re.escape(f"the recogniser answered {answer!r}")):
        EntityChunker(ner=lambda text: [answer]).spans("Ada")


def test_mentions_that_overlap_are_resolved_longest_first() -> None:
    text = "one two three four five six"
    given_mentions = [Mention(0, 7, "A"), Mention(4, 18, "B"), Mention(14, 27, "C")]
    assert remove_overlaps(text, given_mentions) == [given_mentions[1]]
    assert remove_overlaps(text, [*given_mentions[1:], *given_mentions[:1]]) == [given_mentions[1]]
    shorter = [Mention(0, 7, "A"), Mention(4, 13, "B"), Mention(8, 23, "C")]
    assert remove_overlaps(text, shorter) == [shorter[0], shorter[2]]
    assert remove_overlaps(" Ada  ", [Mention(0, 6, "P"), Mention(4, 6, "P")]) == [
        Mention(1, 4, "P")
    ]


@pytest.mark.parametrize("ner", [None, 3, "", dict, [1]])
def test_entity_refuses_what_is_no_recogniser(ner: Any) -> None:
    with pytest.raises(ValueError, match="ner must be a spaCy pipeline"):
        EntityChunker(ner=ner)


# spaCy


@pytest.fixture(scope="module")
def ruler() -> Any:
    spacy = pytest.importorskip("spacy")
    pipeline = spacy.blank("en")
    pipeline.add_pipe("entity_ruler").add_patterns(
        [
            {"label": "GPE", "pattern": "New York"},
            {"label": "GPE", "pattern": "Bern"},
            {"label": "PERSON", "pattern": "Ada Lovelace"},
            {"label": "PERSON", "pattern": "Lovelace"},
        ]
    )
    return pipeline


TEXT = "Ada Lovelace wrote a program. Lovelace published it. Bern is a city. \ud800 New York too."


def test_entity_with_a_spacy_pipeline(ruler: Any) -> None:
    chunks = EntityChunker(ner=ruler, max_gap=1).chunk(TEXT)
    assert [chunk.text for chunk in chunks] == [
        "Ada Lovelace wrote a program. Lovelace published it.",
        "Bern is a city.",
        "\ud800 New York too.",
    ]
    entities = [each for chunk in chunks for each in chunk.metadata["entities"]]
    assert [(each["text"], each["label"]) for each in entities] == [
        ("Ada Lovelace", "PERSON"),
        ("Lovelace", "PERSON"),
        ("Bern", "GPE"),
        ("New York", "GPE"),
    ]
    assert all(TEXT[each["start"] : each["end"]] == each["text"] for each in entities)


def test_entity_with_spacy_reads_texts_over_its_limit_in_windows(ruler: Any) -> None:
    text = "Ada Lovelace met nobody. It rained in New York again. " * 40
    wanted = find_mentions(ruler, list(map(Source, [text, "Bern"])), [])
    small = copy.deepcopy(ruler)
    small.max_length = 70
    with pytest.raises(ValueError, match="E088"):
        small(text)
    assert find_mentions(small, list(map(Source, [text, "Bern"])), []) == wanted
    assert [len(mentions) for mentions in wanted] == [80, 1]


def install_pipeline(pipeline: Any, name: str, folder: Path) -> None:
    """A package as `spacy package` builds it."""
    (folder / name).mkdir()
    pipeline.to_disk(folder / name / "data")
    (folder / name / "__init__.py").write_text(
        "from pathlib import Path\nimport spacy\n"
        "def load(**options): return spacy.load(Path(__file__).parent / 'data', **options)\n"
    )
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[spacy_models]\n{name} = {name}\n")


def test_entity_with_the_name_of_a_spacy_pipeline(
    ruler: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_pipeline(ruler, "xx_rules", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    by_name = EntityChunker(ner="xx_rules", chunk_size=40)
    assert by_name.model_dump()["ner"] == "xx_rules"
    assert by_name.spans(TEXT) == EntityChunker(ner=ruler, chunk_size=40).spans(TEXT)
    assert EntityChunker(**by_name.model_dump()).spans(TEXT) == by_name.spans(TEXT)


def test_entity_with_a_folder_names_what_to_pass(ruler: Any, tmp_path: Path) -> None:
    ruler.to_disk(tmp_path)
    with pytest.raises(ImportError, match=r"pass ner=spacy.load\(folder\)"):
        EntityChunker(ner=str(tmp_path)).spans(TEXT)


def test_entity_with_an_empty_pipeline_says_so() -> None:
    spacy = pytest.importorskip("spacy")
    with pytest.raises(ValueError, match="no component that finds entities"):
        EntityChunker(ner=spacy.blank("en")).spans("Ada.")


def test_entity_with_an_unknown_pipeline_downloads_nothing() -> None:
    pytest.importorskip("spacy")
    with pytest.raises(ImportError, match="python -m spacy download en_no_such_pipeline"):
        EntityChunker(ner="en_no_such_pipeline").spans("Ada.")


# Hugging Face and GLiNER, by what their objects answer


class Tokenizer:
    """Counts as many tokens as words, and the two special ones."""

    model_max_length = 12

    def __call__(self, text: str) -> dict[str, list[int]]:
        return {"input_ids": [0] * (len(text.split()) + 2)}


class Config:
    """Where a model's name stands."""

    _name_or_path = "someone/ner"


class Model:
    """A model with a configuration."""

    config = Config()


class HuggingFace:
    """A token classification pipeline: it reads 12 tokens and drops the rest."""

    tokenizer, model = Tokenizer(), Model()

    def __init__(self, aggregates: bool) -> None:
        self.aggregates = aggregates

    def __call__(self, texts: list[str]) -> list[list[Mapping[str, Any]]]:
        return [self.answer(text) for text in texts]

    def answer(self, text: str) -> list[Mapping[str, Any]]:
        assert len(text.split()) <= 10, "it would drop the rest"
        if self.aggregates:
            return [{"entity_group": label, "start": a, "end": b} for a, b, label in names(text)]
        return [
            {"entity": ("B-" if not number else "I-") + label, "start": start + a, "end": start + b}
            for start, end, label in names(text)
            for number, (a, b) in enumerate(m.span() for m in re.finditer(r"\S+", text[start:end]))
        ]


class Gliner:
    """It finds the labels that it is told."""

    config = Config()

    def predict_entities(self, text: str, labels: list[str]) -> list[dict[str, Any]]:
        assert len(text) <= 1000
        return [
            {"start": a, "end": b, "text": text[a:b], "label": label, "score": 0.9}
            for a, b, label in names(text)
            if label in labels
        ]


@pytest.mark.parametrize(
    ("ner", "labels"),
    [(HuggingFace(True), ()), (HuggingFace(False), ()), (Gliner(), ("NAME",))],
    ids=["groups", "tokens", "gliner"],
)
def test_entity_with_other_libraries(ner: Any, labels: tuple[str, ...]) -> None:
    text = "Ada Lovelace and Bern met near New York by night. " * 60
    sources = list(map(Source, [text, "", "Bern"]))
    assert find_mentions(ner, sources, labels) == find_mentions(names, sources, [])


def test_entity_with_gliner_needs_labels() -> None:
    with pytest.raises(ValueError, match=r"labels=\[...\]"):
        EntityChunker(ner=Gliner()).spans("Ada.")


# Configurations


def test_entity_recogniser_is_written_as_a_stable_name(ruler: Any) -> None:
    assert (
        EntityChunker(ner=names).model_dump()["ner"] == "function:tests.chunkers.test_entity:names"
    )
    assert EntityChunker(ner="en_core_web_sm").model_dump()["ner"] == "en_core_web_sm"
    described = describe_recogniser(ruler)
    assert described.startswith("recogniser:spacy:en_pipeline-0.0.0:")
    assert describe_recogniser(pickle.loads(pickle.dumps(ruler))) == described
    other = copy.deepcopy(ruler)
    other.get_pipe("entity_ruler").add_patterns([{"label": "GPE", "pattern": "Oslo"}])
    assert describe_recogniser(other) != described
    assert describe_recogniser(HuggingFace(True)) == "recogniser:transformers:someone/ner"
    assert describe_recogniser(Gliner()) == "recogniser:gliner:someone/ner"


def test_entity_configuration_is_read_again() -> None:
    chunker = EntityChunker(ner=names, labels=["NAME"], max_gap=2)
    for written in (chunker.model_dump(), json.loads(chunker.model_dump_json())):
        assert EntityChunker(**{**written, "ner": names}) == chunker
        with pytest.raises(ValueError, match="pass the function again as ner="):
            EntityChunker(**written)
    with pytest.raises(ValueError, match="pass it again as ner="):
        EntityChunker(ner="recogniser:gliner:someone/ner")
    with pytest.raises(ValueError, match="no other process could find it by name"):
        EntityChunker(ner=lambda text: []).model_dump()
    with pytest.raises(ValueError, match="by which another process could"):
        EntityChunker(ner=Known([])).model_dump()
    with pytest.raises(ValueError, match="by which another process could"):
        EntityChunker(ner=Known([]).__call__).model_dump()


def test_entity_with_a_pipeline_is_pickled(ruler: Any) -> None:
    chunker = EntityChunker(ner=ruler, chunk_size=40)
    again = pickle.loads(pickle.dumps(chunker))
    assert again.spans(TEXT) == chunker.spans(TEXT)
    assert again.model_dump() == chunker.model_dump()


def test_entity_recogniser_is_asked_once_about_each_text() -> None:
    asked: list[str] = []

    def ner(text: str) -> Answer:
        asked.append(text)
        return names(text)

    texts = ["Ada came.", " ", "Bern is old."]
    split_texts(EntityChunker(ner=ner), texts)
    assert asked == ["Ada came.", "Bern is old."]


def test_mentions_in_parts_have_positions_in_the_source() -> None:
    text = "No name here.\fThen Ada came. <b>Bern</b> is old.\fAda left."
    for chunker in (
        HybridChunker(stages=[PageChunker(), EntityChunker(ner=names)]),
        ModalityChunker(text=EntityChunker(ner=names), format="html"),
    ):
        entities = [e for chunk in chunker.chunk(text) for e in chunk.metadata.get("entities", ())]
        assert [text[e["start"] : e["end"]] for e in entities] == ["Ada", "Bern", "Ada"]
