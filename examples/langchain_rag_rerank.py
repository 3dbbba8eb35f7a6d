"""Rerank the results of any retriever, and add the memories of a user as a second source.

Needs no key or network: small scripts replace the chat model and the cross-encoder, and the data is stored in a
temporary folder.

    pip install "mem0-langchain[classic]"
    python examples/langchain_rag_rerank.py
    MEM0_EXAMPLE_MODEL=openai:gpt-4o-mini python examples/langchain_rag_rerank.py    # a real model of any provider
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from langchain.chat_models import init_chat_model
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough

from mem0_core import Memory
from mem0_langchain import Mem0Compressor, Mem0Retriever

# mem0-minilm if its weights are installed, else the test embedder, which compares words only.
EMBEDDER = "local" if find_spec("mem0_models") else "hash"
MANUAL = [
    "The machine needs descaling every two months.",
    "Press the left button for espresso, the right one for hot water.",
    "Hot water for tea: press the right button and hold it for three seconds.",
    "The warranty covers two years.",
]


class Manual(BaseRetriever):
    """Retriever that returns the whole manual in page order."""

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return [Document(text, metadata={"page": page}) for page, text in enumerate(MANUAL, start=1)]


class SharedWords:
    """Reranker that scores the share of common words, in place of a cross-encoder."""

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        asked = set(query.lower().strip("?").split())
        return [len(asked & set(text.lower().strip(".").split())) / len(asked) for text in texts]


def join_texts(documents: Sequence[Document]) -> str:
    return " ".join(document.page_content for document in documents)


def build_chain(memory: Memory) -> Runnable[str, Any]:
    manual = ContextualCompressionRetriever(
        base_retriever=Manual(), base_compressor=Mem0Compressor(reranker=SharedWords(), k=1)
    )
    memories = Mem0Retriever(memory=memory, k=1)  # `configurable` of each call names the user
    prompt = ChatPromptTemplate.from_template("Manual: {manual}\nThe user said: {memories}\nQuestion: {question}")
    texts = RunnableLambda(join_texts)
    sources: dict[str, Any] = {
        "manual": manual | texts,
        "memories": memories | texts,
        "question": RunnablePassthrough(),
    }
    return sources | prompt | build_model()


def build_model() -> Runnable[Any, Any]:
    name = os.environ.get("MEM0_EXAMPLE_MODEL")
    if name:
        return init_chat_model(name)
    # Without a model, repeat the sources.
    return RunnableLambda(lambda prompt: AIMessage(prompt.to_messages()[0].text.rsplit("\n", 1)[0]))


def main() -> None:
    question = "How do I make hot water for tea?"
    print("The manual after reranking:")
    for document in Mem0Compressor(reranker=SharedWords()).compress_documents(Manual().invoke(question), question):
        print(f"  {document.metadata['relevance_score']:.2f} page {document.metadata['page']}")
    with tempfile.TemporaryDirectory() as folder, Memory({"path": folder}, embedder=EMBEDDER) as memory:
        memory.add("I only drink green tea, at 70 degrees.", user_id="maya")
        print(build_chain(memory).invoke(question, {"configurable": {"user_id": "maya"}}).text)


if __name__ == "__main__":
    main()
