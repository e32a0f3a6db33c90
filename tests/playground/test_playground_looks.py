"""How the playground's page looks: what comes first, is marked, is said, and that all can use it.

`python -m tests.support.playground_picture` draws the picture of the README.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from rag_splitters.reading.samples import SAMPLE_ANSWERS, SAMPLE_QUESTIONS
from tests.playground.test_playground_page import (  # noqa: F401  (fixtures)
    TRAM,
    Page,
    address,
    chunks,
    opened,
)
from tests.support.axe import violations

QUESTION, ANSWER = SAMPLE_QUESTIONS[1], SAMPLE_ANSWERS[1]
LINE_HEIGHT = """() => {
    const { lineHeight, fontSize } = getComputedStyle(document.querySelector(".source"));
    return parseFloat(lineHeight) / parseFloat(fontSize);
}"""
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


@pytest.mark.parametrize(
    ("width", "settings"),
    [(390, {}), (390, {"b": "sentence"}), (800, {}), (1280, {"b": "sentence"})],
)
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
        assert float(page.tab.evaluate(LINE_HEIGHT)) == pytest.approx(1.85, abs=0.1), "to be read"
        assert page.side().locator(".facts").count() == 0
        assert "Point at a chunk" in page.side().locator(".panel").inner_text()


@pytest.mark.parametrize("width", [390, 800])
def test_settings_open_on_a_narrow_page(opened: Callable[..., Any], width: int) -> None:  # noqa: F811
    with opened(width) as page:
        page.open(text="tram.md", a="recursive", **SMALL)
        assert not page.field("chunk_size").is_visible()
        page.form().get_by_label("Settings").click()
        page.field("chunk_size").fill("200")
        page.settled()
        assert page.figure("chunks") == str(len(chunks("recursive", TRAM, chunk_size=200)))
        page.form().get_by_label("Settings").click()
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


# The answer


def test_answer_is_marked_and_in_view_on_both_sides(opened: Callable[..., Any]) -> None:  # noqa: F811
    with opened() as page:
        page.open(text="tram.md", a="recursive", b="fixed_size", **SMALL, **{"b.chunk_size": 50})
        ask(page, QUESTION)
        assert page.tab.evaluate(
            """() => [...document.querySelectorAll(".source")].map((source) => {
                const marks = [...source.querySelectorAll(".answer")];
                const [text, box] = [marks[0].getClientRects()[0], source.getBoundingClientRect()];
                const words = marks.map((each) => each.textContent).join("");
                return [words, text.top >= box.top && text.bottom <= box.bottom];
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
        answer = page.side().locator(".answer-place")
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
        page.settled()
        assert answer.inner_text() == "The answer lies in chunk 3 (result 1)."
        assert page.side().locator(".source .answer").all_text_contents() == ["dog"]
        page.tab.locator("#k").fill("1")
        ask(page, "Where is the lamp?")
        assert "select it in the text" in answer.inner_text(), "another question has another answer"


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


def test_editor_has_the_letters_of_the_page(opened: Callable[..., Any]) -> None:  # noqa: F811
    with opened(1280) as page:
        page.open(text="tram.md")
        page.tab.get_by_role("button", name="Paste or edit").click()
        fonts = page.tab.evaluate(
            """() => ["#editor-title", "#editor p", "h1"].map(
                (each) => getComputedStyle(document.querySelector(each)).fontFamily)"""
        )
        assert len(set(fonts)) == 1


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


# Long texts and narrow pages


def test_a_long_text_is_pasted_without_freezing_and_never_shows_old_figures(
    opened: Callable[..., Any],  # noqa: F811
) -> None:
    with opened() as page:
        page.open(text="tram.md", a="recursive", **SMALL)
        held = page.hold_first("**/views")
        page.tab.get_by_role("button", name="Paste or edit").click()
        page.tab.locator("#own").evaluate(
            """(field) => {
                const clipboardData = new DataTransfer();
                const text = "A sentence of a long text. ".repeat(185_000);
                clipboardData.setData("text/plain", text);
                const paste = { clipboardData, bubbles: true, cancelable: true };
                field.dispatchEvent(new ClipboardEvent("paste", paste));
            }"""
        )
        page.tab.locator("#status", has_text="Cutting your own text").wait_for()
        assert not page.tab.locator("#editor").is_visible()
        assert page.tab.locator("#own").input_value() != "", "it holds the text before"
        assert len(page.tab.locator("#own").input_value()) < 10_000
        assert page.side().locator(".counts").count() == 0, "no figures of the text before"
        assert page.text() == ""
        assert page.side().locator(".panel").inner_text() == ""
        page.field("chunk_size").fill("400")
        page.tab.wait_for_timeout(100)
        held[0].continue_()
        page.tab.locator("#status", has_text="4,995,000 characters").wait_for(timeout=120_000)
        page.settled()
        assert page.field("chunk_size").input_value() == "400"
        count = int(page.figure("chunks").replace(",", ""))
        assert 4_995_000 / 400 <= count < 4_995_000 / 300


def test_a_and_b_are_switched_on_a_phone_and_results_come_into_view(
    opened: Callable[..., Any],  # noqa: F811
) -> None:
    with opened(390) as page:
        page.open(text="tram.md", a="recursive", b="sentence", **BOTH)
        assert page.side("a").is_visible()
        assert not page.side("b").is_visible()
        ask(page, QUESTION)
        for letter in "ab":
            page.tab.locator(".switch").get_by_text(f"{letter.upper()}: ").click()
            assert page.side(letter).is_visible()
            assert page.form(letter).is_visible()
            assert not page.side("b" if letter == "a" else "a").is_visible()
            marks = page.side(letter).locator(".source .answer")
            text, room = marks.first.bounding_box(), box(page, f"#source-{letter}")
            assert text is not None
            assert room["y"] <= text["y"] <= room["y"] + room["height"]
        page.tab.evaluate("scrollTo(0, document.body.scrollHeight)")
        page.tab.evaluate("document.querySelector('[name=ask]').click()")
        page.settled()
        place = box(page, "#results-b")
        assert -1 <= place["y"] < 900, "the results come into view"


# For everybody


def all_states(page: Page) -> Any:
    """Bring the page into its states, one after the other; yields the name of each."""
    page.open()
    yield "start"
    page.open(text="tram.md", a="sliding_window", **{"a.chunk_size": 90, "a.chunk_overlap": 0.4})
    page.side().locator(".source").focus()
    page.tab.keyboard.press("ArrowRight")
    page.side().get_by_text("All figures").click()
    yield "a chunk selected, all figures"
    page.side().get_by_text("LangChain", exact=True).click()
    page.side().locator(".code").wait_for()
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
    toggle = page.form().get_by_label("Settings")
    if toggle.is_visible():
        toggle.click()
    page.form().get_by_text("When to use it").click()
    yield "settings open"
    page.open(text="tram.md", a="recursive", **SMALL)
    page.open(text="tram.md", a="recursive", **{"a.chunk_size": 0})
    page.form().locator(".error:not(:empty)").wait_for()
    yield "an error"
    page.open(text="tram.md", a="nothing")
    yield "a link that is wrong"
    page.open(text="tram.md", a="agentic", **SMALL)
    yield "a model that waits"
    page.tab.get_by_role("button", name="Paste or edit").click()
    yield "the editor"
    page.tab.get_by_role("button", name="Cancel").click()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_axe_finds_nothing_serious_in_any_state(
    opened: Callable[..., Any],  # noqa: F811
    width: int,
    scheme: str,
) -> None:
    with opened(width, scheme, fails=True) as page:
        for state in all_states(page):
            assert violations(page.tab) == [], state


def test_axe_would_find_something(opened: Callable[..., Any]) -> None:  # noqa: F811
    with opened() as page:
        page.open(text="tram.md", a="recursive")
        page.tab.evaluate(
            """() => {
                document.querySelector("#status").style.color = "#ccc";
                document.querySelector(".strategy").removeAttribute("aria-label");
            }"""
        )
        rules = {line.partition(":")[0] for line in violations(page.tab)}
        assert {"color-contrast", "select-name"} <= rules
