"""Give an ordinary LangChain RAG chain a memory of its users.

Needs no key or network: a small script replaces the chat model, word vectors replace an embedding model, and the data
is stored in a temporary folder. The lines about memory are marked.

    pip install mem0-langchain
    python examples/langchain_rag_memory.py
    MEM0_EXAMPLE_MODEL=openai:gpt-4o-mini python examples/langchain_rag_memory.py    # a real model of any provider
"""

from __future__ import annotations

import os
import re
import tempfile
import zlib
from collections.abc import Sequence
from importlib.util import find_spec
from operator import itemgetter
from typing import Any

from langchain.chat_models import init_chat_model
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompt_values import PromptValue
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore

from mem0_core import Memory
from mem0_langchain import Mem0ChatMessageHistory, Mem0Retriever

# mem0-minilm if its weights are installed, else the test embedder, which compares words only.
EMBEDDER = "local" if find_spec("mem0_models") else "hash"
HANDBOOK = [
    "The office in Porto opens at nine and closes at six.",
    "The office in Rome opens at ten and closes at seven.",
    "The office in Oslo opens at eight and closes at four.",
    "Travel is booked a week in advance.",
]
DIMENSIONS = 256
PROMPT = ChatPromptTemplate.from_messages(
    [
        ("placeholder", "{history}"),
        ("human", "Answer from the handbook.\n{context}\nSaid earlier:\n{memories}\nQuestion: {question}"),
    ]
)


class WordVectors(Embeddings):
    """Embeddings that count words, in place of an embedding model."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        vector = [0.0] * DIMENSIONS
        for word in re.findall(r"\w{4,}", text.lower()):
            vector[zlib.crc32(word[:4].encode()) % DIMENSIONS] += 1.0
        return vector


def join_texts(documents: Sequence[Document]) -> str:
    return "\n".join(document.page_content for document in documents)


def build_model() -> Runnable[Any, Any]:
    name = os.environ.get("MEM0_EXAMPLE_MODEL")
    return init_chat_model(name) if name else RunnableLambda(answer_from_prompt)


def answer_from_prompt(prompt: PromptValue) -> AIMessage:
    """Answer with the line of the handbook about a city that the user has named, in place of a model."""
    handbook, _, said = prompt.to_string().partition("Said earlier:")
    offices = re.findall(r"The office in (\w+) .*", handbook)
    city = next((city for city in offices if city in said), None)
    line = next((line for line in handbook.splitlines() if city and city in line), "Which city is yours?")
    return AIMessage(line.removeprefix("Human: "))


def build_chain(memory: Memory) -> Runnable[dict[str, Any], str]:
    handbook = InMemoryVectorStore.from_texts(HANDBOOK, WordVectors()).as_retriever(search_kwargs={"k": 4})
    recalled = Mem0Retriever(memory=memory, k=3)  # memory; `configurable` of each call names the user
    sources = {
        "context": itemgetter("question") | handbook | join_texts,
        "memories": itemgetter("question") | recalled | join_texts,  # memory
    }
    return RunnablePassthrough.assign(**sources) | PROMPT | build_model() | StrOutputParser()


def ask(chain: Runnable[dict[str, Any], str], memory: Memory, user: str, session: str, question: str) -> str:
    history = Mem0ChatMessageHistory(memory, user_id=user, run_id=session)  # memory
    asked = {"question": question, "history": history.messages}
    answer = chain.invoke(asked, {"configurable": {"user_id": user}})
    history.add_messages([HumanMessage(question), AIMessage(answer)])  # memory
    return answer


def session(memory: Memory, user: str, day: str, *questions: str) -> None:
    chain = build_chain(memory)
    for question in questions:
        print(f"  {user}: {question}\n  chain: {ask(chain, memory, user, day, question)}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        with Memory({"path": folder}, embedder=EMBEDDER) as memory:
            print("Monday")
            session(memory, "maya", "monday", "My city is Oslo.")

        # A new program opens the same folder.
        with Memory({"path": folder}, embedder=EMBEDDER) as memory:
            print("Friday")
            session(memory, "maya", "friday", "When does the office in my city open?")
            session(memory, "ben", "friday", "When does the office in my city open?")


if __name__ == "__main__":
    main()
