"""Quotations are looked up in a text, whatever white space and markup stand between the words."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rag_splitters.testing import hostile_texts
from rag_splitters.text.quotations import QuotableText, _words_in, word_differences

WORDS = st.lists(st.sampled_from("the old lamp was lit at four 茶 水 élan".split()), min_size=1)


@given(before=WORDS, words=WORDS, after=WORDS, space=st.sampled_from([" ", "\r\n", " **", "</b> "]))
def test_words_in_their_order_are_found(
    before: list[str], words: list[str], after: list[str], space: str
) -> None:
    text = space.join([*before, *words, *after])
    start = len(space.join([*before, ""]))
    places = [(each.start, each.end) for each in QuotableText(text).find(" ".join(words).upper())]
    assert (start, start + len(space.join(words))) in places
    for first, last in places:
        assert QuotableText(text[first:last]).find(" ".join(words))


@given(text=st.text(), quotation=st.text())
def test_any_text_is_searched(text: str, quotation: str) -> None:
    for each in [*QuotableText(text).find(quotation), QuotableText(text).nearest(quotation)]:
        if each is not None:
            assert 0 <= each.start < each.end <= len(text)
            assert 0 < each.likeness <= 1


def test_tags_entities_and_addresses_are_no_words() -> None:
    text = "<p>The <a href='x y'>old</a>&nbsp;lamp [was lit](https://a.b/c) at four.</p>"
    (place,) = QuotableText(text).find("old lamp was lit at four.")
    assert text[place.start : place.end] == "old</a>&nbsp;lamp [was lit](https://a.b/c) at four."


def test_nearest_place_is_found_in_a_long_text() -> None:
    text = "The lamp was dark. " * 20_000 + "The old lamp was lit at four. " + "It was. " * 20_000
    nearest = QuotableText(text).nearest("the old lamp was lit at five")
    assert nearest is not None
    assert text[nearest.start : nearest.end] == "The old lamp was lit at four"
    assert nearest.likeness == pytest.approx(6 / 7)


def test_nothing_is_near_words_that_a_text_lacks() -> None:
    assert QuotableText("The lamp was lit.").nearest("green moons") is None
    assert QuotableText("").nearest("green moons") is None


def test_differences_are_shown_by_words() -> None:
    assert word_differences("it was lit", "It was lit") == "It was lit"
    assert word_differences("never lit", "lit again") == "[-never-] lit {+again+}"


@pytest.mark.parametrize(
    ("quotation", "text", "place"),
    [
        ("hot tea", "hot\r\ntea", (0, 8)),
        ("hot\u00a0tea", "hot\u3000tea", (0, 7)),
        (" hot ", "too hot!", (4, 7)),
        ("hot", "a shot, hot", (8, 11)),  # a whole word before a part of one
        ("sho", "a shot, hot", (2, 5)),
        ("hot\ufffdtea", "hot\ud800tea", (0, 7)),  # as a chat model sees a lone surrogate
        ("\ufffd", "a\ufffdb", (1, 2)),
        ("→ →", "a → → b", (2, 5)),  # no words
        ("a.c", "abc a.c", (4, 7)),
        ("it is old.", "It is *old*. it is old. It is old.", (13, 23)),  # letter by letter first
        ("It is **very** `old`.", "It is very old. It is.", (0, 15)),
        ("<|endoftext|>", "x<|endoftext|>", (1, 14)),
        ("é", "e\u0301", (0, 2)),
        ("e", "e\u0301 e", (3, 4)),
        ("cafe\u0301 naïf", "Café nai\u0308f", (0, 10)),
        ("が", "か\u3099", (0, 2)),
        ("\u0301tea", "a \u0301tea", (2, 6)),
        ("find", "ﬁnd", (0, 3)),
        ("Café naïf & é 5", "Caf&eacute; na&#239;f&#160;&amp; &#xE9;&nbsp;5", (0, 46)),
    ],
)
def test_place_of_a_quotation(quotation: str, text: str, place: tuple[int, int]) -> None:
    assert QuotableText(text).find(quotation)[0][:2] == place


@pytest.mark.parametrize(
    ("quotation", "text"),
    [("hottea", "hot tea"), ("hot ... tea", "hot black tea"), (" \n", "hot tea")],
)
def test_quotation_that_does_not_stand_there_has_no_place(quotation: str, text: str) -> None:
    assert QuotableText(text).find(quotation) == []


@example(text="aa\ufeffa", start=1, length=2)  # inside a word, while its words stand elsewhere
@given(text=hostile_texts(), start=st.integers(0, 100), length=st.integers(0, 100))
def test_what_is_copied_is_found(text: str, start: int, length: int) -> None:
    quotation = text[start : start + length].strip()
    places = QuotableText(text).find(quotation)
    assert bool(places) == bool(quotation)
    found = [text[each.start : each.end] for each in places]
    words = [[word.text for word in _words_in(each)] for each in (quotation, *found)]
    assert not found or quotation in found or all(each == words[0] for each in words)
