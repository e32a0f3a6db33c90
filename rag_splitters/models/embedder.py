"""Embedder: the same interface for embedding models of any framework."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, PlainSerializer

from rag_splitters.calls import in_both_forms
from rag_splitters.errors import InputTypeError
from rag_splitters.models.cache import Answers, TextCache, read_vector, vector_keys, vector_text
from rag_splitters.models.calling import Stop, for_each, with_retries
from rag_splitters.models.clients import (
    client_retries,
    embed_calls,
    is_concurrent,
    is_embedding_client,
    query_calls,
    with_batch,
)
from rag_splitters.models.describing import load_model, stable_name
from rag_splitters.models.errors import ModelError, model_error
from rag_splitters.models.hashing import HASHING_NAME, HashingEmbeddings
from rag_splitters.models.limits import Limits, Request, limits, requests, token_counts
from rag_splitters.models.pickling import ModelHolder
from rag_splitters.models.validating import BatchError, as_vectors
from rag_splitters.parameters.checks import whole_number
from rag_splitters.parameters.messages import describe_value
from rag_splitters.text.surrogates import without_surrogates

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


TextPosition: TypeAlias = tuple[int, int]
"""The position of a text: the number of its document, and the offset in it."""

Kind: TypeAlias = Literal["vector", "question"]
"""What texts are embedded as; many models have a separate method for questions."""

Row: TypeAlias = "NDArray[np.float32] | ModelError"
"""The vector of a text, or an error."""

_KINDS = (
    "a LangChain Embeddings, a LlamaIndex BaseEmbedding, a callable list of texts -> list of "
    "vectors, or a function without parameters that returns one of them"
)


def check_embedding_model(model: Any, name: str) -> None:
    """Raise an InputTypeError, with the name of a parameter, if it is not an embedding model."""
    is_model = is_embedding_client(model) or callable(model)
    if isinstance(model, type) or not is_model:
        raise InputTypeError(f"{name} must be {_KINDS}, got {describe_value(model)}")


@dataclass(frozen=True, repr=False)
class Embedder(ModelHolder):
    """Embeds many texts in few requests, and checks the vectors.

    Equal texts are embedded once. If a request fails, the answers to the others are kept for the
    next attempt. Lone surrogates, which no client can send, are replaced before the model sees
    them. The repr, pickles and errors hold no secret: a model with an API key cannot be pickled, so
    pass a factory for work in other processes. The methods with LangChain's names make it an
    embedding model for LangChain's stores.

    Parameters:
        model: a LangChain `Embeddings`, a LlamaIndex `BaseEmbedding`, or a callable from a list of
            texts to a list of vectors, sync or async. A factory (a function without parameters, or
            a class and its arguments as `functools.partial`) is called here, and again wherever a
            pickle is loaded.
        max_texts: maximum number of texts in one call. None: 512 for a callable, and 16,384 for a
            framework's model, whose client divides them into batches of its own (LlamaIndex's
            default batch of 10 is raised to 100). A model behind an API is called with these
            batches, so that several can run concurrently.
        max_tokens: maximum number of tokens in one request; a longer text goes alone. None:
            300,000, which is OpenAI's limit, and 8,000,000 in one call for a framework's model that
            does not say how many texts it sends. Tokens are counted for OpenAI's models; for
            others, UTF-8 bytes are counted, because no text has more tokens than bytes.
        max_concurrency: maximum number of concurrent calls. A function that is not async and a
            model in this process get one call at a time.
        max_retries: how often to repeat a call after a rate limit, a time-out, a lost connection or
            a server error; only for models whose client does not retry by itself.

    Raises TypeError if `model` is not an embedding model, and ValueError if a number is not a whole
    number of at least 1 (0 for `max_retries`).

    >>> Embedder(lambda texts: [[float(len(text))] for text in texts]).embed(["one", "three"])
    array([[3.],
           [5.]], dtype=float32)
    """

    max_texts: int | None = None
    max_tokens: int | None = None
    max_concurrency: int = 4
    max_retries: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        check_embedding_model(self.model, "embeddings")
        for name in ("max_texts", "max_tokens", "max_concurrency", "max_retries"):
            if (value := getattr(self, name)) is not None:
                whole_number(value, name, 0 if name == "max_retries" else 1)

    __hash__ = ModelHolder.__hash__

    @property
    def has_questions(self) -> bool:
        """Whether the model has a separate method for questions."""
        return query_calls(self.model) is not None

    async def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts, of which none may be blank, and return an array with a row for each.

        Raises ModelError, which names the call and, if known, the text, if the model fails, or if
        it answers with a wrong number of vectors or with vectors of different lengths, of zeros, or
        of numbers that are not finite.
        """
        return rows_of(await self._embed_each(texts))

    embed, aembed = in_both_forms(_embed)

    async def _embed_each(
        self,
        texts: Sequence[str],
        places: Sequence[TextPosition] | None = None,
        cache: TextCache | None = None,
    ) -> list[Row]:
        """Embed texts, and return a vector or an error for each.

        A batch that the model fails on is divided until the text that causes the failure is found.
        After an error that would affect every text, such as a rejected key, no more calls are made.

        Parameters:
            texts: the texts, of any number of documents; none may be blank.
            places: document number and offset of each text, for error messages.
            cache: the cache to which the vectors of each batch are written as soon as they arrive.
        """
        return await _Batches(self, texts, places, cache, "vector").rows()

    embed_each, aembed_each = in_both_forms(_embed_each)

    async def _embed_questions(
        self, questions: Sequence[str], cache: TextCache | None = None
    ) -> NDArray[np.float32]:
        """Embed questions, with the model's method for questions if it has one.

        Parameters:
            cache: the cache to which each vector is written as soon as it arrives.

        Returns: an array with a row for each question.
        """
        return rows_of(await _Batches(self, questions, None, cache, "question").rows())

    embed_questions, aembed_questions = in_both_forms(_embed_questions)

    async def _embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """`embed` under LangChain's name."""
        vectors: list[list[float]] = (await self._embed(texts)).tolist()
        return vectors

    embed_documents, aembed_documents = in_both_forms(_embed_documents)

    async def _embed_query(self, text: str) -> list[float]:
        """Embed a question, under LangChain's name."""
        vector: list[float] = (await self._embed_questions([text]))[0].tolist()
        return vector

    embed_query, aembed_query = in_both_forms(_embed_query)

    @property
    def _retries(self) -> int:
        return 0 if client_retries(self.model) else self.max_retries


