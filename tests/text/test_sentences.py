"""Sentences: hard cases, the same answer for a window as for the whole text, linear work."""

from __future__ import annotations

import sys
import unicodedata
from itertools import pairwise
from unittest.mock import patch

import pytest
import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rag_splitters.text import sentences
from rag_splitters.text.sentences import (
    first_sentence_start,
    last_sentence_cut,
    sentence_cuts,
    sentence_spans,
)

CASES = {
    # titles, initials, abbreviations
    "titles": "Dr. Smith met Mrs. Jones and Prof. Lee. |St. Peter wept.",
    "initials": "J. R. R. Tolkien wrote it. |W. A. Mozart did not. |A. A. Milne did.",
    "country": "U.S. policy changed. |The U.S. Senate agreed. |He lives in the U.S. |He works.",
    "country_long": "He left the U.S.A. for good. |He moved to the U.S.A. |Then he died.",
    "degrees": "She has a Ph.D. in physics. |Jo Ph.D. Smith left. |He has a Ph.D. |She has not.",
    "latin": "Use a tool, e.g. Ruff, i.e. a linter. |See cf. Smith, approx. 5, vs. 6.",
    "et_al": "Doe et al. Show it. |Doe et al. (2020) did, etc. and so on. |So did al. |He left.",
    "companies": "Apple Inc. announced it. |Acme Corp. Europe and Foo Ltd. Germany agreed.",
    "company_ends": "He works for Acme Inc. |She does not. |He left the Co. |They sued.",
    "references": "See Fig. 3 and Sec. 2.1, No. 5, p. 12, Vol. 3, Eq. (4). |Next.",
    "references_elsewhere": "Según el art. 5 de la ley. |См. рис. 5 и табл. 2. |Далее. |Art. 5.",
    "courts": "See 645 F. Supp. 2d 587 (WD Tex. 2009); Fed. R. Civ. P. 12; Code Ann. §51. |Next.",
    "short_ends": "He met Bob. |2. The second. |He met her. |25 came. |Why? |25 came.",
    "reference_ends": "See Fig. 2. |Then read on. |Am 3. Mai kam er.",
    "doubled": "En EE. UU. hay mucho. |Las FF. AA. de EE. UU. |El presidente habló.",
    "korean_date": "서울시는 2020. 3. 5. 발표했다. |끝.",
    "other_titles": "Il dott. Rossi, cfr. Bianchi. |El Excmo. Sr. López. |Dhr. Jansen. |См. Том.",
    "hindi_titles": "डॉ. शर्मा आए। |वे गए।",
    "said_no": "He said no. |I agreed. |No. |That is all.",
    "german_or_english": "It was lit. |It is a gem. |They left. |Nach § 4 lit. b, gem. Art. 5.",
    "months": "On Jan. 5 it snowed. |It ended in Dec. |The new year came.",
    "time_of_day": "At 5 p.m. he left. |She came at 7 a.m. |Then they ate. |By 5 p.m. Eastern.",
    "street": "He lives on Main St. |He likes it.",
    "plan_b": "Go for plan B. |It is better.",
    # numbers, addresses, file names
    "decimals": "It costs $3.14 or 3.5 percent. |Pay $3.14. |Next.",
    "url": "See https://a.b/c?d=e. |Next. |Visit https://a.b/c?D=e! and v1.2.3 of it.",
    "address": "Mail a.b@Foo.com or open Read.me, file.Name, System.Out and Node.js now.",
    "www": "Go to www.Foo.Bar now. |Or e.g.Something. |Or example.com. |Done.",
    "year": "He died in 1987. |She lived. |In 1990. |25 people came.",
    "doctor_example": "Dr. Smith paid $3.14 to J. R. Tolkien, i.e. nothing.",
    # quotations
    "quote_inside": 'She said "Stop." |Then she left.',
    "quote_goes_on": '"Stop!" she said. |"Why?" he asked. |"No!" Mary said.',
    "quote_outside": 'She said "stop". |Then she left.',
    "quote_curly": "She said “Stop.” |“Why?” he asked. |‘Go.’ |He went.",
    "quote_guillemets": "« Arrête ! » dit-il. |Il dit « Non. » |Elle part. |»Nein.« |Er ging.",
    "quote_chinese": "他走了。|“你好。”|她说。|“再见！”|„Er ging.“ |Sie blieb.",
    "code_chinese": "他走了。|`next`方法（`a`）好。|``b``。|说`再见。`|好。",
    "quote_opens": 'He left. |"Where to?" I asked. |(Nobody knew.) |[Not he.] |Yes.',
    # other marks
    "ellipsis": "Wait... what? |Well… no. |And so . . . it ended. |He left… |She stayed.",
    "marks": "What?! |No!!! |Really?? |Yes.",
    "dash": "He left.—|I stayed!\u2060—|“No,” he said.--|So it was.—\n|Mr.—Smith?—no.—|Yes—He did.",
    "brackets": "(See below.) |Next (e.g. this). |Then [that.] |End.",
    "glued": "It ended.|Then it began. |Really?|Yes, so. |It was (so).|The end.",
    "lower_start": "iPhone is new. |He left. |iPhone sales rose. |he left. |she stayed.",
    "yahoo": "Yahoo! is a company. |Yahoo! Inc. is one.",
    "citation_after": "It was shown before.[1] |Next. |It was shown.[2][3] |Then it was not.",
    "references_after": "It works. ([#11](https://a.b/11), [#12](https://a.b/12))\n|- Next.",
    "councillor": "As Cllr. Whitlock said. |He left.",
    "citation_before": "It was shown before [1]. |Next.",
    "emoji": "I won! 🎉 |Next one.🎉👩‍👩‍👧 |Last one.\n|🎉 Party. |Hi ❤️ you.",
    "tokenised": "He left the city . |She came , too . |It ended .",
    "markdown_emphasis": "**It ended.** |Then _it began._ |So.",
    # lines
    "wrapped": "The president of the\nUnited States spoke in\r\nParis. |Then he\nleft.",
    "blank_lines": "no stop\n\n|next part\r\n \r\n|third part\r\r|fourth part \n \t\n |fifth part",
    "heading_plain": "Getting Started\n|Install the package. |Then run it.",
    "heading_caps": "Intro ends.\n\n|1. INTRODUCTION\n|The text begins.",
    "heading_blank": "A heading without stop\n\n|The text begins.",
    "heading_markdown": "# What to do\n|pip install it. |Then go on.\n|## Next\n|more of it.",
    "title_in_paragraph": "He saw the\nNew York\nTimes building.",
    "list_numbered": "Do this:\n|1. One\n|2. Two\n|10. The third",
    "list_bulleted": "- a\n|- b and\n  c\n|* d\n|• x\n|• y",
    "list_lettered": "a) first\n|b) second\n|(iv) The fourth.\n|A. The fifth",
    "list_lettered_stops": "rights:\n |i. a copy;\n|ii. moral rights; and\n|iii. the rest. |End.",
    "no_lettered_item": "He sued Roe\nv. Wade in it, by\ni. e. the law. |Then he left.",
    "run_in_heading_long": "5. Submission of Contributions. Unless you say so, it is. |Next.",
    "run_in_heading": "2. Waiver. To it.\n|3. Grant of Patent License. Subject to it. |Next.",
    "list_inline": 'Make lists "1. One 2. Two" here. |Or so: 1. The first.',
    "list_inline_stops": "1. One. |2. The second. |3. Three.",
    "barcelona": "Barcelona is a city in Spain. |It is close to the sea \n and the mountains. \n |"
    "You can both ski in winter and swim in summer.",
    # languages
    "german": "Er isst z. B. Brot, d. h. viel, u. a. Obst. |"
    "Am 3. Mai kam der 2. Weltkrieg. |Er ging.",
    "german_laws": "Das Gesetz (BGBl. I S. 5; ABl. L 3) gilt ab 3\\. Mai. |Lfd. Nr. 5 entfällt.",
    "german_courts": "So BGH, Rn. 12 und Aufl. 3, iSd. § 5 ZPO. |§ 6 gilt. |Es sind 5 Mio. Euro.",
    "german_glued": "Nimm z.B. Brot bzw. Wein. |Die Nr. 5 lebt.",
    "spanish": "¿Qué? |¡Sí! |«No.» |Él se fue.",
    "wiki_heading": "== Tea ==\n|pour it, as #2 says",
    "french": "Où vas-tu ? |À Paris ! |É vrai.",
    "russian": "Он ушёл. |Она осталась. |Где?",
    "hindi": "यह पहला है। |यह दूसरा है॥ |तीसरा?",
    "arabic": "كيف حالك؟ |أنا بخير. |شكرا!",
    "urdu_armenian_ethiopic_burmese": "یہ ہے۔ |وہ ہے۔ |Բարեւ։ |Այո։ |ሰላም። |እሺ። |ကောင်း။ |ဟုတ်။",
    "chinese": "你好。|再见！|真的吗？|他说：“走吧。”|她走了（真的。）|好｡",
    "japanese": "「行く。」|彼は言った。|「行く。」と彼は言った。|『はい！』|終わり",
}


