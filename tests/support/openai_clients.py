"""Options of OpenAI's clients, and a LlamaIndex model that does not retry by itself."""

from __future__ import annotations

from typing import Any

import httpx
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback

from tests.support.openai_server import OpenAIServer

SECRET = "sk-very-secret-0123456789"
TIMEOUT = 0.6


def openai_options(server: OpenAIServer, **others: Any) -> dict[str, Any]:
    """Options of LangChain's clients for OpenAI."""
    usual = {"model": "m", "base_url": server.url, "api_key": SECRET, "timeout": TIMEOUT}
    return {**usual, **others}


def azure_options(server: OpenAIServer, **others: Any) -> dict[str, Any]:
    """Options of LangChain's clients for Azure."""
    usual = {"azure_endpoint": server.root, "azure_deployment": "m", "api_version": "2024-10-21"}
    return {**usual, "api_key": SECRET, "timeout": TIMEOUT, **others}


def message_of(answer: dict[str, Any]) -> Any:
    return answer["choices"][0]["message"]


def post(url: str, path: str, content: dict[str, Any]) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {SECRET}"}
    response = httpx.post(f"{url}/{path}", json=content, headers=headers, timeout=TIMEOUT)
    response.raise_for_status()
    answer: dict[str, Any] = response.json()
    return answer


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
