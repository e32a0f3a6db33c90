"""The playground's page in a real browser: what it draws, shows, asks for and lets copy."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import uvicorn

from rag_splitters.chunkers.by_name import build_chunker
from rag_splitters.playground import create_app
from rag_splitters.reading.samples import sample_texts
from rag_splitters.span import Chunk
from rag_splitters.text.coloured import printable

TRAM = sample_texts()["tram.md"]
HOSTILE = (
    "<script>alert(1)</script> <img src=x onerror=alert(2)> & &amp; 👩‍👩‍👧‍👦 \ud800 lone \udc00. "
    "NUL \0 and\r\nCRLF,\ra return. \u202eright to left\u202c שלום עולם. مرحبا بالعالم. e\u0301 "
    "\u2028 🇩🇪🇫🇷 </span></div> {{ style }} 😀😀😀😀😀. "
) * 4
LARGE = "".join(f"Sentence {n} of the large text has a 😀 in its middle. \n" for n in range(19_500))
ASKED: list[str] = []


def answer(prompt: str) -> str:
    """A chat model that is counted."""
    ASKED.append(prompt)
    return "1, 4, 9"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A running playground with difficult texts."""
    texts = {"hostile": HOSTILE, "large": LARGE, "blank": " \n "}
    app = create_app(texts, llm=answer)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        server.should_exit = True
        thread.join(20)


class Page:
    """The page, opened with settings in its address."""

    def __init__(self, tab: Any, address: str) -> None:
        self.tab, self.address = tab, address

    def open(self, **settings: Any) -> None:
        self.tab.goto("about:blank")
        self.tab.goto(f"{self.address}?{urlencode(settings)}")
        self.settled()

    def settled(self) -> None:
        """Wait until what is drawn is the answer to what is set."""
        self.tab.wait_for_function(
            "() => document.querySelector('.view') && !document.querySelector('[aria-busy]')"
        )

    def shows(self, text: str) -> None:
        """Wait until this text is drawn, with its chunks."""
        self.tab.wait_for_function(
            "(text) => document.querySelector('.source')?.textContent === text", arg=text
        )
        self.settled()

    def hold_first(self, address: str) -> list[Any]:
        """Hold the first request for this address back; it is in the list once it was made.

        Later ones pass through the same route: when Playwright takes a route away, as it does after
        `times=1`, a request that is made at that moment may never be answered.
        """
        held: list[Any] = []

        def hold(route: Any) -> None:
            if held:
                route.continue_()
            else:
                held.append(route)

        self.tab.route(address, hold)
        return held

    def side(self, letter: str = "a") -> Any:
        return self.tab.locator(f".view[data-side={letter}]")

    def form(self, letter: str = "a") -> Any:
        return self.tab.locator(f".settings[data-side={letter}]")

    def text(self, letter: str = "a") -> str:
        """The text that is drawn."""
        return str(self.side(letter).locator(".source").text_content())

    def drawn(self, letter: str = "a") -> dict[int, str]:
        """The text of each chunk, as far as no later one covers it."""
        pieces = self.tab.evaluate(
            """letter => [...document.querySelectorAll(
                `.view[data-side=${letter}] .piece[data-chunk]`)]
                .map((each) => [Number(each.dataset.chunk), each.textContent])""",
            letter,
        )
        found: dict[int, str] = {}
        for number, text in pieces:
            found[number] = found.get(number, "") + text
        return found

    def point_at(self, number: int, letter: str = "a") -> None:
        """Move the pointer over a chunk."""
        x, y = self.tab.evaluate(
            """([number, letter]) => {
                const all = document.querySelectorAll(`.view[data-side=${letter}] .piece`);
                const piece = [...all].find((each) => each.dataset.chunk === String(number));
                piece.scrollIntoView({ block: "center" });
                const box = piece.getClientRects()[0];
                return [box.x + box.width / 2, box.y + box.height / 2];
            }""",
            [number, letter],
        )
        self.tab.mouse.move(x, y)

    def figure(self, name: str, letter: str = "a") -> str:
        row = self.side(letter).locator(".figures dl > div", has_text=name)
        return str(row.locator("dd").text_content())

    def says(self, text: str) -> bool:
        """Wait until the page says this to a screen reader."""
        self.tab.locator(".view[data-side=a] .aloud", has_text=text).wait_for(state="attached")
        return True

    def is_stale(self) -> bool:
        """Whether the page says that what it draws is from the previous settings."""
        note = "getComputedStyle(document.querySelector('.view'), '::after').content"
        return "previous settings" in self.tab.evaluate(note)

    def field(self, name: str, letter: str = "a") -> Any:
        return self.form(letter).get_by_label(name, exact=True).last


