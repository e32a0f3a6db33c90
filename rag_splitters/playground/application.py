"""The playground's server: the page, and the questions that it asks, in JSON."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from inspect import getdoc
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from rag_splitters import CATALOGUE, __version__
from rag_splitters.cli.demo import QUESTIONS
from rag_splitters.cli.demo import texts as demo_texts
from rag_splitters.models import ModelError
from rag_splitters.playground.chunking import MOST_CHUNKS, chunked
from rag_splitters.playground.code import code
from rag_splitters.playground.fields import chunker_of, form, needed
from rag_splitters.playground.guarding import MOST_BYTES, Guard, TooLargeError
from rag_splitters.playground.models import Models
from rag_splitters.playground.searching import ranked
from rag_splitters.reading.files import decode

__all__ = ["application"]

logger = logging.getLogger(__name__)

_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_LONGEST_MESSAGE = 600


def application(texts: Mapping[str, str], models: Models, hosts: Sequence[str]) -> Starlette:
    """The application; see `rag_splitters.playground.create_app`."""
    desk = _Desk({**texts, **{k: v for k, v in demo_texts().items() if k not in texts}}, models)
    routes = [
        Route("/" if name == "page.html" else f"/{name}", _file(name)) for name in _static_names()
    ]
    routes += [
        Route("/api/strategies", _answering(desk.strategies)),
        Route("/api/text", _answering(desk.text)),
        Route("/api/read", _answering(desk.read), methods=["POST"]),
        Route("/api/chunks", _answering(desk.chunks), methods=["POST"]),
        Route("/api/search", _answering(desk.search), methods=["POST"]),
    ]
    return Starlette(routes=routes, middleware=[Middleware(Guard, hosts=hosts)])


class _Desk:
    """Answers what the page asks; each method takes the query and the body."""

    def __init__(self, texts: Mapping[str, str], models: Models) -> None:
        self.texts, self.models = texts, models

    def strategies(self, query: Mapping[str, str], body: bytes) -> dict[str, Any]:
        """Everything that the page is made from."""
        return {
            "version": __version__,
            "models": self.models.shown,
            "is_free": self.models.is_free,
            "most_chunks": MOST_CHUNKS,
            "texts": [{"name": name, "characters": len(text)} for name, text in self.texts.items()],
            "questions": QUESTIONS,
            "strategies": [
                {
                    "name": name,
                    "class": kind.__name__,
                    "about": (getdoc(kind) or "").split("\n>>> ")[0].strip(),
                    "needs": needed(kind),
                    "missing": [told for key in needed(kind) if (told := self.models.missing(key))],
                    "parameters": form(kind),
                }
                for name, kind in CATALOGUE.items()
            ],
        }

    def text(self, query: Mapping[str, str], body: bytes) -> dict[str, Any]:
        """One of the texts that the playground was started with."""
        name = query.get("name", "")
        if name not in self.texts:
            raise ValueError(f"there is no text {name!r}: there are {', '.join(self.texts)}")
        return {"name": name, "text": self.texts[name]}

    def read(self, query: Mapping[str, str], body: bytes) -> dict[str, Any]:
        """The text of a file that was dropped on the page; nothing of it is kept."""
        name = query.get("name") or "the file"
        return {"name": name, "text": decode(body, name)}

    def chunks(self, query: Mapping[str, str], body: bytes) -> dict[str, Any]:
        """The chunks of a text, figures about them, and the code that makes them."""
        asked = _object(body, text=str, strategy=str, parameters=dict)
        chunker = chunker_of(asked["strategy"], asked["parameters"], self.models)
        return {**chunked(chunker, asked["text"]), "code": code(chunker, self.models)}

    def search(self, query: Mapping[str, str], body: bytes) -> dict[str, Any]:
        """Which of the page's chunks a question would retrieve."""
        asked = _object(body, text=str, question=str, chunks=list, k=int)
        found = ranked(asked["text"], asked["chunks"], asked["question"], asked["k"], self.models)
        return {"results": found, "model": self.models.shown["embeddings"]}


def _answering(answer: Callable[[Mapping[str, str], bytes], dict[str, Any]]) -> Any:
    """An endpoint that answers in a thread, and with one line for what is wrong."""

    async def endpoint(request: Request) -> Response:
        try:
            body = await request.body()
            found = await run_in_threadpool(answer, request.query_params, body)
            return _json_response(found, 200)
        except ClientDisconnect:
            return Response(status_code=400)
        except TooLargeError:
            most = f"{MOST_BYTES // 1_000_000} MB"
            return _failed(f"this is too large: the playground takes up to {most} at once", 413)
        except ModelError as error:
            return _failed(error, 502)
        except (ValueError, TypeError, ImportError, RecursionError) as error:
            return _failed(error, 400)
        except (
            Exception
        ) as error:  # what else goes wrong is ours to mend, and not the page's to show
            logger.exception("the playground failed")
            return _failed(f"{type(error).__name__}, which the server's log tells more of", 500)

    return endpoint


def _object(body: bytes, **kinds: type) -> dict[str, Any]:
    """The JSON object of a request with exactly these members."""
    try:
        found = json.loads(body, parse_constant=lambda name: name)
    except ValueError as error:
        raise ValueError(f"the request is not JSON: {error}") from None
    if not isinstance(found, dict) or found.keys() != kinds.keys():
        raise ValueError(f"the request must be an object with {', '.join(kinds)}")
    for name, kind in kinds.items():
        if not isinstance(found[name], kind):
            raise ValueError(f"{name} must be of type {kind.__name__}, got {found[name]!r}")
    return found


def _failed(error: object, status: int) -> Response:
    told = " ".join(str(error).split()) or type(error).__name__
    if len(told) > _LONGEST_MESSAGE:
        told = told[:_LONGEST_MESSAGE] + " …"
    return _json_response({"error": told}, status)


def _json_response(content: Any, status: int) -> Response:
    """JSON in ASCII, which also holds the lone surrogates that UTF-8 lacks."""
    content = json.dumps(content, separators=(",", ":"), default=str)
    return Response(content, status, media_type="application/json")


def _static_names() -> list[str]:
    return sorted(each.name for each in (files(__package__) / "static").iterdir())


def _file(name: str) -> Any:
    """An endpoint that sends one of the page's own files, read once."""
    content = (files(__package__) / "static" / name).read_bytes()
    media_type = _KINDS[f".{name.rpartition('.')[2]}"]

    async def endpoint(request: Request) -> Response:
        return Response(content, media_type=media_type)

    return endpoint
