"""Embedder: one way to embed texts, whichever framework the model comes from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

from rag_splitters.models.calling import (
    ModelError,
    abounded,
    acall,
    bounded,
    call,
    client_retries,
    model_error,
    run_async,
    sendable,
)
from rag_splitters.models.clients import (
    Request,
    async_embed_call,
    embed_call,
    is_awaitable,
    is_embedding_client,
    limits,
    requests,
    token_counts,
    with_batch,
)
from rag_splitters.models.describing import describe_model, portable, restored
from rag_splitters.models.fields import check_count, load_model, written
from rag_splitters.models.vectors import Place, as_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Embedder", "Embeddings"]

_KINDS = (
    "a LangChain Embeddings, a LlamaIndex BaseEmbedding or a callable list of texts -> list of "
    "vectors"
)


@dataclass(frozen=True, repr=False)
class Embedder:
    """Embeds many texts in few requests, and checks what comes back.

    Equal texts are embedded once. Lone surrogates, which no client can send, are replaced in what
    the model sees. The repr, the pickle and the errors hold no secret: a model with an API key is
    made again, when it is unpickled, with the key from its environment.

    Parameters:
        model: a LangChain `Embeddings`, a LlamaIndex `BaseEmbedding`, or a callable from a list of
            texts to a list of vectors, sync or async.
        max_texts: the most texts in one call; None: 512 for a callable, 16,384 for a framework's
            model, whose client sends them in batches of its own (LlamaIndex's default of 10 is
            raised to 100). What is awaited goes in these, so that they can go side by side.
        max_tokens: the most tokens in one request, but for a text that has more by itself; None:
            300,000, which is what OpenAI takes, and for a framework's model of which it is not
            known how many texts it sends, 8,000,000 in one call. Tokens are counted where the model
            is OpenAI's; for others bytes in UTF-8 are, of which no text has less than tokens.
        max_concurrency: the most calls that are awaited at once.
        max_retries: tries after the first on a rate limit, time-out, lost connection or failure of
            the server; only for models whose client does not retry by itself.

    Raises: TypeError for what is no model; ValueError for numbers that make no sense.

    >>> Embedder(lambda texts: [[float(len(text))] for text in texts]).embed(["one", "three"])
    array([[3.],
           [5.]], dtype=float32)
    """

    model: Any
    max_texts: int | None = None
    max_tokens: int | None = None
    max_concurrency: int = 4
    max_retries: int = 4

    def __post_init__(self) -> None:
        is_model = is_embedding_client(self.model) or callable(self.model)
        if isinstance(self.model, type) or not is_model:
            raise TypeError(f"embeddings must be {_KINDS}, got {describe_model(self.model)}")
        for name in ("max_texts", "max_tokens", "max_concurrency", "max_retries"):
            if (value := getattr(self, name)) is not None:
                check_count(value, name, 0 if name == "max_retries" else 1)

    @property
    def description(self) -> str:
        """The model's stable name."""
        return describe_model(self.model)

    def __repr__(self) -> str:
        return f"Embedder({self.description})"

    def __hash__(self) -> int:
        return hash(self.description)

    def __reduce__(self) -> tuple[Any, ...]:
        limits = (self.max_texts, self.max_tokens, self.max_concurrency, self.max_retries)
        return _unpickled, (portable(self.model), *limits)

    def embed(
        self, texts: Sequence[str], places: Sequence[Place] | None = None
    ) -> NDArray[np.float32]:
        """A row for each text.

        Parameters:
            texts: the texts, of any number of documents; none may be blank.
            places: document number and offset of each, for error messages.

        Raises: ModelError, which names the call and, where one is known, the text, for a model that
        fails or that answers with a wrong number of vectors, or with vectors of different lengths,
        of zeros, or with numbers that are not finite.
        """
        if self._is_async:
            return run_async(self.aembed(texts, places))
        work = _Work(self, texts, places, is_awaited=False)
        ask = embed_call(work.model)
        return work.joined(bounded(lambda request: work.answered(request, ask), work.requests, 1))

    async def aembed(
        self, texts: Sequence[str], places: Sequence[Place] | None = None
    ) -> NDArray[np.float32]:
        """`embed` without blocking the event loop, with several calls under way at once."""
        work = _Work(self, texts, places, is_awaited=True)
        ask = async_embed_call(work.model)

        async def answered(request: Request) -> NDArray[np.float32]:
            return await work.awaited(request, ask)

        return work.joined(await abounded(answered, work.requests, self.max_concurrency))

    @property
    def _is_async(self) -> bool:
        return is_awaitable(self.model) and not is_embedding_client(self.model)


