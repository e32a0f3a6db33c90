"""What splitters and retrievers return, whichever library made it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from rag_splitters.errors import InputTypeError
from rag_splitters.parameters.checks import stored_number


class Result(NamedTuple):
    """What a chunk or a result of a search says about itself; None for what it does not say."""

    text: str
    metadata: Mapping[str, Any]
    start: int | None
    end: int | None
    document_id: str | None


def read_result(result: Any) -> Result:
    """Read a chunk of ours or of another library, or a result of a search.

    Parameters:
        result: a text, a `Chunk`, a LangChain document, a LlamaIndex node, with or without a score,
            or another object with a text.

    Raises TypeError if it has no text.

    >>> from types import SimpleNamespace
    >>> read_result(SimpleNamespace(text="two", metadata={"start_index": 4}))[:4]
    ('two', {'start_index': 4}, 4, None)
    """
    if isinstance(result, str):
        return Result(result, {}, None, None, None)
    result = getattr(result, "node", result)  # LlamaIndex's NodeWithScore
    metadata = getattr(result, "metadata", None)
    if not isinstance(metadata, Mapping):
        metadata = {}
    start, end = (_position(result, metadata, edge) for edge in ("start", "end"))
    return Result(_text(result), metadata, start, end, getattr(result, "ref_doc_id", None))


def _text(result: Any) -> str:
    texts = (getattr(result, name, None) for name in ("page_content", "text"))
    text = next((each for each in texts if each is not None), None)
    if text is None and hasattr(result, "get_content"):  # a node of several media
        text = result.get_content()
    if not isinstance(text, str):
        raise InputTypeError(f"a chunk must be a string or an object with a text, got {result!r}")
    return text


def _position(result: Any, metadata: Mapping[str, Any], edge: str) -> int | None:
    """Return the "start" or the "end" in the attributes, or else in the metadata."""
    names = (edge, f"{edge}_char_idx", f"{edge}_index")
    values = [getattr(result, name, None) for name in names]
    numbers = map(stored_number, [*values, metadata.get(f"{edge}_index")])
    return next((number for number in numbers if number is not None), None)
