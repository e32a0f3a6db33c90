"""The playground's server: the files of the page, and the API that the page calls."""

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
from rag_splitters.chunkers.by_name import required_models
from rag_splitters.errors import InputError
from rag_splitters.models import ModelError
from rag_splitters.playground.chunking import MAX_CHUNKS, show_chunks
from rag_splitters.playground.form import chunker_from_form, form
from rag_splitters.playground.model_set import ModelSet
from rag_splitters.playground.searching import rank_chunks
from rag_splitters.playground.security import MAX_BYTES, Guard
from rag_splitters.playground.snippets import snippets
from rag_splitters.reading.files import text_from_bytes
from rag_splitters.reading.samples import SAMPLE_ANSWERS, SAMPLE_QUESTIONS, sample_texts
from rag_splitters.web.http import TooLargeError, error_response, json_response

logger = logging.getLogger(__name__)

_MEDIA_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}


def application(texts: Mapping[str, str], models: ModelSet, hosts: Sequence[str]) -> Starlette:
    """The application; see `rag_splitters.playground.create_app`."""
    api = _Api({**texts, **{k: v for k, v in sample_texts().items() if k not in texts}}, models)
    names = sorted(each.name for each in (files(__package__) / "static").iterdir())
    routes = [Route("/" if name == "page.html" else f"/{name}", _file(name)) for name in names]
    routes += [
        Route("/api/strategies", _endpoint(api.strategies)),
        Route("/api/text", _endpoint(api.text)),
        Route("/api/read", _endpoint(api.read), methods=["POST"]),
        Route("/api/chunks", _endpoint(api.chunks), methods=["POST"]),
        Route("/api/search", _endpoint(api.search), methods=["POST"]),
    ]
    return Starlette(routes=routes, middleware=[Middleware(Guard, hosts=hosts)])


class _Api:
    """The API; each method takes the query and the body of a request, and returns JSON."""

    def __init__(self, texts: Mapping[str, str], models: ModelSet) -> None:
        self.texts, self.models = texts, models

    def strategies(self, query: Mapping[str, str], body: bytes) -> dict[str, Any]:
        """The strategies with their forms, the models and the texts, for the start of the page."""
        return {
            "version": __version__,
            "models": self.models.descriptions,
            "is_free": self.models.is_free,
            "max_chunks": MAX_CHUNKS,
            "texts": [{"name": name, "characters": len(text)} for name, text in self.texts.items()],
            "questions": [
                {"question": question, "answer": answer}
                for question, answer in zip(SAMPLE_QUESTIONS, SAMPLE_ANSWERS, strict=True)
            ],
            "strategies": [
                {
                    "name": name,
                    "class": kind.__name__,
                    "about": (getdoc(kind) or "").split("\n>>> ")[0].strip(),
                    "needs": required_models(kind),
                    "missing": [
                        hint for key in required_models(kind) if (hint := self.models.missing(key))
                    ],
                    "parameters": form(kind),
                }
                for name, kind in CATALOGUE.items()
            ],
        }

    def text(self, query: Mapping[str, str], body: bytes) -> dict[str, Any]:
        """One of the texts that the playground was started with."""
        name = query.get("name", "")
        if name not in self.texts:
            raise InputError(f"there is no text {name!r}: there are {', '.join(self.texts)}")
        return {"name": name, "text": self.texts[name]}

    def read(self, query: Mapping[str, str], body: bytes) -> dict[str, Any]:
        """The text of a file that was opened on the page. The server does not store it."""
        name = query.get("name") or "the file"
        return {"name": name, "text": text_from_bytes(body, name)}

    def chunks(self, query: Mapping[str, str], body: bytes) -> dict[str, Any]:
        """The chunks of a text, statistics about them, and the code that makes them."""
        values = _json_object(body, name=str, text=str, strategy=str, parameters=dict)
        chunker = chunker_from_form(values["strategy"], values["parameters"], self.models)
        shown = show_chunks(chunker, values["text"], values["name"])
        return {**shown, "code": snippets(chunker, self.models)}

    def search(self, query: Mapping[str, str], body: bytes) -> dict[str, Any]:
        """Which of the page's chunks a question would retrieve."""
        values = _json_object(body, text=str, question=str, chunks=list, k=int)
        results = rank_chunks(**values, models=self.models)
        return {"results": results, "model": self.models.descriptions["embeddings"]}


def _endpoint(method: Callable[[Mapping[str, str], bytes], dict[str, Any]]) -> Any:
    """An endpoint that calls the method in a thread and answers errors with one line."""

    async def endpoint(request: Request) -> Response:
        try:
            body = await request.body()
            answer = await run_in_threadpool(method, request.query_params, body)
            return json_response(answer)
        except ClientDisconnect:
            return Response(status_code=400)
        except TooLargeError:
            limit = f"{MAX_BYTES // 1_000_000} MB"
            return error_response(f"the request is too large: the limit is {limit}", 413)
        except ModelError as error:
            return error_response(error, 502)
        except (ValueError, TypeError, ImportError, RecursionError) as error:
            return error_response(error, 400)
        except Exception as error:  # a bug of ours: the details belong in the log
            logger.exception("the playground failed")
            return error_response(f"{type(error).__name__}: see the server's log", 500)

    return endpoint


def _json_object(body: bytes, **kinds: type) -> dict[str, Any]:
    """The JSON object of a request with exactly these members."""
    try:
        values = json.loads(body, parse_constant=lambda name: name)
    except ValueError as error:
        raise InputError(f"the request is not JSON: {error}") from None
    if not isinstance(values, dict) or values.keys() != kinds.keys():
        raise InputError(f"the request must be an object with {', '.join(kinds)}")
    for name, kind in kinds.items():
        if not isinstance(values[name], kind):
            raise InputError(f"{name} must be of type {kind.__name__}, got {values[name]!r}")
    return values


def _file(name: str) -> Any:
    """An endpoint that sends one of the page's files, which is read once."""
    content = (files(__package__) / "static" / name).read_bytes()
    media_type = _MEDIA_TYPES[f".{name.rpartition('.')[2]}"]

    async def endpoint(request: Request) -> Response:
        return Response(content, media_type=media_type)

    return endpoint
