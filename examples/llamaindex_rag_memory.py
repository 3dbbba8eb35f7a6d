"""Give an ordinary LlamaIndex RAG engine a memory of its users.

Needs no key or network: a small script replaces the model, and the data is stored in a temporary folder.

    pip install mem0-llamaindex
    python examples/llamaindex_rag_memory.py
"""

from __future__ import annotations

import tempfile
from typing import Any

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.llms.types import CompletionResponse, CompletionResponseGen, LLMMetadata
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.llms import CustomLLM, MockLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever

from mem0_core import Memory
from mem0_llamaindex import Mem0Embedding, Mem0Memory, Mem0Retriever

HANDBOOK = [
    "The office in Porto opens at nine and closes at six.",
    "The office in Rome opens at ten and closes at seven.",
    "The office in Oslo opens at eight and closes at four.",
    "Travel is booked a week in advance.",
]


class Clerk(CustomLLM):
    """LLM that answers with the line of the handbook about a city that the user has named."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="clerk")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        lines = [line.strip() for line in prompt.splitlines()]
        offices = {line.split()[3]: line for line in lines if line.startswith("The office in")}
        said = [line for line in lines if line.startswith(('{"memory"', "user:"))]
        known = [line for city, line in offices.items() if any(city in text for text in said)]
        return CompletionResponse(text=known[0] if known else "Which city is yours?")

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        yield self.complete(prompt)


def build_index(core: Memory) -> VectorStoreIndex:
    documents = [Document(text=text) for text in HANDBOOK]
    return VectorStoreIndex.from_documents(documents, embed_model=Mem0Embedding(core))  # or any other embedding


def chat(index: VectorStoreIndex, core: Memory, user: str, *messages: str) -> None:
    """Run one conversation with the handbook; `memory=` is the only line about memory."""
    engine = ContextChatEngine.from_defaults(
        retriever=index.as_retriever(similarity_top_k=3),
        memory=Mem0Memory(core, user_id=user),
        llm=Clerk(),
    )
    for message in messages:
        print(f"  {user}: {message}\n  engine: {engine.chat(message)}")


def build_query_engine(index: VectorStoreIndex, core: Memory, user: str) -> BaseQueryEngine:
    """Build a query engine over the handbook and the memories of a user."""
    retriever = QueryFusionRetriever(
        [index.as_retriever(similarity_top_k=1), Mem0Retriever(core, user_id=user, k=1)],
        llm=MockLLM(),
        num_queries=1,
        similarity_top_k=2,
    )
    return RetrieverQueryEngine.from_args(retriever, llm=MockLLM())


def main() -> None:
    question = "When does the office in my city open?"
    with tempfile.TemporaryDirectory() as folder:
        with Memory({"path": folder}) as core:
            print("Monday")
            chat(build_index(core), core, "maya", "My city is Oslo.")

        # A new program opens the same folder.
        with Memory({"path": folder}) as core:
            print("Friday")
            index = build_index(core)
            chat(index, core, "maya", question)
            chat(index, core, "ben", question)
            print("A query engine")
            core.flush()
            for node in build_query_engine(index, core, "maya").query(question).source_nodes:
                print(f"  {node.node.get_content()}")


if __name__ == "__main__":
    main()
