"""The playground's server: what it answers, what it refuses, and that its code to copy runs."""

from __future__ import annotations

import io
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

import rag_splitters.playground
from rag_splitters import CATALOGUE, Chunker
from rag_splitters.chunkers.by_name import build_chunker, required_models
from rag_splitters.cli import app as command_line
from rag_splitters.contract.sized import SizedChunker
from rag_splitters.models import HashingEmbeddings
from rag_splitters.playground import create_app
from rag_splitters.playground.chunking import MAX_CHUNKS
from rag_splitters.playground.form import chunker_from_form, form
from rag_splitters.playground.model_set import ModelSet
from rag_splitters.playground.security import MAX_BYTES
from rag_splitters.playground.snippets import snippets
from rag_splitters.reading.samples import sample_texts
from rag_splitters.text.sizing import sizer

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
    found = text.find("Ilse Brandauer")
    return [(found, found + 14, "PERSON")] if found >= 0 else []


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(create_app(llm=answer, ner=names), base_url=HERE) as opened:
        yield opened


@pytest.fixture(scope="module")
def bare() -> Iterator[TestClient]:
    """Without models."""
    with TestClient(create_app(), base_url=HERE) as opened:
        yield opened


def chunks(
    client: TestClient, name: str, given: dict[str, Any] | None = None, text: str = TEXT
) -> Any:
    asked = {"name": "", "text": text, "strategy": name, "parameters": given or {}}
    response = client.post("/api/chunks", content=json.dumps(asked))
    assert response.status_code == 200, response.text
    return response.json()


def refused(response: httpx.Response, status: int = 400) -> str:
    """The one line of an error."""
    assert response.status_code == status, response.text
    told = response.json()
    assert list(told) == ["error"]
    assert "\n" not in told["error"]
    assert "Traceback" not in told["error"]
    return str(told["error"])


NEEDED = {"keyword": {"keywords": ["tram"]}}
every_strategy = pytest.mark.parametrize("name", CATALOGUE)


def made(name: str, parameters: dict[str, Any] | None = None) -> Chunker:
    return chunker_from_form(name, parameters or {}, ModelSet.load(None, answer, names))


# Chunks and figures


@every_strategy
def test_chunks_are_those_of_the_strategy(client: TestClient, name: str) -> None:
    found = chunks(client, name, NEEDED.get(name))
    chunker = made(name, NEEDED.get(name))
    expected = chunker.chunk(TEXT)
    assert len(expected) > 0
    assert [(row["start"], row["end"]) for row in found["chunks"]] == [
        (chunk.start, chunk.end) for chunk in expected
    ]
    texts = [row.get("content", TEXT[row["start"] : row["end"]]) for row in found["chunks"]]
    assert texts == [chunk.text for chunk in expected]
    unit = sizer(found["unit"])
    assert [row["size"] for row in found["chunks"]] == [unit(t).length(0, len(t)) for t in texts]
    if isinstance(chunker, SizedChunker):
        assert found["unit"] == chunker.length_function


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("sliding_window", {"chunk_size": 60, "chunk_overlap": 0.4}),
        ("separator", {"separators": ["tram"]}),
        ("hierarchical", {"chunk_size": 300, "emit": "all"}),
        ("sentence", {"chunk_size": 200}),
    ],
)
def test_figures_count_characters_in_two_chunks_and_in_none(
    client: TestClient, name: str, parameters: dict[str, Any]
) -> None:
    found = chunks(client, name, parameters)
    times = [0] * len(TEXT)
    for row in found["chunks"]:
        for place in range(row["start"], row["end"]):
            times[place] += 1
    figures = found["figures"]
    assert figures["repeated"] == sum(count - 1 for count in times if count)
    assert figures["dropped"] == sum(
        not count and not character.isspace() for count, character in zip(times, TEXT, strict=True)
    )
    sizes = sorted(row["size"] for row in found["chunks"])
    assert (figures["least"], figures["most"]) == (sizes[0], sizes[-1])
    assert figures["median"] == np.median(sizes)
    assert figures["chunks"] == len(sizes)


