"""The Azure AI Search skill, asked by an HTTP client as the search service asks it."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
from starlette.testclient import TestClient

from rag_splitters import (
    AutoChunker,
    Chunker,
    ClusterChunker,
    HierarchicalChunker,
    PageChunker,
    SentenceChunker,
    Span,
    TableChunker,
    TitledChunker,
)
from rag_splitters.azure import contract, create_skill_app
from rag_splitters.azure.outputs import utf16_length
from rag_splitters.errors import MissingExtraError
from rag_splitters.models import HashingEmbeddings
from rag_splitters.text.sizing import sizer
from tests.support.counting import record_calls
from tests.support.embedding_doubles import CountingEmbeddings

KEY = "correct-horse~battery"
EXAMPLES = Path(__file__).parents[2] / "examples" / "azure"
DOCUMENTS = Path(__file__).parents[1] / "data" / "documents"
GUIDE = (DOCUMENTS / "deployment_guide.md").read_text(encoding="utf-8")
HOSTILE = (
    "<script>alert(1)</script> 👩‍👩‍👧‍👦 \ud800 lone \udc00. NUL \0 and\r\n"
    "CRLF, \u202eright to left\u202c שלום. e\u0301 <|endoftext|> 🇩🇪🇫🇷. "
) * 40


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    """The address of the skill as `rag-splitters serve-skill` serves it."""
    code = "import sys; from rag_splitters.cli import main; sys.argv[0] = 'x'; main()"
    options = ["serve-skill", "--port", "0", "--max-bytes", "1000000"]
    with subprocess.Popen(
        [sys.executable, "-c", code, *options],
        stderr=subprocess.PIPE,
        text=True,
        env={"RAG_SPLITTERS_API_KEY": KEY, "PYTHONPATH": ":".join(filter(None, sys.path))},
    ) as process:
        assert process.stderr is not None
        try:
            first = process.stderr.readline()
            yield first.split("runs at ")[1].split()[0]
        finally:
            process.send_signal(signal.SIGINT)
            log = process.stderr.read()
    assert KEY not in first + log
    assert "Traceback" not in log


@pytest.fixture(scope="module")
def http_client(served: str) -> Iterator[httpx.Client]:
    with httpx.Client(
        base_url=served.removesuffix("/split"), headers={"api-key": KEY}, timeout=60
    ) as client:
        yield client


def records(*data: Any) -> dict[str, Any]:
    return {"values": [{"recordId": str(n), "data": each} for n, each in enumerate(data)]}


def ask(client: Any, *data: Any, **query: Any) -> list[Any]:
    """The answers to these records, after the contract was checked."""
    response = client.post("/split", content=json.dumps(records(*data)), params=query)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    values = response.json()["values"]
    assert [each["recordId"] for each in values] == [str(n) for n in range(len(data))]
    for each in values:
        assert each.keys() == {"recordId", "data", "errors", "warnings"}
        assert isinstance(each["data"], dict)
        for messages in (each["errors"], each["warnings"]):
            assert messages is None or (messages and all(m.keys() == {"message"} for m in messages))
    return list(values)


def error_of(value: Any) -> str:
    assert value["data"] == {}
    (error,) = value["errors"]
    return str(error["message"])


def check_outputs(text: str, data: Any, *, rewrites: bool = False) -> None:
    """Check that each output describes the text items, in every encoding."""
    names = ("textItems", "offsets", "lengths", "ordinalPositions", "headings", "pages", "chunks")
    assert {len(data[name]) for name in names} == {len(data["textItems"])}
    assert data["ordinalPositions"] == list(range(1, len(data["textItems"]) + 1))
    encodings = {"codePoint": "utf-32-le", "utf16": "utf-16-le", "utf8": "utf-8"}
    widths = {"codePoint": 4, "utf16": 2, "utf8": 1}
    for chunk in data["chunks"]:
        parts = set()
        for name, encoding in encodings.items():
            start = chunk["offset"][name] * widths[name]
            stop = start + chunk["length"][name] * widths[name]
            part = text.encode(encoding, "surrogatepass")[start:stop]
            parts.add(part.decode(encoding, "surrogatepass"))
        assert len(parts) == 1
        assert rewrites or parts == {chunk["text"]}
    assert data["textItems"] == [chunk["text"] for chunk in data["chunks"]]
    assert data["offsets"] == [chunk["offset"] for chunk in data["chunks"]]
    assert data["lengths"] == [chunk["length"] for chunk in data["chunks"]]


# The served skill


def test_served_skill_splits_each_record_in_order(http_client: httpx.Client) -> None:
    texts = [GUIDE, HOSTILE, "", "One. Two."]
    values = ask(http_client, *({"text": text} for text in texts), maximumPageLength=400)
    for text, value in zip(texts, values, strict=True):
        assert value["errors"] is None
        check_outputs(text, value["data"], rewrites=text is HOSTILE)  # its tags are stripped
        assert all(len(item) <= 400 for item in value["data"]["textItems"])
    assert len(values[0]["data"]["textItems"]) > 5
    assert values[0]["data"]["chunks"][3]["metadata"]["strategy"] == "content_aware"
    assert values[2]["data"]["textItems"] == []
    assert values[3]["data"]["textItems"] == ["One. Two."]


def test_served_skill_takes_put_and_tells_its_health(http_client: httpx.Client) -> None:
    assert http_client.put("/split", json=records({"text": "It rains."})).status_code == 200
    assert http_client.get("/split").status_code == 405
    health = httpx.get(http_client.base_url.join("/health"))
    assert (health.status_code, health.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize("key", [None, "", "wrong", KEY[:-1], KEY + "x", "ä".encode("latin-1")])
def test_served_skill_wants_its_key(served: str, key: Any) -> None:
    headers = {} if key is None else {"api-key": key}
    response = httpx.post(served, json=records({"text": "a"}), headers=headers)
    assert response.status_code == 401
    assert response.json() == {"error": "the header api-key is missing or wrong"}


BODIES = {
    "empty": b"",
    "cut off": b'{"values": [',
    "bytes": b"\xff\xfe\x00",
    "list": b"[]",
    "no values": b'{"records": []}',
    "values of another type": b'{"values": {"recordId": "1"}}',
    "deep": b"[" * 200_000,
    "deep values": b'{"values": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "number that is too long": b'{"values": ' + b"9" * 10_000 + b"}",
    "too many records": b'{"values": [' + b"1," * 10_000 + b"1]}",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_served_skill_refuses_what_is_no_request(http_client: httpx.Client, body: bytes) -> None:
    response = http_client.post("/split", content=body)
    assert response.status_code == 400
    (message,) = response.json().values()
    assert len(message) < 700
    assert ask(http_client, {"text": "It goes on."})[0]["data"]["textItems"] == ["It goes on."]


def test_served_skill_refuses_large_requests(served: str, http_client: httpx.Client) -> None:
    assert http_client.post("/split", content=b"a" * 1_000_001).status_code == 413
    parts = (b"a" * 100_000 for _ in range(11))  # no length announced
    assert http_client.post("/split", content=parts).status_code == 413
    address = urlsplit(served)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=10)
    connection.putrequest("POST", address.path)
    connection.putheader("api-key", KEY)
    connection.putheader("content-length", "9" * 30)  # announced, never sent
    connection.endheaders()
    assert connection.getresponse().status in (400, 413)
    connection.close()


BAD_RECORDS: dict[str, tuple[Any, str]] = {
    "no object": (7, "a record must be an object, got 7"),
    "no id": ({"data": {"text": "a"}}, "recordId must be a string, got None"),
    "numeric id": ({"recordId": 1, "data": {"text": "a"}}, "recordId must be a string, got 1"),
    "long id": ({"recordId": 10**400, "data": {"text": "a"}}, "recordId must be a string, got 1"),
    "no data": ({"recordId": "x"}, "data must be an object, got None"),
    "text of another type": ({"recordId": "x", "data": {"text": [1]}}, "text must be a string"),
    "nested id": ({"recordId": {"a": [1]}, "data": {}}, "recordId must be a string"),
    "language": ({"recordId": "x", "data": {"text": "a", "languageCode": 1}}, "languageCode must"),
    "misspelt": (
        {"recordId": "x", "data": {"text": "a", "maximumPagelength": 400}},
        "did you mean 'maximumPageLength'?",
    ),
    "parameter": (
        {"recordId": "x", "data": {"text": "a", "unit": "words"}},
        "unit must be 'characters' or 'azureOpenAITokens', got 'words'",
    ),
    "deep parameter": (
        {"recordId": "x", "data": {"text": "a", "maximumPageLength": [[[[1]]]]}},
        "maximumPageLength must be a whole number",
    ),
}


@pytest.mark.parametrize(("record", "message"), BAD_RECORDS.values(), ids=BAD_RECORDS)
def test_bad_record_has_an_error_and_the_others_are_split(
    http_client: httpx.Client, record: Any, message: str
) -> None:
    good = {"recordId": "good", "data": {"text": "It rains."}}
    response = http_client.post("/split", json={"values": [record, good]})
    assert response.status_code == 200
    bad, other = response.json()["values"]
    assert message in error_of(bad)
    assert other["recordId"] == "good"
    assert other["data"]["textItems"] == ["It rains."]


def test_record_id_that_occurs_twice_is_answered_once(http_client: httpx.Client) -> None:
    record = {"recordId": "1", "data": {"text": "It rains."}}
    first, second = http_client.post("/split", json={"values": [record, record]}).json()["values"]
    assert first["errors"] is None
    assert "occurs more than once" in error_of(second)


# Parameters


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(create_skill_app()) as opened:
        yield opened


def split(client: Any, text: str, data: Any = None, **query: Any) -> Any:
    (value,) = ask(client, {"text": text, **(data or {})}, **query)
    assert value["errors"] is None, value
    return value["data"]


def test_parameters_are_the_same_in_the_query_and_as_inputs(client: TestClient) -> None:
    parameters = {"maximumPageLength": 400, "pageOverlapLength": 50, "maximumPagesToTake": 3}
    by_query = split(client, GUIDE, **parameters)
    assert by_query == split(client, GUIDE, parameters)
    assert by_query == split(client, GUIDE, {k: str(v) for k, v in parameters.items()})
    assert by_query == split(client, GUIDE, parameters, maximumPageLength=1000)  # the input counts
    chunks = AutoChunker(chunk_size=400, chunk_overlap=50).chunk(GUIDE)
    assert by_query["textItems"] == [chunk.text for chunk in chunks[:3]]


def test_default_size_is_that_of_text_split(client: TestClient) -> None:
    items = split(client, (DOCUMENTS / "apache_2.txt").read_text("utf-8"))["textItems"]
    assert 4000 < max(map(len, items)) <= 5000


@pytest.mark.parametrize("encoding", ["cl100k_base", "o200k_base"])
def test_tokens(client: TestClient, encoding: str) -> None:
    sizes = {"unit": "azureOpenAITokens", "maximumPageLength": 60}
    as_object = {"azureOpenAITokenizerParameters": {"encoderModelName": encoding}}
    items = split(client, GUIDE, {**sizes, **as_object})["textItems"]
    text = {"azureOpenAITokenizerParameters": json.dumps({"encoderModelName": encoding})}
    assert items == split(client, GUIDE, **sizes, **text)["textItems"]
    assert items == split(client, GUIDE, **sizes, encoderModelName=encoding)["textItems"]
    measure = sizer(f"tokens:{encoding}")
    lengths = [measure(item).length(0, len(item)) for item in items]
    assert 45 < max(lengths) <= 60


def test_characters_are_utf_16_code_units(client: TestClient) -> None:
    text = "The tram 🚋🚋🚋🚋🚋🚋🚋🚋 came late again. " * 60
    items = split(client, text, maximumPageLength=300, unit="characters")["textItems"]
    assert 250 < max(map(utf16_length, items)) <= 300
    check_outputs(text, split(client, text, maximumPageLength=300))


def test_sentences(client: TestClient) -> None:
    text = "# Tea\n\nDr. Smith drinks it. Is it hot? Yes!\n\n水を沸かす。飲む。"
    data = split(client, text, {"textSplitMode": "sentences", "maximumPageLength": 300})
    assert data["textItems"][-4:] == ["Is it hot?", "Yes!", "水を沸かす。", "飲む。"]
    assert data["headings"][-1] == ["Tea"]
    check_outputs(text, data)
    check_outputs(HOSTILE, split(client, HOSTILE, textSplitMode="sentences"))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"maximumPagelength": 400}, "did you mean 'maximumPageLength'?"),
        ({"code": "secret-function-key"}, "unknown parameter 'code'"),
        ({"textSplitMode": "words"}, "must be 'pages' or 'sentences', got 'words'"),
        ({"maximumPageLength": "1e3"}, "must be a whole number, got '1e3'"),
        ({"pageOverlapLength": -1}, "pageOverlapLength must be at least 0"),
        ({"encoderModelName": "/etc/passwd"}, "must be 'cl100k_base', 'o200k_base'"),
        ({"azureOpenAITokenizerParameters": "x"}, "must be an object, got 'x'"),
        ({"azureOpenAITokenizerParameters": '{"encoder": 1}'}, "has no 'encoder': did you mean"),
    ],
)
def test_wrong_parameter_in_the_query_is_refused(
    client: TestClient, query: dict[str, Any], message: str
) -> None:
    response = client.post("/split", json=records({"text": "a"}), params=query)
    assert response.status_code == 400
    assert message in response.json()["error"]
    assert "secret" not in response.text


def test_sizes_leave_a_subclass_what_it_adds() -> None:
    class Without(SentenceChunker):
        def __init__(self, word: str, **parameters: Any) -> None:
            self.word = word
            super().__init__(**parameters)

        def spans(self, text: str) -> list[Span]:
            return [each for each in super().spans(text) if self.word not in each.text_of(text)]

    client = TestClient(create_skill_app(Without("Milk", chunk_size=400)))
    text = "Tea is hot. " * 40 + "Milk is white. " * 40
    (value,) = ask(client, {"text": text}, maximumPageLength=300)
    assert value["data"]["textItems"]
    assert all("Milk" not in item and len(item) <= 300 for item in value["data"]["textItems"])


def test_parameter_that_stands_twice_in_the_query_is_refused(client: TestClient) -> None:
    response = client.post("/split?unit=characters&unit=characters", json=records())
    assert (response.status_code, response.json()["error"]) == (400, "the query has 'unit' twice")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"maximumPageLength": 0}, "maximumPageLength must be at least 1"),
        ({"unit": "azureOpenAITokens"}, "unit=azureOpenAITokens needs maximumPageLength"),
        ({"maximumPageLength": 300, "pageOverlapLength": 300}, "must be smaller than chunk_size"),
    ],
)
def test_sizes_that_cannot_be_are_errors(
    client: TestClient, parameters: dict[str, Any], message: str
) -> None:
    (value,) = ask(client, {"text": "a", **parameters})
    assert message in error_of(value)


def test_sizes_are_refused_for_a_strategy_without_them() -> None:
    with TestClient(create_skill_app(TitledChunker(chunker=PageChunker()))) as client:
        (value,) = ask(client, {"text": "a"}, maximumPageLength=300)
        assert "TitledChunker has no chunk_size of its own" in error_of(value)
        assert ask(client, {"text": "a"})[0]["errors"] is None


def test_warnings(client: TestClient) -> None:
    missing, null, tokens, broken = ask(
        client,
        {},
        {"text": None},
        {"text": "a", "allowedSpecialTokens": ["[START]"]},
        {"text": '{"a": [1, 2', "file_name": "a.json"},
    )
    for value in (missing, null):
        assert "missing or null" in value["warnings"][0]["message"]
        assert value["data"]["textItems"] == value["data"]["chunks"] == []
    assert (tokens["data"]["textItems"], tokens["warnings"]) == (["a"], None)
    assert "invalid JSON" in broken["warnings"][0]["message"]


# Outputs


def test_headings_pages_and_tables(client: TestClient) -> None:
    table = "| town | hat |\n|---|---|\n" + "".join(f"| Ulm {n} | red |\n" for n in range(40))
    text = f"# Hats\n\nIntroduction.\f\n\n## List\n\n{table}\n\nThe end.\n"
    data = split(client, text, maximumPageLength=300)
    check_outputs(text, data, rewrites=True)  # the header is repeated
    assert data["headings"][0] == ["Hats"]
    assert data["headings"][-1] == ["Hats", "List"]
    assert (data["pages"][0], data["pages"][-1]) == ([1], [2])
    (found,) = data["tables"]
    assert (found["columns"], found["rows"], found["ordinalPosition"]) == (["town", "hat"], 40, 1)
    start, length = found["offset"]["codePoint"], found["length"]["codePoint"]
    assert text[start : start + length].strip() == table.strip()
    assert found["textItems"] == [
        chunk["ordinalPosition"] for chunk in data["chunks"] if "Ulm" in chunk["text"]
    ]
    assert [c["tables"] for c in data["chunks"] if "Ulm" in c["text"]] == (
        [[1]] * len(found["textItems"])
    )


def test_page_of_a_record_that_is_a_page(client: TestClient) -> None:
    data = split(client, "It rains.", {"page_number": 7})
    assert data["pages"] == [[7]]
    assert split(client, "It rains.", {"page_label": "iv"})["pages"] == [[]]


def test_rewritten_text_items_have_the_place_that_they_come_from() -> None:
    text = "Söme 🚋 text.\n\n| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 30
    with TestClient(create_skill_app(TableChunker(chunk_size=80))) as client:
        data = split(client, text)
        check_outputs(text, data, rewrites=True)
        assert data["textItems"][-1].startswith("| a | b |")
        assert data["lengths"][-1]["utf16"] < utf16_length(data["textItems"][-1])


def test_chunks_of_a_tree_name_each_table_once() -> None:
    text = "# A\n\n| a |\n|---|\n| 1 |\n\n# B\n\n| b |\n|---|\n| 2 |\n"
    with TestClient(create_skill_app(HierarchicalChunker(emit="all"))) as client:
        data = split(client, text)
        assert data["chunks"][0]["tables"] == [1, 2]
        check_outputs(text, data)


def test_every_kind_of_document(client: TestClient) -> None:
    for path in sorted(DOCUMENTS.iterdir()):
        text = path.read_text(encoding="utf-8")[:6000]
        data = split(client, text, {"file_name": path.name}, maximumPageLength=600)
        check_outputs(text, data, rewrites=True)
        assert data["textItems"]


# Work


def test_batch_of_a_thousand_is_split_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would make a batch take longer than 30 seconds: a plan or a request for each record."""
    model, plans = CountingEmbeddings(), record_calls(monkeypatch, ClusterChunker, "plan")
    texts = [
        {"text": f"Tram {n} left. It was late.", "maximumPageLength": 300} for n in range(1000)
    ]
    with TestClient(create_skill_app(ClusterChunker(embeddings=model))) as client:
        values = ask(client, *texts, unit="characters")
    assert all(value["errors"] is None for value in values)
    assert [len(sources) for _, sources in plans] == [512, 488]
    assert len(model.calls) <= 4


