"""Sizes: exact in every unit, offline, and in linear work."""

from __future__ import annotations

import os
import random
import shutil
import socket
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import llama_index.core
import numpy as np
import pytest
import regex
import tiktoken
import tiktoken.load
import tiktoken.registry
from hypothesis import given
from hypothesis import strategies as st
from tiktoken_ext import openai_public
from tokenizers import Tokenizer, models, pre_tokenizers

from rag_splitters import (
    Chunker,
    ClusterChunker,
    ContentAwareChunker,
    FixedSizeChunker,
    ParagraphChunker,
    RecursiveChunker,
    SemanticChunker,
    SentenceChunker,
    SlidingWindowChunker,
    TokenChunker,
)
from rag_splitters.langchain import RecursiveTextSplitter
from rag_splitters.llama_index import RecursiveNodeParser
from rag_splitters.models import HashingEmbeddings
from rag_splitters.parameters.checks import check_length_function
from rag_splitters.testing import hostile_texts
from rag_splitters.text import encodings, tokens
from rag_splitters.text.encodings import load_encoding
from rag_splitters.text.sizing import sizer
from tests.support.cases import letters
from tests.support.checks import check_chunker

ENCODINGS = ("cl100k_base", "o200k_base")
CL100K = (
    Path(str(llama_index.core.__file__)).parent
    / "_static/tiktoken_cache/9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
)
O200K = CL100K.with_name("fb374d419588a4632f3f557e76b4b70aebbca790")


class CountingEncoding:
    """A tiktoken encoding that keeps what it is asked to encode."""

    def __init__(self, name: str = "cl100k_base") -> None:
        self._encoding = load_encoding(name)
        self.name = name
        self.asked: list[str] = []

    def encode_ordinary(self, text: str) -> list[int]:
        self.asked.append(text)
        return self._encoding.encode_ordinary(text)

    def decode_bytes(self, tokens: list[int]) -> bytes:
        return self._encoding.decode_bytes(tokens)

    def characters(self) -> int:
        """How many characters were encoded since the last time."""
        count = sum(map(len, self.asked))
        self.asked.clear()
        return count


class CountingLength:
    """A user's length function that counts the characters that it reads."""

    def __init__(self) -> None:
        self.read = 0

    def __call__(self, text: str) -> int:
        self.read += len(text)
        return len(text)

    def characters(self) -> int:
        """How many characters were read since the last time."""
        count, self.read = self.read, 0
        return count


def prose(characters: int, seed: int = 7, words: int = 2000) -> str:
    """English-like text: sentences and paragraphs of a vocabulary of `words` words."""
    chance = random.Random(seed)
    vocabulary = [
        "".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(words)
    ]
    parts: list[str] = []
    size = 0
    while size < characters:
        sentence = " ".join(chance.choices(vocabulary, k=chance.randint(5, 18))).capitalize()
        parts.append(sentence + chance.choice([". ", ". ", "? ", ".\n\n"]))
        size += len(parts[-1])
    return "".join(parts)[:characters]


def word_tokenizer() -> Tokenizer:
    """A Hugging Face tokenizer whose tokens are words and marks."""
    tokenizer = Tokenizer(models.WordLevel(vocab={"[UNK]": 0, "[PAD]": 1}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


# Exact


@pytest.mark.parametrize("name", ENCODINGS)
@given(text=hostile_texts(), data=st.data())
def test_token_count_is_what_tiktoken_counts(name: str, text: str, data: st.DataObject) -> None:
    measure = sizer(f"tokens:{name}")(text)
    count = load_encoding(name).encode_ordinary
    assert measure.length(0, len(text)) == len(count(text))
    for _ in range(5):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, len(text)))
        assert measure.length(start, end) == len(count(text[start:end])), (start, end)


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize(
    "alphabet",
    [
        *("ab  \n\t", "aB1' .,-_\n", "他说。！a ", "é \u0301\u200d👩🏽🇩🇪", "\r\n \u00a0\u3000x"),
        *("'sS'tT 12345", "\x00\x0b\x0c a", "س،؟ ا"),
    ],
)
def test_token_count_of_random_text_is_what_tiktoken_counts(name: str, alphabet: str) -> None:
    chance = random.Random(3)
    count = load_encoding(name).encode_ordinary
    for _ in range(40):
        text = "".join(chance.choices(alphabet, k=chance.randint(1, 200)))
        measure = sizer(f"tokens:{name}")(text)
        for _ in range(10):
            start, end = sorted(chance.choices(range(len(text) + 1), k=2))
            assert measure.length(start, end) == len(count(text[start:end])), (text, start, end)


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("kind", [RecursiveChunker, SentenceChunker, TokenChunker])
def test_no_chunk_measures_more_than_its_size_in_tokens(kind: Any, name: str) -> None:
    text = prose(60_000)
    chunker = kind(chunk_size=128, chunk_overlap=64, length_function=f"tokens:{name}")
    counts = [len(load_encoding(name).encode_ordinary(chunk.text)) for chunk in chunker.chunk(text)]
    assert max(counts) <= 128
    assert sum(counts) / len(counts) > 90, "chunks are filled"


