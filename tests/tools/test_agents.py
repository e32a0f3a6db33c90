"""The tools in the frameworks' own agents, whose models follow a script."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from llama_index.core import Document as LlamaIndexDocument
from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.tools import ToolSelection

from rag_splitters import langchain, llama_index

TEXT = "# Lamps\n\nThe lamp is in the cellar.\n\nIt was lit by Ada. She blew it out at ten.\n"
QUESTION = "Who blew out the lamp?"


def next_call(answers: Sequence[str]) -> tuple[str, dict[str, Any]] | str:
    """Search, then expand the passage, then read a document that does not exist; then answer."""
    if not answers:
        return "search", {"question": QUESTION, "max_tokens": 300}
    place = re.search(r'document="([^"]+)", start=(\d+), end=(\d+)', answers[0])
    assert place, answers[0]
    if len(answers) == 1:
        arguments = {"document": place[1], "start": int(place[2]), "end": int(place[2])}
        return "expand", arguments
    if len(answers) == 2:
        return "read", {"document": "lamp.md"}
    nearest = re.search(r'nearest ids: "([^"]+)"', answers[2])
    assert nearest, answers[2]
    return f"Ada did: see {nearest[1]}."


class ScriptedChat(BaseChatModel):
    """A LangChain chat model that calls tools by the script."""

    tool_names: list[str] = []  # noqa: RUF012

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.model_copy(update={"tool_names": [tool.name for tool in tools]})

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        answers = [str(each.content) for each in messages if isinstance(each, ToolMessage)]
        step = next_call(answers)
        if isinstance(step, str):
            message = AIMessage(step)
        else:
            assert step[0] in self.tool_names
            call = {"name": step[0], "args": step[1], "id": f"call{len(answers)}"}
            message = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])


@pytest.mark.parametrize("is_async", [False, True])
async def test_langchain_agent_uses_the_tools(is_async: bool) -> None:
    agents = pytest.importorskip("langchain.agents")
    retriever = langchain.parent_document_retriever([Document(TEXT, id="lamps.md")])
    agent = agents.create_agent(ScriptedChat(), retriever.as_tools())
    question = {"messages": [("user", QUESTION)]}
    state = await agent.ainvoke(question) if is_async else agent.invoke(question)
    answers = [each for each in state["messages"] if isinstance(each, ToolMessage)]
    assert [each.name for each in answers] == ["search", "expand", "read"]
    assert "She blew it out" in answers[0].content
    assert state["messages"][-1].content == "Ada did: see lamps.md."


class ScriptedLLM(FunctionCallingLLM):
    """A LlamaIndex LLM that calls tools by the script."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True, is_chat_model=True)

    def _prepare_chat_with_tools(self, tools: Any, **kwargs: Any) -> dict[str, Any]:
        history = kwargs.get("chat_history") or []
        return {"messages": history}

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        answers = [str(each.content) for each in messages if each.role.value == "tool"]
        step = next_call(answers)
        raw = {"step": step, "number": len(answers)}
        text = step if isinstance(step, str) else ""
        return ChatResponse(message=ChatMessage(role="assistant", content=text), raw=raw)

    async def astream_chat(
        self, messages: Sequence[ChatMessage], **kwargs: Any
    ) -> AsyncGenerator[ChatResponse, None]:
        async def stream() -> AsyncGenerator[ChatResponse, None]:
            yield await self.achat(messages)

        return stream()

    def get_tool_calls_from_response(
        self, response: ChatResponse, **kwargs: Any
    ) -> list[ToolSelection]:
        raw: Any = response.raw
        if isinstance(raw["step"], str):
            return []
        name, arguments = raw["step"]
        number = f"call{raw['number']}"
        return [ToolSelection(tool_id=number, tool_name=name, tool_kwargs=arguments)]

    def chat(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    complete = stream_chat = stream_complete = acomplete = astream_complete = chat


async def test_llama_index_agent_uses_the_tools() -> None:
    documents = [LlamaIndexDocument(id_="lamps.md", text=TEXT)]
    retriever = llama_index.parent_document_retriever(documents)
    agent = FunctionAgent(tools=retriever.as_tools(), llm=ScriptedLLM())
    handler = agent.run(user_msg=QUESTION)
    results = [each async for each in handler.stream_events() if isinstance(each, ToolCallResult)]
    assert [each.tool_name for each in results] == ["search", "expand", "read"]
    assert not any(each.tool_output.is_error for each in results)
    assert "She blew it out" in results[0].tool_output.content
    assert str(await handler) == "Ada did: see lamps.md."