# Faults


def test_failures_of_a_model_concern_single_records() -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        if any("poison" in text for text in texts):
            raise RuntimeError("no vector for poison")
        return HashingEmbeddings(dimensions=16).embed_documents(texts)

    chunker = ClusterChunker(embeddings=embed, chunk_size=40)
    sick = {"text": "All is well. This is poison. All is well again."}
    fine = {"text": "All is well. This is tea. All is well again."}
    with TestClient(create_skill_app(chunker)) as client:
        first, second, third = ask(client, fine, sick, fine)
    assert "no vector for poison" in error_of(second)
    assert first["data"]["textItems"] == third["data"]["textItems"] != []


def test_missing_package_is_looked_for_once() -> None:
    calls = list[str]()

    class Incomplete(Chunker):
        def spans(self, text: str) -> list[Span]:
            calls.append(text)
            raise MissingExtraError("this needs a tokenizer: pip install one")

    with TestClient(create_skill_app(Incomplete())) as client:
        values = ask(client, {"text": "a"}, {"text": "b"}, {"text": "c"})
    assert [error_of(value) for value in values] == ["this needs a tokenizer: pip install one"] * 3
    assert calls == ["a"]


@pytest.mark.parametrize("kind", [KeyError, ValueError, TypeError])
def test_bug_in_a_strategy_is_logged_with_its_traceback_and_not_shown(
    caplog: pytest.LogCaptureFixture, kind: type[Exception]
) -> None:
    class Broken(Chunker):
        def spans(self, text: str) -> list[Span]:
            if "bad" in text:
                raise kind("secret details")
            return [Span(0, len(text))]

    with TestClient(create_skill_app(Broken())) as client:
        good, bad = ask(client, {"text": "good"}, {"text": "bad"})
    assert good["data"]["textItems"] == ["good"]
    told = error_of(bad)
    assert told.startswith(f"internal error {kind.__name__}: see failure ")
    assert "secret" not in told
    assert told.split()[5] in caplog.text
    assert "the skill's work on a record failed" in caplog.text
    assert "Traceback" in caplog.text
    assert "secret details" in caplog.text


