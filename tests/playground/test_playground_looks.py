"""How the playground's page looks: what comes first, is marked, is said, and that all can use it.

`python -m tests.playground_picture` draws the picture of the README.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from rag_splitters.reading.samples import SAMPLE_ANSWERS, SAMPLE_QUESTIONS, sample_texts
from tests.playground.test_playground_page import (  # noqa: F401  (fixtures)
    TRAM,
    Page,
    address,
    chunks,
    opened,
)
from tests.support.axe import violations

QUESTION, ANSWER = SAMPLE_QUESTIONS[1], SAMPLE_ANSWERS[1]
SMALL = {"a.chunk_size": 300}
BOTH = {"a.chunk_size": 300, "b.chunk_size": 300}
MIXED = """# Lines

An English line with `code`.

שורה בעברית עם מילה אחת: tram. עוד משפט קצר אחד.

| line | from    |
|-----:|---------|
|   14 | Station |

```python
def minutes(line):
    return 12
```
"""
LONG_NAME = "reports/the-report-of-the-year-with-a-name-that-fits-into-no-field-at-all.md"


def use(page: Page, text: str) -> None:
    """Use a text of one's own."""
    page.tab.get_by_role("button", name="Paste or edit").click()
    page.tab.locator("#own").fill(text)
    page.tab.get_by_role("button", name="Use this text").click()
    page.shows(text)


def ask(page: Page, question: str) -> None:
    page.tab.locator("#question").fill(question)
    page.tab.get_by_role("button", name="Ask").click()
    page.tab.locator(".view[data-side=a] .results li").first.wait_for()
    page.settled()


def box(page: Page, selector: str) -> dict[str, float]:
    found = page.tab.locator(selector).first.bounding_box()
    assert found is not None, selector
    return dict(found)


# The text first


@pytest.mark.parametrize("width", [390, 800, 1280])
@pytest.mark.parametrize("settings", [{}, {"b": "sentence"}], ids=["one", "two"])
def test_text_comes_first_and_nothing_is_selected(
    opened: Callable[..., Any],  # noqa: F811
    width: int,
    settings: dict[str, str],
) -> None:
    with opened(width) as page:
        page.open(text="tram.md", a="recursive", **SMALL, **settings)
        text = box(page, ".source")
        assert text["y"] < 900 * 0.36, "the text begins in the upper third of the first screen"
        assert min(text["y"] + text["height"], 900) - text["y"] > 900 * 0.45, "and fills half of it"
        wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        assert page.tab.evaluate(wide)
        assert page.side().locator(".piece.on").count() == 0
        assert page.side().locator(".facts").count() == 0
        assert "Point at a chunk" in page.side().locator(".panel").inner_text()


@pytest.mark.parametrize("width", [390, 800])
def test_settings_open_on_a_narrow_page(opened: Callable[..., Any], width: int) -> None:  # noqa: F811
    with opened(width) as page:
        page.open(text="tram.md", a="recursive", **SMALL)
        assert not page.field("chunk_size").is_visible()
        page.form().get_by_role("button", name="Settings").click()
        page.field("chunk_size").fill("200")
        page.settled()
        assert page.figure("chunks") == str(len(chunks("recursive", TRAM, chunk_size=200)))
        page.form().get_by_role("button", name="Settings").click()
        assert not page.field("chunk_size").is_visible()


def test_numbers_are_large_enough_and_not_clipped(opened: Callable[..., Any]) -> None:  # noqa: F811
    with opened(390) as page:
        page.open(text="tram.md", a="recursive", **{"a.chunk_size": 20})
        marks = page.tab.evaluate(
            """() => [...document.querySelectorAll(".mark")].map((mark) => {
                const style = getComputedStyle(mark, "::before");
                const box = mark.getBoundingClientRect();
                const room = mark.closest(".source").getBoundingClientRect();
                const top = box.top + parseFloat(style.top);
                return [mark.dataset.shown, parseFloat(style.fontSize), top - room.top,
                    room.right - box.left - parseFloat(style.width)];
            })"""
        )
        numbers = [int(number) for number, *_ in marks if number]
        assert len(numbers) > 100
        assert numbers == sorted(set(numbers))
        assert min(size for _, size, _, _ in marks) >= 11.5
        assert marks[0][2] >= 0, "the first number is not above the text's box"
        assert min(room for number, _, _, room in marks if number) >= 0, "nor right of it"


