"""Results that were wrong once."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from rag_splitters import (
    AutoChunker,
    Chunker,
    FixedSizeChunker,
    KeywordChunker,
    PageChunker,
    ParagraphChunker,
    RecursiveChunker,
    SentenceChunker,
    SeparatorChunker,
    SlidingWindowChunker,
    Source,
    Span,
    TokenChunker,
)
from rag_splitters.errors import InputError
from rag_splitters.text.sentences import sentence_cuts
from tests.support.checks import check_chunker


def texts(chunker: Chunker, text: str) -> list[str]:
    return [chunk.text for chunk in chunker.chunk(text)]


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r"])
def test_one_line_break_is_no_blank_line(line_break: str) -> None:
    text = "One.\nStill one.\n\nTwo.".replace("\n", line_break)
    expected = ["One.\nStill one.".replace("\n", line_break), "Two."]
    assert texts(SeparatorChunker(separators=["\n\n"]), text) == expected
    assert texts(ParagraphChunker(group=False), text) == expected


def test_a_chunker_of_a_users_own_sees_the_text_as_it_is() -> None:
    seen: list[str] = []

    class Whole(Chunker):
        def spans(self, text: str) -> list[Span]:
            seen.append(text)
            return [Span(0, len(text))]

    assert texts(Whole(), "One.\rTwo.") == seen == ["One.\rTwo."]


def test_a_separator_may_name_the_carriage_return() -> None:
    documents = [Source("One.\rTwo.\nThree.", {}), Source("Four.", {})]
    spans = SeparatorChunker(separators=["\r"]).split(documents)
    assert [len(each) for each in spans] == [2, 1]


@pytest.mark.parametrize(
    ("separators", "pieces"),
    [
        ([";", "(?i)end"], ["a", "b", "c"]),
        ([r"(x)\1", r"(;)"], ["a", "bENDc"]),
        (["(?i)end", r"(;)(?=b)"], ["a", "b", "c"]),
    ],
)
def test_each_pattern_has_its_own_flags_and_groups(
    separators: list[str], pieces: list[str]
) -> None:
    options: dict[str, Any] = {"is_regex": True, "separators": separators}
    assert texts(SeparatorChunker(**options), "a;bENDc") == pieces
    assert texts(RecursiveChunker(**options, chunk_size=4, keep_separator="none"), "a;bENDc")


def test_keyword_is_a_whole_word_where_words_have_ends() -> None:
    assert texts(KeywordChunker(keywords=["결론"]), "서론\n결론은 이렇다") == [
        "서론",
        "결론은 이렇다",
    ]
    assert texts(KeywordChunker(keywords=["_id"]), "a\na_id\n_id") == ["a\na_id", "_id"]


@pytest.mark.parametrize("chunk_size", [None, 5])
def test_line_breaks_begin_the_piece_after_them(chunk_size: int | None) -> None:
    chunker = SeparatorChunker(
        separators=["\n\n"], keep_separator="auto", chunk_size=chunk_size, chunk_overlap=0
    )
    assert texts(chunker, "one\n\ntwo") == ["one", "\n\ntwo"]


class CountingText(str):
    """A text that counts the characters that `find` and `rfind` read in vain."""

    read = 0

    def find(self, part: str, start: int = 0, end: int | None = None) -> int:  # type: ignore[override]
        end = len(self) if end is None else end
        place = super().find(part, start, end)
        CountingText.read += end - start if place < 0 else place - start
        return place


def test_keyword_reads_each_line_once() -> None:
    text = CountingText("Article 1\nText.\n" * 2000)
    assert len(KeywordChunker(keywords=["Article"]).spans(text)) == 2000
    assert CountingText.read < 10 * len(text)


def test_keyword_may_be_one_character() -> None:
    assert texts(KeywordChunker(keywords=["Q", "§"]), "Q 1\n§2\nQuit") == ["Q 1", "§2\nQuit"]


def test_section_knows_where_the_text_after_its_overlap_begins() -> None:
    chunker = KeywordChunker(keywords=["Part"], chunk_size=26, chunk_overlap=12)
    spans = chunker.spans("Part 1\nIt rained. It froze.")
    assert [(span.start, span.own) for span in spans] == [(0, 0), (7, 18)]


def test_whole_line_takes_a_pattern_with_flags() -> None:
    chunker = KeywordChunker(patterns=["(?i)article \\d|other"], whole_line=True)
    text = "Preamble\n ARTICLE 1 \nText about article 2\r\narticle 3\r\nEnd"
    chunks = chunker.chunk(text)
    assert [chunk.metadata.get("keyword") for chunk in chunks] == [None, "ARTICLE 1", "article 3"]


@pytest.mark.parametrize("pattern", ["(", "a{99999999999999999999}"])
@pytest.mark.parametrize(
    ("name", "build"),
    [
        ("pattern", lambda pattern: KeywordChunker(patterns=[pattern])),
        ("page_break", lambda pattern: PageChunker(page_break=pattern)),
        ("separator", lambda pattern: SeparatorChunker(separators=[pattern], is_regex=True)),
        ("segmenter", lambda pattern: SentenceChunker(segmenter=f"regex:{pattern}")),
        (
            "secondary_chunking_regex",
            lambda pattern: SentenceChunker(secondary_chunking_regex=pattern),
        ),
    ],
)
def test_invalid_regular_expression_is_named(
    name: str, build: Callable[[str], Chunker], pattern: str
) -> None:
    with pytest.raises(InputError, match="is not a valid regular expression") as error:
        build(pattern)
    assert str(error.value).startswith(f"{name} {pattern!r}")


def test_page_that_begins_at_the_start_is_the_first() -> None:
    chunks = PageChunker(page_break=r"(?=Page \d)").chunk("Page 1\nTea.\nPage 2\nMilk.")
    assert [chunk.metadata["page_start"] for chunk in chunks] == [1, 2]
    assert [chunk.metadata["page_start"] for chunk in PageChunker().chunk("\fTea.")] == [2]


def test_number_of_a_section_ends_a_sentence() -> None:
    text = "See Sec. 3.2. It is short. See Fig. 4. It is long."
    cuts = [0, *sentence_cuts(text), len(text)]
    assert [text[start:end].strip() for start, end in pairwise(cuts)] == [
        "See Sec. 3.2.",
        "It is short.",
        "See Fig. 4.",
        "It is long.",
    ]


def test_rules_in_another_order_are_other_rules() -> None:
    rules = {"*.txt": "sentence", "a*": "recursive"}
    other = dict(reversed(rules.items()))
    assert AutoChunker(rules=rules) != AutoChunker(rules=other)
    assert AutoChunker(rules=rules) == AutoChunker(rules=dict(rules))
    assert hash(AutoChunker(rules=rules)) == hash(AutoChunker(rules=dict(rules)))


@pytest.mark.parametrize("overlap", [0, 3])
def test_windows_keep_their_edges_unless_they_are_stripped(overlap: int) -> None:
    text = "one  two\n\n three   four \n five  "
    options: dict[str, Any] = {"chunk_size": 6, "chunk_overlap": overlap}
    options["length_function"] = "characters"
    assert any(each != each.strip() for each in texts(TokenChunker(**options), text))
    stripped = TokenChunker(strip_whitespace=True, **options)
    assert [each.strip() for each in texts(stripped, text)] == texts(stripped, text)
    assert texts(stripped, text)[-1].endswith("five")
    check_chunker(stripped, text)


def test_an_overlap_cuts_no_word_that_fits_without_it() -> None:
    assert texts(RecursiveChunker(chunk_size=3, chunk_overlap=1), "a a foo") == ["a a", "foo"]
    link = "See the page. [link](http://example.org/a/b/c)"
    chunks = texts(RecursiveChunker(chunk_size=34, chunk_overlap=6), link)
    assert chunks == ["See the page.", "[link](http://example.org/a/b/c)"]
    dots = RecursiveChunker(chunk_size=10, chunk_overlap=4, separators=["."])
    assert texts(dots, "aaaa bbbb.Cccc") == ["aaaa bbbb.", "Cccc"]
    chunks = texts(RecursiveChunker(chunk_size=12, chunk_overlap=5), "0123456789abcdefghij end")
    assert chunks == ["0123456789ab", "89abcdefghij", "end"]


@pytest.mark.parametrize(
    ("text", "size", "overlap", "second"),
    [
        ("Вода в нём горячая. Она шумит. Мы ждём и ждём.", 32, 22, "Она шумит. Мы ждём и ждём."),
        ("पानी गरम है। चाय पक रही है। हम बैठे हैं।", 30, 16, "चाय पक रही है। हम बैठे हैं।"),
        ("茶叶慢慢展开。我们等一会儿。杯子是空的。", 14, 8, "我们等一会儿。杯子是空的。"),
    ],
)
def test_overlap_repeats_whole_sentences_in_any_script(
    text: str, size: int, overlap: int, second: str
) -> None:
    _, following = texts(RecursiveChunker(chunk_size=size, chunk_overlap=overlap), text)
    assert following == second


@pytest.mark.parametrize(
    ("text", "overlap", "second"),
    [
        ("He sat on the mat, and a dog was lying there, quiet as ever, at the door.", 30, "and a"),
        ("alpha = 1\nbeta = gamma + delta\nepsilon = zeta + eta\ntheta = iota", 24, "epsilon"),
        ("one two three four five six seven eight nine ten eleven twelve", 12, "nine ten"),
    ],
)
def test_overlap_begins_with_a_clause_or_a_line_if_no_sentence_fits(
    text: str, overlap: int, second: str
) -> None:
    first, following, *_ = texts(RecursiveChunker(chunk_size=52, chunk_overlap=overlap), text)
    assert following.startswith(second), (first, following)


def test_tokenizer_that_was_changed_is_measured_anew() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    parts = tokenizers.pre_tokenizers
    model = tokenizers.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = parts.Whitespace()
    chunker = RecursiveChunker(chunk_size=3, length_function=tokenizer)
    assert texts(chunker, "a 123 c d") == ["a 123 c", "d"]
    digits = parts.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = parts.Sequence([parts.Whitespace(), digits])
    assert texts(chunker, "a 123 c d") == ["a", "123", "c d"]


@pytest.mark.parametrize(
    ("chunker", "text"),
    [
        (
            FixedSizeChunker(chunk_size=8, chunk_overlap=3, length_function="tokens"),
            "a\n)\r\n\r\nनमस्ते। ",
        ),
        (
            SlidingWindowChunker(chunk_size=8, chunk_overlap=3, length_function="tokens"),
            "\x81)\r\n\r\nनमस्ते। ",
        ),
        (
            TokenChunker(chunk_size=9, chunk_overlap=4, strip_whitespace=False),
            "a```\n\x81)\r\n\r\nThe same passage again. ",
        ),
    ],
)
def test_exact_overlaps_are_the_longest_of_a_tokenizer_that_merges(
    chunker: Chunker, text: str
) -> None:
    """It measures some parts longer than the text from an earlier place."""
    check_chunker(chunker, text)


def test_white_space_that_is_kept_does_not_make_a_lead_of_what_follows_it() -> None:
    chunker = RecursiveChunker(chunk_size=17, chunk_overlap=6, strip_whitespace=False)
    assert texts(chunker, "a- item\na# Heading\n a") == ["a- item", "item\na# Heading", "\n a"]