def test_bug_outside_of_the_records_is_logged_too(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*args: Any) -> Any:
        raise ValueError("secret details")

    monkeypatch.setattr("rag_splitters.azure.application.answer_records", broken)
    response = client.post("/split", json=records({"text": "a"}))
    assert response.status_code == 500
    assert response.json()["error"].startswith("internal error ValueError: see failure ")
    assert "ValueError: secret details" in caplog.text


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_json_does_not_have_are_an_error_of_their_record(
    client: TestClient, number: float
) -> None:
    good, text, size, metadata = ask(
        client,
        {"text": "good"},
        {"text": number},
        {"text": "a", "maximumPageLength": number},
        {"text": "a", "page": number, "other": [number]},
    )
    assert good["data"]["textItems"] == ["good"]
    assert error_of(text) == f"text must be a string, got {number!r}"
    assert error_of(size).startswith("maximumPageLength must be a")
    assert metadata["data"]["textItems"] == ["a"]
    body = json.dumps({"values": [{"recordId": number, "data": {"text": "a"}}]})
    response = client.post("/split", content=body)
    (value,) = json.loads(response.text, parse_constant=pytest.fail)["values"]
    assert value["recordId"] is None
    assert error_of(value).startswith("recordId must be a string, got ")


def test_too_many_text_items_are_an_error(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contract, "MAX_ITEMS", 10)
    values = ask(client, {"text": "No. " * 11}, {"text": "No. " * 10}, textSplitMode="sentences")
    assert "more than 10 text items" in error_of(values[0])
    assert len(values[1]["data"]["textItems"]) == 10