@pytest.fixture
def opened(browser: Any, address: str) -> Callable[..., Any]:
    """Opens the page; it must complain of nothing, and ask no other host for anything."""

    @contextmanager
    def open_page(
        width: int = 1280, scheme: str = "light", *, fails: bool = False
    ) -> Iterator[Page]:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            permissions=["clipboard-read", "clipboard-write"],
        )
        tab = context.new_page()
        complaints: list[str] = []
        asked: list[str] = []
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("dialog", lambda dialog: complaints.append(dialog.message))
        tab.on("request", lambda request: asked.append(request.url))
        yield Page(tab, address)
        expected = "the server responded with a status of 400" if fails else None
        assert [each for each in complaints if not (expected and expected in each)] == []
        assert {url for url in asked if not url.startswith((address, "about:"))} == set()
        context.close()

    return open_page


def chunks(name: str, text: str, **parameters: Any) -> list[Chunk]:
    return build_chunker(name, parameters).chunk(text)


def as_drawn(found: list[Chunk], text: str) -> dict[int, str]:
    """What the page must show of these chunks, as far as no later one covers it."""
    parents = {chunk.metadata.get("parent_id") for chunk in found}
    leaves = [(each.start, each.end, n) for n, each in enumerate(found) if each.id not in parents]
    starts = [start for start, _, _ in leaves[1:]] + [len(text)]
    return {
        number: printable(text[start : min(end, after)])
        for (start, end, number), after in zip(leaves, starts, strict=True)
    }


# What is drawn


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_page_draws_chunks_in_their_places_and_fits(
    opened: Callable[..., Any], width: int, scheme: str
) -> None:
    with opened(width, scheme) as page:
        page.open(text="tram.md", a="recursive", **{"a.chunk_size": 200})
        assert page.text() == TRAM
        assert page.drawn() == as_drawn(chunks("recursive", TRAM, chunk_size=200), TRAM)
        shown = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        assert page.tab.evaluate(shown)
        sizes = page.tab.evaluate(
            """() => [...document.querySelectorAll("p, dt, dd, label, button, pre, span")]
            .filter((each) => each.getClientRects().length)
            .map((each) => parseFloat(getComputedStyle(each).fontSize))"""
        )
        assert min(sizes) >= 11, "text stays legible"


def test_page_of_a_large_text_stays_small(opened: Callable[..., Any]) -> None:
    assert len(LARGE) > 1_000_000
    with opened() as page:
        page.open(text="large", a="recursive", **{"a.chunk_size": 70})
        found = chunks("recursive", LARGE, chunk_size=70)
        assert page.figure("chunks") == f"{len(found):,}"
        assert "Showing" in page.tab.locator("#pager-status").inner_text()
        nodes = "document.querySelectorAll('*').length"
        assert page.tab.evaluate(nodes) < 3_000
        seen = page.text()
        page.tab.locator("#later").click()
        page.settled()
        assert LARGE.startswith(seen + page.text())
        page.side().locator(".source").focus()
        page.tab.keyboard.press("End")
        page.says(f"Chunk {len(found):,} of")
        assert LARGE.endswith(page.text()), "the window follows the keys"
        assert page.side().locator(".piece.on").is_visible()


# What is set


def test_page_follows_the_slider_and_the_number(opened: Callable[..., Any]) -> None:
    with opened() as page:
        page.open(text="tram.md", a="recursive", **{"a.chunk_size": 300})
        slider = page.form().get_by_role("slider", name="chunk_size", exact=True)
        slider.focus()
        for _ in range(12):
            page.tab.keyboard.press("ArrowLeft")
        page.settled()
        size = int(page.field("chunk_size").input_value())
        assert 100 < size < 300
        assert page.drawn() == as_drawn(chunks("recursive", TRAM, chunk_size=size), TRAM)
        page.field("chunk_size").fill("500")
        page.form().get_by_label("length_function").select_option("words")
        page.settled()
        found = chunks("recursive", TRAM, chunk_size=500, length_function="words")
        assert page.drawn() == as_drawn(found, TRAM)
        page.side().locator(".source").focus()
        page.tab.keyboard.press("Home")
        assert "words" in page.side().locator(".facts dd").first.inner_text()
        page.form().locator(".strategy").select_option("sentence")
        page.settled()
        found = chunks("sentence", TRAM, chunk_size=500, length_function="words")
        assert page.drawn() == as_drawn(found, TRAM), "sizes go along to another strategy"


