"""Embedder: one way to embed texts, whichever framework the model comes from."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import BeforeValidator, PlainSerializer

from rag_splitters.calls import arun, run
from rag_splitters.fields import whole_number
from rag_splitters.models.calling import client_retries, for_each, retrying, run_async
from rag_splitters.models.clients import (
    blocks_when_awaited,
    embed_calls,
    is_awaitable,
    is_embedding_client,
    query_calls,
    with_batch,
)
from rag_splitters.models.describing import describe_model, load_model, stable_name
from rag_splitters.models.errors import ModelError, model_error
from rag_splitters.models.hashing import HashingEmbeddings
from rag_splitters.models.limits import Request, limits, requests, token_counts
from rag_splitters.models.pickling import ModelHolder
from rag_splitters.models.validating import as_vectors
from rag_splitters.text.surrogates import without_surrogates

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Place: TypeAlias = tuple[int, int]
"""The position of a text: the number of its document, and the offset in it."""

_KINDS = (
    "a LangChain Embeddings, a LlamaIndex BaseEmbedding, a callable list of texts -> list of "
    "vectors, or a function without parameters that returns one of them"
)


@dataclass(frozen=True, repr=False)
class Embedder(ModelHolder):
    """Embeds many texts in few requests, and checks the vectors.

    Equal texts are embedded once. Lone surrogates, which no client can send, are replaced before
    the model sees them. The repr, the pickle and the errors hold no secret: unpickling creates a
    model with an API key anew, with the key from the environment and with the same server. Pass a
    factory if a model cannot be pickled, for example because it has a proxy. The methods with
    LangChain's names make it an embedding model for LangChain's stores.

    Parameters:
        model: a LangChain `Embeddings`, a LlamaIndex `BaseEmbedding`, or a callable from a list of
            texts to a list of vectors, sync or async. A function without parameters is a factory,
            which is called here, and again where a pickle is loaded.
        max_texts: maximum number of texts in one call. None: 512 for a callable, and 16,384 for a
            framework's model, whose client divides them into batches of its own (LlamaIndex's
            default batch of 10 is raised to 100). Asynchronous calls are made in these batches, so
            that several can be under way at once.
        max_tokens: maximum number of tokens in one request; a longer text goes alone. None:
            300,000, which is OpenAI's limit, and 8,000,000 in one call for a framework's model that
            does not say how many texts it sends. Tokens are counted for OpenAI's models. For
            others, bytes in UTF-8 are, because no text has more tokens than bytes.
        max_concurrency: maximum number of calls under way at once, where they are made so.
        max_retries: how often a call is repeated after a rate limit, a time-out, a lost connection
            or a failure of the server; only for models whose client does not retry by itself.

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
        is_model = is_embedding_client(self.model) or callable(self.model)
        if isinstance(self.model, type) or not is_model:
            raise TypeError(f"embeddings must be {_KINDS}, got {describe_model(self.model)}")
        for name in ("max_texts", "max_tokens", "max_concurrency", "max_retries"):
            if (value := getattr(self, name)) is not None:
                whole_number(value, name, 0 if name == "max_retries" else 1)

    __hash__ = ModelHolder.__hash__

    @property
    def has_questions(self) -> bool:
        """Whether the model embeds questions by a method of its own."""
        return query_calls(self.model) is not None

    def embed(
        self,
        texts: Sequence[str],
        places: Sequence[Place] | None = None,
        *,
        side_by_side: bool = False,
    ) -> NDArray[np.float32]:
        """A row for each text.

        Parameters:
            texts: the texts, of any number of documents; none may be blank.
            places: document number and offset of each text, for error messages.
            side_by_side: make several calls at once, in threads, as `aembed` does.

        Raises ModelError, which names the call and, if known, the text, if the model fails, or if
        it answers with a wrong number of vectors or with vectors of different lengths, of zeros, or
        of numbers that are not finite.
        """
        return self._run(self._embed(texts, places, side_by_side or self._is_async))

    async def aembed(
        self,
        texts: Sequence[str],
        places: Sequence[Place] | None = None,
        *,
        side_by_side: bool = False,
    ) -> NDArray[np.float32]:
        """`embed` without blocking the event loop, with several calls under way at once.

        A model that would block it is called in one thread or, `side_by_side`, in several.
        """
        is_awaited = not blocks_when_awaited(self.model, "aget_text_embedding_batch")
        return await arun(self._embed(texts, places, is_awaited or side_by_side))

    def embed_questions(self, questions: Sequence[str]) -> NDArray[np.float32]:
        """A row for each question, by the model's own method for questions if it has one."""
        return self._run(self._embed_questions(questions, is_awaited=self._is_async))

    async def aembed_questions(self, questions: Sequence[str]) -> NDArray[np.float32]:
        """`embed_questions` without blocking the event loop."""
        is_awaited = not blocks_when_awaited(self.model, "aget_query_embedding")
        return await arun(self._embed_questions(questions, is_awaited))

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """`embed` under LangChain's name."""
        vectors: list[list[float]] = self.embed(texts).tolist()
        return vectors

    async def aembed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """`aembed` under LangChain's name."""
        vectors: list[list[float]] = (await self.aembed(texts)).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question, under LangChain's name."""
        vector: list[float] = self.embed_questions([text])[0].tolist()
        return vector

    async def aembed_query(self, text: str) -> list[float]:
        """`embed_query` without blocking the event loop."""
        vector: list[float] = (await self.aembed_questions([text]))[0].tolist()
        return vector

    def _run(self, work: Coroutine[Any, Any, NDArray[np.float32]]) -> NDArray[np.float32]:
        return run_async(arun(work)) if self._is_async else run(work)

    async def _embed(
        self, texts: Sequence[str], places: Sequence[Place] | None, is_concurrent: bool
    ) -> NDArray[np.float32]:
        batches = _Batches(self, texts, places, is_concurrent)
        limit = self.max_concurrency if is_concurrent else 1
        return batches.join(await for_each(batches.vectors, batches.requests, limit))

    async def _embed_questions(
        self, questions: Sequence[str], is_awaited: bool
    ) -> NDArray[np.float32]:
        if not questions or (calls := query_calls(self.model)) is None:
            return await self._embed(questions, None, is_awaited)
        retries = self._retries

        async def vector(question: str) -> Any:
            try:
                return await retrying(*calls, without_surrogates(question), retries=retries)
            except Exception as error:  # whatever a client raises
                raise model_error(self.model, "failed on a question", error)  # noqa: B904

        vectors = await for_each(vector, questions, self.max_concurrency if is_awaited else 1)
        try:
            return as_vectors(
                vectors, len(questions), lambda row: f"the question {questions[row]!r}"
            )
        except ValueError as error:
            raise model_error(self.model, str(error)) from None

    @property
    def _retries(self) -> int:
        return 0 if client_retries(self.model) else self.max_retries

    @property
    def _is_async(self) -> bool:
        """Whether the model can only be awaited."""
        return is_awaitable(self.model) and not is_embedding_client(self.model)


