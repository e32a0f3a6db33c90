"""ModelError: what went wrong with which model, without its secrets."""

from __future__ import annotations

from typing import Any

from rag_splitters.models.describing import describe_model
from rag_splitters.models.secrets import without_secrets


class ModelError(ValueError):
    """A model failed, or its answer cannot be used.

    Parameters:
        message: what happened to which model.
        model: the model's name, as `describe_model` gives it.
        index: the number of the text or prompt, from 0, if known.
        answered: whether the model answered, but not with what it was asked for.
        kind: the class name of the client's exception, if there was one.

    The client's exception is the `__cause__`, unless it contains a secret.
    """

    def __init__(
        self,
        message: str,
        *,
        model: str = "",
        index: int | None = None,
        answered: bool = False,
        kind: str = "",
    ) -> None:
        super().__init__(message)
        self.model = model
        self.index = index
        self.answered = answered
        self.kind = kind


def model_error(
    model: Any, problem: str, cause: BaseException | None = None, index: int | None = None
) -> ModelError:
    """A `ModelError` for this model, with its client's message but without its secrets."""
    name = describe_model(model)
    kind = "" if cause is None else type(cause).__name__
    details = "" if cause is None else f": {kind}: {str(cause)[:500]}"
    is_named = hasattr(model, "__qualname__") or type(model).__name__ in name
    label = name if is_named else f"{name} ({type(model).__name__})"
    message = without_secrets(f"{label} {problem}{details}", model)
    answered = cause is None or isinstance(cause, ValueError)  # what parsers and pydantic raise
    error = ModelError(message, model=name, index=index, answered=answered, kind=kind)
    if cause is not None:
        texts = str(cause) + repr(cause)
        error.__cause__ = cause if without_secrets(texts, model) == texts else None
        error.__suppress_context__ = True
    return error
