"""Code to copy: the page's settings for each front end and for plain Python."""

from __future__ import annotations

from importlib import import_module
from textwrap import indent
from typing import Any

from rag_splitters.chunkers.by_name import MODEL_PARAMETERS, changed_parameters
from rag_splitters.contract.chunker import Chunker
from rag_splitters.playground.model_set import ModelSet
from rag_splitters.playground.texts import Text

_WIDTH = 88

_FRONT_ENDS = {
    "langchain": ("splitter", "rag_splitters.langchain", "TextSplitter"),
    "llama_index": ("parser", "rag_splitters.llama_index", "NodeParser"),
    "python": ("chunker", "rag_splitters", "Chunker"),
}
"""The variable that holds a strategy, its package, and the end of its name."""

_TEXTS = {
    "langchain": "chunks = splitter.create_documents([text])",
    "llama_index": "nodes = parser.get_nodes_from_documents([Document(text=text)])",
    "python": "chunks = chunker.chunk(text)",
}
_FILES = {
    "langchain": "chunks = splitter.split_documents(FileLoader(NAME).load())",
    "llama_index": "nodes = parser.get_nodes_from_documents(FileReader().load_data(NAME))",
    "python": """\
chunks = []
for source in read_sources(NAME):
    chunks += chunker.chunk(source.text, metadata=source.metadata)""",
}
_IMPORTS = {
    "Document": "llama_index.core",
    "FileLoader": "rag_splitters.langchain",
    "FileReader": "rag_splitters.llama_index",
    "read_sources": "rag_splitters.reading.files",
}


def snippet(front_end: str, chunker: Chunker, models: ModelSet, text: Text) -> str:
    """Code that builds this strategy and cuts the text, with the parameters that were changed.

    A file is read by its name, because the strategies use what its reader finds.

    Parameters:
        front_end: "langchain", "llama_index" or "python".

    >>> from rag_splitters import PageChunker
    >>> text = Text.of("notes", "Tea is hot.")
    >>> print(snippet("langchain", PageChunker(chunk_size=300), ModelSet.load(), text))
    from rag_splitters.langchain import PageTextSplitter
    <BLANKLINE>
    splitter = PageTextSplitter(chunk_size=300)
    chunks = splitter.create_documents([text])
    """
    variable, package, suffix = _FRONT_ENDS[front_end]
    is_file = len(text.metadata) > 1
    use = (_FILES if is_file else _TEXTS)[front_end]
    python = _Python(models, {_IMPORTS[name]: {name} for name in _IMPORTS if f"{name}(" in use})
    name = type(chunker).__name__.removesuffix("Chunker") + suffix
    call = python.call(chunker, package, name, room=_WIDTH - len(variable) - 3)
    imports = [
        f"from {module} import {', '.join(sorted(names))}"
        for module, names in sorted(python.imports.items())
    ]
    lines = [
        *imports,
        "",
        *python.notes,
        f"{variable} = {call}",
        use.replace("NAME", repr(text.name)),
    ]
    return "\n".join(lines)


class _Python:
    """Python code, which collects its imports while it is written."""

    def __init__(self, models: ModelSet, imports: dict[str, set[str]]) -> None:
        self.models, self.imports = models, imports
        self.notes: list[str] = []

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
        """Return the expression that builds the model without one, or a plain name for another."""
        if key == "embeddings" and self.models.is_free:
            self.imports.setdefault("rag_splitters.models", set()).add("HashingEmbeddings")
            return "HashingEmbeddings()"
        note = f"# {key}: the playground's model, {self.models.descriptions[key]}"
        self.notes += [] if note in self.notes else [note]
        return key
