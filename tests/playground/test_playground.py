"""The playground's server: what it renders, what it refuses, and that its code to copy runs."""

from __future__ import annotations

import io
import json
import logging
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import httpx
import numpy as np
import pytest
from bs4 import BeautifulSoup
from PIL import Image
from starlette.testclient import TestClient
from typer.testing import CliRunner

import rag_splitters.playground
from rag_splitters import CATALOGUE, Chunker, RagSplittersError
from rag_splitters.chunkers.by_name import build_chunker, required_models
from rag_splitters.cli import app as command_line
from rag_splitters.models import HashingEmbeddings
from rag_splitters.playground import create_app
from rag_splitters.playground.cutting import Cut
from rag_splitters.playground.fields import read_strategy, write_fields
from rag_splitters.playground.form import chunker_from_form, form
from rag_splitters.playground.model_set import ModelSet
from rag_splitters.playground.security import MAX_BYTES
from rag_splitters.playground.snippets import snippet
from rag_splitters.playground.texts import Text
from rag_splitters.reading.samples import SAMPLE_ANSWERS, SAMPLE_QUESTIONS, sample_texts
from rag_splitters.text.coloured import printable
from tests.support.chat_doubles import Function
from tests.support.embedding_doubles import CountingEmbeddings
from tests.support.pdfs import make_pdf

HERE = "http://127.0.0.1"
TRAM = sample_texts()["tram.md"]
TEXT = (
    f"{TRAM}\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nx = 1\n```\n\f![a](a.png)\n\nThe end."
)
HOSTILE = (
    "<script>alert(1)</script> & 👩‍👩‍👧‍👦 \ud800 lone \udc00. NUL \0 and\r\n"
    "CRLF, \u202eright to left\u202c "
    "שלום עולם. e\u0301 \u2028 🇩🇪🇫🇷 </textarea> {{ style }}. "
) * 3


def answer(prompt: str) -> str:
    """A chat model that always says the same to the same kind of question."""
    return "1: The tram is green." if "proposition" in prompt else "1, 3, 6"


def names(text: str) -> list[tuple[int, int, str]]:
    """A recogniser of one name."""
    start = text.find("Ilse Brandauer")
    return [(start, start + 14, "PERSON")] if start >= 0 else []


TEXTS = {"text.md": TEXT, "hostile": HOSTILE, "notes.yaml": "# Tea", "blank": " \n ", "nul": "\0"}


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(create_app(TEXTS, llm=answer, ner=names), base_url=HERE) as opened:
        yield opened


@pytest.fixture(scope="module")
def bare() -> Iterator[TestClient]:
    """Without models."""
    with TestClient(create_app(TEXTS), base_url=HERE) as opened:
        yield opened


class Parts:
    """What the page shows after a response of `/views` or `/chunk`."""

    def __init__(self, response: httpx.Response) -> None:
        self.status = response.status_code
        kept = {"pre", "textarea", "span", "div"}  # whose white space counts
        self.soup = BeautifulSoup(response.text, "html.parser", preserve_whitespace_tags=kept)
        self.url = response.headers.get("hx-replace-url", "")

    def __getitem__(self, name: str) -> Any:
        found = self.soup.find(id=name)
        assert found is not None, name
        return found

    def pieces(self, letter: str = "a") -> list[Any]:
        return list(self[f"source-{letter}"].find_all(class_="piece"))

    def figures(self, letter: str = "a") -> dict[str, str]:
        rows = self[f"figures-{letter}"].find_all("div")
        return {row.dt.text: row.dd.text for row in rows}

    def starts(self, letter: str = "a") -> list[int]:
        pieces = self.pieces(letter)
        return [int(each["data-at"]) for each in pieces if each.find(class_="mark")]

    def ranking(self, letter: str = "a") -> list[int]:
        return [
            int(each["data-chunk"])
            for each in self[f"results-{letter}"].find_all("button")
            if each.has_attr("data-chunk")
        ]

    def error(self, letter: str = "a") -> str:
        return str(self[f"error-{letter}"].text)


def post(client: TestClient, path: str = "/views", **fields: Any) -> Parts:
    response = client.post(path, data={k.replace("__", "-"): v for k, v in fields.items()})
    assert response.headers["content-type"].startswith("text/html"), response.text
    return Parts(response)


def show(
    client: TestClient,
    name: str,
    values: dict[str, Any] | None = None,
    text: str = "text.md",
    **fields: Any,
) -> Parts:
    """The page with a strategy; Run is pressed, for those that wait."""
    parts = post(client, **write_fields(name, values or {}, "a"), text=text, run="a", **fields)
    assert parts.status == 200, parts.error()
    return parts


