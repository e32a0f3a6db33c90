"""Chat models that answer from a script: as a function, in LangChain, in LlamaIndex, over HTTP."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
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


@contextmanager
def chat_server(script: Script) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """An OpenAI-compatible server on loopback: its address, and the requests that it got."""
    requests: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # noqa: N802
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            requests.append(asked)
            message = {"role": "assistant", "content": script(asked["messages"][-1]["content"])}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            answer = {
                "id": "1",
                "object": "chat.completion",
                "created": 0,
                "model": "scripted",
                "choices": [choice],
                "usage": usage,
            }
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", requests
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
