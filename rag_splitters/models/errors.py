"""ModelError: the error of a model, without its secrets."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from rag_splitters.errors import InputError
from rag_splitters.models.describing import describe_model
from rag_splitters.models.faults import is_fatal, is_transient
from rag_splitters.models.secrets import without_secrets


class ModelError(InputError):
    """A model failed, or its answer is invalid.

    Parameters:
        message: what went wrong with which model.
        model: the model's name, as `describe_model` returns it.
        index: the number of the text, prompt or document, from 0, if known.
        answered: whether the model answered, but with something invalid.
        kind: the class name of the client's exception, if there was one.
        fatal: whether all other requests would fail, too, because the key is rejected, the quota is
            used up, or there is no such model. No more requests are sent then.
        transient: whether another attempt may succeed.

    The client's exception is the `__cause__`, unless it contains a secret. If several documents
    were split, the error holds the chunks of those that succeeded in `results` (a list of spans for
    each document, None for one that failed) and all failures in `failures`.
    """

    results: Sequence[Any] = ()
    failures: Sequence[ModelError] = ()

    def __init__(
        self,
        message: str,
        *,
        model: str = "",
        index: int | None = None,
        answered: bool = False,
        kind: str = "",
        fatal: bool = False,
        transient: bool = False,
    ) -> None:
        super().__init__(message)
        self.model = model
        self.index = index
        self.answered = answered
        self.kind = kind
        self.fatal = fatal
        self.transient = transient

    def about(self, message: str, index: int | None = None) -> ModelError:
        """Return the same error with another message, about the document or text of this number."""
        error = copy.copy(self)
        error.args = (message,)
        error.index = self.index if index is None else index
        error.__cause__ = self.__cause__
        return error


def model_error(model: Any, problem: str, cause: BaseException | None = None) -> ModelError:
    """Create a `ModelError` for this model, with its client's message but without secrets."""
    name = describe_model(model)
    kind = "" if cause is None else type(cause).__name__
    details = "" if cause is None else f": {kind}: {without_secrets(str(cause), model)[:500]}"
    is_named = hasattr(model, "__qualname__") or type(model).__name__ in name
    label = name if is_named else f"{name} ({type(model).__name__})"
    error = ModelError(
        without_secrets(f"{label} {problem}{details}", model),
        model=name,
        answered=cause is None or isinstance(cause, ValueError),  # parsers and pydantic raise it
        kind=kind,
        fatal=cause is not None and is_fatal(cause),
        transient=cause is not None and is_transient(cause),
    )
    if cause is not None:
        texts = "\n".join(str(each) + repr(each) for each in _traceback_errors(cause))
        error.__cause__ = cause if without_secrets(texts, model) == texts else None
        error.__suppress_context__ = True
    return error


def _traceback_errors(error: BaseException) -> list[BaseException]:
    """Return the error and those that a traceback would show with it."""
    errors: list[BaseException] = []
    each: BaseException | None = error
    while each is not None and each not in errors and len(errors) < 20:
        errors.append(each)
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
    return errors