def message(response: httpx.Response, status: int = 400) -> str:
    """The one line of an error that concerns the whole page."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"].startswith("text/plain")
    assert "\n" not in response.text
    return response.text


SETTINGS: dict[str, dict[str, Any]] = {
    "separator": {"separators": ["\n\n", "'", "\\"], "keep_separator": "end"},
    "recursive": {"chunk_size": 200, "separators": ["\n\n", ". ", " "], "min_chunk_size": 40},
    "sentence": {"chunk_size": 60, "length_function": "tokens", "chunk_overlap": 0.2},
    "keyword": {"keywords": ["tram", "it's"], "patterns": [r"^## \w+"], "chunk_size": 400},
    "page": {"chunk_size": 400, "page_break": "\n## "},
    "hierarchical": {"chunk_sizes": [900, 300], "emit": "all"},
    "table": {"text": "sentence", "render": "markdown"},
    "modality": {"image": "drop", "text": "paragraph", "chunk_size": 300},
    "hybrid": {"stages": ["page", "titled"], "chunk_size": 200},
    "titled": {"title": "A 'title'", "chunker": "sentence", "chunk_size": 200},
    "semantic": {"chunk_size": 400, "breakpoint_threshold_type": "gradient"},
    "topic": {"chunk_size": 400, "n_topics": 3},
    "agentic": {"chunk_size": 500, "on_error": "sentence"},
    "contextual": {"chunk_size": 300},
}


def is_sent(control: Any) -> bool:
    """Whether a form sends this control."""
    return control.name != "button" and (
        control.get("type") != "checkbox" or control.has_attr("checked")
    )


def value_of(control: Any) -> str:
    """What a form sends for this control."""
    if control.name == "select":
        option = control.find("option", selected=True) or control.option
        return str(option.get("value", option.text))
    if control.name == "textarea":
        return str(control.text.removeprefix("\n"))
    return str(control.get("value", ""))


NEEDED = {"keyword": {"keywords": ["tram"]}}
every_strategy = pytest.mark.parametrize("name", CATALOGUE)


def built(name: str, parameters: dict[str, Any] | None = None) -> Chunker:
    return chunker_from_form(name, parameters or {}, ModelSet.load(None, answer, names))


# Chunks and figures


@every_strategy
def test_chunks_are_those_of_the_strategy(client: TestClient, name: str) -> None:
    parts = show(client, name, NEEDED.get(name))
    expected = built(name, NEEDED.get(name)).chunk(TEXT, metadata={"source": "text.md"})
    parents = {chunk.metadata.get("parent_id") for chunk in expected}
    assert parts.figures()["chunks"] == str(len(expected)) != "0"
    leaves = sorted({each.start for each in expected if each.id not in parents})
    assert parts.starts() == leaves
    assert parts["source-a"].text == printable(TEXT)


def test_the_name_of_a_text_tells_what_it_is(client: TestClient) -> None:
    details = post(client, "/chunk", a="auto", a__chunk=0, side="a", text="notes.yaml")
    assert "strategycode" in details["panel-a"].text.replace("\n", "")
    outlined = client.post(
        "/text", content=b"# Tea\n\n## Green\n\nHot.", headers={"Content-Type": "text/plain"}
    ).json()["key"]
    details = post(client, "/chunk", a="content_aware", a__chunk=0, side="a", text=outlined)
    assert "Tea › Green" in details["panel-a"].text


@pytest.mark.parametrize("text", ["blank", "nul"])
def test_blank_text_has_figures_too(client: TestClient, text: str) -> None:
    parts = show(client, "recursive", text=text)
    assert parts.figures()["chunks"] == str(int(bool(TEXTS[text].strip())))
    assert ("This text gives no chunks" in parts["panel-a"].text) == (text == "blank")


def test_hostile_text_keeps_its_positions(client: TestClient) -> None:
    parts = show(client, "recursive", {"chunk_size": 40}, "hostile")
    expected = build_chunker("recursive", {"chunk_size": 40}).chunk(HOSTILE)
    assert parts.starts() == [chunk.start for chunk in expected]
    assert parts["source-a"].text == printable(HOSTILE)
    assert not parts.soup.find("script")
    titled = "# A \ud800 title\n\n" + HOSTILE * 9
    with TestClient(create_app({"t": titled}), base_url=HERE) as other:
        panel = post(other, "/chunk", a="titled", a__chunk=1, side="a", text="t")["panel-a"]
        assert panel.find("pre").text.startswith("\nA \ufffd title\n\n")


def test_difference_and_what_is_the_same(client: TestClient) -> None:
    sides = {"a": "recursive", "a.chunk_size": 300, "b": "sentence", "b.chunk_size": 300}
    parts = post(client, **sides, text="tram.md")
    left = {(c.start, c.end) for c in build_chunker("recursive", {"chunk_size": 300}).chunk(TRAM)}
    right = {(c.start, c.end) for c in build_chunker("sentence", {"chunk_size": 300}).chunk(TRAM)}
    both, only_a, only_b = len(left & right), len(left - right), len(right - left)
    said = f"{both} chunks in both (grey), {only_a} only in A, {only_b} only in B."
    assert parts["difference"].text == said
    for letter in "ab":
        same = [each for each in parts.pieces(letter) if "same" in each["class"]]
        assert [int(each["data-at"]) for each in same] == sorted(s for s, _ in left & right)
    parts = post(client, **{**sides, "b": "recursive"}, text="tram.md")
    assert parts["difference"].text == f"A and B give the same {len(left)} chunks."
    assert not [each for each in parts.pieces() if "same" in each["class"]]


# What is set


@every_strategy
def test_form_offers_every_parameter_but_models_and_caches(client: TestClient, name: str) -> None:
    kind = CATALOGUE[name]
    offered = {control["name"]: control for control in form(kind)}
    assert kind.model_fields.keys() - offered.keys() == {*required_models(kind)} | (
        {"cache", "rules", "embeddings"} & kind.model_fields.keys()
    )
    assert all(control["meaning"] for control in offered.values())
    values = {key: control["default"] for key, control in offered.items()}
    assert built(name, values | NEEDED.get(name, {})) == built(name, NEEDED.get(name)), (
        "the defaults that the form shows are the defaults"
    )
    page = BeautifulSoup(client.get("/", params={"a": name}).text, "html.parser")
    controls = page.select("[name^='a.']")
    assert {each["name"].removeprefix("a.") for each in controls} == set(offered)
    sent = {"a": name} | {each["name"]: value_of(each) for each in controls if is_sent(each)}
    assert read_strategy(sent, "a") == (name, {}), "what the form sends is the defaults"


@pytest.mark.parametrize(("name", "values"), SETTINGS.items())
def test_settings_survive_the_url(client: TestClient, name: str, values: dict[str, Any]) -> None:
    parts = show(client, name, values)
    fields = dict(parse_qsl(parts.url.removeprefix("?"), keep_blank_values=True))
    assert fields.pop("text") == "text.md"
    assert read_strategy(fields, "a") == (name, values)
    page = BeautifulSoup(client.get(f"/{parts.url}").text, "html.parser")
    assert page.find(id="a").find("option", selected=True).text == name


def test_sizes_stay_when_the_strategy_changes(client: TestClient) -> None:
    sent = {"a": "titled", "a-before": "recursive", "a.chunk_size": "300", "a.chunk_overlap": "0"}
    parts = Parts(client.post("/settings", data=sent))
    assert parts["a.chunk_size"]["value"] == "300"
    sent = {"a": "sliding_window", "a-before": "titled", "a.chunk_size": "300"}
    parts = Parts(client.post("/settings", data=sent))
    assert parts["a.chunk_size"]["value"] == "300"
    assert parts["a.chunk_overlap"]["value"] == "0.1", "its own"


def test_strategies_without_their_models_are_offered_apart(
    bare: TestClient, client: TestClient
) -> None:
    asking = {"agentic", "contextual", "entity", "proposition"}
    for opened, without in ((bare, asking), (client, set())):
        page = BeautifulSoup(opened.get("/").text, "html.parser")
        offered = [each.text for each in page.select("#a option")]
        assert sorted(offered) == sorted(CATALOGUE)
        assert {each.text for each in page.select("#a optgroup option")} == without
    told = post(bare, a="agentic", text="tram.md")
    assert told.status == 400
    assert told.error().startswith("agentic needs a chat model: start the playground with --llm")
    assert told["source-a"].text == TRAM, "the text is shown all the same"


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A module that must not be imported."""
    (tmp_path / "planted.py").write_text("def f(text): return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    assert "planted" not in sys.modules


@pytest.mark.parametrize(
    ("name", "parameters", "told"),
    [
        ("recursive", {"length_function": "function:planted:f"}, "length_function can be"),
        ("recursive", {"length_function": "tokens:some-model"}, "length_function can be"),
        ("recursive", {"length_function": ["words"]}, "length_function can be"),
        ("sentence", {"segmenter": "function:planted:f"}, "segmenter can be rules or punkt"),
        ("sentence", {"segmenter": "spacy:./folder"}, "segmenter can be rules or punkt"),
        ("semantic", {"embeddings": "function:planted:f"}, "embeddings can be set only in Python"),
        ("semantic", {"embeddings": "openai:x"}, "embeddings can be set only in Python"),
        ("agentic", {"llm": "function:planted:f"}, "llm can be set only in Python"),
        ("entity", {"ner": "planted"}, "ner can be set only in Python"),
        ("contextual", {"cache": "/tmp/x"}, "cache can be set only in Python"),
        ("titled", {"chunker": "function:planted:f"}, "unknown strategy"),
        ("hybrid", {"stages": ["function:planted:f"]}, "unknown strategy"),
        ("hybrid", {"stages": ["agentic", ""]}, "unknown strategy"),
        ("modality", {"text": "function:planted:f"}, "unknown strategy"),
        ("recursive", {"is_regex": True, "separators": ["("]}, "separator '('"),
    ],
)
@pytest.mark.usefixtures("planted")
def test_parameters_are_refused_in_one_line(name: str, parameters: Any, told: str) -> None:
    with pytest.raises(RagSplittersError) as caught:
        built(name, parameters)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"a": "recursive", "a.chunk_size": "0"}, "chunk_size must be a whole number of at least"),
        ({"a": "recursive", "a.chunk_sise": "9"}, "did you mean 'chunk_size'?"),
        ({"a": "titled", "a.chunker": "sentence", "a.chunker.segmenter": "spacy:x"}, "unknown"),
        ({"a": "recursif"}, "did you mean 'recursive'?"),
    ],
)
@pytest.mark.usefixtures("planted")
def test_wrong_settings_are_named_beside_them(
    client: TestClient, fields: dict[str, str], told: str
) -> None:
    parts = post(client, **fields, b="sentence", text="tram.md")
    assert parts.status == 400
    assert told in parts.error()
    assert parts.error("b") == ""
    assert parts.starts("b"), "the other side is drawn"
    assert "\n" not in parts.error()


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("keyword", {"patterns": ["^## "]}),
        ("recursive", {"is_regex": True, "separators": [r"\d"]}),
        ("page", {"page_break": "---"}),
        ("sentence", {"secondary_chunking_regex": "x+"}),
    ],
)
def test_a_regular_expression_of_a_link_waits_for_a_click(
    client: TestClient, name: str, values: dict[str, Any]
) -> None:
    fields = write_fields(name, values, "a")
    page = BeautifulSoup(client.get("/", params=fields).text, "html.parser")
    assert page.find(attrs={"name": "a-linked"})["value"] == "1"
    waiting = post(client, **fields, text="bakery.md", a__linked="1")
    assert "regular expressions that came with a link" in waiting["waiting-a"].text
    assert waiting.starts() == []
    assert post(client, **fields, text="bakery.md", a__linked="1", run="a").starts()
    assert post(client, **fields, text="bakery.md", a__linked="1").starts(), "nothing runs twice"


