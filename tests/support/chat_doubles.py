"""Chat models that answer from a script: as a function, in LangChain and in LlamaIndex."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

from langchain_core.language_models.chat_models import SimpleChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_openai import ChatOpenAI
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from pydantic import BaseModel, Field

from rag_splitters import Span
from tests.support.openai_server import OpenAIServer, message_of, post
from tests.support.splitting import asplit_texts

Script = Callable[[str], str]
SECRET = "sk-very-secret"


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
    api_key: str = SECRET

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
    api_key: str = SECRET

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="scripted")

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        self.prompts.append(prompt)
        return CompletionResponse(text=self.script(prompt))

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        raise NotImplementedError


class LlamaIndexChat(CustomLLM):
    """A LlamaIndex LLM over the same protocol, which does not retry by itself."""

    url: str

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="llama")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        answer = post(self.url, "chat/completions", {"messages": [{"content": prompt}]})
        return CompletionResponse(text=message_of(answer)["content"] or "", raw=answer)

    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
        raise NotImplementedError


def doubles(plain: Script, structured: Script) -> list[Any]:
    """A model of each kind; those of the frameworks answer with the JSON of a schema."""
    functions = [plain, Function(plain), AsyncFunction(plain)]
    return [*functions, LangChainDouble(script=structured), LlamaIndexDouble(script=structured)]


def check_models_agree(kind: Any, plain: Script, structured: Script, text: str) -> list[Span]:
    """The spans of a chunker that asks a model: the same from every kind, sync and async."""
    results = []
    for llm in doubles(plain, structured):
        chunker = kind(llm=llm)
        spans = chunker.spans(text)
        assert asyncio.run(asplit_texts(chunker, [text, "", text])) == [spans, [], spans]
        results.append(spans)
    assert all(spans == results[0] for spans in results)
    return results[0]


def asked_of_openai(kind: Any, answers: Script, text: str) -> tuple[list[Span], list[Any]]:
    """The spans that the OpenAI client's answers make, and the bodies of its requests."""
    with OpenAIServer(answers) as server:
        chunker = kind(llm=ChatOpenAI(model="gpt-4o", base_url=server.url, api_key=SECRET))
        spans = chunker.spans(text)
    assert "very-secret" not in repr(chunker)
    return spans, [request["body"] for request in server.requests]


def part(prompt: str, name: str) -> str:
    """What a prompt shows between the first tags of a name."""
    return prompt.partition(f"<{name}>\n")[2].partition(f"\n</{name}>")[0]


def sentences_in(prompt: str) -> list[str]:
    """The numbered sentences that a prompt shows."""
    shown = part(prompt, "sentences")
    return [line.partition("] ")[2] for line in re.findall(r"(?m)^\[\d+\].*$", shown)]


def verdict(value: object) -> str:
    """How a judge answers."""
    return json.dumps({"reason": "It is.", "verdict": value})
