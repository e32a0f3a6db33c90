"""The playground's server: it cuts the text and renders the page, which swaps what changed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from rag_splitters import CATALOGUE
from rag_splitters.chunkers.by_name import changed_parameters, describe_strategy, models_in
from rag_splitters.contract.chunker import Chunker
from rag_splitters.errors import InputError, RagSplittersError
from rag_splitters.models import ModelError
from rag_splitters.playground.cutting import Cut, Hit
from rag_splitters.playground.fields import rows, strategy_options
from rag_splitters.playground.form import chunker_from_form
from rag_splitters.playground.model_set import ModelSet
from rag_splitters.playground.recent import Recent
from rag_splitters.playground.security import MAX_BYTES, Guard
from rag_splitters.playground.settings import (
    LETTERS,
    TABS,
    Settings,
    Side,
    changed_fields,
    link,
    second_side,
)
from rag_splitters.playground.snippets import snippet
from rag_splitters.playground.texts import Texts
from rag_splitters.playground.view import (
    MAX_CHARACTERS,
    answer_sentence,
    difference,
    draw,
    draw_plain,
    facts,
    figure_rows,
    pages_of,
    summary,
    twins_of,
    window,
)
from rag_splitters.reading.places import draw_page
from rag_splitters.reading.samples import SAMPLE_QUESTIONS
from rag_splitters.span import Chunk
from rag_splitters.text.surrogates import without_surrogates
from rag_splitters.web.http import one_line, response_or_error

_PASTED = "text/plain"  # a text from the clipboard; files come as application/octet-stream
_REGEX_PARAMETERS = ("is_regex", "patterns", "page_break", "secondary_chunking_regex")
_DEFAULT = {"a": "auto", "a.chunk_size": "300"}
_PASTED_NAME = "your own text"


def application(
    texts: Mapping[str, str | bytes], models: ModelSet, hosts: Sequence[str]
) -> Starlette:
    """Return the application; see `rag_splitters.playground.create_app`."""
    page = _Page(Texts(texts), models)
    routes = [
        Route("/", _endpoint(page.start)),
        Route("/settings", _endpoint(page.settings), methods=["POST"]),
        Route("/views", _endpoint(page.views), methods=["POST"]),
        Route("/chunk", _endpoint(page.chunk), methods=["POST"]),
        Route("/text", _endpoint(page.take_text), methods=["POST"]),
        Route("/page", _endpoint(page.picture)),
        Mount("/", StaticFiles(packages=[("rag_splitters.playground", "static")])),
    ]
    return Starlette(routes=routes, middleware=[Middleware(Guard, hosts=hosts)])


Fields = Mapping[str, str]


class _Page:
    """The page and its fragments; each method answers a request, and nothing is cut twice."""

    def __init__(self, texts: Texts, models: ModelSet) -> None:
        self.texts, self.models = texts, models
        self._cuts: Recent[tuple[str, str, str], Cut] = Recent(16)
        self._templates = Environment(
            loader=PackageLoader("rag_splitters.playground"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=StrictUndefined,
        )
        self._templates.filters["prose"] = _prose

    def start(self, fields: Fields, body: bytes, kind: str) -> Response:
        """Render the page for a link. It cuts nothing yet, whoever the link comes from."""
        notices = []
        try:
            settings = Settings.read(fields, self.texts)
        except RagSplittersError as error:
            notices.append(one_line(error))
            settings = Settings.read({**fields, "text": ""}, self.texts)
        sides: list[Side] = []
        linked: dict[str, str] = {}
        for letter in LETTERS:
            own = {k: v for k, v in fields.items() if k == letter or k.startswith(f"{letter}.")}
            if letter == "a" and own.get("a") not in CATALOGUE:
                notices += [_unknown(own["a"])] if "a" in own else []
                own = _DEFAULT
            if letter in own and own[letter] not in CATALOGUE:
                notices.append(_unknown(own[letter]))
            elif letter in own:
                linked |= own
                sides.append(self._linked_side(own, letter))
        return self._html(
            "page.html",
            settings=settings,
            notice="\n".join(notices),
            texts=self.texts.options(settings.text),
            questions=SAMPLE_QUESTIONS,
            letters=LETTERS,
            tabs=TABS,
            **self._form(sides, linked),
        )

    def settings(self, fields: Fields, body: bytes, kind: str) -> Response:
        """Render the forms after a strategy was chosen, added or removed."""
        fields = changed_fields(_fields_of(body))
        sides = [Side.read(fields, letter) for letter in LETTERS if letter in fields]
        if "compare" in fields and len(sides) == 1:
            sides.append(second_side(sides[0]))
        shown = "b" if "compare" in fields else fields.get("shown", "a")
        return self._html("settings.html", **self._form(sides, {}, shown))

    def views(self, fields: Fields, body: bytes, kind: str) -> Response:
        """Cut the text, search the chunks, and render what is to be seen."""
        return self._render(_fields_of(body))

    def chunk(self, fields: Fields, body: bytes, kind: str) -> Response:
        """Render the details of one chunk, and the part of the text that it is in."""
        fields = _fields_of(body)
        letter = fields.get("side", "a")
        settings, side = Settings.read(fields, self.texts), Side.read(fields, letter)
        cuts = self._all_cuts(settings, fields)
        cut = self._cut(settings, side)
        if isinstance(cut, str):
            return self._render(fields)
        if side.chunk is not None and side.chunk < len(cut.chunks):
            place = cut.chunks[side.chunk].start
            shown = window(settings.text, settings.start, cuts, place)
            if shown[0] != settings.start:
                return self._render({**fields, "from": str(shown[0])})
        others = [each for each in cuts if each is not cut]
        twins = twins_of(cut, others[0]) if others else None
        hits = cut.searches.get((settings.question, settings.k)) or []
        view = {**self._panel(cut, side, hits, twins, fields), "pieces": None}
        return self._html(
            "views.html", views=[view], errors={}, waits={}, plain=[], settings=None, shown=None
        )

    def take_text(self, fields: Fields, body: bytes, kind: str) -> Response:
        """Keep a text that was pasted, or a file that was opened, and answer with its key."""
        if kind.partition(";")[0] == _PASTED:
            name = _PASTED_NAME
            added = self.texts.add(name, body.decode("utf-8", "replace"))
        else:
            name = fields.get("name") or "the file"
            added = self.texts.add(name, body)
        return Response(json.dumps({"key": added.key, "name": name}), media_type="application/json")

    def picture(self, fields: Fields, body: bytes, kind: str) -> Response:
        """Draw a page of a PDF, with a part of its text highlighted."""
        text = self.texts.get(fields.get("text", ""))
        try:
            start, end, number = (int(fields[name]) for name in ("from", "to", "number"))
        except (KeyError, ValueError):
            raise InputError("a page needs the numbers from, to and number") from None
        chunk = Chunk(text.text[start:end], start, end, {}, "")
        return Response(draw_page(text.pdf, text.name, chunk, number), media_type="image/png")

    # Cutting and searching

    def _cut(self, settings: Settings, side: Side, *, runs: bool = False) -> Cut | str:
        """Return the chunks, or say why cutting the text waits for the user to press Run.

        Raises: RagSplittersError if the settings are wrong or a model fails.
        """
        parameters = json.dumps(side.values, sort_keys=True)
        key = (settings.text.key, side.strategy, parameters)
        cut = self._cuts.get(key)
        if cut is None or runs:
            chunker = chunker_from_form(side.strategy, side.values, self.models)
            if not runs and (reason := self._reason_to_wait(chunker, side)):
                return reason
            cut = Cut.of(chunker, settings.text)
            self._cuts.put(key, cut)
        return cut

    def _all_cuts(self, settings: Settings, fields: Fields) -> list[Cut]:
        """Return the chunks of both sides, as far as they can be shown."""
        cuts = []
        for letter in filter(fields.__contains__, LETTERS):
            with suppress(RagSplittersError):  # said where this side is drawn
                cuts.append(self._cut(settings, Side.read(fields, letter)))
        return [cut for cut in cuts if isinstance(cut, Cut)]

    def _reason_to_wait(self, chunker: Chunker, side: Side) -> str:
        """Say why cutting waits for the user to press Run; "" if it does not."""
        if "llm" in models_in(chunker):
            return f"calls {self.models.descriptions['llm']}"
        # A regular expression can run for ever, and a link can come from anyone.
        if side.is_linked and not changed_parameters(chunker).keys().isdisjoint(_REGEX_PARAMETERS):
            return "uses regular expressions that came with a link"
        return ""

    def _search(self, cut: Cut, settings: Settings, fields: Fields) -> tuple[Sequence[Hit], str]:
        """Return the hits, and a note about them."""
        question, k = settings.question, settings.k
        if not question.strip():
            return [], ""
        hits = cut.searches.get((question, k))
        if hits is None:
            if not (self.models.is_free or "ask" in fields):
                return [], "press Ask to search these chunks"
            try:
                hits = cut.search(question, k, self.models)
            except ModelError as error:
                return [], one_line(error)
        return hits, str(self.models.descriptions["embeddings"])

    # Rendering

    def _render(self, fields: Fields) -> Response:
        """Render both sides: chunks, figures and results, and what is wrong with the settings."""
        settings = Settings.read(fields, self.texts)
        sides: dict[str, Side] = {}
        cuts: dict[str, Cut] = {}
        errors = {letter: "" for letter in LETTERS if letter in fields}
        waits, status = dict(errors), 200
        for letter in errors:
            try:
                sides[letter] = side = Side.read(fields, letter)
                cut = self._cut(settings, side, runs=fields.get("run") == letter)
                if isinstance(cut, str):
                    waits[letter] = cut
                else:
                    cuts[letter] = cut
            except RagSplittersError as error:
                errors[letter] = one_line(error)
                status = 502 if isinstance(error, ModelError) else 400
        searches = {each: self._search(cut, settings, fields) for each, cut in cuts.items()}
        place = None
        for letter, (hits, _) in searches.items():
            if hits and "ask" in fields:
                sides[letter] = replace(sides[letter], chunk=hits[0].chunk)
                first = cuts[letter].positions[hits[0].chunk]
                place = (settings.answer or first)[0] if place is None else place
        shown = window(settings.text, settings.start, list(cuts.values()), place)
        views = self._views(settings, sides, cuts, shown, searches, fields)
        response = self._html(
            "views.html",
            status=status,
            views=views,
            errors=errors,
            waits=waits,
            plain=[] if "drawn" in fields else [each for each in errors if each not in cuts],
            plain_pieces=draw_plain(settings.text, shown),
            settings=settings,
            length=len(settings.text.text),
            difference=difference(cuts["a"], cuts["b"]) if len(cuts) == 2 else "",
            shown=shown,
            window_size=MAX_CHARACTERS,
        )
        if len(sides) == len(errors) and (url := link(settings, list(sides.values()))):
            response.headers["HX-Replace-Url"] = url
        return response

    def _views(
        self,
        settings: Settings,
        sides: Mapping[str, Side],
        cuts: Mapping[str, Cut],
        shown: tuple[int, int],
        searches: Mapping[str, tuple[Sequence[Hit], str]],
        fields: Fields,
    ) -> list[dict[str, Any]]:
        """Return what is to be seen of each side that has chunks."""
        views = []
        for letter, cut in cuts.items():
            others = [each for name, each in cuts.items() if name != letter]
            twins = twins_of(cut, others[0]) if others else None
            is_same = twins is not None and len(twins) == len(cut.numbers) == len(others[0].numbers)
            hits, note = searches[letter]
            answer = settings.answer if settings.question.strip() else None
            view = self._panel(cut, sides[letter], hits, twins, fields) | {
                "summary": summary(cut),
                "figures": figure_rows(cut),
                "question": settings.question.strip(),
                "hits": hits,
                "note": note,
                "answer": answer and answer_sentence(cut, answer, hits, settings.k),
                "pieces": draw(cut, shown, hits, None if is_same else twins, answer),
            }
            views.append(view)
        return views

    def _panel(
        self,
        cut: Cut,
        side: Side,
        hits: Sequence[Hit],
        twins: Mapping[int, int] | None,
        fields: Fields,
    ) -> dict[str, Any]:
        """Return the details of the chosen chunk, or the code to copy."""
        number = side.chunk if side.chunk is not None and side.chunk < len(cut.chunks) else None
        ranks = {hit.chunk: rank for rank, hit in enumerate(hits, 1)}
        title = aloud = ""
        if number is not None:
            rank = f", result {ranks[number]}" if number in ranks else ""
            title = f"Chunk {number + 1:,} of {len(cut.chunks):,}{rank}"
            aloud = f"{title}: {cut.chunks[number].text[:200]}" if "go" in fields else ""
        other = "B" if side.letter == "a" else "A"
        return {
            "letter": side.letter,
            "tab": side.tab,
            "number": number,
            "count": len(cut.chunks),
            "code": self._code(cut, side.tab),
            "title": title,
            "aloud": aloud,
            "facts": None if number is None else facts(cut, number, twins, other),
            "is_pdf": bool(cut.text.pdf),
            "pages": [] if number is None else pages_of(cut, number),
            "extent": (-1, -1) if number is None else cut.positions[number],
        }

    def _code(self, cut: Cut, tab: str) -> str:
        return "" if tab == "chunk" else snippet(tab, cut.chunker, self.models, cut.text)

    def _linked_side(self, fields: Fields, letter: str) -> Side:
        """Return the side of a link; with its defaults if the link is wrong, which `views` says."""
        fields = {**fields, f"{letter}-linked": "1"}
        try:
            return Side.read(fields, letter)
        except RagSplittersError:
            return Side(letter, fields[letter], is_linked=True)

    def _form(self, sides: Sequence[Side], linked: Fields, shown: str = "a") -> dict[str, Any]:
        """Return what the template of the settings needs."""
        usable = strategy_options(self.models)
        abouts = {name: _about(name) for name in CATALOGUE}
        lines = {name: about[0].partition("\n")[0] for name, about in abouts.items()}
        return {
            "sides": sides,
            "rows": {side.letter: rows(side.strategy, side.values, side.letter) for side in sides},
            "linked": linked,
            "shown": shown if len(sides) > 1 else "a",
            "models": self.models,
            "strategies": usable,
            "abouts": abouts,
            "catalogue": {
                "usable": [(name, lines[name]) for name in usable],
                "others": [(name, lines[name]) for name in CATALOGUE if name not in usable],
            },
        }

    def _html(self, template: str, status: int = 200, **values: Any) -> Response:
        html = without_surrogates(self._templates.get_template(template).render(values))
        return Response(html, status, media_type="text/html")


def _endpoint(method: Callable[[Fields, bytes, str], Response]) -> Any:
    """Return an endpoint that calls the method in a thread and answers errors with one line."""

    async def answer(request: Request) -> Response:
        body, kind = await request.body(), request.headers.get("content-type", "")
        return await run_in_threadpool(method, request.query_params, body, kind)

    async def endpoint(request: Request) -> Response:
        too_large = f"the request is too large: the limit is {MAX_BYTES // 1_000_000} MB"
        what = "the playground"
        return await response_or_error(
            answer(request), PlainTextResponse, what=what, too_large=too_large
        )

    return endpoint


def _fields_of(body: bytes) -> Fields:
    """Read a form. Of several fields with one name, the last one counts."""
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=2_000))
    except ValueError as error:
        raise InputError(f"the request is not a form: {error}") from None


def _unknown(strategy: str) -> str:
    return f"The link asks for the strategy “{strategy}”, which does not exist."


def _about(strategy: str) -> tuple[str, str]:
    """Return a strategy's description: its first paragraph, and the others."""
    text = describe_strategy(CATALOGUE[strategy])
    first, _, rest = text.partition("\n\n")
    return " ".join(first.split()), re.sub(r"(?<!\n)\n(?![\n ])", " ", rest)


def _prose(text: str) -> Markup:
    """Render text with `code` in backticks."""
    parts = [escape(part) for part in text.split("`")]
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if at % 2 else part for at, part in enumerate(parts)
    )