@pytest.mark.parametrize("key", ["", " a", "a\n", "ä"])
def test_key_that_no_header_can_hold_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="api_key must"):
        create_skill_app(api_key=key)


def test_what_is_not_a_chunker_is_refused() -> None:
    with pytest.raises(TypeError, match="chunker must be a Chunker"):
        create_skill_app("sentence")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_bytes must be a whole number of at least 1"):
        create_skill_app(SentenceChunker(), max_bytes=0)
    with pytest.raises(ValueError, match="max_bytes must be a whole number of at least 1, got '5'"):
        create_skill_app(SentenceChunker(), max_bytes="5")  # type: ignore[arg-type]


# The example


def test_skillset_of_the_examples_fits_the_skill(client: TestClient) -> None:
    skillset = json.loads((EXAMPLES / "skillset.json").read_text(encoding="utf-8"))
    skill, embedding = skillset["skills"]
    values = {"/document/content": GUIDE, "/document/language": "en", "='pages'": "pages"}
    data = {each["name"]: values.get(each["source"], "guide.md") for each in skill["inputs"]}
    query = dict(parse_qsl(urlsplit(skill["uri"]).query))
    (value,) = ask(client, data, **query)
    assert value["errors"] is value["warnings"] is None
    assert {each["name"] for each in skill["outputs"]} <= value["data"].keys()
    sources = [each["source"] for each in embedding["inputs"]]
    (selector,) = skillset["indexProjections"]["selectors"]
    sources += [each["source"] for each in selector["mappings"]]
    for source in sources:
        path = source.removeprefix("/document/chunks/*/")
        if path != source and path != "vector":
            member: Any = value["data"]["chunks"][0]
            for part in path.split("/"):
                member = member[part]