@pytest.mark.parametrize("marked", CASES.values(), ids=CASES.keys())
def test_sentence_spans_hard_cases(marked: str) -> None:
    text = marked.replace("|", "")
    expected = [part.strip() for part in marked.split("|")]
    assert [text[start:end] for start, end in sentence_spans(text)] == expected
    assert_consistent(text)


def test_cells_of_a_table_in_lines_of_their_own_are_one_sentence() -> None:
    text = "|===\n|one |two\n\n|a\n|b\n\n|c\n|d"
    assert [text[start:end] for start, end in sentence_spans(text)][2:] == ["|a\n|b", "|c\n|d"]


def assert_consistent(text: str) -> None:
    """The cuts are well placed, the spans cover the text, each window agrees with the whole."""
    cuts = sentence_cuts(text)
    assert cuts == sorted(set(cuts))
    for cut in cuts:
        assert 0 < cut < len(text)
        assert not text[cut].isspace()
        assert not unicodedata.category(text[cut]).startswith("M")
    spans = sentence_spans(text)
    assert "".join("".join(text[a:b].split()) for a, b in spans) == "".join(text.split())
    assert all(text[a:b] == text[a:b].strip() != "" for a, b in spans)
    assert all(first[1] <= second[0] for first, second in pairwise(spans))
    assert [a for a, _ in spans[1:]] == cuts
    edges = sorted({0, len(text), *cuts, *(cut - 1 for cut in cuts), *range(0, len(text), 37)})
    for low in edges:
        for high in edges:
            expected = max((cut for cut in cuts if low < cut <= high), default=-1)
            assert last_sentence_cut(text, low, high) == expected, (low, high)
            first = min((start for start, _ in spans if low <= start < high), default=-1)
            assert first_sentence_start(text, low, high) == first, (low, high)