def test_opening_a_link_cuts_and_asks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_splitters.playground.application.Cut.of", None)
    with TestClient(create_app(embeddings=None, llm=None), base_url=HERE) as client:
        answer = client.get("/", params={"a": "recursive", "q": "why?", "text": "tram.md"})
        assert answer.status_code == 200
        status = BeautifulSoup(answer.text, "html.parser").find(id="status")
        assert status.text == "Cutting tram.md …", "which comes next"


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"a": "recursiv"}, "The link asks for the strategy “recursiv”, which does not exist."),
        ({"a": "recursive", "b": "no"}, "The link asks for the strategy “no”, which does not"),
        ({"text": "atlas"}, "there is no text 'atlas'"),
        ({"text": "own-00"}, "your text is no longer in the playground's memory"),
        (
            {"text": "own-00", "a": "no"},
            "your text is no longer in the playground's memory: paste it again\nThe link asks for",
        ),
    ],
)
def test_a_link_that_names_what_does_not_exist_says_so(
    client: TestClient, fields: dict[str, str], told: str
) -> None:
    page = BeautifulSoup(client.get("/", params=fields).text, "html.parser")
    assert page.find(id="notice").text.startswith(told)
    assert page.find(id="a")


# The guard


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8000", 200),
        ("localhost:8000", 200),
        ("LOCALHOST", 200),
        ("[::1]:8000", 200),
        ("192.168.1.7:80", 200),
        ("mine.example:8000", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example:8000", 421),
        ("[::1].evil.example", 421),
        ("", 421),
    ],
)
def test_host_is_one_that_cannot_be_made_to_lead_here(host: str, status: int) -> None:
    with TestClient(create_app(hosts=["mine.example"]), base_url=HERE) as client:
        response = client.get("/", headers={"Host": host})
        assert response.status_code == status
        assert ("strategy" in response.text) == (status == 200)