def test_figures_count_faults(client: TestClient) -> None:
    text = "# Tea\n\nBoil water. It sings.\n\n- one\n- two"
    whole = chunks(client, "sentence", {"chunk_size": 100}, text)["figures"]["faults"]
    assert set(whole.values()) == {0}
    lines = chunks(client, "separator", {}, text)["figures"]["faults"]
    assert (lines["orphan_headings"], lines["mid_sentence"]) == (1, 0)
    page = "<html><body><p>Boil the water.</p></body></html>"
    raw = chunks(client, "fixed_size", {"chunk_size": 30}, page)["figures"]["faults"]
    assert raw["leaked_markup"] == 2


def test_figures_tell_chunks_that_cut_sentences(client: TestClient) -> None:
    text = "One two three. Four five six. Seven."
    whole = chunks(client, "sentence", {"chunk_size": 15}, text)
    assert (whole["figures"]["begins_inside"], whole["figures"]["ends_inside"]) == (0, 0)
    cut = chunks(client, "fixed_size", {"chunk_size": 20}, text)
    assert [row.get("ends_inside", False) for row in cut["chunks"]] == [True, False]
    assert [row.get("begins_inside", False) for row in cut["chunks"]] == [False, True]


def test_name_of_a_file_tells_what_it_is(client: TestClient) -> None:
    sent = {"name": "notes.yaml", "text": "# Tea", "strategy": "auto", "parameters": {}}
    (row,) = client.post("/api/chunks", json=sent).json()["chunks"]
    assert row["metadata"]["strategy"] == "code"
    (row,) = client.post("/api/chunks", json={**sent, "name": ""}).json()["chunks"]
    assert row["metadata"]["strategy"] == "content_aware"


@pytest.mark.parametrize("text", ["", " \n ", "\0"])
def test_blank_text_has_figures_too(client: TestClient, text: str) -> None:
    found = chunks(client, "recursive", text=text)
    assert found["figures"]["chunks"] == len(found["chunks"]) == bool(text.strip())
    assert found["code"]["python"]


def test_hostile_text_keeps_its_positions(client: TestClient) -> None:
    found = chunks(client, "recursive", {"chunk_size": 40}, HOSTILE)
    expected = build_chunker("recursive", {"chunk_size": 40}).chunk(HOSTILE)
    assert [(row["start"], row["end"]) for row in found["chunks"]] == [
        (chunk.start, chunk.end) for chunk in expected
    ]
    titled = chunks(client, "contextual", text=f"# A \ud800 title\n\n{HOSTILE * 9}")
    assert any(row.get("content", "").startswith("A \ud800 title\n\n") for row in titled["chunks"])