def test_numbers_that_would_cover_each_other_are_left_out(opened: Callable[..., Any]) -> None:  # noqa: F811
    with opened() as page:
        page.open(text="tram.md", a="fixed_size", **{"a.chunk_size": 1})
        marks = page.tab.evaluate(
            """() => [...document.querySelectorAll(".mark")].map((mark) => {
                const { top, left } = mark.getBoundingClientRect();
                const width = parseFloat(getComputedStyle(mark, "::before").width);
                return [mark.dataset.shown, top, left, left + width];
            })"""
        )
        numbers = [mark for mark in marks if mark[0]]
        assert 100 < len(numbers) < len(marks)
        for (_, line, _, right), (_, next_line, left, _) in pairwise(numbers):
            assert line != next_line or right <= left


# What differs


def test_what_differs_between_the_sides_is_marked(opened: Callable[..., Any]) -> None:  # noqa: F811
    with opened() as page:
        page.open(text="tram.md", a="recursive", b="sentence", **BOTH)
        left = {(c.start, c.end) for c in chunks("recursive", TRAM, chunk_size=300)}
        right = {(c.start, c.end) for c in chunks("sentence", TRAM, chunk_size=300)}
        both = len(left & right)
        assert both > 0
        said = f"{both} chunks in both (grey), {len(left) - both} only in A, "
        said += f"{len(right) - both} only in B."
        assert page.tab.locator("#difference").inner_text() == said
        for letter in "ab":
            same = page.side(letter).locator(".piece.same").all_text_contents()
            assert same == [TRAM[start:end] for start, end in sorted(left & right)]
            assert page.side(letter).locator(".mark.is-same").count() == both
        page.side().locator(".source").focus()
        page.tab.keyboard.press("Home")
        assert "no such chunk" in page.side().locator(".facts").inner_text()


def test_identical_sides_say_so(opened: Callable[..., Any]) -> None:  # noqa: F811
    with opened() as page:
        page.open(text="tram.md", a="recursive", b="recursive", **BOTH)
        count = len(chunks("recursive", TRAM, chunk_size=300))
        difference = page.tab.locator("#difference")
        assert difference.inner_text() == f"A and B give the same {count} chunks."
        assert page.side().locator(".same").count() == 0
        page.field("chunk_size", "b").fill("170")
        page.settled()
        assert "same" not in difference.inner_text()
        page.tab.get_by_role("button", name="Close").click()
        assert difference.inner_text() == ""
        page.open(text="tram.md", a="recursive", b="fixed_size", **BOTH)
        assert difference.inner_text() == "A and B have no chunk in common."


# The answer


def test_page_says_in_which_chunk_the_answer_lies(opened: Callable[..., Any]) -> None:  # noqa: F811
    with opened() as page:
        page.open(text="tram.md", a="recursive", b="fixed_size", **SMALL, **{"b.chunk_size": 50})
        ask(page, QUESTION)
        start = TRAM.index(ANSWER)
        found = chunks("recursive", TRAM, chunk_size=300)
        (number,) = [
            at for at, c in enumerate(found) if c.start <= start and start + len(ANSWER) <= c.end
        ]
        said = page.side().locator(".answer").inner_text()
        assert said.startswith(f"The answer lies in chunk {number + 1} (result ")
        said = page.side("b").locator(".answer").inner_text()
        assert said.startswith(f"The answer is cut into chunks {start // 50 + 1}")
        assert page.tab.evaluate(
            """() => [...CSS.highlights].map(([name, [range]]) => {
                const side = document.querySelector(`.view[data-side=${name.at(-1)}] .source`);
                const [text, box] = [range.getBoundingClientRect(), side.getBoundingClientRect()];
                return [String(range), text.top >= box.top && text.bottom <= box.bottom];
            })"""
        ) == [[ANSWER, True], [ANSWER, True]], "it is marked and in view on both sides"
        page.tab.locator("#question").fill("")
        page.tab.locator(".view[data-side=a] .results").wait_for(state="hidden")


