"""Cutting several texts when some of them may fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_splitters.contract.chunker import Chunker
from rag_splitters.models.errors import ModelError
from rag_splitters.models.failures import collect_failures
from rag_splitters.span import Source, Span


def split_each(chunker: Chunker, sources: Sequence[Source]) -> Iterator[list[Span] | Exception]:
    """Yield for each source its spans, or the error that it caused.

    All sources are cut in one call, so that a model gets large batches and is asked only once about
    each source. If a strategy fails for another reason than its model, they are cut one by one.

    Parameters:
        sources: the sources, numbered from 0.

    Raises: ImportError if a package is missing, and ModelError if it affects every source, such as
    a rejected key.

    >>> from rag_splitters import TokenChunker
    >>> def length(text):
    ...     return len(text) if text.isascii() else int("?")
    >>> sources = [Source(text, number=n) for n, text in enumerate(["Tea", "Thé"])]
    >>> [type(each).__name__ for each in split_each(TokenChunker(length_function=length), sources)]
    ['list', 'ValueError']
    """
    try:
        with collect_failures() as failures:
            results = list(chunker.split(sources))
    except (ImportError, ModelError):
        raise
    except Exception as error:
        if len(sources) == 1:
            yield error
            return
        for source in sources:
            yield from split_each(chunker, [source])
    else:
        errors = {error.index: error for error in reversed(failures)}
        for source, spans in zip(sources, results, strict=True):
            yield errors.get(source.number, spans)