PIECES = [
    *("He left. ", "Dr. ", "J. ", "U.S. ", "3. ", "it", "The ", ".Then it", " said ", "etc. "),
    "1.2",
    *(". . .", "...", ". ", "? ", "!", "…", "。", "」", "と", "।", "؟ ", '"', "”", "«", ")"),
    *("[1]", "#", "—", "--", "\u2060—I"),
    *("\n", "\r\n", "\r", "\n\n", " ", "\t", "\u2029", "\u00a0", "\x1c", "\x85", "\x00", "\ud800"),
    *("🎉", "👩‍👩‍👧", "🏽", "\u0301", "\u200d", "\ufe0f", "שלום. ", "\u202e", "中文", "- a\n"),
    "# Title\n",
    *("1. One\n", " " * 130, "\n" * 90, "." * 130, ")" * 130, "x" * 130, "[a, b]", "🎉" * 9, "  "),
]
hostile = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=40).map("".join),
    st.lists(st.one_of(st.sampled_from(PIECES), st.characters()), max_size=30).map("".join),
    st.text(alphabet='.!?。 \n\r\tAaeé1)"”—-[]🎉\u0301\u200d\u2060', max_size=120),
)


@pytest.mark.slow
@settings(max_examples=2 * settings().max_examples)
@given(text=hostile, times=st.integers(1, 3))
@example(text="One." + " " * 1000 + "Two.\n" + "\n" * 1000 + "three", times=2)
@example(text="A." + ")" * 500 + " B. He." + "." * 500 + " Then", times=1)
def test_last_sentence_cut_agrees_with_sentence_cuts(text: str, times: int) -> None:
    assert_consistent(text * times)


LINES = (
    "It was hot.|they drank|Tea, or|# Title|= Title =|a) a pot|iv. Four|and|x = 1|foo(|)|No|Dr.|"
    'He said "no."|a long way of transportation.|3. Tea|bundesgesetzbl.|- tea|iPhone|Mr. Ada|e.g.|'
    "tea —|一二|[1]|a.b|vi)"
).split("|")
GAPS = ["\n", " ", "\n  ", " \n", "\n\n", "\r\n", "\n\t", "  ", ". ", "! "]