def test_page_sets_lists_and_a_chunker_within_another(opened: Callable[..., Any]) -> None:
    with opened() as page:
        page.open(text="tram.md", a="recursive", **{"a.chunk_size": 200})
        page.field("separators").fill("\\n\\n\ntram")
        page.settled()
        found = chunks("recursive", TRAM, chunk_size=200, separators=["\n\n", "tram"])
        assert page.drawn() == as_drawn(found, TRAM)
        page.form().locator(".strategy").select_option("titled")
        page.settled()
        page.form().get_by_label("chunker", exact=True).select_option("sentence")
        page.field("chunk_size").fill("150")
        page.settled()
        found = chunks("titled", TRAM, chunk_size=150, chunker={"strategy": "sentence"})
        assert page.drawn() == as_drawn(found, TRAM)
        page.form().locator(".reset").click()
        page.settled()
        assert page.drawn() == as_drawn(chunks("titled", TRAM), TRAM)


def test_page_marks_old_chunks_while_settings_are_wrong(opened: Callable[..., Any]) -> None:
    with opened(fails=True) as page:
        page.open(text="tram.md", a="recursive", **{"a.chunk_size": 300})
        before = page.drawn()
        page.field("chunk_size").fill("0")
        page.settled()
        told = page.form().locator(".error").inner_text()
        assert told == "chunk_size must be a whole number of at least 1, got 0"
        assert page.is_stale()
        assert page.drawn() == before
        page.field("chunk_size").fill("250")
        page.settled()
        assert page.form().locator(".error").inner_text() == ""
        assert not page.is_stale()
        assert page.drawn() == as_drawn(chunks("recursive", TRAM, chunk_size=250), TRAM)


def test_page_has_one_request_under_way_and_draws_only_the_last_answer(
    opened: Callable[..., Any],
) -> None:
    with opened() as page:
        page.open(text="tram.md", a="recursive", **{"a.chunk_size": 300})
        held = page.hold_first("**/views")
        asked: list[Any] = []
        page.tab.on("request", lambda request: asked.append(request))
        field = page.field("chunk_size")
        with page.tab.expect_request("**/views"):
            field.fill("100")
        for size in range(110, 130):
            field.fill(str(size))
            page.tab.wait_for_timeout(10)
        page.tab.wait_for_timeout(200)
        assert len(held) == len(asked) == 1, "it is not asked again before it has answered"
        page.tab.evaluate(
            """() => {
                const figures = document.querySelector(".figures dl");
                window.seen = [];
                new MutationObserver(() => seen.push(figures.querySelector("dd")?.textContent))
                    .observe(figures, { childList: true });
            }"""
        )
        held[0].continue_()
        page.settled()
        assert len(asked) == 2
        count = str(len(chunks("recursive", TRAM, chunk_size=129)))
        assert set(page.tab.evaluate("seen")) == {count}
        assert page.drawn() == as_drawn(chunks("recursive", TRAM, chunk_size=129), TRAM)


def test_page_asks_a_chat_model_only_when_told_to(opened: Callable[..., Any]) -> None:
    ASKED.clear()
    with opened() as page:
        page.open(text="tram.md", a="agentic")
        page.field("chunk_size").fill("900")
        page.settled()
        assert ASKED == []
        assert page.text() == TRAM
        page.form().get_by_role("button", name="Run").click()
        page.settled()
        assert len(ASKED) == 1
        expected = build_chunker("agentic", {"chunk_size": 900, "llm": answer}).chunk(TRAM)
        assert page.drawn() == as_drawn(expected, TRAM)


def test_page_keeps_its_settings_in_its_address(opened: Callable[..., Any]) -> None:
    with opened() as page:
        page.open(
            text="bakery.md", a="sentence", b="recursive", q="rye?", k=2, **{"b.separators": "300"}
        )
        page.form().get_by_label("chunk_overlap").last.fill("0.25")
        page.settled()
        page.tab.wait_for_timeout(250)
        link = page.tab.url
        assert "a.chunk_overlap=0.25" in link
        page.tab.reload()
        page.settled()
        assert page.tab.url == link
        assert page.field("chunk_overlap").input_value() == "0.25"
        assert page.field("separators", "b").input_value() == "300"
        assert page.tab.locator("#question").input_value() == "rye?"
        text = sample_texts()["bakery.md"]
        assert page.drawn("b") == as_drawn(chunks("recursive", text, separators=["300"]), text)