@pytest.mark.parametrize("path", ["/views", "/chunk", "/settings", "/text"])
def test_other_origins_cannot_post(client: TestClient, path: str) -> None:
    for origin, status in ((HERE, 200), ("http://evil.example", 403), ("null", 403)):
        data = {"a": "recursive", "side": "a", "text": "tram.md"}
        response = client.post(path, data=data, headers={"Origin": origin})
        assert response.status_code == status
    assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize("path", ["/", "/page.js", "/htmx.min.js", "/page.css", "/nowhere"])
def test_every_answer_is_kept_from_other_sites_and_from_caches(
    client: TestClient, path: str
) -> None:
    headers = client.get(path).headers
    policy = dict(each.split(" ", 1) for each in headers["content-security-policy"].split("; "))
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "connect-src": "'self'",
        "img-src": "'self' data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    expected = {
        "cache-control": "no-store",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }
    assert {name: headers.get(name) for name in expected} == expected


@pytest.mark.parametrize("host", ["127.0.0.1", "evil.example"])
def test_answers_to_posts_are_not_kept_either(client: TestClient, host: str) -> None:
    for path in ("/views", "/text"):
        response = client.post(path, data={"a": "recursive"}, headers={"Host": host})
        assert response.headers["cache-control"] == "no-store"
        assert "default-src 'none'" in response.headers["content-security-policy"]


def test_files_of_the_package_are_not_served(client: TestClient) -> None:
    for path in ("/../application.py", "/templates/page.html", "/page.html"):
        assert client.get(path).status_code == 404


