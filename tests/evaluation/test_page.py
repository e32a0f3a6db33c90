"""The page of a report: what it holds, and that it works in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from rag_splitters import RecursiveChunker, SentenceChunker
from rag_splitters.evaluation import Report, compare, read_benchmark, verdict
from rag_splitters.models import HashingEmbeddings
from tests.support.axe import violations

BENCHMARK = read_benchmark(Path(__file__).parents[1] / "data" / "evaluation")
HOSTILE = '</script><script>alert("1")</script> {{ script }} <b>& \ud800 \u2028'
CHUNKERS = {
    "sentence": SentenceChunker(chunk_size=30, length_function="tokens"),
    "recursive": RecursiveChunker(chunk_size=60, length_function="tokens"),
    HOSTILE: lambda text: [text[:200], text[200:], f"Nowhere. {HOSTILE}"],
    "a name of many words, as long as they come/": RecursiveChunker(chunk_size=400),
}


@pytest.fixture(scope="module")
def report() -> Report:
    documents = {**BENCHMARK.documents, HOSTILE: f"A document. {HOSTILE}"}
    return compare(
        CHUNKERS, documents, BENCHMARK.questions, HashingEmbeddings(), k=3, budgets=(50, 100, 200)
    )


@pytest.fixture(scope="module")
def page(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    assert report.to_html(path) == path.read_text("utf-8")
    return path


class Seen(HTMLParser):
    """The tags of a page with their attributes, and its visible text."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(content)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


# What it holds


def test_page_loads_nothing_and_runs_nothing_of_the_documents(page: Path) -> None:
    content = page.read_text("utf-8")
    seen = Seen(content)
    scripts = [attrs for tag, attrs in seen.tags if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "charts"}, {}, {}, {}]
    addresses = {
        value for _, attrs in seen.tags for name, value in attrs.items() if name in ("src", "href")
    }
    assert addresses == {"data:,"}
    policy = next(attrs["content"] for _, attrs in seen.tags if "http-equiv" in attrs)
    assert str(policy).startswith("default-src 'none';")
    assert content.count("<b>&amp;") == 0, "a strategy's name is text"


def test_page_has_every_value_as_text(page: Path, report: Report) -> None:
    text = Seen(page.read_text("utf-8")).text
    for strategy in report.strategies[:2]:
        assert strategy.name in text
        for name in ("recall", "iou", "recall@100"):
            assert f"{100 * report.metric(strategy.name, name):.1f}" in text
    assert verdict(report).headline in text
    assert verdict(report).reasons in text
    assert f"({report.strategies[2].unlocated:.1%} not located)" in text
    assert "mid-sentence" in text


def charts(page: str) -> dict[str, Any]:
    match = re.search(r'id="charts">(.*?)</script>', page, re.DOTALL)
    assert match is not None
    loaded: dict[str, Any] = json.loads(match[1])
    return loaded


def test_charts_have_the_values_of_the_report(page: Path, report: Report) -> None:
    data = {name: chart["data"]["values"] for name, chart in charts(page.read_text()).items()}
    gap = report.gap("recursive", "recall@100")
    assert gap is not None
    (row,) = (each for each in data["gaps"] if each["strategy"] == "recursive")
    assert [row["mean"], row["low"], row["high"]] == [round(100 * value, 3) for value in gap]
    curve = [each for each in data["curves"] if each["strategy"] == "recursive"]
    assert {each["budget"]: each["recall"] for each in curve}[100] == round(
        report.metric("recursive", "recall@100"), 4
    )
    (row,) = (each for each in data["sizes"] if each["strategy"] == "sentence")
    assert row["largest"] == report.strategy("sentence").sizes.max()


def test_page_without_questions_has_no_curves() -> None:
    report = compare(CHUNKERS, BENCHMARK.documents)
    assert set(charts(report.to_html())) == {"sizes"}
    assert "All metrics" not in Seen(report.to_html()).text


# In a real browser


@pytest.fixture(params=[(1280, "light"), (390, "dark")], ids=["wide", "narrow"])
def tab(request: pytest.FixtureRequest, browser: Any, page: Path) -> Iterator[Any]:
    """The page, opened; it must complain of nothing and ask the network for nothing."""
    width, scheme = request.param
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
    tab = context.new_page()
    complaints: list[str] = []
    requests: list[str] = []
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("dialog", lambda dialog: complaints.append(dialog.message))
    tab.on("request", lambda request: requests.append(request.url))
    tab.goto(page.as_uri())
    tab.wait_for_selector("[data-chart=sizes] svg")
    yield tab
    assert complaints == []
    assert requests == [page.as_uri()]
    context.close()


def test_charts_fit_their_places_and_one_screen(tab: Any) -> None:
    assert tab.locator("[data-chart] svg").count() == 3
    assert "e+" not in "".join(tab.locator("[data-chart] svg text").all_text_contents())
    too_wide = """() => [...document.querySelectorAll("[data-chart]")].filter((each) =>
        each.querySelector("svg").getBoundingClientRect().right
        > each.getBoundingClientRect().right + 1).length"""
    assert tab.evaluate(too_wide) == 0
    heights = "() => [...document.querySelectorAll('section:has(figure)')].map(e => e.offsetHeight)"
    assert max(tab.evaluate(heights)) <= 844


def test_reader_adds_and_removes_curves(tab: Any) -> None:
    lines = tab.locator("[data-chart=curves] .mark-line path")
    boxes = tab.locator(".legend input")
    assert boxes.count() == len(CHUNKERS)
    assert lines.count() == tab.locator(".legend input:checked").count() == 3
    boxes.last.focus()
    tab.keyboard.press("Space")
    lines.nth(3).wait_for(state="attached")
    boxes.first.uncheck()
    tab.wait_for_function(
        "document.querySelectorAll('[data-chart=curves] .mark-line path').length === 3"
    )


WIDE_TABLES = """() => {
    const right = (element) => element.getBoundingClientRect().right;
    const isCut = (cell) => cell.scrollWidth > cell.clientWidth + 1;
    return [...document.querySelectorAll("table")].filter((table) =>
        table.scrollWidth > table.clientWidth + 1
        || right(table) > right(table.closest("section"))
        || [...table.querySelectorAll("tbody td, tbody th")].some(isCut)
    ).length;
}"""


@pytest.mark.parametrize(
    ("width", "scheme", "kind"),
    [
        (390, "dark", "questions"),
        (800, "light", "no questions"),
        (1280, "light", "questions"),
        (1280, "dark", "no questions"),
    ],
)
def test_tables_fit_and_axe_finds_nothing_serious(
    browser: Any, report: Report, tmp_path: Path, width: int, scheme: str, kind: str
) -> None:
    without = compare(CHUNKERS, BENCHMARK.documents)
    (report if kind == "questions" else without).to_html(tmp_path / "report.html")
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    tab = context.new_page()
    tab.goto((tmp_path / "report.html").as_uri())
    tab.wait_for_selector("[data-chart=sizes] svg")
    assert tab.locator("table:visible").count() > 0
    assert tab.evaluate(WIDE_TABLES) == 0
    assert tab.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    assert tab.locator(".verdict").bounding_box()["y"] < 150, "it begins with the verdict"
    assert violations(tab) == []
    context.close()
