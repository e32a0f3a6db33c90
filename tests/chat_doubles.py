"""Chat models that answer from a script: as a function, in LangChain and in LlamaIndex."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from langchain_core.language_models.chat_models import SimpleChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableLambda
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from pydantic import BaseModel, Field

Script = Callable[[str], str]


class Function:
    """A plain callable that counts its calls."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return self.script(prompt)


class AsyncFunction(Function):
    """The same, to be awaited."""

    async def __call__(self, prompt: str) -> str:  # type: ignore[override]
        return super().__call__(prompt)


class LangChainDouble(SimpleChatModel):
    """A LangChain chat model, whose structured output is the script's JSON."""

    script: Any
    prompts: list[str] = Field(default_factory=list)
    api_key: str = "sk-very-secret"

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _call(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> str:
        prompt = str(messages[-1].content)
        self.prompts.append(prompt)
        return str(self.script(prompt))

    def with_structured_output(self, schema: Any, **kwargs: Any) -> Runnable[Any, Any]:
        def answer(prompt: str) -> BaseModel:
            parsed: BaseModel = schema.model_validate_json(self.invoke(prompt).text)
            return parsed

        return RunnableLambda(answer)


class LlamaIndexDouble(CustomLLM):
    """A LlamaIndex LLM, whose structured output goes through the text completion."""

    script: Any
    prompts: list[str] = Field(default_factory=list)
    api_key: str = "sk-very-secret"

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="scripted")

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        self.prompts.append(prompt)
        return CompletionResponse(text=self.script(prompt))

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        raise NotImplementedError


def sentences_in(prompt: str) -> list[str]:
    """The numbered sentences that a prompt shows."""
    shown = prompt.partition("<sentences>\n")[2].partition("\n</sentences>")[0]
    return [line.partition("] ")[2] for line in re.findall(r"(?m)^\[\d+\].*$", shown)]