def test_bodies_that_are_too_large_are_refused(client: TestClient) -> None:
    told = message(client.post("/text", content=b"a" * (MAX_BYTES + 1)), 413)
    assert told == f"the request is too large: the limit is {MAX_BYTES // 10**6} MB"
    parts = (b"a" * 1_000_000 for _ in range(MAX_BYTES // 1_000_000 + 1))  # no length announced
    assert message(client.post("/text", content=parts), 413) == told


@pytest.mark.parametrize("path", ["/views", "/chunk", "/settings"])
@pytest.mark.parametrize(
    "body", [b"\xff=a", b"&".join([b"a=b"] * 3_000), b"text=no&a=recursive&side=a"], ids=range(3)
)
def test_what_is_no_form_is_refused(client: TestClient, path: str, body: bytes) -> None:
    if path == "/settings" and body.startswith(b"text"):
        pytest.skip("the forms are the same for every text")
    assert len(message(client.post(path, content=body))) < 700


@pytest.mark.parametrize(
    "fields",
    [
        {"k": "x", "from": "-3", "a-chunk": "99999999999999", "answer": "a-b"},
        {"k": "0", "from": "99999", "a-chunk": "5000", "answer": "7-3", "a-tab": "no"},
        {"a": "hybrid", "a.stages": "x\n\npage", "reset": "q"},
    ],
)
def test_fields_that_make_no_sense_break_nothing(
    client: TestClient, fields: dict[str, str]
) -> None:
    for path in ("/views", "/chunk", "/settings"):
        sent = {"a": "recursive", "text": "tram.md", "q": "why?", "side": "a", **fields}
        assert client.post(path, data=sent).status_code in (200, 400)


def test_what_goes_wrong_in_a_model_is_told_in_one_line() -> None:
    def broken(prompt: str) -> str:
        raise RuntimeError("no\nroute to the model")

    with TestClient(create_app(llm=broken), base_url=HERE) as client:
        parts = post(client, a="agentic", run="a")
        assert parts.status == 502
        assert "no route to the model" in parts.error()


def test_a_bug_is_logged_with_its_traceback_and_can_be_looked_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*args: Any) -> Any:
        raise ValueError("secret details")

    monkeypatch.setattr("rag_splitters.playground.application.window", broken)
    with TestClient(create_app(), base_url=HERE) as client, caplog.at_level(logging.ERROR):
        told = message(client.post("/views", data={"a": "recursive"}), 500)
    assert "secret" not in told
    number = re.search(r"failure ([0-9a-f]{8})", told)
    assert number is not None
    assert number[1] in caplog.text
    assert "ValueError: secret details" in caplog.text


# Texts and files


def test_texts_are_those_given_and_the_bundled_ones() -> None:
    with TestClient(create_app({"mine": HOSTILE, "tram.md": "Other."}), base_url=HERE) as client:
        page = BeautifulSoup(client.get("/").text, "html.parser")
        offered = [each["value"] for each in page.select("#text option")]
        assert offered == ["mine", "tram.md", "lighthouse.md", "bakery.md"]
        assert show(client, "recursive", text="tram.md")["source-a"].text == "Other."


def test_files_are_read_as_the_readers_read_them(client: TestClient, tmp_path: Path) -> None:
    pages = make_pdf(tmp_path / "report.pdf", ["Page one.", "Page two."])

    def read(name: str, content: bytes) -> httpx.Response:
        return client.post("/text", params={"name": name}, content=content)

    def text(name: str, content: bytes) -> str:
        key = read(name, content).json()["key"]
        return str(show(client, "fixed_size", text=key)["source-a"].text)

    assert text("a.pdf", pages).split() == "Page one. Page two.".split()
    key = read("a.pdf", pages).json()["key"]
    fields = {"a": "sentence", "a.chunk_size": 9, "a__chunk": 1, "side": "a", "text": key}
    details = post(client, "/chunk", **fields)
    assert "page_start2page_end2" in details["panel-a"].text.replace("\n", "")
    assert text("a.txt", "a\r\nä😀".encode()) == "a \nä😀"
    assert "b.txt is not a text file: it has a NUL byte" in message(read("b.txt", b"a\0"))
    assert "c.pdf cannot be read as PDF" in message(read("c.pdf", b"%PDF-1.4 broken"))
    field = BeautifulSoup(client.get("/").text, "html.parser").find(id="file")
    assert field is not None
    assert "accept" not in field.attrs, "files of all kinds that the readers know can be chosen"


def test_a_pasted_text_is_kept_under_a_key_that_nobody_can_guess(client: TestClient) -> None:
    def paste(text: str) -> Any:
        headers = {"Content-Type": "text/plain;charset=UTF-8"}
        return client.post("/text", content=text.encode(), headers=headers).json()

    assert re.fullmatch(r"own-[0-9a-f]{20}", paste("Mine.")["key"])
    assert paste("Mine.") == paste("Mine.")
    assert paste("Mine.")["key"] != paste("Yours.")["key"]
    key = paste("\ufeffA NUL \0.")["key"]
    assert show(client, "recursive", text=key)["source-a"].text == "\ufeffA NUL \ufffd."
    for number in range(8):
        paste(f"Text {number}.")
    gone = message(client.post("/views", data={"a": "recursive", "text": key}))
    assert gone == "your text is no longer in the playground's memory: paste it again"


# Long texts


@pytest.mark.slow
def test_a_long_text_is_drawn_in_parts_that_follow_each_other() -> None:
    long = "".join(f"Sentence {n} has a 😀 in it. \n" for n in range(5_000))
    with TestClient(create_app({"long": long}), base_url=HERE) as client:
        start, seen = "0", ""
        for _ in range(3):
            parts = show(client, "fixed_size", {"chunk_size": 23}, "long", **{"from": start})
            assert len(parts.pieces()) <= 1_501
            seen += parts["source-a"].text
            start = json.loads(parts["later"]["hx-vals"])["from"]
        assert long.startswith(seen)
        assert len(seen) > 100_000
        last = len(long) // 23
        fields = {"a": "fixed_size", "a.chunk_size": 23, "a-chunk": last, "side": "a", "go": "1"}
        moved = Parts(client.post("/chunk", data={**fields, "text": "long", "from": "0"}))
        assert str(last) in {each.get("data-chunk") for each in moved.pieces()}
        assert moved["aloud-a"].text.startswith(f"Chunk {last + 1:,} of")


def test_nothing_is_cut_or_asked_twice() -> None:
    counted = Function(lambda prompt: "1, 4, 9")
    with TestClient(create_app(llm=counted), base_url=HERE) as client:
        fields = {"a": "agentic", "text": "tram.md"}
        assert "calls " in post(client, **fields)["waiting-a"].text
        assert counted.prompts == []
        starts = post(client, **fields, run="a").starts()
        assert len(counted.prompts) == 1
        assert post(client, **fields, q="Why green?").starts() == starts
        assert post(client, "/chunk", **fields, a__chunk=1, side="a")["panel-a"].find("pre")
        assert post(client, "/chunk", **fields, a__tab="python", side="a")["panel-a"].find("pre")
        assert len(counted.prompts) == 1
        post(client, **fields, run="a")
        assert len(counted.prompts) == 2, "Run asks again"


# Questions


def test_search_ranks_by_cosine_of_what_is_delivered(client: TestClient) -> None:
    question = SAMPLE_QUESTIONS[1]
    values = SETTINGS["titled"]
    parts = show(client, "titled", values, "tram.md", q=question, k=4)
    texts = [each.text for each in built("titled", values).chunk(TRAM)]
    vectors = np.array(HashingEmbeddings().embed_documents([*texts, question]))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    scores = vectors[:-1] @ vectors[-1]
    best = np.argsort(-scores, kind="stable")[:4]
    assert parts.ranking() == best.tolist()
    buttons = parts["results-a"].select("[data-chunk]")
    shown = [float(each.find(class_="hint").text) for each in buttons]
    assert shown == pytest.approx(scores[best], abs=0.006)
    assert "painted" in texts[best[0]]
    hits = [each for each in parts.pieces() if "hit" in each["class"]]
    assert {int(each["data-chunk"]) for each in hits} == set(best.tolist())
    assert "HashingEmbeddings(dimensions=1024)" in parts["results-a"].text


def test_page_says_in_which_chunk_the_answer_lies(client: TestClient) -> None:
    fields = {"a": "recursive", "a.chunk_size": 300, "b": "fixed_size", "b.chunk_size": 50}
    parts = post(client, **fields, q=SAMPLE_QUESTIONS[1], text="tram.md")
    start = TRAM.index(SAMPLE_ANSWERS[1])
    chunks = build_chunker("recursive", {"chunk_size": 300}).chunk(TRAM)
    number = next(n for n, each in enumerate(chunks) if each.start <= start < each.end)
    said = parts["results-a"].text
    assert f"The answer lies in chunk {number + 1} (result " in said
    assert f"The answer is cut into chunks {start // 50 + 1}" in parts["results-b"].text
    for letter in "ab":
        marked = parts[f"source-{letter}"].find_all(class_="answer")
        assert "".join(each.text for each in marked) == SAMPLE_ANSWERS[1]
    own = post(client, **fields, q="Where?", answer="10-20", text="tram.md")
    assert "".join(e.text for e in own["source-a"].find_all(class_="answer")) == TRAM[10:20]
    for none in ("", "7", "7-", "-7", "7-3", "7-7", "a-9"):
        parts = post(client, **fields, q="?", answer=none, text="tram.md")
        assert "select it in the text" in parts["results-a"].text


def test_search_asks_a_model_for_each_text_once_and_only_when_told_to() -> None:
    model = CountingEmbeddings()
    with TestClient(create_app({"t": "A b. C d."}, embeddings=model), base_url=HERE) as client:
        fields = {"a": "sentence", "a.chunk_size": 5, "text": "t"}
        waiting = post(client, **fields, q="one?")
        assert model.texts == []
        assert "press Ask to search these chunks" in waiting["results-a"].text
        for question in ("one?", "two?", "one?"):
            assert len(post(client, **fields, q=question, ask="1").ranking()) == 2
        assert sorted(model.texts) == ["A b.", "C d.", "one?", "two?"]
        assert len(post(client, **fields, q="one?").ranking()) == 2, "it is known already"
        for size in (20, 30, 40):
            post(client, a="semantic", text="t", **{"a.chunk_size": size})
    assert len(model.texts) == len(set(model.texts)), "moving a slider embeds no sentence again"


def test_asking_selects_the_best_chunk_and_shows_it() -> None:
    text = f"{'The tram is green. ' * 3000}A lamp is old. {'It was built long ago. ' * 3000}"
    with TestClient(create_app({"t": text}), base_url=HERE) as client:
        fields = {"a": "sentence", "text": "t", "q": "Which lamp?"}
        before, after = post(client, **fields), post(client, **fields, ask="1")
        assert before.ranking() == after.ranking()
        place = text.index("A lamp")
        assert place > max(before.starts())
        assert min(after.starts()) <= place < max(after.starts())
        numbers = [each["panel-a"].find("data")["data-number"] for each in (before, after)]
        assert numbers == ["", str(after.ranking()[0])]


def test_search_shows_what_is_wrong_with_the_model() -> None:
    def broken(texts: list[str]) -> list[list[float]]:
        raise RuntimeError("no route")

    with TestClient(create_app(embeddings=broken), base_url=HERE) as client:
        parts = post(client, a="recursive", q="why?", ask="1")
        assert parts.starts()
        assert "no route" in parts["results-a"].text


def test_search_takes_blank_texts(client: TestClient) -> None:
    assert show(client, "recursive", text="blank", q="q").ranking() == []
    assert show(client, "recursive", text="hostile", q="\U0001f600?").ranking()


# The code to copy


def code(client: TestClient, name: str, values: dict[str, Any], tab: str, text: str) -> str:
    show(client, name, values, text)
    fields = write_fields(name, values, "a")
    parts = post(client, "/chunk", **fields, side="a", a__tab=tab, text=text)
    return str(parts["panel-a"].find(class_="code").text).removeprefix("\n")


def _delivered(node: Any) -> str:
    """A node's text, after the context that LlamaIndex is handed as metadata."""
    context = node.metadata.get("context")
    return f"{context}\n\n{node.text}" if context else str(node.text)


@pytest.mark.slow
@every_strategy
@pytest.mark.parametrize("front_end", ["langchain", "llama_index", "python"])
def test_code_makes_the_chunks_that_are_shown(
    client: TestClient, name: str, front_end: str
) -> None:
    if (name, front_end) == ("semantic", "langchain"):
        pytest.skip("SemanticTextSplitter measures distances as LangChain's class does")
    values = SETTINGS.get(name, {"chunk_size": 333})
    shown = [(each.start, each.text) for each in built(name, values).chunk(TEXT)]
    lines = code(client, name, values, front_end, "text.md")
    assert max(map(len, lines.splitlines())) <= 160
    run: dict[str, Any] = {"text": TEXT, "llm": answer, "ner": names}
    exec(lines, run)
    made = {
        "langchain": lambda: [
            (each.metadata["start_index"], each.page_content) for each in run["chunks"]
        ],
        "llama_index": lambda: [(each.start_char_idx, _delivered(each)) for each in run["nodes"]],
        "python": lambda: [(each.start, each.text) for each in run["chunks"]],
    }
    assert made[front_end]() == shown


@pytest.mark.parametrize("name", [name for name in CATALOGUE if name not in NEEDED])
def test_code_names_only_what_differs(client: TestClient, name: str) -> None:
    plain = code(client, name, {}, "python", "tram.md")
    given = {"embeddings": "HashingEmbeddings()", "llm": "llm", "ner": "ner"}
    wanted = ", ".join(f"{key}={given[key]}" for key in required_models(CATALOGUE[name]))
    assert f" = {CATALOGUE[name].__name__}({wanted})\n" in plain


@pytest.mark.parametrize(("size", "count"), [(88, 4), (89, 6)])
def test_a_call_that_fits_into_88_columns_is_one_line(size: int, count: int) -> None:
    line = "chunker = SeparatorChunker(separators=['x'])"
    separators = ["x" * (1 + size - len(line))]
    chunker, models = build_chunker("separator", {"separators": separators}), ModelSet.load()
    assert len(snippet("python", chunker, models, Text.of("", TRAM)).splitlines()) == count


def test_code_has_a_name_and_a_note_for_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    models, text = ModelSet.load("openai:small"), Text.of("notes", TRAM)
    lines = snippet("python", chunker_from_form("semantic", {}, models), models, text)
    assert "\n# embeddings: the playground's model, small\n" in lines
    assert "SemanticChunker(embeddings=embeddings)\n" in lines


def test_code_reads_a_file_as_the_page_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = make_pdf(tmp_path / "tea.pdf", ["Cool the water.", "Grind the beans."])
    models, text = ModelSet.load(), Text.of("tea.pdf", data)
    chunker = chunker_from_form("page", {}, models)
    pages = [each.metadata["page_start"] for each in Cut.of(chunker, text).chunks]
    assert pages == [1, 2]
    for front_end, result in (
        ("langchain", "chunks"),
        ("llama_index", "nodes"),
        ("python", "chunks"),
    ):
        run: dict[str, Any] = {}
        exec(snippet(front_end, chunker, models, text), run)
        assert [each.metadata["page_start"] for each in run[result]] == pages


# Running it


def test_create_app_names_the_extra_where_starlette_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "rag_splitters.playground.application", raising=False)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    with pytest.raises(ImportError, match=r"pip install .*\[play\]"):
        create_app()


