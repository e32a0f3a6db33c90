"""The three forms of a strategy: its chunker, its text splitter and its node parser."""

from __future__ import annotations

from typing import Any

import rag_splitters.langchain
import rag_splitters.llama_index
from rag_splitters import CATALOGUE, Chunker
from tests.support.cases import CASES

__all__ = ["FRAMEWORKS", "classes", "front_end", "front_end_class", "required"]

FRAMEWORKS = {"langchain": "TextSplitter", "llama_index": "NodeParser"}


def front_end_class(strategy: str, framework: str) -> Any:
    """The class of a strategy in a front end."""
    stem = "".join(part.capitalize() for part in strategy.split("_"))
    return getattr(getattr(rag_splitters, framework), stem + FRAMEWORKS[framework])


def classes(strategy: str) -> list[type[Chunker]]:
    """The strategy's chunker, text splitter and node parser."""
    return [CATALOGUE[strategy], *(front_end_class(strategy, each) for each in FRAMEWORKS)]


def front_end(chunker: Chunker, framework: str, **options: Any) -> Any:
    """The same strategy with the same parameters in a front end."""
    parameters = {field: getattr(chunker, field) for field in type(chunker).model_fields}
    return front_end_class(chunker.strategy, framework)(**parameters, **options)


def required(strategy: str) -> dict[str, Any]:
    """The parameters without which a strategy cannot be built."""
    case = CASES[strategy][0]
    fields = type(case).model_fields
    values = {name: getattr(case, name) for name, field in fields.items() if field.is_required()}
    return {"keywords": ["word"]} if strategy == "keyword" else values
