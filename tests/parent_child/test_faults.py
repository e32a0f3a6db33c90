"""Parent-child retrieval over real servers whose connection fails at any one of its requests.

A proxy on loopback counts what the client sends and, at the n-th, cuts the connection before the
server hears of it, or after half of it was passed on, or when the server has done it and its answer
is on the way. FAULT_STEP=1 tries every request, and 3 every third one.
"""

from __future__ import annotations

import json
import os
import re
import socket
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import count
from typing import Any

import chromadb
import pytest
from langchain_core.documents import Document

from rag_splitters.langchain import (
    ParentDocumentRetriever,
    PostgresStore,
    RecursiveTextSplitter,
    RedisStore,
    parent_document_retriever,
)
from rag_splitters.models import HashingEmbeddings
from rag_splitters.parent_child.errors import StoreError
from tests.support.stores import stored

pytestmark = pytest.mark.server

FAULTS = ("refused", "half", "unanswered")
STEP = int(os.environ.get("FAULT_STEP", "3"))


class Proxy:
    """Passes connections on to a port, until it is told to fail at a request."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._lock = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self.requests = 0
        self._failing: tuple[int, str] | None = None
        threading.Thread(target=self._accept, daemon=True).start()

    def fail(self, number: int, fault: str) -> None:
        """Fail at the request of this number from now, and at those that follow."""
        self.requests, self._failing = 0, (number, fault)

    def heal(self) -> None:
        """Fail no more."""
        self.requests, self._failing = 0, None

    def close(self) -> None:
        """Accept no more connections."""
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(("127.0.0.1", self._port))
                dropping = threading.Event()
                for work in (self._pass_requests, self._pass_answers):
                    args = (client, server, dropping)
                    threading.Thread(target=work, args=args, daemon=True).start()

    def _pass_requests(
        self, client: socket.socket, server: socket.socket, dropping: threading.Event
    ) -> None:
        with suppress(OSError):
            while content := client.recv(1 << 20):
                fault = self._fault()
                if fault == "unanswered":
                    dropping.set()
                if fault == "half":
                    server.sendall(content[: len(content) // 2])
                elif fault != "refused":
                    server.sendall(content)
                if fault in ("half", "refused"):
                    break
        _hang_up(client, server)

    def _pass_answers(
        self, client: socket.socket, server: socket.socket, dropping: threading.Event
    ) -> None:
        with suppress(OSError):
            while (content := server.recv(1 << 20)) and not dropping.is_set():
                client.sendall(content)
        _hang_up(client, server)

    def _fault(self) -> str | None:
        with self._lock:
            self.requests += 1
            if self._failing is None or self.requests < self._failing[0]:
                return None
            return self._failing[1]


def _hang_up(*lines: socket.socket) -> None:
    for line in lines:
        with suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)
        line.close()


@pytest.fixture(params=["chroma", "postgres", "redis"])
def parts(request: pytest.FixtureRequest) -> Iterator[tuple[Proxy, dict[str, Any], str, str]]:
    """A proxy, the stores of a retriever, name and password of the one behind the proxy."""
    name = request.param
    if name == "chroma":
        _, port = request.getfixturevalue("chroma_server")
        proxy = Proxy(port)
        client = chromadb.HttpClient(host="127.0.0.1", port=proxy.port)
        collection = request.getfixturevalue("collection_name")
        yield proxy, {"client": client, "collection_name": collection}, collection, "no password"
    else:
        process = request.getfixturevalue(f"{name}_process")
        url = request.getfixturevalue(f"{name}_url")
        proxy = Proxy(process.port)
        kind = PostgresStore if name == "postgres" else RedisStore
        store = kind(url.replace(f":{process.port}", f":{proxy.port}"), timeout=5)
        yield proxy, {"docstore": store}, f"127.0.0.1:{proxy.port}", process.password
        proxy.heal()
        store.close()
    proxy.close()


def opened(**options: Any) -> ParentDocumentRetriever:
    return parent_document_retriever(
        embeddings=HashingEmbeddings(dimensions=64),
        child_splitter=RecursiveTextSplitter(chunk_size=60),
        parent_splitter=RecursiveTextSplitter(chunk_size=150),
        retrieve="parents",  # where passages end depends on scores, which an interruption changes
        k=100,
        **options,
    )


def version(number: int) -> list[Document]:
    texts = {
        "a": [f"Part {n} of a tells of house{n * number}." for n in range(8 - number)],
        "b": [f"Part {n} of b tells of house{n}." for n in range(4)],
        "c": [f"Part {n} of c tells of house{n + number}." for n in range(3 * number)],
    }
    return [Document(page_content="\n\n".join(each), id=name) for name, each in texts.items()]


def found(retriever: ParentDocumentRetriever) -> set[tuple[str | None, str]]:
    return {(each.id, each.page_content) for each in retriever.invoke("which part tells of house")}


def state(retriever: ParentDocumentRetriever) -> tuple[Any, Any]:
    children, rows = stored(retriever.vectorstore._collection, retriever.docstore)  # type: ignore[attr-defined]
    plain = {key: json.loads(row.model_dump_json()) for key, row in rows.items()}
    return {name: text for name, (text, *_) in children.items()}, plain


def replace(retriever: ParentDocumentRetriever) -> None:
    retriever.add_documents(version(2))


def delete(retriever: ParentDocumentRetriever) -> None:
    retriever.delete(["a", "c"])


def sync(retriever: ParentDocumentRetriever) -> None:
    retriever.sync([*version(2)[1:], Document(page_content="Part 1 of d tells of house.", id="d")])


def raised(
    operation: Callable[[ParentDocumentRetriever], None], retriever: ParentDocumentRetriever
) -> Exception | None:
    try:
        operation(retriever)
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize(
    ("operation", "fault"),
    [*((replace, fault) for fault in FAULTS), (delete, "unanswered"), (sync, "half")],
)
def test_a_cut_connection_is_one_clear_error_and_a_retry_completes(
    parts: tuple[Proxy, dict[str, Any], str, str],
    operation: Callable[[ParentDocumentRetriever], None],
    fault: str,
) -> None:
    proxy, stores, place, secret = parts
    with closing(opened(**stores)) as retriever, closing(opened()) as undisturbed:
        states, answers = [], []
        for prepare in (lambda index: index.add_documents(version(1)), operation):
            prepare(undisturbed)
            states.append(state(undisturbed))
            answers.append(found(undisturbed))
        for failing in count(1, STEP):
            retriever.sync(version(1))
            assert state(retriever) == states[0]
            proxy.fail(failing, fault)
            error = raised(operation, retriever)
            if proxy.requests < failing:  # it was done before
                break
            if error is not None:  # a turn that is lost is taken again
                assert re.search(place, str(error))
                assert isinstance(error, ConnectionError if "client" in stores else StoreError)
                assert secret not in "".join(traceback.format_exception(error))
            proxy.heal()
            assert answers[0] & answers[1] <= found(retriever) <= answers[0] | answers[1]
            operation(retriever)
            assert state(retriever) == states[1]
            assert found(retriever) == answers[1]
            assert retriever.verify().is_sound
        assert error is None
        assert failing > 1