def rows_of(rows: Sequence[Row]) -> NDArray[np.float32]:
    """Return the vectors as one array, or raise the first error among them."""
    import numpy as np

    vectors = []
    for row in rows:
        if isinstance(row, ModelError):
            raise row
        vectors.append(row)
    return np.stack(vectors) if vectors else np.zeros((0, 0), dtype=np.float32)


def is_vector(row: Row) -> bool:
    """Whether it is a vector, and not an error."""
    return not isinstance(row, ModelError)


class _Batches:
    """The distinct texts of one call of `embed_each`, divided into requests."""

    def __init__(
        self,
        embedder: Embedder,
        texts: Sequence[str],
        places: Sequence[TextPosition] | None,
        cache: TextCache | None,
        kind: Kind,
    ) -> None:
        self._numbers: dict[str, int] = {}  # index of the first occurrence of each distinct text
        for number, text in enumerate(map(without_surrogates, texts)):
            self._numbers.setdefault(text, number)
        self._all, self._places = texts, places
        self._embedder, self._retries = embedder, embedder._retries
        self._model = with_batch(embedder.model, embedder.max_texts)
        is_parallel = is_concurrent(embedder.model)
        self._limits = limits(self._model, is_parallel, embedder.max_texts, embedder.max_tokens)
        questions = query_calls(self._model) if kind == "question" else None
        self._calls = questions or embed_calls(self._model)
        if questions:
            self._limits = Limits(1, 1, self._limits.tokens)
        kind = "question" if questions else "vector"
        names = vector_keys(embedder, list(self._numbers), kind) if cache else []
        keys = dict(zip(self._numbers, names, strict=False))
        self._answers = Answers(embedder.memory, kind, cache, keys, read_vector, vector_text)
        self._max_concurrency = embedder.max_concurrency if is_parallel else 1
        self._stop = Stop(self._max_concurrency)
        self._failures, self._count = 0, 0
        self._texts: list[str] = []

    async def rows(self) -> list[Row]:
        """Return the vector of each text, or the error instead."""
        row_of: dict[str, Row] = await self._answers.recall(list(self._numbers))
        self._texts = [text for text in self._numbers if text not in row_of]
        counts = token_counts(self._model, self._texts, self._limits.tokens)
        calls = requests(counts, self._limits)
        self._count = len(calls)
        self._allowed_failures = 2 * len(self._texts).bit_length()
        try:
            answers = await for_each(self._vectors, calls, self._max_concurrency)
        finally:
            self._answers.expect(self._texts)
        self._check_lengths(answers)
        row_of |= zip(self._texts, (row for answer in answers for row in answer), strict=True)
        return [row_of[text] for text in map(without_surrogates, self._all)]

    async def _vectors(self, request: Request) -> list[Row]:
        """Return the checked answer to a request, which is divided if the model fails on it."""
        _, start, end = request
        texts = self._texts[start:end]
        if self._stop.error is not None:
            failure = self._stop.error.about(f"not sent, because {self._stop.error}")
            return [failure] * len(texts)
        try:
            answer = await with_retries(*self._calls, texts, self._retries)
        except Exception as error:  # clients may raise anything
            failure = self._error(f"failed on {self._name(request)}", error)
        else:
            self._stop.count(None)
            return await self._check(request, answer)
        self._stop.count(failure)
        return await self._divide(request, failure)

    async def _divide(self, request: Request, failure: ModelError) -> list[Row]:
        """Send both halves of a batch that the model failed on, or return the failure."""
        number, start, end = request
        if not self._may_divide(failure, end - start):
            return [failure] * (end - start)
        middle = (start + end) // 2
        halves = [(number, start, middle), (number, middle, end)]
        return [row for half in halves for row in await self._vectors(half)]

    def _may_divide(self, failure: ModelError, count: int) -> bool:
        """Whether to search a batch for the text that caused the failure.

        The number of failures is limited, in case the model fails on every text.
        """
        self._failures += 1
        affects_all = failure.fatal or failure.transient
        return count > 1 and not affects_all and self._failures <= self._allowed_failures

    async def _check(self, request: Request, answer: Any) -> list[Row]:
        """Check the rows of an answer, and keep those that are valid."""
        _, start, end = request
        try:
            vectors, problems = as_vectors(
                answer, end - start, lambda row: self._text_name(start + row)
            )
        except BatchError as error:
            failure = self._error(f"{self._name(request)}: {error}")
            return await self._divide(request, failure)
        except ValueError as error:
            return [self._error(f"{self._name(request)}: {error}")] * (end - start)
        self._allowed_failures += 2
        rows: list[Row] = list(vectors)
        for row, problem in problems.items():
            rows[row] = self._error(f"{self._name(request)}: {problem}")
        pairs = zip(self._texts[start:end], rows, strict=True)
        await self._answers.keep({text: row for text, row in pairs if is_vector(row)})
        return rows

    def _check_lengths(self, answers: Sequence[Sequence[Row]]) -> None:
        """Raise ModelError if vectors of different calls differ in length."""
        lengths = [
            (number, len(row))
            for number, rows in enumerate(answers, 1)
            for row in rows
            if not isinstance(row, ModelError)
        ]
        for number, length in lengths:
            if length != lengths[0][1]:
                raise self._error(
                    f"answered call {number} with vectors of {length} numbers, and call "
                    f"{lengths[0][0]} with {lengths[0][1]}"
                )

    def _error(self, message: str, cause: Exception | None = None) -> ModelError:
        if isinstance(cause, ModelError):
            return cause
        return model_error(self._embedder.model, message, cause)

    def _name(self, request: Request) -> str:
        number, start, end = request
        name = f"call {number + 1} of {self._count}"
        if end - start == 1:
            return f"{name}, {self._text_name(start)}"
        if self._places is None:
            return f"{name} ({end - start} texts)"
        numbers = [self._numbers[text] for text in self._texts[start:end]]
        documents = [self._places[each][0] for each in numbers]
        return f"{name} ({end - start} texts of documents {min(documents)} to {max(documents)})"

    def _text_name(self, row: int) -> str:
        number = self._numbers[self._texts[row]]
        if self._places is None:
            return f"text {number}"
        document, offset = self._places[number]
        return f"text {number} (document {document}, offset {offset})"


def _embedder(value: Any) -> Embedder:
    return value if isinstance(value, Embedder) else Embedder(value)


def _load(value: Any) -> Embedder:
    if isinstance(value, str) and (name := HASHING_NAME.fullmatch(value)):
        value = HashingEmbeddings(dimensions=int(name["dimensions"]))
    embedder: Embedder = load_model(value, "embeddings", _KINDS, _embedder)
    return embedder


Embeddings = Annotated[Any, BeforeValidator(_load), PlainSerializer(stable_name, return_type=str)]
"""A field for an embedding model: any that `Embedder` accepts; its value is an `Embedder`."""