class _Batches:
    """The distinct texts of one `embed`, divided into requests."""

    def __init__(
        self,
        embedder: Embedder,
        texts: Sequence[str],
        places: Sequence[Place] | None,
        is_concurrent: bool,
    ) -> None:
        row_of: dict[str, int] = {}
        self.rows: list[int] = []
        numbers: list[int] = []  # of the first text in each row
        for number, text in enumerate(map(without_surrogates, texts)):
            row = row_of.setdefault(text, len(row_of))
            self.rows.append(row)
            if row == len(numbers):
                numbers.append(number)
        self.texts, self.numbers, self.places = list(row_of), numbers, places
        self.embedder, self.retries = embedder, embedder._retries
        model = with_batch(embedder.model, embedder.max_texts)
        self.calls = embed_calls(model)
        bounds = limits(model, is_concurrent, embedder.max_texts, embedder.max_tokens)
        self.requests = requests(token_counts(model, self.texts, bounds.tokens), bounds)

    async def vectors(self, request: Request) -> NDArray[np.float32]:
        """The checked answer to a request."""
        _, start, end = request
        texts = self.texts[start:end]
        try:
            answer = await retrying(*self.calls, texts, retries=self.retries)
        except Exception as error:  # whatever a client raises
            raise self._error(f"failed on {self._name(request)}", error)  # noqa: B904
        try:
            return as_vectors(answer, len(texts), lambda row: self._text_name(start + row))
        except ValueError as error:
            raise self._error(f"{self._name(request)}: {error}") from None

    def join(self, answers: list[NDArray[np.float32]]) -> NDArray[np.float32]:
        """The rows of all answers, in the order of the texts."""
        import numpy as np

        if not answers:
            return np.zeros((0, 0), dtype=np.float32)
        for answer, (number, *_) in zip(answers, self.requests, strict=True):
            if answer.shape[1] != answers[0].shape[1]:
                raise self._error(
                    f"answered call {number + 1} with vectors of {answer.shape[1]} numbers, and "
                    f"the first call with {answers[0].shape[1]}",
                )
        rows: NDArray[np.float32] = np.concatenate(answers)
        return rows if len(rows) == len(self.rows) else rows[self.rows]

    def _error(self, message: str, cause: Exception | None = None) -> ModelError:
        if isinstance(cause, ModelError):
            return cause
        return model_error(self.embedder.model, message, cause)

    def _name(self, request: Request) -> str:
        number, start, end = request
        name = f"call {number + 1} of {len(self.requests)} ({end - start} texts"
        if self.places is not None:
            documents = [self.places[self.numbers[row]][0] for row in range(start, end)]
            name += f" of documents {min(documents)} to {max(documents)}"
        return name + ")"

    def _text_name(self, row: int) -> str:
        number = self.numbers[row]
        if self.places is None:
            return f"text {number}"
        document, offset = self.places[number]
        return f"text {number} (document {document}, offset {offset})"


def _embedder(value: Any) -> Embedder:
    return value if isinstance(value, Embedder) else Embedder(value)


def _load(value: Any) -> Embedder:
    if isinstance(value, str) and value.startswith("HashingEmbeddings(dimensions="):
        value = HashingEmbeddings(dimensions=int(value.partition("=")[2].rstrip(")")))
    embedder: Embedder = load_model(value, "embeddings", _KINDS, _embedder)
    return embedder


Embeddings = Annotated[Any, BeforeValidator(_load), PlainSerializer(stable_name, return_type=str)]
"""A field for an embedding model: any that `Embedder` takes; its value is an `Embedder`."""