@pytest.mark.slow
def test_very_many_chunks_are_not_all_sent(client: TestClient) -> None:
    text = "ab" * (MAX_CHUNKS // 2 + 50)
    found = chunks(client, "fixed_size", {"chunk_size": 1}, text)
    assert len(found["chunks"]) == MAX_CHUNKS
    assert found["figures"]["chunks"] == len(text)


# The form


@every_strategy
def test_form_offers_every_parameter_but_models_and_caches(name: str) -> None:
    kind = CATALOGUE[name]
    offered = {control["name"]: control for control in form(kind)}
    assert kind.model_fields.keys() - offered.keys() == {*required_models(kind)} | (
        {"cache", "rules", "embeddings"} & kind.model_fields.keys()
    )
    assert all(control["meaning"] for control in offered.values())
    json.dumps(list(offered.values()), allow_nan=False)
    given = {key: control["default"] for key, control in offered.items()}
    assert made(name, given | NEEDED.get(name, {})) == made(name, NEEDED.get(name)), (
        "the defaults that the form shows are the defaults"
    )


def test_strategies_says_which_models_are_missing(bare: TestClient, client: TestClient) -> None:
    for opened, without in ((bare, {"entity", "agentic", "proposition"}), (client, set())):
        found = opened.get("/api/strategies").json()
        assert [each["name"] for each in found["strategies"]] == list(CATALOGUE)
        assert {each["name"] for each in found["strategies"] if each["missing"]} == without
    asked = {"name": "", "text": TEXT, "strategy": "agentic", "parameters": {}}
    told = refused(bare.post("/api/chunks", json=asked))
    assert told.startswith("agentic needs a chat model: start the playground with --llm")
    asked["strategy"], asked["parameters"] = "contextual", {"llm": True}
    assert "--llm" in refused(bare.post("/api/chunks", json=asked))


def test_optional_model_is_asked_only_where_the_page_says_so(client: TestClient) -> None:
    plain, asked = chunks(client, "contextual"), chunks(client, "contextual", {"llm": True})
    assert not any("1, 3, 6" in row.get("content", "") for row in plain["chunks"])
    assert asked["chunks"][0]["content"].startswith("1, 3, 6")


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
        ("titled", {"chunker": {"strategy": "function:planted:f"}}, "unknown strategy"),
        ("titled", {"chunker": "function:planted:f"}, "a chunker inside another one"),
        ("titled", {"chunker": {"strategy": "sentence", "segmenter": "spacy:x"}}, "segmenter can"),
        ("hybrid", {"stages": [{"strategy": "function:planted:f"}]}, "unknown strategy"),
        ("hybrid", {"stages": {"strategy": "sentence"}}, "stages"),
        ("modality", {"text": "function:planted:f"}, "a chunker inside another one"),
        ("recursive", {"chunk_size": 0}, "chunk_size must be a whole number of at least 1, got 0"),
        ("recursive", {"chunk_size": "9"}, "chunk_size must be a whole number"),
        ("recursive", {"chunk_sise": 9}, "did you mean 'chunk_size'?"),
        ("recursive", {"is_regex": True, "separators": ["("]}, "separator '('"),
        ("recursive", {"separators": {"a": 1}}, "separators"),
        ("recursif", {}, "did you mean 'recursive'?"),
        ("sentence", {"overlap_sentences": -1}, "overlap_sentences"),
    ],
)
@pytest.mark.usefixtures("planted")
def test_parameters_are_refused_in_one_line(
    client: TestClient, name: str, parameters: Any, told: str
) -> None:
    asked = {"name": "", "text": TEXT, "strategy": name, "parameters": parameters}
    assert told in refused(client.post("/api/chunks", json=asked))


def test_chunkers_nested_without_end_are_refused(client: TestClient) -> None:
    nested: Any = {"strategy": "sentence"}
    for _ in range(30):
        nested = {"strategy": "titled", "chunker": nested}
    asked = {"name": "", "text": "One.", "strategy": "titled", "parameters": {"chunker": nested}}
    assert "at most 4 chunkers can be nested" in refused(client.post("/api/chunks", json=asked))


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
        response = client.get("/api/strategies", headers={"Host": host})
        assert response.status_code == status
        assert ("strategies" in response.text) == (status == 200)


def test_other_origins_cannot_post(client: TestClient) -> None:
    asked = {"name": "", "text": "a", "strategy": "recursive", "parameters": {}}
    for origin, status in ((HERE, 200), ("http://evil.example", 403), ("null", 403)):
        response = client.post("/api/chunks", json=asked, headers={"Origin": origin})
        assert response.status_code == status
    assert "access-control-allow-origin" not in response.headers


def test_every_answer_forbids_its_page_to_go_elsewhere(client: TestClient) -> None:
    for path in ("/", "/page.js", "/api/strategies", "/nowhere"):
        headers = client.get(path).headers
        assert headers["content-security-policy"].startswith(
            "default-src 'none'; script-src 'self'"
        )
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
    assert client.get("/../application.py").status_code == 404


