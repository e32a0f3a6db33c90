"""The code to copy: what is set on the page, for each front end, plain Python and the shell."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from rag_splitters.chunker import Chunker
from rag_splitters.playground.fields import MODELS, differing, name_of
from rag_splitters.playground.models import Models

__all__ = ["code"]

_WIDTH = 88
_OPTIONS = ("chunk_size", "chunk_overlap", "length_function")
_CLIENTS = {
    ("openai", "embeddings"): ("OpenAIEmbeddings", "model"),
    ("openai", "llm"): ("ChatOpenAI", "model"),
    ("azure", "embeddings"): ("AzureOpenAIEmbeddings", "azure_deployment"),
    ("azure", "llm"): ("AzureChatOpenAI", "azure_deployment"),
}


def code(chunker: Chunker, models: Models) -> dict[str, str]:
    """The lines that make this strategy and cut `text`, with what differs from the defaults.

    Returns: `langchain`, `llama_index`, `python` and `shell`.

    >>> from rag_splitters import PageChunker
    >>> print(code(PageChunker(chunk_size=300), Models.of(None, None))["langchain"])
    from rag_splitters.langchain import PageTextSplitter
    <BLANKLINE>
    splitter = PageTextSplitter(chunk_size=300)
    chunks = splitter.create_documents([text])
    """
    stem = type(chunker).__name__.removesuffix("Chunker")
    return {
        "langchain": _Lines(models).whole(
            "splitter",
            chunker,
            ("rag_splitters.langchain", f"{stem}TextSplitter"),
            "chunks = splitter.create_documents([text])",
        ),
        "llama_index": _Lines(models, {"llama_index.core": {"Document"}}).whole(
            "parser",
            chunker,
            ("rag_splitters.llama_index", f"{stem}NodeParser"),
            "nodes = parser.get_nodes_from_documents([Document(text=text)])",
        ),
        "python": _Lines(models).whole(
            "chunker",
            chunker,
            ("rag_splitters", f"{stem}Chunker"),
            "chunks = chunker.chunk(text)",
        ),
        "shell": _shell(chunker, models),
    }


class _Lines:
    """Python with the imports that it turns out to need."""

    def __init__(self, models: Models, imports: Mapping[str, set[str]] | None = None) -> None:
        self.models, self.imports = models, dict(imports or {})
        self.notes: list[str] = []

    def whole(self, variable: str, chunker: Chunker, name: tuple[str, str], use: str) -> str:
        made = self.made(chunker, *name, room=_WIDTH - len(variable) - 3)
        imports = [
            f"from {module} import {', '.join(sorted(names))}"
            for module, names in sorted(self.imports.items())
        ]
        return "\n".join([*imports, "", *self.notes, f"{variable} = {made}", use])

    def made(self, chunker: Chunker, module: str, name: str, room: int) -> str:
        """The call that makes a chunker; one line for each parameter where they are too long."""
        self.imports.setdefault(module, set()).add(name)
        given = [f"{key}={self.value(key, each)}" for key, each in differing(chunker).items()]
        line = f"{name}({', '.join(given)})"
        if len(line) <= room and "\n" not in line:
            return line
        inner = "".join(f"{each},\n" for each in given)
        return f"{name}(\n{_indented(inner)})"

    def value(self, key: str, value: Any) -> str:
        if key in MODELS and value is not None:
            return self.model(key, value)
        if isinstance(value, Chunker):
            return self.made(value, "rag_splitters", type(value).__name__, _WIDTH - 4 - len(key))
        if isinstance(value, tuple | list):
            return f"[{', '.join(self.value('', each) for each in value)}]"
        return repr(value)

    def model(self, key: str, model: Any) -> str:
        """What makes the model that the playground was given; its name where it cannot be told."""
        name = self.models.names.get(key, "")
        kind, _, rest = name.partition(":")
        if key == "embeddings" and self.models.is_free:
            self.imports.setdefault("rag_splitters.models", set()).add("HashingEmbeddings")
            return "HashingEmbeddings()"
        if kind == "function":
            module, _, function = rest.partition(":")
            self.imports.setdefault(module, set()).add(function)
            return function
        if (kind, key) in _CLIENTS:
            client, parameter = _CLIENTS[kind, key]
            self.imports.setdefault("langchain_openai", set()).add(client)
            url = self.models.names.get("base_url") if kind == "openai" else None
            return f"{client}({parameter}={rest!r}{f', base_url={url!r}' if url else ''})"
        note = f"# {key}: the model that the playground was given, {self.models.shown[key]}"
        self.notes += [] if note in self.notes else [note]
        return key


def _shell(chunker: Chunker, models: Models) -> str:
    """The command line, on one line for each option where it is long."""
    given = differing(chunker)
    parts = [f"--{key.replace('_', '-')} {_quoted(given[key])}" for key in _OPTIONS if key in given]
    parts += [
        f"-p {_quoted(f'{key}={_plain(value)}')}"
        for key, value in given.items()
        if key not in (*_OPTIONS, *MODELS)
    ]
    parts += ["-p ner=PIPELINE"] if "ner" in given else []
    asked = [key for key in ("embeddings", "llm") if given.get(key) is not None]
    for key in asked:
        name = models.names.get(key) or ("hashing" if key == "embeddings" else "openai:NAME")
        parts.append(f"--{key} {_quoted(name)}")
    if asked and "base_url" in models.names:
        parts.append(f"--base-url {_quoted(models.names['base_url'])}")
    command = [f"rag-splitters split FILE -s {name_of(chunker)}", *parts]
    line = " ".join(command)
    return line if len(line) <= _WIDTH else " \\\n  ".join(command)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(_json(value))


def _json(value: Any) -> Any:
    if isinstance(value, Chunker):
        inner = {key: _json(each) for key, each in differing(value).items() if key not in MODELS}
        return {"strategy": name_of(value), **inner}
    return [_json(each) for each in value] if isinstance(value, tuple | list) else value


def _quoted(value: Any) -> str:
    """A word of a shell; with Bash's escapes where it holds what a terminal would obey."""
    word = str(value)
    if word.isprintable():
        return shlex.quote(word)
    escaped = word.encode("unicode_escape").decode("ascii").replace("'", "\\'")
    return f"$'{escaped}'"


def _indented(lines: str) -> str:
    return "".join(f"    {line}\n" for line in lines.splitlines())