@given(text=st.lists(st.sampled_from([*LINES, *GAPS, *GAPS]), max_size=24).map("".join))
@example(text="# Title\nand so on")
@example(text="They drank tea,\na) hot")
@example(text="It was very hot.\nhe drank it")
def test_quick_answers_change_no_sentence(text: str) -> None:
    with patch.multiple(sentences, _is_plain=_answer_no, _goes_on=_answer_no):
        cuts = sentence_cuts(text)
    assert sentence_cuts(text) == cuts
    assert_consistent(text)


def _answer_no(*_: object) -> bool:
    return False


def test_window_knows_a_heading_after_a_carriage_return() -> None:
    assert_consistent("He left\r# Title\nit is")


@pytest.mark.parametrize("gap", [" " * 1000, "\n" * 1000, "\r\n" * 500, " " * 500 + "\n"])
def test_sentence_cuts_after_a_long_gap(gap: str) -> None:
    text = f"{gap}One.{gap}Two."
    cut = len(text) - 4
    assert sentence_cuts(text) == [cut]
    assert last_sentence_cut(text, cut - 1, cut) == last_sentence_cut(text, 5, cut) == cut
    assert last_sentence_cut(text, 5, cut - 1) == last_sentence_cut(text, cut, len(text)) == -1


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\r\n \t\u2029\x85"])
def test_sentence_spans_of_blank_text_is_empty(text: str) -> None:
    assert sentence_spans(text) == []
    assert sentence_cuts(text) == []


def test_table_rows_are_sentences() -> None:
    assert sentence_cuts("| a | b. |\n|---|---|\n| c | d |") == [11, 21]


HUGE = {
    "newlines": "\n",
    "full_stops": ".",
    "spaced_full_stops": ". ",
    "no_white_space": "a",
    "glued": "a.B",
    "sentence": "One sentence, said again. ",
    "closers": ".)",
    "brackets": ".[1",
    "spaces": " " * 199 + ".",
    "emoji": ". 🎉",
    "dashes": ".—-",
}


class CountingText(str):
    """A text that counts the characters that are sliced from it."""

    read = 0

    def __getitem__(self, key: object) -> str:
        part = super().__getitem__(key)  # type: ignore[index]
        CountingText.read += len(part)
        return part


@pytest.mark.parametrize("unit", HUGE.values(), ids=HUGE.keys())
def test_sentence_cuts_reads_a_bounded_context_for_each_candidate(unit: str) -> None:
    def read(length: int) -> int:
        CountingText.read = 0
        sentence_cuts(CountingText("A" + unit * (length // len(unit)) + "Z"))
        return CountingText.read

    once, twice = read(20_000), read(40_000)
    assert twice <= 2.1 * once + 1000
    assert once <= 250 * 20_000


@pytest.mark.parametrize("unit", HUGE.values(), ids=HUGE.keys())
def test_sentence_cuts_finishes_on_huge_texts(unit: str) -> None:
    text = "A" + unit * (100_000 // len(unit)) + "Z"
    cuts = sentence_cuts(text)
    assert last_sentence_cut(text, 0, len(text)) == max(cuts, default=-1)


@pytest.mark.parametrize("unit", HUGE.values(), ids=HUGE.keys())
def test_last_sentence_cut_reads_only_its_window(unit: str) -> None:
    """What is far outside the window may be anything at all."""
    middle = "A" + unit * (1200 // len(unit)) + "Z"
    answers = set()
    for around in ("x", "He left. ", "。"):
        text = around * 900 + "Then it" + middle + "Then it" + around * 900
        low = len(around) * 900 + 400
        cut = last_sentence_cut(text, low, low + 600)
        answers.add(cut if cut < 0 else cut - low)
    assert len(answers) == 1


EXTENDERS = regex.compile(r"[\p{GCB=Extend}\p{GCB=SpacingMark}\p{GCB=ZWJ}]")


def test_no_sentence_begins_inside_a_grapheme_cluster() -> None:
    marks = EXTENDERS.findall("".join(map(chr, range(sys.maxunicode + 1))))
    assert len(marks) > 2000
    for mark in marks:
        assert sentence_cuts(f"It ended. {mark}Then it began.") == [], hex(ord(mark))