def test_bodies_that_are_too_large_are_refused(client: TestClient) -> None:
    told = refused(client.post("/api/read", content=b"a" * (MAX_BYTES + 1)), 413)
    assert told == f"the request is too large: the limit is {MAX_BYTES // 10**6} MB"
    parts = (b"a" * 1_000_000 for _ in range(MAX_BYTES // 1_000_000 + 1))  # no length announced
    assert refused(client.post("/api/read", content=parts), 413) == told


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b"[1]",
        b"{}",
        b'{"name": "", "text": 1, "strategy": "recursive", "parameters": {}}',
        b'{"name": "", "text": "a", "strategy": ["recursive"], "parameters": {}}',
        b'{"name": "", "text": "a", "strategy": "recursive", "parameters": []}',
        b'{"name": "", "text": "a", "strategy": "recursive", "parameters": {}, "more": 1}',
        b'{"name": "", "text": "a", "strategy": "recursive", "parameters": {"chunk_overlap": NaN}}',
        b"[" * 100_000,
    ],
    ids=range(11),
)
def test_what_is_no_question_is_refused(client: TestClient, body: bytes) -> None:
    assert len(refused(client.post("/api/chunks", content=body))) < 700


def test_what_goes_wrong_in_a_model_is_told_in_one_line() -> None:
    def broken(prompt: str) -> str:
        raise RuntimeError("no\nroute to the model")

    with TestClient(create_app(llm=broken), base_url=HERE) as client:
        asked = {"name": "", "text": TEXT, "strategy": "agentic", "parameters": {}}
        assert "no route to the model" in refused(client.post("/api/chunks", json=asked), 502)


# Texts and files


def test_texts_are_those_given_and_the_bundled_ones() -> None:
    with TestClient(create_app({"mine": HOSTILE, "tram.md": "Other."}), base_url=HERE) as client:
        offered = [each["name"] for each in client.get("/api/strategies").json()["texts"]]
        assert offered == ["mine", "tram.md", "lighthouse.md", "bakery.md"]
        assert client.get("/api/text", params={"name": "mine"}).json()["text"] == HOSTILE
        assert client.get("/api/text", params={"name": "tram.md"}).json()["text"] == "Other."
        assert "there is no text '../x'" in refused(client.get("/api/text?name=../x"))


def test_files_are_read_as_the_readers_read_them(client: TestClient) -> None:
    canvas = pytest.importorskip("reportlab.pdfgen.canvas")
    pages = io.BytesIO()
    drawing = canvas.Canvas(pages)
    for line in ("Page one.", "Page two."):
        drawing.drawString(72, 720, line)
        drawing.showPage()
    drawing.save()

    def read(name: str, content: bytes) -> httpx.Response:
        return client.post("/api/read", params={"name": name}, content=content)

    assert read("a.pdf", pages.getvalue()).json()["text"].split() == "Page one. Page two.".split()
    assert "\f" in read("a.pdf", pages.getvalue()).json()["text"]
    assert read("a.txt", "a\r\nä😀".encode()).json()["text"] == "a\r\nä😀"
    assert "b.txt is not a text file: it has a NUL byte" in refused(read("b.txt", b"a\0"))
    assert "c.pdf cannot be read as PDF" in refused(read("c.pdf", b"%PDF-1.4 broken"))


# Questions


def search(client: TestClient, text: str, given: list[Any], question: str, k: int = 3) -> Any:
    asked = {"text": text, "chunks": given, "question": question, "k": k}
    return client.post("/api/search", content=json.dumps(asked))


def test_search_ranks_by_cosine_of_what_is_delivered(client: TestClient) -> None:
    rows = chunks(client, "titled", SETTINGS["titled"], TRAM)
    given = [row.get("content", [row["start"], row["end"]]) for row in rows["chunks"]]
    assert {type(each) for each in given} == {str, list}
    question = "Why are the trams painted green?"
    found = search(client, TRAM, given, question, k=4).json()
    assert found["model"] == "HashingEmbeddings(dimensions=1024) version 1"
    delivered = [each if isinstance(each, str) else TRAM[slice(*each)] for each in given]
    vectors = np.array(HashingEmbeddings().embed_documents([*delivered, question]))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    scores = vectors[:-1] @ vectors[-1]
    best = np.argsort(-scores, kind="stable")[:4]
    assert [each["chunk"] for each in found["results"]] == best.tolist()
    assert [each["score"] for each in found["results"]] == pytest.approx(scores[best], abs=1e-3)
    assert "painted" in delivered[best[0]]