# Texts of one's own


def test_page_takes_pasted_typed_and_dropped_text(
    opened: Callable[..., Any], tmp_path: Path
) -> None:
    own = "Own 😀 text.\n\nIt is <b>short</b>."
    with opened() as page:
        page.open(text="hostile", a="sentence", **{"a.chunk_size": 12})
        page.tab.get_by_role("button", name="Paste or edit").click()
        page.tab.get_by_role("button", name="Use this text").click()
        page.settled()
        assert page.text() == printable(HOSTILE), "nothing changed in the editor"
        page.tab.get_by_role("button", name="Paste or edit").click()
        page.tab.locator("#own").fill(own)
        page.tab.get_by_role("button", name="Use this text").click()
        page.shows(own)
        assert page.drawn() == as_drawn(chunks("sentence", own, chunk_size=12), own)
        page.tab.wait_for_timeout(250)
        assert "short" not in page.tab.url, "texts do not go into links"
        page.tab.reload()
        page.shows(own)  # it is kept
        page.tab.evaluate(
            """() => {
                const clipboardData = new DataTransfer();
                clipboardData.setData("text/plain", "Pasted 😀.");
                document.body.dispatchEvent(
                    new ClipboardEvent("paste", { clipboardData, bubbles: true }));
            }"""
        )
        page.shows("Pasted 😀.")
        (tmp_path / "file.md").write_bytes("From a\r\nfile 😀.".encode())
        page.tab.locator("#file").set_input_files(tmp_path / "file.md")
        page.shows("From a \nfile 😀.")
        page.tab.evaluate(
            """() => {
                const data = new DataTransfer();
                data.items.add(new File(["Dropped ü."], "dropped.txt"));
                document.dispatchEvent(new DragEvent("drop", { dataTransfer: data }));
            }"""
        )
        page.shows("Dropped ü.")


def test_page_says_what_is_wrong_with_a_file(opened: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "broken.txt").write_bytes(b"a\0b")
    with opened(fails=True) as page:
        page.open(text="tram.md", a="sentence")
        page.tab.locator("#file").set_input_files(tmp_path / "broken.txt")
        told = page.tab.locator("#notice", has_text="broken.txt")
        told.wait_for()
        assert "broken.txt is not a text file" in told.inner_text()
        page.shows(TRAM)


# One chunk, two strategies, a question, the code


def test_page_tells_of_the_chunk_under_the_pointer_and_pins_it(opened: Callable[..., Any]) -> None:
    with opened() as page:
        page.open(text="tram.md", a="content_aware", **{"a.chunk_size": 300})
        found = chunks("content_aware", TRAM, chunk_size=300)
        panel = page.side().locator(".panel")

        def says(number: int) -> Any:
            return page.side().locator(".facts h3", has_text=f"Chunk {number} of {len(found)}")

        page.point_at(2)
        says(3).wait_for()
        assert " › ".join(found[2].metadata["headings"]) in panel.inner_text()
        assert f"{len(found[2].text)} characters" in panel.inner_text()
        assert panel.locator(".texts pre").text_content() == found[2].text
        assert page.side().locator(".piece.on").text_content() == found[2].text
        page.tab.mouse.down()
        page.tab.mouse.up()
        page.point_at(3)
        page.tab.wait_for_timeout(200)
        assert says(3).is_visible(), "it is pinned"
        page.side().locator(".source").focus()
        page.tab.keyboard.press("Escape")
        page.point_at(1)
        says(2).wait_for()


def test_page_compares_two_strategies(opened: Callable[..., Any]) -> None:
    with opened() as page:
        page.open(text="tram.md", a="recursive", **{"a.chunk_size": 250})
        page.tab.get_by_role("button", name="Compare").click()
        page.settled()
        page.form("b").locator(".strategy").select_option("fixed_size")
        page.settled()
        left = chunks("recursive", TRAM, chunk_size=250)
        right = chunks("fixed_size", TRAM, chunk_size=250)
        assert page.drawn("a") == as_drawn(left, TRAM)
        assert page.drawn("b") == as_drawn(right, TRAM)
        lines = "[...document.querySelectorAll('.source')].map((each) => each.scrollHeight)"
        heights = page.tab.evaluate(lines)
        assert heights[0] == heights[1], "numbers and marks move no line"
        page.tab.get_by_role("button", name="Close").click()
        page.side("b").wait_for(state="hidden")