@pytest.mark.slow
def test_play_serves_files_and_ends_on_an_interrupt(tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("# Mine\n\nA text.", encoding="utf-8")
    command = [sys.executable, "-m", "rag_splitters", "play", "mine.md", "--port", "0", "--no-open"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        address = process.stderr.readline().split()[4]
        page = BeautifulSoup(httpx.get(address, trust_env=False).text, "html.parser")
        assert page.select("#text option")[0].text == "mine.md"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_an_interrupt_does_not_wait_for_a_text_that_is_being_cut(tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("One. Two. " * 100_000, encoding="utf-8")
    command = [sys.executable, "-m", "rag_splitters", "play", "mine.md", "--port", "0", "--no-open"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        address = process.stderr.readline().split()[4]
        with pytest.raises(httpx.ReadTimeout):  # it takes minutes
            httpx.post(f"{address}views", data={"a": "semantic"}, trust_env=False, timeout=1)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert "Traceback" not in process.stderr.read()


def test_play_says_in_one_line_what_is_wrong(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for args, told in (
            (["--port", port], f"cannot listen on 127.0.0.1, port {port}"),
            (["--host", "no.such.host.invalid"], "cannot listen on no.such.host.invalid"),
            ([str(tmp_path / "none.md")], "no such file"),
            (["--llm", "nothing"], "llm must be"),
        ):
            result = CliRunner().invoke(command_line, ["play", "--no-open", *args])
            assert result.exit_code == 2
            assert result.stderr.startswith("Error: ")
            assert told in result.stderr
            assert result.stderr.count("\n") == 1


def test_page_asks_nothing_of_other_hosts_and_ships_htmx_with_its_licence() -> None:
    folder = Path(rag_splitters.playground.__file__).parent
    files = [*(folder / "static").iterdir(), *(folder / "templates").iterdir()]
    content = {path.name: path.read_text("utf-8") for path in files}
    assert "Zero-Clause BSD" in content["htmx.LICENSE"]
    assert 'version:"2.' in content["htmx.min.js"]
    own = {name: text for name, text in content.items() if not name.startswith("htmx")}
    assert {"page.html", "page.css", "page.js"} <= own.keys()
    for name, text in own.items():
        for word in ("http:", "https:", "eval(", "style=", "onclick", "hx-on"):
            assert word not in text, (name, word)
    for word in ("innerHTML", "outerHTML", "insertAdjacent"):
        assert word not in own["page.js"], "the page's own code writes no markup"


def test_pages_of_a_pdf_are_drawn_with_the_chunk_marked(tmp_path: Path) -> None:
    words = ["Cool the water before you pour it.", "Grind the beans before you brew them."]
    data = make_pdf(tmp_path / "tea.pdf", words)
    client = TestClient(create_app({"tea.pdf": data}), base_url=HERE)
    fields = {"text": "tea.pdf", "a": "page", "side": "a", "a-chunk": "1"}
    panel = client.post("/chunk", data=fields).text
    (address,) = re.findall(r'<img src="([^"]+)" alt="Page 2, with the chunk marked"', panel)
    answer = client.get(unescape(address))
    assert answer.headers["content-type"] == "image/png"
    with Image.open(io.BytesIO(answer.content)) as picture:
        colours = {colour for _, colour in picture.getcolors(1 << 20)}
    assert (255, 225, 0) in colours
    unmarked = client.get(unescape(address).replace("number=2", "number=1"))
    with Image.open(io.BytesIO(unmarked.content)) as picture:
        assert (255, 225, 0) not in {colour for _, colour in picture.getcolors(1 << 20)}
    headers = {"content-type": "application/octet-stream"}
    key = client.post("/text?name=tea.pdf", content=data, headers=headers).json()["key"]
    assert "page?text=own-" in client.post("/chunk", data={**fields, "text": key}).text
    assert "number=3" not in panel
    missing = client.get(unescape(address).replace("number=2", "number=3"))
    assert missing.status_code == 400
    assert missing.text == "tea.pdf has 2 pages, and none with number 3"
    assert client.get("/page?text=tea.pdf").text == "a page needs the numbers from, to and number"
    assert "picture" not in client.post("/chunk", data={**fields, "text": "tram.md"}).text
