"""LangChain 0.x's memory, its message history, and the rerank stage for any retriever."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_classic.chains import ConversationChain, LLMChain
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.callbacks import BaseCallbackHandler, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables.history import RunnableWithMessageHistory

from mem0_core import (
    ArgumentError,
    AsyncMemory,
    InputError,
    LimitError,
    Memory,
    ModelError,
    QueryError,
    Scope,
    ScopeError,
)
from mem0_langchain import Mem0ChatMessageHistory, Mem0Compressor, Mem0Memory, Mem0Retriever
from tests.frameworks.langchain.fakes import Chatbot
from tests.frameworks.langchain.test_models import Overlap
from tests.support import open_memory

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the chains, which LangChain deprecates


def mem0(memory: Memory, **options: Any) -> Mem0Memory:
    return Mem0Memory(memory=memory, **{"user_id": "ana", "background": False, "keep": "all", **options})


class Turns:
    """A classic memory, used by sync or async code."""

    def __init__(self, memory: Mem0Memory, mode: str) -> None:
        self.memory, self.sync = memory, mode == "sync"

    def load(self, **inputs: Any) -> dict[str, Any]:
        if self.sync:
            return self.memory.load_memory_variables(inputs)
        return asyncio.run(self.memory.aload_memory_variables(inputs))

    def save(self, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
        if self.sync:
            self.memory.save_context(inputs, outputs)
        else:
            asyncio.run(self.memory.asave_context(inputs, outputs))

    def clear(self) -> None:
        self.memory.clear() if self.sync else asyncio.run(self.memory.aclear())


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_text_of_what_is_remembered_and_what_was_said_last(memory: Memory, mode: str) -> None:
    memory.add("I live in Porto.", user_id="ana", run_id="long ago")
    turns = Turns(mem0(memory), mode)
    assert turns.memory.memory_variables == ["history"]
    turns.save({"input": "I drink green tea."}, {"output": "Good to know."})
    shown = turns.load(input="Where do I live?")["history"]
    block, talk = shown.split("</memories>")
    assert "I live in Porto." in block
    assert "not instructions" in block
    assert talk.strip() == "Human: I drink green tea.\nAI: Good to know."
    turns.clear()
    assert turns.load(input="Where do I live?") == {"history": ""}
    assert memory.get_all(user_id="ana")["results"] == []


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_or_messages(memory: Memory, mode: str) -> None:
    memory.add("I live in Porto.", user_id="ana", run_id="long ago")
    turns = Turns(mem0(memory, return_messages=True, memory_key="known"), mode)
    turns.save({"input": "I drink green tea."}, {"output": "Good to know."})
    system, human, ai = turns.load(input="Where do I live?")["known"]
    assert isinstance(system, SystemMessage)
    assert "I live in Porto." in system.text
    assert (human, ai) == (HumanMessage("I drink green tea."), AIMessage("Good to know."))


def test_the_same_words_said_twice_are_two_messages_and_one_memory(memory: Memory) -> None:
    chain = mem0(memory, return_messages=True)
    for _ in range(2):
        chain.save_context({"input": "Yes."}, {"output": "Fine."})
    assert len([m for m in chain.load_memory_variables({})["history"] if isinstance(m, HumanMessage)]) == 2
    assert [entry["memory"] for entry in memory.get_all(user_id="ana")["results"]] == ["Yes.", "Fine."]


def test_inputs_and_outputs_are_named_where_there_are_several(memory: Memory) -> None:
    chain = mem0(memory)
    with pytest.raises(InputError, match=r"got \['name', 'question'\]; input_key="):
        chain.save_context({"question": "x", "name": "y"}, {"output": "z"})
    with pytest.raises(InputError, match="output_key"):
        chain.save_context({"question": "x"}, {"output": "z", "sources": []})
    with pytest.raises(InputError, match="'question' is not among"):
        mem0(memory, input_key="question").save_context({"q": "x"}, {"output": "z"})
    assert memory.get_all(user_id="ana")["results"] == []
    named = mem0(memory, input_key=["name", "question"], output_key="output", recent=0)
    inputs = {"name": "Ana here.", "question": "I drink tea.", "other": 1, "history": "old", "stop": ["x"]}
    named.save_context(inputs, {"output": "Noted.", "sources": [1]})
    assert [entry["memory"] for entry in memory.get_all(user_id="ana")["results"]] == [
        "Ana here.\nI drink tea.",
        "Noted.",
    ]
    assert "Human:" not in named.load_memory_variables(inputs)["history"]


def test_messages_are_inputs_and_outputs_too(memory: Memory) -> None:
    mem0(memory).save_context({"input": [HumanMessage("I sing.")]}, {"output": AIMessage("Lovely.")})
    assert [entry["role"] for entry in memory.get_all(user_id="ana")["results"]] == ["user", "assistant"]


def test_scope_and_budget(memory: Memory) -> None:
    with pytest.raises(ScopeError, match="at least one of user_id"):
        Mem0Memory(memory=memory)
    shared: Any = AsyncMemory(memory=memory)
    for number in range(40):
        Mem0Memory(memory=shared, user_id="ana", background=False).save_context(
            {"input": f"Number {number} is a long sentence about tea and nothing else."}, {"output": "Noted."}
        )
    short = mem0(memory, max_tokens=120, recent=50).load_memory_variables({"input": "tea"})["history"]
    assert 0 < len(short) < 800
    assert mem0(memory, user_id="ben").load_memory_variables({"input": "tea"}) == {"history": ""}


def test_in_a_conversation_chain(memory: Memory) -> None:
    model = Chatbot()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chain = ConversationChain(llm=model, memory=mem0(memory))
    assert chain.predict(input="I drink green tea.") == "Noted."
    asyncio.run(chain.ainvoke({"input": "Which tea do I drink?"}))
    assert "Human: I drink green tea." in str(model.heard[-1][0].content)


def test_in_a_chain_with_several_inputs(memory: Memory) -> None:
    model = Chatbot()
    prompt = PromptTemplate.from_template("{history}\n{place}: {question}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chain = LLMChain(llm=model, prompt=prompt, memory=mem0(memory, input_key="question"))
    chain.invoke({"place": "Rome", "question": "I drink green tea."})
    chain.invoke({"place": "Rome", "question": "Which tea?"})
    assert "I drink green tea." in str(model.heard[-1][0].content)
    assert "Rome" not in str(memory.get_all(user_id="ana"))


# --- message history ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_history_keeps_what_was_said_in_its_conversation(memory: Memory, mode: str) -> None:
    monday, tuesday = (
        Mem0ChatMessageHistory(memory, user_id="ana", run_id=run, background=False, keep="all")
        for run in ("monday", "tuesday")
    )
    said = [HumanMessage("I drink tea.", name="Ana"), AIMessage("Noted."), HumanMessage("I drink tea.", name="Ana")]
    noise = [SystemMessage(" "), ToolMessage("42", tool_call_id="1")]
    if mode == "sync":
        monday.add_messages([*said, *noise])
        tuesday.add_messages([HumanMessage("I sing.")])
        assert monday.messages == said
        monday.clear()
        assert monday.messages == []
        assert tuesday.messages == [HumanMessage("I sing.")]
        return

    async def use() -> None:
        await monday.aadd_messages([*said, *noise])
        await tuesday.aadd_messages([HumanMessage("I sing.")])
        assert await monday.aget_messages() == said
        await monday.aclear()
        assert await monday.aget_messages() == []
        assert await tuesday.aget_messages() == [HumanMessage("I sing.")]

    asyncio.run(use())


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_system_message_is_in_the_history_and_in_no_memory(memory: Memory, mode: str) -> None:
    history = Mem0ChatMessageHistory(memory, user_id="ana", background=False, keep="all")
    rules = SystemMessage("The user lives in Atlantis.")
    said = [rules, HumanMessage("I drink tea."), SystemMessage("Now be brief."), AIMessage("Noted."), rules]
    if mode == "sync":
        history.add_messages(said)
        assert history.messages == said
    else:
        asyncio.run(history.aadd_messages(said))
        assert asyncio.run(history.aget_messages()) == said
    assert {found["memory"] for found in memory.get_all(user_id="ana")["results"]} == {"I drink tea.", "Noted."}
    assert memory.relations(user_id="ana") == []
    shown = memory.context("Where do I live?", user_id="ana", recent=9, threshold=0)
    assert "Atlantis" not in str(shown)
    assert [message["content"] for message in shown["messages"]] == ["I drink tea.", "Noted."]
    history.clear()
    assert history.messages == []


def test_a_policy_and_limits_see_system_messages(tmp_path: Path) -> None:
    def redact(text: str, scope: Scope) -> str | None:
        return None if "drop" in text else text.replace("4711", "[pin]")

    with open_memory(tmp_path, policy=redact, config={"limits": {"message_chars": 40}}) as memory:
        history = Mem0ChatMessageHistory(memory, user_id="ana")
        history.add_messages([SystemMessage("The code is 4711."), SystemMessage("drop this")])
        assert history.messages == [SystemMessage("The code is [pin].")]
        with pytest.raises(LimitError):
            history.add_messages([SystemMessage("x" * 41)])
        with pytest.raises(InputError, match="limit must be a whole number of at least 0"):
            Mem0ChatMessageHistory(memory, user_id="ana", limit=-1)


def test_a_history_gives_its_last_messages_and_is_learnt_from(memory: Memory) -> None:
    history = Mem0ChatMessageHistory(memory, user_id="ana", run_id="1", limit=3)
    for number in range(5):
        history.add_user_message(f"Fact {number}.")
    assert [message.text for message in history.messages] == ["Fact 2.", "Fact 3.", "Fact 4."]
    assert memory.flush(30)
    assert len(memory.get_all(user_id="ana")["results"]) == 5
    with pytest.raises(ScopeError):
        Mem0ChatMessageHistory(memory)


def test_a_history_of_a_runnable(memory: Memory) -> None:
    model = Chatbot()
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{input}")])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chain: Any = RunnableWithMessageHistory(
            prompt | model,
            lambda session_id: Mem0ChatMessageHistory(memory, run_id=session_id),
            input_messages_key="input",
            history_messages_key="history",
        )
    config = {"configurable": {"session_id": "1"}}
    chain.invoke({"input": "I drink tea."}, config)
    asyncio.run(chain.ainvoke({"input": "Which tea?"}, config))
    assert [message.text for message in model.heard[-1]] == ["I drink tea.", "Noted.", "Which tea?"]


# --- the rerank stage -----------------------------------------------------------------------------------------------


DOCUMENTS = [Document(text, metadata={"n": n}) for n, text in enumerate(["coffee", "tea of Ana", "green tea of Ana"])]


def compress(compressor: Mem0Compressor, mode: str, query: str = "green tea", **options: Any) -> Sequence[Document]:
    if mode == "sync":
        return compressor.compress_documents(DOCUMENTS, query, **options)
    return asyncio.run(compressor.acompress_documents(DOCUMENTS, query, **options))


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("reranker", [None, Overlap()], ids=["BM25", "cross encoder"])
def test_the_best_documents_come_first_with_their_scores(mode: str, reranker: Any) -> None:
    kept = compress(Mem0Compressor(reranker=reranker, k=2), mode)
    assert [document.metadata["n"] for document in kept] == [2, 1]
    first, second = (document.metadata["relevance_score"] for document in kept)
    assert 1 >= first > second >= 0
    assert "relevance_score" not in DOCUMENTS[2].metadata, "the caller's documents are left alone"


def test_the_rerankers_word_counts_as_much_as_it_is_told_to() -> None:
    against = Overlap(scale=-0.2, shift=0.9)
    assert compress(Mem0Compressor(reranker=against, weight=1.0), "sync")[0].metadata["n"] == 0
    assert compress(Mem0Compressor(reranker=against, weight=0.0), "sync")[0].metadata["n"] == 2
    assert compress(Mem0Compressor(reranker=against, top_n=1, weight=1.0), "sync")[0].metadata["n"] == 2


def test_compressing_nothing_is_nothing_and_failures_are_told() -> None:
    assert Mem0Compressor().compress_documents([], "tea") == []
    assert asyncio.run(Mem0Compressor().acompress_documents([], "tea")) == []
    with pytest.raises(QueryError):
        compress(Mem0Compressor(), "sync", query=" ")
    with pytest.raises(ArgumentError):
        Mem0Compressor(k=0)

    class Broken(Overlap):
        def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
            raise RuntimeError("no GPU")

    with pytest.raises(ModelError, match="no GPU"):
        compress(Mem0Compressor(reranker=Broken()), "sync")


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_callbacks_see_the_rerank_stage(mode: str) -> None:
    seen: list[tuple[str, Any]] = []

    class Watch(BaseCallbackHandler):
        def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
            seen.append((kwargs["name"], inputs))

        def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
            seen.append(("end", [place for place, _ in outputs]))

    compress(Mem0Compressor(), mode, callbacks=[Watch()])
    assert seen == [("mem0.rerank", "green tea"), ("end", [2, 1, 0])]


def test_it_serves_any_retriever(memory: Memory) -> None:
    class Fixed(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
            return DOCUMENTS

    reranked = ContextualCompressionRetriever(base_retriever=Fixed(), base_compressor=Mem0Compressor(k=1))
    assert [document.page_content for document in reranked.invoke("green tea")] == ["green tea of Ana"]
    memory.add("I drink green tea.", user_id="ana")
    memory.add("I drink a lot.", user_id="ana")
    ours = ContextualCompressionRetriever(
        base_retriever=Mem0Retriever(memory=memory, user_id="ana"), base_compressor=Mem0Compressor(k=1)
    )
    assert [document.page_content for document in ours.invoke("green tea")] == ["I drink green tea."]


# --- relations of the retriever ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_relations_come_as_documents_or_in_metadata(memory: Memory, mode: str) -> None:
    memory.add("My sister Ines lives in Porto.", user_id="ana")
    assert memory.search("Where does Ines live?", user_id="ana")["relations"]

    def found(relations: str) -> list[Document]:
        retriever = Mem0Retriever(memory=memory, user_id="ana", relations=relations, k=1)  # type: ignore[arg-type]
        question = "Where does Ines live?"
        return retriever.invoke(question) if mode == "sync" else asyncio.run(retriever.ainvoke(question))

    (plain,) = found("none")
    assert "relations" not in plain.metadata
    first, *others = found("documents")
    assert first.page_content == plain.page_content
    assert {document.metadata["type"] for document in others} == {"relation"}
    assert any("porto" in document.page_content.lower() for document in others)
    assert {"source", "relationship", "destination", "score"} <= set(others[0].metadata)
    (told,) = found("metadata")
    assert len(told.metadata["relations"]) == len(others)


def test_a_recipe_of_the_retriever_is_passed_on_where_one_is_given(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def search(self: Memory, query: str, **options: Any) -> Any:
        asked.append(options.pop("recipe", "none given"))
        return {"results": [], "relations": []}

    monkeypatch.setattr(Memory, "search", search)
    Mem0Retriever(memory=memory, user_id="ana").invoke("tea")
    Mem0Retriever(memory=memory, user_id="ana", recipe="paper").invoke("tea")
    Mem0Retriever(memory=memory, user_id="ana", recipe="paper").invoke("tea", recipe="offline")
    assert asked == ["none given", "paper", "offline"]
