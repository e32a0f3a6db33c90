"""Options that several commands share, and how their values become models and chunkers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from rag_splitters.chunkers import CATALOGUE
from rag_splitters.chunkers.by_name import (
    MODEL_PARAMETERS,
    build_chunker,
    chunker_class,
    parameter_field,
    required_models,
    split_union,
)
from rag_splitters.contract.chunker import Chunker
from rag_splitters.errors import InputError
from rag_splitters.extras import install_command
from rag_splitters.models.named import load_embeddings, load_llm


def complete_strategy(beginning: str) -> list[str]:
    """Return the names of strategies that begin so, for the completion in a shell."""
    return [name for name in CATALOGUE if name.startswith(beginning.lower().replace("-", "_"))]


StrategyOption = Annotated[
    str,
    typer.Option(
        "--strategy",
        "-s",
        metavar="NAME",
        help="Name of the strategy; see `rag-splitters strategies`.",
        autocompletion=complete_strategy,
    ),
]
ParameterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--param", "-p", metavar="NAME=VALUE", help="A parameter of the strategy; repeatable."
    ),
]
HostOption = Annotated[str, typer.Option(help="Address to listen on.")]
PortOption = Annotated[
    int,
    typer.Option(min=0, max=65535, metavar="PORT", help="Port to listen on; 0 for any free port."),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print the results as JSON lines, one object a line.")
]
EmbeddingsOption = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="Embedding model: openai:NAME, azure:DEPLOYMENT, function:MODULE:NAME or hashing. API "
        "keys come from the environment: OPENAI_API_KEY, or AZURE_OPENAI_API_KEY, "
        "AZURE_OPENAI_ENDPOINT and OPENAI_API_VERSION.",
    ),
]
LlmOption = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="Chat model: openai:NAME, azure:DEPLOYMENT or function:MODULE:NAME. API keys come "
        "from the environment, as for --embeddings.",
    ),
]
BaseUrlOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Server of the openai: models, if it is not OpenAI's; no API key is needed then.",
    ),
]

_HINTS = {
    "embeddings": "pass --embeddings openai:text-embedding-3-small",
    "llm": "pass --llm openai:gpt-4o-mini",
    "ner": "pass -p ner=en_core_web_sm",
}


def models_from_options(
    embeddings: str | None = None, llm: str | None = None, base_url: str | None = None
) -> dict[str, Any]:
    """Return the models that the options name, by the names of the parameters that hold them.

    Raises: ValueError if a name is not a model's, or if a model has no API key.
    """
    if base_url is not None and not any(str(x).startswith("openai:") for x in (embeddings, llm)):
        raise InputError("--base-url needs a model on that server: pass --embeddings openai:NAME")
    models: dict[str, Any] = {}
    if embeddings is not None:
        models["embeddings"] = load_embeddings(embeddings, base_url)
    if llm is not None:
        models["llm"] = load_llm(llm, base_url)
    return models


def chunker_from_options(name: str, parameters: Mapping[str, Any]) -> Chunker:
    """Return the strategy with these parameters, models included.

    Raises: ValueError with a message of one line.
    """
    for key in required_models(chunker_class(name)):
        if key not in parameters:
            extra = f" ({install_command('ner')})" if key == "ner" else ""
            raise InputError(f"{name} needs {MODEL_PARAMETERS[key]}: {_HINTS[key]}{extra}")
    return build_chunker(name, parameters)


def read_parameters(name: str, pairs: Iterable[str]) -> dict[str, Any]:
    """Return the parameters in `name=value` pairs. One that holds a list may occur several times.

    >>> read_parameters("keyword", ["keywords=Article", "keywords=Annex", "chunk_size=200"])
    {'keywords': ['Article', 'Annex'], 'chunk_size': 200}
    """
    values: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not key:
            raise InputError(f"a parameter is given as name=value, got {pair!r}")
        value = _value(parameter_field(name, key), text)
        if key in values:
            if not isinstance(value, list):
                raise InputError(f"{key} is given twice")
            value = [*values[key], *value]
        values[key] = value
    return values


def _value(field: FieldInfo, text: str) -> Any:
    """Return the text itself for a field of strings, else what it says in JSON, if it is JSON."""
    literals, types = split_union(field.annotation)
    if {*types, *map(type, literals)} <= {str}:
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    lists = [each for each in types if get_origin(each) in (list, tuple, Sequence)]
    if not lists or isinstance(value, list):
        return value
    return [text if any(get_args(each)[:1] == (str,) for each in lists) else value]