def test_answer_to_ones_own_question_is_marked_in_the_text(opened: Callable[..., Any]) -> None:  # noqa: F811
    text = "😀 The cat sleeps. The lamp is on. The dog barks."
    with opened() as page:
        page.open(text="tram.md", a="sentence", **{"a.chunk_size": 20})
        use(page, text)
        ask(page, "What barks?")
        answer = page.side().locator(".answer")
        assert answer.inner_text() == "To see which chunk holds the answer, select it in the text."
        page.tab.evaluate(
            """() => {
                const texts = document.createTreeWalker(document.querySelector(".source"), 4);
                for (let node = texts.nextNode(); node; node = texts.nextNode()) {
                    const at = node.data.indexOf("dog");
                    if (at >= 0) getSelection().setBaseAndExtent(node, at, node, at + 3);
                }
            }"""
        )
        page.tab.get_by_role("button", name="This is the answer").click()
        assert answer.inner_text() == "The answer lies in chunk 3 (result 1)."
        assert page.tab.evaluate("[...CSS.highlights.get('answer-a')].map(String)") == ["dog"]
        page.tab.locator("#k").fill("1")
        ask(page, "Where is the lamp?")
        assert "select it in the text" in answer.inner_text(), "another question has another answer"


# Sizes


def test_sizes_stay_when_the_strategy_changes(opened: Callable[..., Any]) -> None:  # noqa: F811
    with opened() as page:
        page.open(text="tram.md", a="recursive", **SMALL)
        for name in ("titled", "hybrid", "modality", "sentence", "token", "paragraph"):
            page.form().locator(".strategy").select_option(name)
            page.settled()
            inner = {"chunk_size": 300, "length_function": "characters"}
            if name == "titled":
                assert page.field("chunk_size").input_value() == "300", "of the chunker inside it"
            elif name in ("sentence", "token", "paragraph"):
                assert page.field("chunk_size").input_value() == "300"
                expected = chunks(name, TRAM, **inner)
                assert page.figure("chunks") == str(len(expected))
        page.form().locator(".strategy").select_option("token")
        page.form().locator(".reset").click()
        page.form().locator(".strategy").select_option("recursive")
        page.settled()
        assert page.field("chunk_size").input_value() == "256", "the token strategy's own size"
        assert page.form().get_by_label("length_function").input_value() == "tokens"


# Right to left, monospace, long names, broken links


def test_bars_are_on_the_side_where_the_text_begins(opened: Callable[..., Any]) -> None:  # noqa: F811
    with opened() as page:
        page.open(text="tram.md", a="paragraph", **{"a.chunk_size": 40})
        use(page, MIXED)
        marks = page.tab.evaluate(
            """() => [...document.querySelectorAll(".mark")].map((mark) => {
                const bar = getComputedStyle(mark, "::after");
                return [mark.textContent, parseFloat(bar.right) < parseFloat(bar.left)];
            })"""
        )
        sides = dict(marks)
        assert sides["#"] is False
        assert sides["ש"] is True
        assert all(is_right == ("\u05d0" <= letter <= "\u05ea") for letter, is_right in marks)
        assert len(marks) > 4


def test_tables_and_code_have_letters_of_one_width(opened: Callable[..., Any]) -> None:  # noqa: F811
    with opened() as page:
        page.open(text="tram.md", a="recursive", **{"a.chunk_size": 60})
        use(page, MIXED)
        mono = page.side().locator(".source .mono")
        families = mono.evaluate_all("all => all.map((e) => getComputedStyle(e).fontFamily)")
        assert all("monospace" in family for family in families)
        drawn = "".join(mono.all_text_contents())
        table = MIXED[MIXED.index("| line") : MIXED.index("\n\n```")]
        code = MIXED[MIXED.index("```python") :].rstrip()
        assert "".join(drawn.split()) == "".join((table + code).split())
        assert page.text() == MIXED