def test_search_asks_a_model_for_each_text_once() -> None:
    asked: list[str] = []

    def model(texts: list[str]) -> list[list[float]]:
        asked.extend(texts)
        return [[1.0, float(len(text))] for text in texts]

    with TestClient(create_app(embeddings=model), base_url=HERE) as client:
        assert client.get("/api/strategies").json()["is_free"] is False
        for question in ("one?", "two?", "one?"):
            assert (
                len(search(client, "A b. C d.", [[0, 4], [5, 9]], question).json()["results"]) == 2
            )
        assert sorted(asked) == ["A b.", "C d.", "one?", "two?"]
        for size in (20, 30, 40):
            chunks(client, "semantic", {"chunk_size": size}, "One is here. Two is. Three.")
    assert len(asked) == len(set(asked)), "moving a slider embeds no sentence again"


@pytest.mark.parametrize(
    ("given", "question", "k", "told"),
    [
        ([[0, 99]], "q", 1, "a chunk is"),
        ([[2, 1]], "q", 1, "a chunk is"),
        ([[True, 1]], "q", 1, "a chunk is"),
        ([["a", "b"]], "q", 1, "a chunk is"),
        ([[0, 1]], " ", 1, "the question is empty"),
        ([[0, 1]], "q", 0, "k must be"),
    ],
)
def test_search_refuses_what_makes_no_sense(
    client: TestClient, given: list[Any], question: str, k: int, told: str
) -> None:
    assert told in refused(search(client, "A b. C.", given, question, k))


def test_search_takes_no_chunks_and_blank_ones(client: TestClient) -> None:
    assert search(client, "", [], "q").json()["results"] == []
    found = search(client, "a   b", [[1, 3], [4, 5]], "b").json()["results"]
    assert [each["chunk"] for each in found] == [1]
    assert search(client, HOSTILE, [[0, len(HOSTILE)]], "\ud800?").status_code == 200


# The code to copy

SETTINGS: dict[str, dict[str, Any]] = {
    "separator": {"separators": ["\n\n", "'", "\\"], "keep_separator": "end"},
    "recursive": {"chunk_size": 200, "separators": ["\n\n", ". ", " "], "min_chunk_size": 40},
    "sentence": {"chunk_size": 60, "length_function": "tokens", "chunk_overlap": 0.2},
    "keyword": {"keywords": ["tram", "it's"], "patterns": [r"^## \w+"], "chunk_size": 400},
    "page": {"chunk_size": 400, "page_break": "\n## "},
    "hierarchical": {"chunk_sizes": [900, 300], "emit": "all"},
    "table": {"text": {"strategy": "sentence", "chunk_size": 90}, "render": "markdown"},
    "modality": {"image": "drop", "text": {"strategy": "paragraph", "chunk_size": 300}},
    "hybrid": {
        "stages": [
            {"strategy": "page", "chunk_size": 900},
            {"strategy": "titled", "chunker": {"strategy": "recursive", "chunk_size": 80}},
        ]
    },
    "titled": {"title": "A 'title'", "chunker": {"strategy": "sentence", "chunk_size": 200}},
    "semantic": {"chunk_size": 400, "breakpoint_threshold_type": "gradient"},
    "topic": {"chunk_size": 400, "n_topics": 3},
    "agentic": {"chunk_size": 500, "on_error": {"strategy": "sentence", "chunk_size": 100}},
    "contextual": {"llm": True, "chunker": {"strategy": "recursive", "chunk_size": 300}},
}


def _delivered(node: Any) -> str:
    """A node's text, after the context that LlamaIndex is handed as metadata."""
    context = node.metadata.get("context")
    return f"{context}\n\n{node.text}" if context else str(node.text)


