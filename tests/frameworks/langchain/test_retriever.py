"""`Mem0Retriever`, called directly, in chains, graphs and tools; and LangChain's own suite for retrievers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, Runnable, RunnableConfig, RunnableLambda, RunnablePassthrough
from langchain_core.tools import create_retriever_tool
from langchain_tests.integration_tests import RetrieversIntegrationTests
from langgraph.graph import START, MessagesState, StateGraph
from typing_extensions import TypedDict

from mem0_core import AsyncMemory, Memory, QueryError, Scope, ScopeError
from mem0_langchain import Mem0Compressor, Mem0Retriever
from tests.frameworks.langchain.fakes import Chatbot, calls
from tests.support import open_memory


class Context(TypedDict, total=False):
    user_id: str


ANA: RunnableConfig = {"configurable": {"user_id": "ana"}}


@pytest.fixture
def memory(memory: Memory) -> Memory:
    memory.add("I drink green tea.", user_id="ana", metadata={"topic": "drinks"})
    memory.add("I live in Porto.", user_id="ana", run_id="1", metadata={"topic": "home", "score": 7})
    memory.add("I drink black tea.", user_id="ben")
    return memory


class TestMem0RetrieverStandard(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _five_memories(self, tmp_path: Path) -> Iterator[None]:
        with open_memory(tmp_path) as self.memory:
            for tea in ("green", "black", "white", "red", "yellow"):
                self.memory.add(f"Ana drinks {tea} tea.", user_id="ana")
            yield

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return Mem0Retriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"memory": self.memory, "user_id": "ana"}

    @property
    def retriever_query_example(self) -> str:
        return "Which tea does Ana drink?"


def both(retriever: Runnable[Any, Any], query: Any, config: RunnableConfig | None = None, **options: Any) -> Any:
    """What sync and async code get, which is the same."""
    found = retriever.invoke(query, config, **options)
    assert asyncio.run(retriever.ainvoke(query, config, **options)) == found
    return found


def contents(documents: list[Document]) -> list[str]:
    return [document.page_content for document in documents]


def test_a_document_says_all_there_is_to_know(memory: Memory) -> None:
    (best, _) = both(Mem0Retriever(memory=memory), "Where do I live?", ANA)
    stored = memory.get_all(user_id="ana", run_id="1")["results"][0]
    assert best.page_content == "I live in Porto."
    assert best.id == stored["id"]
    assert 0 < best.metadata["score"] <= 1
    assert best.metadata["created_at"] == stored["created_at"]
    assert (best.metadata["user_id"], best.metadata["run_id"], best.metadata["role"]) == ("ana", "1", "user")
    assert best.metadata["metadata"] == {"topic": "home", "score": 7}  # cannot pass for a score


def test_named_speakers_are_told(memory: Memory) -> None:
    memory.add({"role": "user", "name": "Ana", "content": "I sing."}, user_id="ana", infer=False)
    assert both(Mem0Retriever(memory=memory, k=1), "I sing", ANA)[0].metadata["actor_id"] == "Ana"


def test_options_in_the_constructor_and_in_the_call(memory: Memory) -> None:
    retriever = Mem0Retriever(memory=memory, k=1, user_id="ana")
    assert contents(both(retriever, "Which tea?")) == ["I drink green tea."]
    assert len(both(retriever, "Which tea?", k=2)) == 2
    assert contents(both(retriever, "Which tea?", filters={"topic": "home"})) == ["I live in Porto."]
    assert both(retriever, "Which tea?", threshold=0.99) == []
    homes = Mem0Retriever(memory=memory, user_id="ana", filters={"topic": "home"}, threshold=0.0)
    assert contents(both(homes, "Which tea?")) == ["I live in Porto."]
    with pytest.raises(TypeError, match="top"):
        retriever.invoke("Which tea?", top=3)
    with pytest.raises(QueryError):
        retriever.invoke("")


@pytest.mark.parametrize("config", [ANA, {**ANA, "tags": ["x"]}, {"user_id": "ana"}])
def test_configurable_names_the_user(memory: Memory, config: RunnableConfig) -> None:
    retriever = Mem0Retriever(memory=memory)
    assert set(contents(both(retriever, "tea", config))) == {"I drink green tea.", "I live in Porto."}
    assert set(contents(both(retriever.with_config(config), "tea"))) == {"I drink green tea.", "I live in Porto."}
    assert retriever.batch(["tea"], config) == [retriever.invoke("tea", config)]


def test_no_scope_is_an_error(memory: Memory) -> None:
    retriever = Mem0Retriever(memory=memory)
    unnamed: list[Any] = [None, {}, {"configurable": {}}, {"configurable": {"user_id": None, "thread_id": "1"}}]
    for config in unnamed:
        with pytest.raises(ScopeError, match="no user_id, agent_id or run_id is given"):
            retriever.invoke("tea", config)
        with pytest.raises(ScopeError, match="no user_id, agent_id or run_id is given"):
            asyncio.run(retriever.ainvoke("tea", config))
    with pytest.raises(ScopeError, match="empty"):
        retriever.invoke("tea", {"configurable": {"user_id": ""}})
    with pytest.raises(ScopeError, match="must be a string"):
        retriever.invoke("tea", {"configurable": {"user_id": 7}})


def test_a_run_narrows_the_constructors_scope_and_never_widens_it(memory: Memory) -> None:
    fixed = Mem0Retriever(memory=memory, user_id="ana")
    assert contents(both(fixed, "tea", {"configurable": {"run_id": "1"}})) == ["I live in Porto."]
    with pytest.raises(ScopeError, match="'ana' and the run user_id='ben'"):
        fixed.invoke("tea", {"configurable": {"user_id": "ben"}})
    with pytest.raises(ScopeError, match="all its users"):
        Mem0Retriever(memory=memory, agent_id="butler").invoke("tea")
    assert both(Mem0Retriever(memory=memory, agent_id="butler"), "tea", ANA) == []
    whole = Mem0Retriever(memory=memory, scope=Scope(user_id="ana", run_id="1"))
    assert contents(both(whole, "tea", {"configurable": {"user_id": "ben"}})) == ["I live in Porto."]


def test_a_filter_cannot_name_another_user(memory: Memory) -> None:
    with pytest.raises(ScopeError):
        Mem0Retriever(memory=memory, filters={"user_id": "ben"}).invoke("tea", ANA)


def test_a_constructor_refuses_what_cannot_be_an_id(memory: Memory) -> None:
    with pytest.raises(ScopeError, match="wildcard"):
        Mem0Retriever(memory=memory, user_id="*")
    with pytest.raises(ScopeError, match="not both"):
        Mem0Retriever(memory=memory, user_id="ana", scope=Scope(user_id="ana"))
    with pytest.raises(TypeError):
        Mem0Retriever(memory="here")  # type: ignore[arg-type]


def test_an_async_memory_serves_too(memory: Memory) -> None:
    shared: Any = AsyncMemory(memory=memory)
    assert contents(both(Mem0Retriever(memory=shared, k=1), "Which tea?", ANA)) == ["I drink green tea."]


def test_in_a_chain(memory: Memory) -> None:
    model = Chatbot(answer=lambda messages: str(messages[-1].text))
    known = Mem0Retriever(memory=memory, k=1) | RunnableLambda(lambda documents: "; ".join(contents(documents)))
    prompt = ChatPromptTemplate.from_template("Known: {known}. {question}")
    chain: Runnable[Any, Any] = {"known": known, "question": RunnablePassthrough()} | prompt | model
    text = chain | RunnableLambda(lambda message: str(message.text))
    assert both(text, "Which tea?", ANA) == "Known: I drink green tea.. Which tea?"


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_retriever_that_wraps_it_passes_on_the_user_in_a_chain(memory: Memory, mode: str) -> None:
    wrapped = ContextualCompressionRetriever(
        base_retriever=Mem0Retriever(memory=memory), base_compressor=Mem0Compressor(reranker=None, k=1)
    )

    def ask(retriever: Runnable[str, list[Document]]) -> list[Document]:
        question = "Which tea do I drink?"
        return asyncio.run(retriever.ainvoke(question, ANA)) if mode == "async" else retriever.invoke(question, ANA)

    chain = RunnableLambda[str, str](str) | wrapped
    assert [found.page_content for found in ask(chain)] == ["I drink green tea."]
    with pytest.raises(ScopeError) as refused:
        ask(wrapped)
    assert "in a chain" in refused.value.__notes__[0]


def test_a_configurable_field_works_as_well(memory: Memory) -> None:
    field = ConfigurableField(id="user_id")
    retriever = Mem0Retriever(memory=memory, k=1).configurable_fields(user_id=field)
    assert contents(both(retriever, "Which tea?", {"configurable": {"user_id": "ben"}})) == ["I drink black tea."]


@pytest.mark.parametrize(
    "call", [{"config": {"configurable": {"user_id": "ben"}}}, {"context": {"user_id": "ben"}}], ids=str
)
def test_in_a_graphs_node_without_passing_the_config_on(memory: Memory, call: dict[str, Any]) -> None:
    retriever = Mem0Retriever(memory=memory, k=1)

    def sync_node(state: MessagesState) -> dict[str, Any]:
        return {"messages": contents(retriever.invoke(str(state["messages"][-1].content)))}

    async def async_node(state: MessagesState) -> dict[str, Any]:
        return {"messages": contents(await retriever.ainvoke(str(state["messages"][-1].content)))}

    def graph(node: Any) -> Any:
        return StateGraph(MessagesState, context_schema=Context).add_node("n", node).add_edge(START, "n").compile()

    asked = {"messages": "Which tea?"}
    assert graph(sync_node).invoke(asked, **call)["messages"][-1].text == "I drink black tea."
    assert asyncio.run(graph(async_node).ainvoke(asked, **call))["messages"][-1].text == "I drink black tea."


@pytest.mark.parametrize(
    "call", [{"config": {"configurable": {"user_id": "ben"}}}, {"context": {"user_id": "ben"}}], ids=str
)
def test_as_a_tool_of_an_agent(memory: Memory, call: dict[str, Any]) -> None:
    def answer(messages: list[BaseMessage]) -> Any:
        return str(messages[-1].text) if isinstance(messages[-1], ToolMessage) else calls("recall", query="tea")

    tool = create_retriever_tool(Mem0Retriever(memory=memory, k=1), "recall", "What the user said before.")
    agent: Any = create_agent(Chatbot(answer=answer), tools=[tool], context_schema=Context)
    asked = {"messages": "Which tea?"}
    assert agent.invoke(asked, **call)["messages"][-1].text == "I drink black tea."
    assert asyncio.run(agent.ainvoke(asked, **call))["messages"][-1].text == "I drink black tea."


def test_callbacks_see_documents_and_errors(memory: Memory) -> None:
    from langchain_core.callbacks import BaseCallbackHandler

    seen: list[Any] = []

    class Watch(BaseCallbackHandler):
        def on_retriever_end(self, documents: Any, **kwargs: Any) -> None:
            seen.append(contents(list(documents)))

        def on_retriever_error(self, error: BaseException, **kwargs: Any) -> None:
            seen.append(type(error))

    retriever = Mem0Retriever(memory=memory, k=1)
    retriever.invoke("Which tea?", {**ANA, "callbacks": [Watch()]})
    with pytest.raises(ScopeError):
        retriever.invoke("Which tea?", {"callbacks": [Watch()]})
    assert seen == [["I drink green tea."], ScopeError]


def test_a_run_has_the_metadata_that_langsmith_groups_by(tmp_path: Path) -> None:
    from langchain_core.tracers.run_collector import RunCollectorCallbackHandler

    with open_memory(tmp_path) as memory:
        seen = RunCollectorCallbackHandler()
        Mem0Retriever(memory=memory, user_id="ana").invoke("tea", {"callbacks": [seen]})
        metadata = seen.traced_runs[0].extra["metadata"] if seen.traced_runs[0].extra else {}
    assert metadata["ls_retriever_name"] == "mem0"
    assert metadata["ls_vector_store_provider"] == "SQLiteStore"
    assert metadata["ls_embedding_model"] == "hash-384"