class _Work:
    """The distinct texts of one `embed`, in requests."""

    def __init__(
        self,
        embedder: Embedder,
        texts: Sequence[str],
        places: Sequence[Place] | None,
        is_awaited: bool,
    ) -> None:
        first: dict[str, int] = {}
        self.rows: list[int] = []
        numbers: list[int] = []
        for number, text in enumerate(map(sendable, texts)):
            row = first.setdefault(text, len(first))
            self.rows.append(row)
            if row == len(numbers):
                numbers.append(number)
        self.texts, self.numbers, self.places = list(first), numbers, places
        self.embedder = embedder
        self.model = with_batch(embedder.model, embedder.max_texts)
        self.retries = 0 if client_retries(self.model) else embedder.max_retries
        kept = limits(self.model, is_awaited, embedder.max_texts, embedder.max_tokens)
        counts = token_counts(self.model, self.texts, kept.tokens)
        self.requests = requests(counts, kept)

    def answered(self, request: Request, ask: Callable[..., Any]) -> NDArray[np.float32]:
        _, start, end = request
        try:
            found = call(ask, self.texts[start:end], retries=self.retries)
            return self._checked(found, request)
        except Exception as error:  # whatever a client raises
            raise self._failed(error, request)  # noqa: B904  (it has its cause)

    async def awaited(
        self, request: Request, ask: Callable[..., Awaitable[Any]]
    ) -> NDArray[np.float32]:
        _, start, end = request
        try:
            found = await acall(ask, self.texts[start:end], retries=self.retries)
            return self._checked(found, request)
        except Exception as error:
            raise self._failed(error, request)  # noqa: B904  (it has its cause)

    def joined(self, answers: list[NDArray[np.float32]]) -> NDArray[np.float32]:
        """The rows of all answers, in the order of the texts."""
        import numpy as np

        if not answers:
            return np.zeros((0, 0), dtype=np.float32)
        for answer, (number, *_) in zip(answers, self.requests, strict=True):
            if answer.shape[1] != answers[0].shape[1]:
                raise model_error(
                    self.embedder.model,
                    f"answered call {number + 1} with vectors of {answer.shape[1]} numbers, and "
                    f"the first call with {answers[0].shape[1]}",
                )
        rows: NDArray[np.float32] = np.concatenate(answers)
        return rows if len(rows) == len(self.rows) else rows[self.rows]

    def _checked(self, found: Any, request: Request) -> NDArray[np.float32]:
        _, start, end = request

        def where(index: int) -> str:
            number = self.numbers[start + index]
            if self.places is None:
                return f"text {number}"
            document, offset = self.places[number]
            return f"text {number} (document {document}, offset {offset})"

        try:
            return as_vectors(found, end - start, where)
        except ValueError as error:
            raise model_error(self.embedder.model, f"{self._name(request)}: {error}") from None

    def _failed(self, error: Exception, request: Request) -> ModelError:
        if isinstance(error, ModelError):
            return error
        return model_error(self.embedder.model, f"failed on {self._name(request)}", error)

    def _name(self, request: Request) -> str:
        number, start, end = request
        said = f"call {number + 1} of {len(self.requests)} ({end - start} texts"
        if self.places is not None:
            documents = [self.places[self.numbers[row]][0] for row in range(start, end)]
            said += f" of documents {min(documents)} to {max(documents)}"
        return said + ")"


def _unpickled(model: Any, *limits: Any) -> Embedder:
    return Embedder(restored(model), *limits)


def _embedder(value: Any) -> Embedder:
    return value if isinstance(value, Embedder) else Embedder(value)


def _load(value: Any) -> Embedder:
    if isinstance(value, str) and value.startswith("HashingEmbeddings(dimensions="):
        from rag_splitters.models import HashingEmbeddings

        value = HashingEmbeddings(dimensions=int(value.partition("=")[2].rstrip(")")))
    embedder: Embedder = load_model(value, "embeddings", _KINDS, _embedder)
    return embedder


Embeddings = Annotated[
    Any,
    BeforeValidator(_load),
    PlainSerializer(lambda value: written(value), return_type=str),
]
"""A field that holds an embedding model: any that `Embedder` takes; its value is an `Embedder`."""
