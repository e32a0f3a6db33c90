"""A server of models on loopback, which fails on demand, and what clients need to reach it.

It answers in the protocols of OpenAI, Azure and Anthropic:

with OpenAIServer() as server:
    OpenAIEmbeddings(base_url=server.url, api_key="any", check_embedding_ctx_length=False)
"""

from __future__ import annotations

import base64
import json
import struct
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
from typing_extensions import Self

from rag_splitters.models import HashingEmbeddings
from rag_splitters.text.encodings import load_encoding

DIMENSIONS = 64
SECRET = "sk-very-secret-0123456789"
TIMEOUT = 0.6


@dataclass(frozen=True)
class Fault:
    """What to do to one request.

    Parameters:
        status: the answer's status; 200 with `body` None goes on as usual.
        body: the answer's body.
        headers: the answer's headers.
        delay: seconds before anything is sent.
        cut: announce the whole body, send half of it, and hang up.
        change: changes the usual answer.
    """

    status: int = 200
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: bool = False
    change: Callable[[dict[str, Any]], None] | None = None


class OpenAIServer:
    """Embeds by hashing, and answers a chat by `answer`; keeps what it was asked."""

    def __init__(self, answer: Callable[[str], str] = str.upper) -> None:
        self.answer = answer
        self.encoding: str | None = None
        """"float" or "base64" whatever was asked for; None: what was asked for."""
        self.faults: list[Fault] = []
        """One for each of the next requests."""
        self.fault_of: Callable[[str], Fault | None] = lambda body: None
        """What to do to a request with this body, if it is not one of the next."""
        self.requests: list[dict[str, Any]] = []
        self.busiest = 0
        """The most requests that were under way at once."""
        self._busy = 0
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        return f"{self.root}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def texts(self) -> list[str]:
        """All texts that were sent to be embedded."""
        return [text for request in self.requests for text in request["body"].get("input", [])]

    def begin(self, request: dict[str, Any]) -> Fault:
        with self._lock:
            self.requests.append(request)
            self._busy += 1
            self.busiest = max(self.busiest, self._busy)
            if self.faults:
                return self.faults.pop(0)
        return self.fault_of(json.dumps(request["body"])) or Fault()

    def end(self) -> None:
        with self._lock:
            self._busy -= 1

    def usual(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request that nothing happens to."""
        if path.partition("?")[0].endswith("/embeddings"):
            return self._embeddings(body)
        content = self.answer(text_of(body["messages"][-1]["content"]))
        if path.endswith("/messages"):
            return _anthropic(content)
        message = {"role": "assistant", "content": content, "refusal": None}
        choice = {"index": 0, "finish_reason": "stop", "logprobs": None, "message": message}
        return {**_envelope(body, "chat.completion"), "choices": [choice]}

    def _embeddings(self, body: dict[str, Any]) -> dict[str, Any]:
        texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
        vectors = HashingEmbeddings(dimensions=DIMENSIONS).embed_documents(list(map(str, texts)))
        encoding = self.encoding or body.get("encoding_format", "float")
        data = [
            {"object": "embedding", "index": index, "embedding": encoded(vector, encoding)}
            for index, vector in enumerate(vectors)
        ]
        return {**_envelope(body, "list"), "data": data}


def _anthropic(content: str) -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    blocks = [{"type": "text", "text": content}]
    message = {"id": "1", "type": "message", "role": "assistant", "model": "claude"}
    return {**message, "content": blocks, "stop_reason": "end_turn", "usage": usage}


def encoded(vector: Sequence[float], encoding: str) -> Any:
    """A vector as the API writes it: 32-bit floats in base64, or decimals."""
    packed = struct.pack(f"<{len(vector)}f", *vector)
    if encoding == "base64":
        return base64.b64encode(packed).decode()
    return list(struct.unpack(f"<{len(vector)}f", packed))


def _envelope(body: dict[str, Any], kind: str) -> dict[str, Any]:
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {"id": "1", "created": 1, "model": body.get("model", ""), "object": kind, "usage": usage}


def _handler(server: OpenAIServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle(self) -> None:
            with suppress(ConnectionError):  # a client that hung up between two requests
                super().handle()

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            request = {"path": self.path, "body": body, "headers": dict(self.headers)}
            fault = server.begin(request)
            try:
                self._answer(fault, body)
            except (BrokenPipeError, ConnectionResetError):
                pass  # a client that did not wait
            finally:
                server.end()

        def _answer(self, fault: Fault, body: dict[str, Any]) -> None:
            time.sleep(fault.delay)
            sent = fault.body
            if sent is None:
                usual = server.usual(self.path, body)
                if fault.change is not None:
                    fault.change(usual)
                sent = json.dumps(usual).encode()
            self.send_response(fault.status)
            headers = {"Content-Type": "application/json", "Content-Length": str(len(sent))}
            for name, value in {**headers, **fault.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(sent[: len(sent) // 2] if fault.cut else sent)
            self.close_connection = fault.cut

        def log_message(self, *_: object) -> None:
            pass

    return Handler


# Clients


def openai_options(server: OpenAIServer, **others: Any) -> dict[str, Any]:
    """Options of LangChain's clients for OpenAI."""
    usual = {"model": "m", "base_url": server.url, "api_key": SECRET, "timeout": TIMEOUT}
    return {**usual, **others}


def azure_options(server: OpenAIServer, **others: Any) -> dict[str, Any]:
    """Options of LangChain's clients for Azure."""
    usual = {"azure_endpoint": server.root, "azure_deployment": "m", "api_version": "2024-10-21"}
    return {**usual, "api_key": SECRET, "timeout": TIMEOUT, **others}


def message_of(answer: dict[str, Any]) -> Any:
    return answer["choices"][0]["message"]


def post(url: str, path: str, content: dict[str, Any]) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {SECRET}"}
    response = httpx.post(f"{url}/{path}", json=content, headers=headers, timeout=TIMEOUT)
    response.raise_for_status()
    answer: dict[str, Any] = response.json()
    return answer


# A prompt cache like OpenAI's: prefixes of 1,024 tokens and more, by 128


_STEP, _LEAST = 128, 1024


class CachingServer(OpenAIServer):
    """Counts the input tokens of prompts, and how many of them it has read before.

    A prompt is in the cache when it has been answered, so prompts that arrive together with it do
    not find it there.
    """

    def __init__(self, answer: Callable[[str], str], delay: float = 0.0) -> None:
        super().__init__(answer)
        self.delay = delay
        self.tokens = self.cached = 0
        self._prefixes: set[int] = set()
        self._encoding: Any = load_encoding("cl100k_base")

    def usual(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        tokens = self._encoding.encode_ordinary(text_of(body["messages"][-1]["content"]))
        prefixes = list(_prefixes(tokens))
        with self._lock:
            found = [length for length, prefix in prefixes if prefix in self._prefixes]
            self.tokens += len(tokens)
            self.cached += max(found, default=0)
        time.sleep(self.delay)
        result = super().usual(path, body)
        with self._lock:
            self._prefixes.update(prefix for _, prefix in prefixes)
        return result


def text_of(content: Any) -> str:
    """The text of a message, whether it comes whole or in blocks."""
    return content if isinstance(content, str) else "".join(each["text"] for each in content)


def _prefixes(tokens: Sequence[int]) -> list[tuple[int, int]]:
    """The prefixes of a prompt that the cache can hold, as (length, hash)."""
    prefixes, digest = [], 0
    for start in range(0, len(tokens) - len(tokens) % _STEP, _STEP):
        digest = hash((digest, tuple(tokens[start : start + _STEP])))
        if start + _STEP >= _LEAST:
            prefixes.append((start + _STEP, digest))
    return prefixes


def document(characters: int) -> str:
    """A document with chapters, whose title says what "it" is."""
    parts = ["# The Zephyr Turbine\n\n"]
    size, number = 0, 0
    while size < characters:
        if number % 60 == 0:
            parts.append(f"## Chapter {number // 60 + 1}\n\n")
        stop = "\n\n" if number % 6 == 5 else " "
        parts.append(
            f"In year {1900 + number * 7 % 113} it turned {number * 31 % 997} times, and the "
            f"keeper of station {number * 13 % 89} wrote that {number * 17 % 61} blades were new."
            + stop
        )
        size += len(parts[-1])
        number += 1
    return "".join(parts)[:characters]
