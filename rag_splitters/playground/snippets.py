"""Code to copy: the page's settings for each front end, for plain Python and for the shell."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from importlib import import_module
from textwrap import indent
from typing import Any

from rag_splitters.chunkers.by_name import MODEL_PARAMETERS, as_json, changed_parameters
from rag_splitters.contract.chunker import Chunker
from rag_splitters.playground.model_set import ModelSet

_WIDTH = 88
_OPTIONS = ("chunk_size", "chunk_overlap", "length_function")
_CLIENTS = {
    ("openai", "embeddings"): ("OpenAIEmbeddings", "model"),
    ("openai", "llm"): ("ChatOpenAI", "model"),
    ("azure", "embeddings"): ("AzureOpenAIEmbeddings", "azure_deployment"),
    ("azure", "llm"): ("AzureChatOpenAI", "azure_deployment"),
}


def snippets(chunker: Chunker, models: ModelSet) -> dict[str, str]:
    """Code that builds this strategy and cuts `text`, with the parameters that were changed.

    Returns: `langchain`, `llama_index`, `python` and `shell`.

    >>> from rag_splitters import PageChunker
    >>> print(snippets(PageChunker(chunk_size=300), ModelSet.load())["langchain"])
    from rag_splitters.langchain import PageTextSplitter
    <BLANKLINE>
    splitter = PageTextSplitter(chunk_size=300)
    chunks = splitter.create_documents([text])
    """
    stem = type(chunker).__name__.removesuffix("Chunker")
    return {
        "langchain": _Python(models).program(
            "splitter",
            chunker,
            ("rag_splitters.langchain", f"{stem}TextSplitter"),
            "chunks = splitter.create_documents([text])",
        ),
        "llama_index": _Python(models, {"llama_index.core": {"Document"}}).program(
            "parser",
            chunker,
            ("rag_splitters.llama_index", f"{stem}NodeParser"),
            "nodes = parser.get_nodes_from_documents([Document(text=text)])",
        ),
        "python": _Python(models).program(
            "chunker", chunker, ("rag_splitters", f"{stem}Chunker"), "chunks = chunker.chunk(text)"
        ),
        "shell": _shell(chunker, models),
    }


class _Python:
    """Python code, which collects its imports while it is written."""

    def __init__(self, models: ModelSet, imports: Mapping[str, set[str]] | None = None) -> None:
        self.models, self.imports = models, dict(imports or {})
        self.notes: list[str] = []

    def program(self, variable: str, chunker: Chunker, name: tuple[str, str], use: str) -> str:
        """Return the imports, the chunker in a variable, and a line that uses it."""
        call = self.call(chunker, *name, room=_WIDTH - len(variable) - 3)
        imports = [
            f"from {module} import {', '.join(sorted(names))}"
            for module, names in sorted(self.imports.items())
        ]
        return "\n".join([*imports, "", *self.notes, f"{variable} = {call}", use])

    def call(self, chunker: Chunker, module: str, name: str, room: int) -> str:
        """Return the call that builds a chunker, on several lines if one line is too short."""
        self.imports.setdefault(module, set()).add(name)
        changed = changed_parameters(chunker, getattr(import_module(module), name))
        arguments = [f"{key}={self.value(key, each)}" for key, each in changed.items()]
        line = f"{name}({', '.join(arguments)})"
        if len(line) <= room and "\n" not in line:
            return line
        inner = "".join(f"{each},\n" for each in arguments)
        return f"{name}(\n{indent(inner, '    ')})"

    def value(self, key: str, value: Any) -> str:
        if key in MODEL_PARAMETERS and value is not None:
            return self.model(key)
        if isinstance(value, Chunker):
            return self.call(value, "rag_splitters", type(value).__name__, _WIDTH - 4 - len(key))
        if isinstance(value, tuple | list):
            return f"[{', '.join(self.value('', each) for each in value)}]"
        return repr(value)

    def model(self, key: str) -> str:
        """Return the expression that builds a model, or a plain name if that is not known."""
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
        note = f"# {key}: the playground's model, {self.models.descriptions[key]}"
        self.notes += [] if note in self.notes else [note]
        return key


def _shell(chunker: Chunker, models: ModelSet) -> str:
    """Return the command; with one line per option if one line is too short."""
    parameters = changed_parameters(chunker)
    parts = [
        f"--{key.replace('_', '-')} {_quote(parameters[key])}"
        for key in _OPTIONS
        if key in parameters
    ]
    parts += [
        f"-p {_quote(f'{key}={_parameter_text(value)}')}"
        for key, value in parameters.items()
        if key not in (*_OPTIONS, *MODEL_PARAMETERS)
    ]
    parts += ["-p ner=PIPELINE"] if "ner" in parameters else []
    model_keys = [key for key in ("embeddings", "llm") if parameters.get(key) is not None]
    for key in model_keys:
        name = models.names.get(key) or ("hashing" if key == "embeddings" else "openai:NAME")
        parts.append(f"--{key} {_quote(name)}")
    if model_keys and "base_url" in models.names:
        parts.append(f"--base-url {_quote(models.names['base_url'])}")
    command = [f"rag-splitters split FILE -s {chunker.strategy}", *parts]
    line = " ".join(command)
    return line if len(line) <= _WIDTH else " \\\n  ".join(command)


def _parameter_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(as_json(value))


def _quote(value: Any) -> str:
    """Return a word for the shell; with Bash's escapes if it holds control characters."""
    word = str(value)
    if word.isprintable():
        return shlex.quote(word)
    escaped = word.encode("unicode_escape").decode("ascii").replace("'", "\\'")
    return f"$'{escaped}'"