@given(text=hostile_texts())
def test_word_count_is_what_split_counts(text: str) -> None:
    measure = sizer("words")(text)
    for start in range(0, len(text) + 1, 3):
        for end in range(start, len(text) + 1, 2):
            assert measure.length(start, end) == len(text[start:end].split())


# How far a size reaches


@pytest.mark.parametrize(
    "unit",
    ["characters", "words", len, letters, "tokens", "tokens:o200k_base", word_tokenizer()],
    ids=["characters", "words", "len", "function", "tokens", "o200k_base", "tokenizer"],
)
@given(text=hostile_texts(), size=st.integers(1, 30), data=st.data())
def test_furthest_and_earliest_fit_and_are_exact_but_in_tokens(
    unit: Any, text: str, size: int, data: st.DataObject
) -> None:
    measure = sizer(unit)(text)
    at = data.draw(st.integers(0, len(text)))
    end, start = measure.furthest(at, size), measure.earliest(at, size)
    assert at <= end <= len(text)
    assert 0 <= start <= at
    assert measure.length(at, end) <= size
    assert measure.length(start, at) <= size
    if unit in ("characters", "words", len, letters):
        assert end == len(text) or measure.length(at, end + 1) > size
        assert start == 0 or measure.length(start - 1, at) > size


@pytest.mark.parametrize("unit", ["tokens", "tokens:o200k_base", "words", "words of a tokenizer"])
def test_furthest_and_earliest_leave_no_room_for_a_word(unit: Any) -> None:
    text = prose(20_000).replace("\n\n", " ")
    measure = sizer(word_tokenizer() if unit == "words of a tokenizer" else unit)(text)
    words = [match.span() for match in regex.finditer(r" ?\S+", text)]
    for first in range(0, len(words) - 400, 37):
        start = words[first][0]
        for size in (1, 7, 64, 300):
            end = measure.furthest(start, size)
            following = next((stop for _, stop in words[first:] if stop > end), None)
            assert following is None or measure.length(start, following) > size
            begin = measure.earliest(start, size)
            before = max((at for at, _ in words if at < begin), default=None)
            assert before is None or measure.length(before, start) > size


@pytest.mark.parametrize("unit", ["characters", "words", "tokens", letters])
@pytest.mark.parametrize("text", ["", " ", "a"])
def test_measure_of_almost_nothing_answers(unit: Any, text: str) -> None:
    measure = sizer(unit)(text)
    assert measure.length(0, 0) == 0
    assert measure.furthest(0, 5) == len(text)
    assert measure.earliest(len(text), 5) == 0


# Work, counted


def test_recursive_chunker_encodes_each_unit_once() -> None:
    text = prose(300_000)
    counting = CountingEncoding()
    chunker = RecursiveChunker(chunk_size=512, length_function=counting)
    chunks = chunker.chunk(text)
    assert len(chunks) > 100
    assert counting.characters() < len(text)


def test_measuring_a_text_encodes_each_distinct_unit_once() -> None:
    text = prose(300_000)
    counting = CountingEncoding()
    measure = sizer(counting)(text)
    assert len(counting.asked) == len(set(counting.asked))
    assert counting.characters() < len(text) / 4
    assert measure.length(0, len(text)) == len(load_encoding("cl100k_base").encode_ordinary(text))


def test_second_chunker_does_not_encode_known_units_again() -> None:
    text = prose(300_000)
    counting = CountingEncoding()
    RecursiveChunker(chunk_size=512, length_function=counting).chunk(text)
    first = counting.characters()
    sizer(counting)(text)
    assert counting.characters() == 0, "measuring a known text again encodes nothing"
    SentenceChunker(chunk_size=500, length_function=counting).chunk(text)
    assert counting.characters() < first


def test_forgotten_and_long_words_are_counted_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_MOST_CACHED", 50)
    count = load_encoding("cl100k_base").encode_ordinary
    measured = sizer(CountingEncoding())
    for seed in range(5):
        words = [
            prose(30_000, seed),
            "https://example.org/" + "a-long-path/" * 20,
            "two  spaces \n",
        ]
        text = " ".join(words * 2)
        assert measured(text).length(0, len(text)) == len(count(text))