@every_strategy
@pytest.mark.parametrize("front_end", ["langchain", "llama_index", "python"])
def test_code_makes_the_chunks_that_are_shown(
    client: TestClient, name: str, front_end: str
) -> None:
    found = chunks(client, name, SETTINGS.get(name, {"chunk_size": 333}))
    shown = [
        (row["start"], row.get("content", TEXT[row["start"] : row["end"]]))
        for row in found["chunks"]
    ]
    lines = found["code"][front_end]
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
    plain = chunks(client, name, text="A text.")["code"]["python"]
    given = {"embeddings": "HashingEmbeddings()", "llm": "llm", "ner": "ner"}
    wanted = ", ".join(f"{key}={given[key]}" for key in required_models(CATALOGUE[name]))
    assert f" = {CATALOGUE[name].__name__}({wanted})\n" in plain


@pytest.mark.parametrize(
    "name",
    [name for name, kind in CATALOGUE.items() if not {"llm", "ner"} & {*required_models(kind)}],
)
def test_code_runs_in_a_shell(client: TestClient, name: str, tmp_path: Path) -> None:
    settings = {**SETTINGS.get(name, {"chunk_size": 333})}
    settings.pop("llm", None)
    found = chunks(client, name, settings)
    (tmp_path / "FILE").write_text(TEXT, encoding="utf-8")
    told = subprocess.run(
        ["bash", "-c", f'rag-splitters() {{ printf "%s\\0" "$@"; }}; {found["code"]["shell"]}'],
        capture_output=True,
        check=True,
        text=True,
    )
    args = told.stdout.rstrip("\0").split("\0")
    args[args.index("FILE")] = str(tmp_path / "FILE")
    result = CliRunner().invoke(command_line, [*args, "--format", "jsonl"])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(row["start"], row["end"]) for row in rows] == [
        (row["start"], row["end"]) for row in found["chunks"]
    ]


def test_code_names_models_as_the_command_line_does(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "http://127.0.0.1:9/v1"
    models = ModelSet.load("openai:small", "openai:chat", base_url=url)

    found = snippets(chunker_from_form("semantic", {}, models), models)
    assert "from langchain_openai import OpenAIEmbeddings\n" in found["python"]
    assert f"OpenAIEmbeddings(model='small', base_url={url!r})" in found["python"]
    assert "--embeddings openai:small" in found["shell"]
    assert f"--base-url {url}" in found["shell"]
    own = ModelSet.load(None, f"function:{__name__}:answer")
    lines = snippets(chunker_from_form("agentic", {}, own), own)["python"]
    assert f"from {__name__} import answer\n" in lines
    assert "llm=answer" in lines


# Running it


def test_create_app_names_the_extra_where_starlette_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "rag_splitters.playground.application", raising=False)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    with pytest.raises(ImportError, match=r"pip install .*\[play\]"):
        create_app()


def test_app_is_made_at_first_use() -> None:
    assert rag_splitters.playground.app is rag_splitters.playground.app
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        rag_splitters.playground.nothing  # noqa: B018


def test_play_serves_files_and_ends_on_an_interrupt(tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("# Mine\n\nA text.", encoding="utf-8")
    command = [sys.executable, "-m", "rag_splitters", "play", "mine.md", "--port", "0", "--no-open"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        address = process.stderr.readline().split()[4]
        found = httpx.get(f"{address}api/strategies", trust_env=False).json()
        assert found["texts"][0] == {"name": "mine.md", "characters": 15}
        process.send_signal(signal.SIGINT)
        assert process.wait(20) in (0, 130, -signal.SIGINT)
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.wait()


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


def test_page_asks_nothing_of_other_hosts_and_writes_no_markup() -> None:
    folder = Path(rag_splitters.playground.__file__).parent / "static"
    content = {path.name: path.read_text("utf-8") for path in folder.iterdir()}
    assert {"page.html", "page.css", "page.js"} <= content.keys()
    for name, text in content.items():
        told = text.replace("http://www.w3.org/2000/svg", "")
        assert "//" not in told.replace("// ", "") or name.endswith(".js"), name
        for word in (
            "http:",
            "https:",
            "innerHTML",
            "outerHTML",
            "insertAdjacent",
            "eval(",
            "style=",
        ):
            assert word not in told, f"{name}: {word}"