def test_page_shows_what_a_question_finds(opened: Callable[..., Any]) -> None:
    with opened() as page:
        page.open(text="tram.md", a="sentence", b="recursive", **{"a.chunk_size": 150})
        page.tab.locator("#question").fill("Why are the trams painted green?")
        page.tab.locator("#k").fill("2")
        page.tab.locator(".view[data-side=b] .results li").nth(1).wait_for()
        page.settled()
        results = page.side().locator(".results li button")
        assert results.count() == 2
        assert page.side("b").locator(".results li").count() == 2
        results.first.click()
        chunk = page.side().locator(".texts pre").text_content()
        assert "painted dark green" in chunk
        assert chunk in page.side().locator(".hit").all_text_contents()
        assert "result 1" in page.side().locator(".facts h3").inner_text()
        page.field("chunk_size").fill("120")
        page.settled()
        assert results.count() == 2
        found = chunks("sentence", TRAM, chunk_size=120)
        best = int(results.first.inner_text().split()[2]) - 1
        assert "painted dark green" in found[best].text, "asked again of the new chunks"
        page.tab.locator("#question").press("Enter")
        page.tab.locator(".view[data-side=a] .facts h3", has_text="result 1").wait_for()
        assert "painted dark green" in page.side().locator(".piece.on").text_content()
        page.tab.locator("#question").fill("")
        page.tab.locator(".view[data-side=a] .results").wait_for(state="hidden")
        assert page.side().locator(".hit").count() == 0


def test_page_copies_the_code_that_is_shown(opened: Callable[..., Any]) -> None:
    with opened() as page:
        page.open(text="tram.md", a="sentence", **{"a.chunk_size": 170, "a.chunk_overlap": 0.3})
        page.side().get_by_text("LangChain", exact=True).click()
        page.side().locator(".code").wait_for()
        page.side().get_by_role("button", name="Copy").click()
        page.side().get_by_role("button", name="Copied").wait_for()
        code = page.tab.evaluate("navigator.clipboard.readText()")
        assert code == page.side().locator(".code").text_content()
        assert "SentenceTextSplitter(chunk_size=170, chunk_overlap=0.3)" in code


# By keyboard


def test_page_can_be_used_by_keyboard(opened: Callable[..., Any]) -> None:
    with opened() as page:
        page.open(text="tram.md", a="recursive", b="sentence", **{"a.chunk_size": 300})
        reached: list[str] = []
        for _ in range(80):
            page.tab.keyboard.press("Tab")
            name, ring = page.tab.evaluate(
                """() => {
                    const at = document.activeElement;
                    const name = at.id || at.name || at.className || at.tagName;
                    const ringed = at.type === "radio" ? at.parentElement : at;
                    return [name, getComputedStyle(ringed).outlineStyle];
                }"""
            )
            if name == "BODY":
                break
            assert ring != "none", name
            reached.append(name)
        names = {"text", "question", "a", "b", "source-a", "source-b", "a-tab", "panel-b"}
        assert names <= set(reached)
        assert len(reached) < 70, "chunks are no stops of their own"
        page.side().get_by_role("radio", name="Chunk").focus()
        page.tab.keyboard.press("ArrowRight")
        assert page.side().get_by_role("radio", name="LangChain").is_checked()
        page.side().locator(".code").wait_for()
        page.side().locator(".source").focus()
        page.tab.keyboard.press("ArrowRight")
        assert page.says("Chunk 1 of")
        page.tab.keyboard.press("ArrowRight")
        assert page.says("Chunk 2 of")
        named = page.tab.evaluate(
            """() => [...document.querySelectorAll("input:not([hidden]), select, textarea, button")]
            .filter((each) => each.getClientRects().length)
            .filter((each) => !each.labels?.length && !each.ariaLabel && !each.innerText.trim()
                && !each.getAttribute("aria-labelledby"))
            .map((each) => each.outerHTML)"""
        )
        assert named == [], "every control has a name"