def test_threads_measure_by_one_tokenizer() -> None:
    measured = sizer(CountingEncoding())
    texts = [prose(40_000, seed, words=5_000) for seed in range(8)]
    with ThreadPoolExecutor(8) as pool:
        lengths = list(pool.map(lambda text: measured(text).length(0, len(text)), texts))
    assert lengths == [len(load_encoding("cl100k_base").encode_ordinary(text)) for text in texts]


def test_equal_names_share_one_tokenizer() -> None:
    assert sizer("tokens") is sizer("tokens")


def test_model_name_is_its_encoding() -> None:
    text = "Unbelievably, Straßenbahnhaltestelle 123456 他说"
    lengths = {
        name: sizer(f"tokens:{name}")(text).length(0, len(text))
        for name in ("gpt-4o", "o200k_base", "gpt-4", "cl100k_base")
    }
    assert lengths["gpt-4o"] == lengths["o200k_base"] < lengths["gpt-4"] == lengths["cl100k_base"]


LONG = {
    "no white space": lambda size: ("abcdefghijklmnopqrstuvwxyz0123456789" * (size // 36 + 1))[
        :size
    ],
    "one letter": lambda size: "a" * size,
    "one sentence": lambda size: "One and the same sentence, over and over. " * (size // 42),
    "newlines": lambda size: "x" + "\n" * size + "y",
    "spaces": lambda size: "x" + " " * size + "y",
    "emoji": lambda size: "👩‍👩‍👧" * (size // 5),
    "chinese": lambda size: "他说他会来我们等了很久后来下雨了" * (size // 16),
    "marks": lambda size: "." * size,
    "rows": lambda size: "1,2,3\n" * (size // 6),
    "prose": lambda size: prose(size),
}
"""Texts of any size that have made text splitters slow."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "chunk_overlap", "counter"),
    [
        (RecursiveChunker, 0, CountingEncoding),
        (RecursiveChunker, 0, CountingLength),
        (SentenceChunker, 25, CountingLength),
        (SlidingWindowChunker, 25, CountingEncoding),
        (SlidingWindowChunker, 0, CountingLength),
        (ContentAwareChunker, 25, CountingLength),
        (partial(SemanticChunker, embeddings=HashingEmbeddings(dimensions=8)), 0, CountingLength),
        (partial(ClusterChunker, embeddings=HashingEmbeddings(dimensions=8)), 0, CountingLength),
    ],
)
def test_work_grows_with_the_text(kind: Any, chunk_overlap: int, counter: Any) -> None:
    """Four times the text asks for at most five times the characters."""
    for name, make in LONG.items():
        counts = []
        for size in (24_000, 96_000):
            counting = counter()
            text = make(size)
            chunker = kind(chunk_size=100, chunk_overlap=chunk_overlap, length_function=counting)
            chunker.spans(text)
            counts.append(max(counting.characters(), len(text)))
        assert counts[1] <= 5 * counts[0], (name, counts)


@pytest.mark.parametrize("kind", [RecursiveChunker, SentenceChunker, FixedSizeChunker])
def test_work_per_character_is_bounded(kind: Any) -> None:
    """A user's own function reads each character a few times, however the text looks."""
    for name, make in LONG.items():
        counting = CountingLength()
        text = make(20_000)
        kind(chunk_size=200, length_function=counting).spans(text)
        assert counting.characters() < 20 * len(text), name


@pytest.mark.slow
@pytest.mark.parametrize("size", [16, 512])
@pytest.mark.parametrize("kind", [RecursiveChunker, TokenChunker])
def test_tokenizer_is_handed_bounded_pieces(kind: Any, size: int) -> None:
    counting = CountingEncoding()
    for text in (" " * 100_000 + "a", "a" * 50_000, "\n" * 50_000 + "b", "a \n" * 15_000):
        kind(chunk_size=size, length_function=counting).spans(text)
    assert max(map(len, counting.asked)) <= 20_000


@pytest.mark.slow
@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize(
    ("kind", "blank"), [(RecursiveChunker, " "), (SentenceChunker, "\n"), (TokenChunker, "\t")]
)
def test_a_megabyte_of_space_does_not_panic(kind: Any, name: str, blank: str) -> None:
    """tiktoken overflows its stack on it, with an error that is no Exception."""
    text = blank * 1_000_000 + "a"
    chunker = kind(chunk_size=512, length_function=f"tokens:{name}")
    spans = chunker.spans(text)
    assert spans[-1].end == len(text)
    assert text[spans[-1].start : spans[-1].end].endswith("a")


# Encodings that cannot be had


@pytest.mark.parametrize("name", ["nope", "cl100k", "gpt-nope"])
def test_unknown_tokenizer_is_named_at_first_use(name: str) -> None:
    chunker = RecursiveChunker(length_function=f"tokens:{name}")
    with pytest.raises(ValueError, match=f"unknown tokenizer '{name}'.*cl100k_base"):
        chunker.chunk("text")


@pytest.mark.parametrize("value", ["token", "tokens:", "tokens ", "", "Words", 5, None, 1.5, []])
def test_what_is_no_length_function_is_refused_at_once(value: Any) -> None:
    with pytest.raises(ValueError, match='length_function must be "characters"'):
        RecursiveChunker(length_function=value)


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every way to the network raises, and tiktoken's folders are empty."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("the network was asked")

    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    monkeypatch.delenv("DATA_GYM_CACHE_DIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(tiktoken.registry, "ENCODINGS", {})


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("is_set", [False, True], ids=["unset", "empty folder"])
@pytest.mark.parametrize("name", ["gpt2", "p50k_base", "r50k_base", "text-davinci-003"])
def test_encoding_without_a_file_says_what_to_do(
    name: str, is_set: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if is_set:
        monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    with pytest.raises(ValueError, match=r"not downloaded automatically: set TIKTOKEN_CACHE_DIR"):
        RecursiveChunker(length_function=f"tokens:{name}").chunk("text")


@pytest.mark.slow
@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base", "gpt-4o", "gpt-4", "o200k_harmony"])
def test_bundled_encoding_is_loaded_offline(name: str) -> None:
    before, reader = dict(os.environ), tiktoken.load.read_file
    assert load_encoding(name).encode_ordinary("one two three <|endoftext|>")
    assert dict(os.environ) == before
    assert tiktoken.load.read_file is reader


@pytest.mark.slow
@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("variable", ["TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"])
def test_own_cache_folder_is_used_and_no_other(
    variable: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(variable, str(tmp_path))
    for content in (b"", b"ISE= 0\n"):  # not there, or damaged
        with pytest.raises(ValueError, match="set TIKTOKEN_CACHE_DIR to a folder that holds it"):
            load_encoding("o200k_base")
        (tmp_path / O200K.name).write_bytes(content)
    shutil.copy(O200K, tmp_path)
    assert load_encoding("o200k_base").encode_ordinary("one two three") == [690, 1920, 3407]


@pytest.mark.usefixtures("no_network")
def test_tokens_need_no_llama_index(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "llama_index"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "llama_index", None)
    encodings._build_encoding.cache_clear()
    assert load_encoding("cl100k_base").encode_ordinary("one two three") == [606, 1403, 2380]
    with pytest.raises(ValueError, match=r"set TIKTOKEN_CACHE_DIR .* or use cl100k_base$"):
        load_encoding("o200k_base")


@pytest.mark.slow
@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("name", [*ENCODINGS, "o200k_harmony"])
def test_encodings_are_those_of_tiktoken(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our copies of its patterns fail here when a later version of tiktoken changes them."""
    ours = load_encoding(name)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(CL100K.parent))
    theirs = tiktoken.get_encoding(name)
    assert (ours.name, ours._pat_str) == (theirs.name, theirs._pat_str)
    assert ours._mergeable_ranks == theirs._mergeable_ranks
    assert load_encoding(name) is theirs, "what the process has loaded is not loaded again"


def test_older_patterns_are_those_of_tiktoken() -> None:
    for name in ("gpt2", "r50k_base", "p50k_base", "p50k_edit"):
        assert encodings._VOCABULARIES[name].pattern == openai_public.r50k_pat_str


def test_plugin_of_tiktoken_is_passed_as_an_object(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiktoken, "list_encoding_names", lambda: ["mine"])
    with pytest.raises(ValueError, match=r"pass length_function=tiktoken.get_encoding\('mine'\)"):
        load_encoding("mine")


# The user's own


def returns(value: Any) -> Any:
    def nonsense(text: str) -> Any:
        return value

    return nonsense


@pytest.mark.parametrize("value", [-1, 1.5, None, "3", float("nan"), [1]])
def test_length_function_that_returns_nonsense_is_named(value: Any) -> None:
    for kind in (RecursiveChunker, SentenceChunker, FixedSizeChunker):
        chunker = kind(length_function=returns(value))
        with pytest.raises(ValueError, match=r"must return a whole number .*nonsense returned"):
            chunker.chunk("some text")


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8])
def test_length_function_may_return_any_whole_number(kind: Any) -> None:
    chunker = RecursiveChunker(chunk_size=9, length_function=lambda text: kind(len(text)))
    assert [chunk.text for chunk in chunker.chunk("one two three")] == ["one two", "three"]


def test_length_function_that_raises_is_not_hidden() -> None:
    def broken(text: str) -> int:
        raise RuntimeError("the tokenizer is gone")

    with pytest.raises(RuntimeError, match="the tokenizer is gone"):
        RecursiveChunker(length_function=broken).chunk("some text")


@pytest.mark.parametrize(
    "measure",
    [
        lambda text: 5,
        lambda text: 0,
        lambda text: 10**9,
        lambda text: max(0, 50 - len(text)),
        lambda text: len(text) % 7,
        lambda text: len(text) ** 2,
        lambda text: hash(text) % 40 if len(text) > 1 else 1,
    ],
    ids=["constant", "zero", "huge", "falling", "saw", "square", "random"],
)
@pytest.mark.parametrize("kind", [RecursiveChunker, SentenceChunker, FixedSizeChunker])
def test_odd_length_functions_end_and_keep_the_guarantees(kind: Any, measure: Any) -> None:
    chunker = kind(chunk_size=20, chunk_overlap=0, length_function=measure)
    text = "One two three. Four five six.\n\nSeven eight nine ten eleven twelve."
    check_chunker(chunker, text)
    overlapping = kind(chunk_size=20, chunk_overlap=8, length_function=measure)
    assert overlapping.spans(text)[-1].end == len(text)


@pytest.mark.parametrize("value", [len, "characters"])
def test_len_is_characters(value: Any) -> None:
    assert check_length_function(value) == "characters"
    assert RecursiveChunker(length_function=value) == RecursiveChunker()


# Hugging Face tokenizers


def test_truncation_and_padding_do_not_count() -> None:
    text = prose(3000)
    plain = sizer(word_tokenizer())(text)
    tokenizer = word_tokenizer()
    tokenizer.enable_truncation(5)
    tokenizer.enable_padding(length=64, pad_token="[PAD]", pad_id=1)
    measure = sizer(tokenizer)(text)
    for start, end in ((0, len(text)), (10, 30), (0, 1), (500, 2500)):
        assert measure.length(start, end) == plain.length(start, end)
    assert measure.length(0, len(text)) == len(regex.findall(r"\w+|[^\w\s]+", text))
    assert tokenizer.truncation["max_length"] == 5, "the user's own tokenizer was changed"
    assert tokenizer.padding["length"] == 64


@pytest.mark.parametrize("chunk_overlap", [0, 5])
@pytest.mark.parametrize(
    "kind", [RecursiveChunker, SentenceChunker, TokenChunker, ParagraphChunker]
)
def test_tokenizer_object_measures_chunks(kind: Any, chunk_overlap: int) -> None:
    tokenizer = word_tokenizer()
    chunker: Chunker = kind(chunk_size=20, chunk_overlap=chunk_overlap, length_function=tokenizer)
    text = prose(4000)
    check_chunker(chunker, text)
    counts = [len(tokenizer.encode(chunk.text).ids) for chunk in chunker.chunk(text)]
    assert max(counts) <= 20
    assert sum(counts) / len(counts) > 10


def test_name_of_a_tokenizer_opens_no_file(tmp_path: Path) -> None:
    word_tokenizer().save(str(tmp_path / "tokenizer.json"))
    for path in ("/dev/zero", "tokenizer.json", str(tmp_path), str(tmp_path / "tokenizer.json")):
        stored = {"length_function": f"tokens:{path}"}
        loaders: list[Any] = [
            RecursiveChunker.model_validate,
            lambda values: RecursiveTextSplitter(**values),
            RecursiveNodeParser.from_dict,
        ]
        for load in loaders:
            with pytest.raises(ValueError, match="names a file, and a configuration opens none"):
                load(stored)
    with pytest.raises(ValueError, match="unknown tokenizer 'tests'"):
        sizer("tokens:tests")("One.")


def test_tiktoken_encoding_object_is_taken() -> None:
    text = prose(3000)
    named = RecursiveChunker(chunk_size=50, length_function="tokens")
    handed = RecursiveChunker(chunk_size=50, length_function=load_encoding("cl100k_base"))
    assert handed.spans(text) == named.spans(text)