def test_long_names_are_shown_whole(opened: Callable[..., Any], tmp_path: Any) -> None:  # noqa: F811
    name = LONG_NAME.rpartition("/")[2]
    (tmp_path / name).write_text("A text.")
    with opened(390) as page:
        page.open(text="tram.md", a="sliding_window")
        page.tab.locator("#file").set_input_files(tmp_path / name)
        page.shows("A text.")
        status = page.tab.locator("#status")
        assert status.inner_text() == f"{name}: 7 characters"
        assert status.evaluate("(e) => e.scrollWidth <= e.clientWidth")
        options = page.form().locator(".strategy option").all_text_contents()
        assert "sliding_window" in options, "the name alone"
        width = page.form().locator(".strategy").evaluate("(e) => e.clientWidth")
        assert width > 8 * len("sliding_window") + 24, "there is room for it"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"a": "recursiv"}, "The link asks for the strategy “recursiv”, which does not exist."),
        ({"a": "recursive", "b": "no"}, "The link asks for the strategy “no”, which does not"),
        ({"text": "atlas"}, "there is no text 'atlas'"),
    ],
)
def test_a_link_that_names_what_does_not_exist_says_so(
    opened: Callable[..., Any],  # noqa: F811
    settings: dict[str, str],
    said: str,
) -> None:
    with opened(fails=True) as page:
        page.open(**settings)
        notice = page.tab.locator("#notice")
        notice.wait_for()
        assert notice.inner_text().startswith(said)
        assert page.side().locator(".piece").count() > 0, "something is shown all the same"
        page.form().locator(".strategy").select_option("sentence")
        page.tab.locator("#text-name").select_option("bakery.md")
        page.shows(sample_texts()["bakery.md"])
        assert not notice.is_visible()


# For everybody


def all_states(page: Page) -> Any:
    """Bring the page into its states, one after the other; yields the name of each."""
    page.open()
    yield "start"
    page.open(text="tram.md", a="sliding_window", **{"a.chunk_size": 90, "a.chunk_overlap": 0.4})
    page.side().locator(".source").focus()
    page.tab.keyboard.press("ArrowRight")
    page.side().get_by_role("button", name="All figures").click()
    yield "a chunk selected, all figures"
    page.side().get_by_role("tab", name="LangChain").click()
    yield "code"
    page.open(text="tram.md", a="recursive", b="sentence", **BOTH)
    yield "two that differ"
    ask(page, QUESTION)
    yield "a question with an answer"
    page.open(text="tram.md", a="recursive", b="recursive", **BOTH)
    yield "two that are identical"
    use(page, MIXED)
    yield "right to left, a table and code"
    page.open(text="tram.md", a="hybrid")
    toggle = page.form().get_by_role("button", name="Settings")
    if toggle.is_visible():
        toggle.click()
    page.form().get_by_text("When to use it").click()
    yield "settings open"
    page.open(text="tram.md", a="recursive", **SMALL)
    page.tab.evaluate("location.hash = location.hash.replace('300', '0')")
    page.form().locator(".error:not(:empty)").wait_for()
    yield "an error"
    page.open(text="tram.md", a="nothing")
    yield "a link that is wrong"
    page.open(text="tram.md", a="agentic", **SMALL)
    yield "a model that waits"
    page.tab.get_by_role("button", name="Paste or edit").click()
    yield "the editor"
    page.tab.get_by_role("button", name="Cancel").click()
    page.open(text="large", a="recursive")
    yield "a large text"


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_axe_finds_nothing_serious_in_any_state(
    opened: Callable[..., Any],  # noqa: F811
    width: int,
    scheme: str,
) -> None:
    with opened(width, scheme, fails=True) as page:
        for state in all_states(page):
            assert violations(page.tab) == [], state


@pytest.mark.parametrize(("width", "scheme"), [(800, "dark"), (800, "light")])
def test_axe_finds_nothing_serious_in_either_scheme(
    opened: Callable[..., Any],  # noqa: F811
    width: int,
    scheme: str,
) -> None:
    with opened(width, scheme) as page:
        page.open(text="tram.md", a="recursive", b="sentence", **BOTH)
        ask(page, QUESTION)
        assert violations(page.tab) == []


def test_axe_would_find_something(opened: Callable[..., Any]) -> None:  # noqa: F811
    with opened() as page:
        page.open(text="tram.md", a="recursive")
        page.tab.evaluate(
            """() => {
                document.querySelector(".tabs").append(document.querySelector(".copy"));
                document.querySelector(".copy").hidden = false;
                document.querySelector("#status").style.color = "#ccc";
            }"""
        )
        rules = {line.partition(":")[0] for line in violations(page.tab)}
        assert {"color-contrast", "aria-required-children"} & rules == {
            "color-contrast",
            "aria-required-children",
        }
