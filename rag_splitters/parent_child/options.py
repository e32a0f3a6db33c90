"""The options of a query, each declared once: its name, default, description and check.

Both retrievers, single calls, the command line and the documentation take them from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    create_model,
)
from pydantic.fields import FieldInfo
from pydantic_core.core_schema import ValidationInfo
from typing_extensions import TypedDict

from rag_splitters.errors import InputError
from rag_splitters.parameters.checks import whole_number
from rag_splitters.parameters.descriptions import field_descriptions
from rag_splitters.parameters.messages import describe_value, plain_errors

Retrieve = Literal["passages", "parents", "children"]
SearchType = Literal["similarity", "similarity_score_threshold", "mmr", "hybrid"]

MAX_RESULTS = 1_000_000
"""Maximum number of results, and of children to choose from."""
DEFAULT_K = 4


OPTION_NAMES = {
    "k": "similarity_top_k",
    "score_threshold": "similarity_cutoff",
    "lambda_mult": "mmr_threshold",
    "fetch_k": "mmr_prefetch_k",
}
"""Options of a query that have another name in LlamaIndex."""
LLAMA_INDEX_NAMES = OPTION_NAMES | {
    "embeddings": "embed_model",
    "vectorstore": "vector_store",
    "child_splitter": "child_parser",
    "parent_splitter": "parent_parser",
}
"""All parameters of LangChain's retriever that have another name in LlamaIndex's."""


def _check_count(value: Any, info: ValidationInfo) -> Any:
    return None if value is None else whole_number(value, info.field_name or "", 1)


def _check_limit(value: int, info: ValidationInfo) -> int:
    if value > MAX_RESULTS:
        raise InputError(f"{info.field_name} must be at most {MAX_RESULTS:,}, got {value:,}")
    return value


Count = Annotated[int, BeforeValidator(_check_count)]
"""A field for a whole number of at least 1."""
LimitedCount = Annotated[Count, AfterValidator(_check_limit)]
_Plain = BeforeValidator(lambda value: value.value if isinstance(value, Enum) else value)


class QueryOptions(BaseModel):
    """How a question is answered."""

    model_config = ConfigDict(extra="forbid")

    k: LimitedCount | None = None
    """Maximum number of results. Passages have 500 characters each on average, and at least as many
    together as the `k` best children. None: 4; with `max_tokens`, as many as fit."""
    retrieve: Retrieve = "parents"
    """What a query returns: "parents"; "children"; or "passages", which are the best children,
    joined with neighbours in the document as the budget allows. No two passages share text."""
    max_tokens: Count | None = None
    """Maximum number of tokens in all results of a query together. None: no limit. Results that do
    not fit are shortened to whole sentences or left out, but one is always returned."""
    search_type: Annotated[SearchType, _Plain] = "similarity"
    """How to find children: "similarity" of vectors; "similarity_score_threshold", similarity with
    a minimum; "mmr", maximal marginal relevance; or "hybrid", similarity and keywords (BM25)."""
    score_threshold: FiniteFloat | None = None
    """Minimum score of the children to use; None: no minimum."""
    fetch_k: LimitedCount = 20
    """For "mmr": the number of children to choose from."""
    lambda_mult: float = Field(default=0.5, ge=0.0, le=1.0)
    """For "mmr": 1 for the nearest children, 0 for the most diverse."""
    max_children: Count | None = None
    """Number of children to use; without `k`, every result that they lead to is returned. None: as
    many as the results need."""
    rerank_k: Count | None = None
    """Number of children to pass to the reranker; None: 100."""


class QueryKeywords(TypedDict, total=False):
    """The types of the options that have one name in both frameworks, for type checkers."""

    max_tokens: int | None
    max_children: int | None
    rerank_k: int | None


def rename_options(class_name: str, names: Mapping[str, str]) -> type[BaseModel]:
    """Return a model of the same options, some of them under the names of another framework.

    >>> rename_options("Options", {"k": "similarity_top_k"})(similarity_top_k=3).similarity_top_k
    3
    """
    descriptions = field_descriptions(QueryOptions)
    fields: dict[str, Any] = {}
    for name, field in QueryOptions.model_fields.items():
        described = FieldInfo.merge_field_infos(field, description=descriptions[name])
        fields[names.get(name, name)] = (field.annotation, described)
    config = ConfigDict(extra="forbid")
    options: type[BaseModel] = create_model(
        class_name, __config__=config, __module__=__name__, **fields
    )
    lines = [f"    {names.get(name, name)}: {text}" for name, text in descriptions.items()]
    options.__doc__ = "\n".join([str(QueryOptions.__doc__), "", "Parameters:", *lines])
    return options


class Query(QueryOptions):
    """A question and its options."""

    text: str

    @classmethod
    def of(cls, text: str, options: Mapping[str, Any]) -> Query:
        """Check the options, which may have been set since the retriever was made."""
        if not isinstance(text, str):
            raise InputError(f"the question must be a string, got {describe_value(text)}")
        with plain_errors(QueryOptions):
            return cls(text=text, **options)

    @property
    def limit(self) -> int:
        """How many results are wanted."""
        budget = None if self.max_tokens is None else min(self.max_tokens, MAX_RESULTS)
        choices = (self.k, self.max_children, budget, DEFAULT_K)
        return next(choice for choice in choices if choice is not None)
