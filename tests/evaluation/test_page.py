"""The page of a report: what it holds, and that it works in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_splitters import RecursiveChunker, SentenceChunker
from rag_splitters.evaluation import Report, compare, intrinsic, read_benchmark, suggestion
from rag_splitters.evaluation.page.charts import histogram_svg, ticks
from rag_splitters.evaluation.report.page import zoom
from rag_splitters.evaluation.page.projection import project
from rag_splitters.models import HashingEmbeddings
from tests.support.axe import violations

BENCHMARK = read_benchmark(Path(__file__).parents[1] / "data" / "evaluation")
HOSTILE = '</script><script>alert("1")</script> {{ script }} <b>& \ud800 \u2028'
CHUNKERS = {
    "sentence": SentenceChunker(chunk_size=30, length_function="tokens"),
    "recursive": RecursiveChunker(chunk_size=60, length_function="tokens"),
    HOSTILE: lambda text: [text[:200], text[200:], f"Nowhere. {HOSTILE}"],
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


def test_page_names_no_address_and_runs_nothing_of_the_documents(page: Path) -> None:
    content = page.read_text("utf-8")
    seen = Seen(content)
    assert [
        attrs.get("src") or attrs.get("href") for tag, attrs in seen.tags if tag == "script"
    ] == [
        None,
        None,
    ]
    addresses = {
        value for _, attrs in seen.tags for name, value in attrs.items() if name in ("src", "href")
    }
    assert addresses == {"data:,"}
    assert not re.search(r"@import|url\((?!#)|fetch\(|XMLHttpRequest", content)
    assert "{{" not in content.replace("{{ script }}", "")
    assert content.count("<b>&amp;") == 0, "a strategy's name is text"


def test_page_has_every_figure_as_text(page: Path, report: Report) -> None:
    text = Seen(page.read_text("utf-8")).text
    for strategy in report.strategies[:2]:
        assert strategy.name in text
        for name in ("recall", "iou", "recall@100"):
            assert f"{100 * report.metric(strategy.name, name).mean:.1f}" in text
    for document in report.documents_with_questions:
        assert f"Only questions about {document}" in text
    assert suggestion(report).headline in text
    assert suggestion(report).reasons in text
    assert f"({report.strategies[2].unlocated:.1%} not located)" in text


def test_page_labels_every_control_and_hides_drawings_that_tables_repeat(page: Path) -> None:
    tags = Seen(page.read_text("utf-8")).tags
    labelled = {attrs["for"] for tag, attrs in tags if tag == "label" and "for" in attrs}
    controls = [attrs for tag, attrs in tags if tag in ("select", "input")]
    assert {attrs["id"] for attrs in controls if attrs.get("type") != "checkbox"} <= labelled
    assert all(attrs.get("aria-hidden") == "true" for tag, attrs in tags if tag == "svg")
    cells = [attrs for tag, attrs in tags if tag == "td" and attrs.get("role") == "cell"]
    assert len(cells) > 50
    assert all(attrs["data-title"] for attrs in cells)


def test_page_data_shows_few_of_many_chunks(page: Path) -> None:
    chunkers = {"letters": lambda text: list(text)}
    report = compare(chunkers, BENCHMARK.documents, BENCHMARK.questions, HashingEmbeddings())
    found = re.search(r'id="data">(.*?)</script>', report.to_html(), re.DOTALL)
    assert found is not None
    points = json.loads(found[1])["strategies"][0]["points"]
    assert len(points) == 300 < len(report.strategies[0].chunks)
    assert [point[2] for point in points] == sorted(point[2] for point in points)
    assert {point[2] for point in points} == {0, 1}, "chosen from all documents"


def test_histogram_has_every_chunk_in_a_bar() -> None:
    sizes = [1, 5, 12, 30, 500]
    drawn = histogram_svg(sizes, np.arange(0.0, 41, 10), 1.0, 0, "tokens")
    counts = [int(count) for count in re.findall(r": (\d+) chunks", drawn)]
    assert sum(counts) == len(sizes)
    assert "30 or more tokens: 2 chunks" in drawn


@pytest.mark.parametrize("largest", [1, 7, 42, 999, 3000, 1_000_000])
def test_ticks_are_round_few_and_reach_far(largest: int) -> None:
    found = ticks(largest, 6)
    assert found[0] == 0
    assert 1 <= len(found) - 1 <= 6
    assert largest / 2 < found[-1] <= largest
    assert set(str(found[1]).rstrip("0")) <= set("125")


def test_ticks_begin_where_the_axis_begins() -> None:
    assert ticks(3000, 4, 1200) == [1500, 2000, 2500, 3000]
    assert ticks(95, 5, 60) == [60, 70, 80, 90]


def test_curves_are_zoomed_to_where_the_strategies_differ(report: Report) -> None:
    budgets = np.array(report.settings.curve_budgets)
    for low, high, first, last in ((0.5, 0.6, 0, 400), (0.8, 0.85, 60, 300)):
        strategies = []
        for number, strategy in enumerate(report.strategies):
            apart = (budgets >= first) & (budgets <= last)
            means = low + (high - low) * apart * number / (len(report.strategies) - 1)
            curve = np.tile(means, (len(report.questions), 1))
            measurements = replace(strategy.measurements, curve=curve)
            strategies.append(replace(strategy, measurements=measurements))
        window = zoom(replace(report, strategies=tuple(strategies)))
        assert window.first == (budgets[0] if first == 0 else 50), "the smallest budget asked for"
        assert window.last == budgets[budgets <= last].max()
        assert low - 0.1 <= window.low < low
        assert high < window.high <= high + 0.1


# The projection


def test_projected_by_pca_keeps_what_differs_most_and_is_the_same_again() -> None:
    rng = np.random.default_rng(0)
    vectors = np.zeros((50, 8), dtype=np.float32)
    vectors[:, 3], vectors[:, 5] = rng.random(50) * 10, rng.random(50)
    places, share = project(vectors)
    assert share == pytest.approx(1.0)
    assert abs(np.corrcoef(places[:, 0], vectors[:, 3])[0, 1]) > 0.999
    assert abs(np.corrcoef(places[:, 1], vectors[:, 5])[0, 1]) > 0.99
    assert (places.min(axis=0) == 0).all()
    assert (places.max(axis=0) == 1).all()
    assert (project(vectors)[0] == places).all()


def test_projected_by_pca_finds_the_directions_that_all_eigenvectors_give() -> None:
    model = HashingEmbeddings(dimensions=256)
    chunks = SentenceChunker(chunk_size=100)
    texts = [chunk.text for text in BENCHMARK.documents.values() for chunk in chunks.chunk(text)]
    vectors = np.array(model.embed_documents(texts), dtype=np.float32)
    places, share = project(vectors)
    centred = vectors - vectors.mean(axis=0)
    variances, directions = np.linalg.eigh(centred.T @ centred)
    assert share == pytest.approx(variances[-2:].sum() / variances.sum(), rel=0.01)
    for axis in (0, 1):
        exact = centred @ directions[:, -1 - axis]
        assert abs(np.corrcoef(places[:, axis], exact)[0, 1]) > 0.98


@pytest.mark.parametrize("shape", [(1, 4), (2, 1), (3, 4)])
def test_projected_takes_few_and_equal_vectors(shape: tuple[int, int]) -> None:
    places, share = project(np.ones(shape, dtype=np.float32))
    assert places.shape == (shape[0], 2)
    assert np.isfinite(places).all()
    assert share == 1.0


# In a real browser


@pytest.fixture(params=[(1280, "light"), (360, "dark")], ids=["wide", "narrow"])
def shown(request: pytest.FixtureRequest, browser: Any, page: Path) -> Iterator[Any]:
    """The page, opened; it must complain of nothing and ask the network for nothing."""
    width, scheme = request.param
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    tab = context.new_page()
    complaints: list[str] = []
    asked: list[str] = []
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("dialog", lambda dialog: complaints.append(dialog.message))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(page.as_uri())
    yield tab
    assert complaints == []
    assert asked == [page.as_uri()]
    context.close()


def test_page_in_a_browser_fits_its_width(shown: Any) -> None:
    wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert shown.evaluate(wide)
    drawings = shown.locator("#curves svg:visible")
    assert drawings.count() == 1
    sizes = shown.evaluate(
        """() => [...document.querySelectorAll("svg text, td, th, p, label")]
        .filter((each) => each.getClientRects().length)
        .map((each) => {
          const scale = each.ownerSVGElement
            ? each.ownerSVGElement.getBoundingClientRect().width
              / each.ownerSVGElement.viewBox.baseVal.width
            : 1;
          return scale * parseFloat(getComputedStyle(each).fontSize);
        })"""
    )
    assert min(sizes) >= 10, "text stays legible"


WIDE_TABLES = """() => {
    document.querySelectorAll("details").forEach((each) => (each.open = true));
    const right = (element) => element.getBoundingClientRect().right;
    const isCut = (cell) => cell.scrollWidth > cell.clientWidth + 1;
    return [...document.querySelectorAll("table")].filter((table) =>
        table.scrollWidth > table.clientWidth + 1
        || right(table) > right(table.closest("section"))
        || [...table.querySelectorAll("tbody td, tbody th")].some(isCut)
    ).length;
}"""


@pytest.mark.parametrize(
    ("width", "scheme"),
    [(390, "light"), (390, "dark"), (800, "dark"), (1280, "light"), (1280, "dark")],
)
@pytest.mark.parametrize("kind", ["questions", "no questions"])
def test_tables_fit_and_axe_finds_nothing_serious(
    browser: Any, report: Report, tmp_path: Path, width: int, scheme: str, kind: str
) -> None:
    chunkers = {**CHUNKERS, "a name of many words, as long as they come/": RecursiveChunker()}
    without = intrinsic(chunkers, BENCHMARK.documents, HashingEmbeddings(), sizes=(10, 100))
    (report if kind == "questions" else without).to_html(tmp_path / "report.html")
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    tab = context.new_page()
    tab.goto((tmp_path / "report.html").as_uri())
    assert tab.locator("table:visible").count() > 0
    assert tab.evaluate(WIDE_TABLES) == 0
    assert tab.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    assert tab.locator(".verdict").bounding_box()["y"] < 150, "it begins with the verdict"
    assert violations(tab) == []
    context.close()


def test_page_in_a_browser_shows_recall_at_the_budget_of_the_slider(
    shown: Any, report: Report
) -> None:
    slider, cell = shown.locator("#budget"), shown.locator(".legend .mean").first
    assert shown.locator("#budget-shown").inner_text() == "100"
    slider.focus()
    shown.keyboard.press("End")
    last = int(zoom(report).last)
    assert shown.locator("#budget-shown").inner_text() == str(last)
    assert cell.inner_text() == f"{100 * dict(report.curve('sentence'))[last].mean:.1f}"
    drawing = shown.locator("#curves svg:visible")
    box = drawing.bounding_box()
    shown.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 50)
    assert int(shown.locator("#budget-shown").inner_text()) < last


def test_page_in_a_browser_hides_a_strategy_and_lifts_the_focused_one(shown: Any) -> None:
    box = shown.locator('.legend tr[data-series="1"] input')
    line = shown.locator('#curves svg:visible .series[data-series="1"]')
    box.focus()
    assert "on" in line.get_attribute("class").split()
    shown.keyboard.press("Space")
    assert not line.is_visible()
    shown.keyboard.press("Space")
    assert line.is_visible()


def test_page_in_a_browser_shows_each_chunk_on_the_map(shown: Any, report: Report) -> None:
    text, slider = shown.locator("#chunk-text"), shown.locator("#chunk")
    assert shown.locator("#map circle").count() == len(report.strategies[0].chunks)
    slider.focus()
    shown.keyboard.press("ArrowRight")
    chunk = report.strategies[0].chunks[1]
    assert " ".join(chunk.text.split()) in " ".join(text.inner_text().split())
    assert shown.locator("#chunk-shown").inner_text().startswith("2 of ")
    shown.locator("#strategy").select_option("2")
    assert shown.locator("#map circle").count() == len(report.strategies[2].chunks)
    slider.focus()
    shown.keyboard.press("End")
    assert 'alert("1")' in text.inner_text()
    assert "not located" in text.inner_text()


def test_page_in_a_browser_tells_the_chunk_under_the_pointer(shown: Any) -> None:
    circle = shown.locator("#map circle").nth(3)
    circle.scroll_into_view_if_needed()
    box = circle.bounding_box()
    before = shown.locator("#chunk-text").inner_text()
    shown.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert shown.locator("#chunk-text").inner_text() != before


def test_page_in_a_browser_can_be_walked_through_by_keyboard(shown: Any) -> None:
    reached = []
    for _ in range(40):
        shown.keyboard.press("Tab")
        reached.append(
            shown.evaluate("document.activeElement.id || document.activeElement.tagName")
        )
        ring = shown.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        if reached[-1] == "chunk":
            break
        assert ring != "none" or reached[-1] == "BODY"
    assert {"budget", "strategy", "chunk", "INPUT", "SUMMARY"} <= set(reached)
