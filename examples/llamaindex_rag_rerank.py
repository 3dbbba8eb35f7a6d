"""Rerank the results of a LlamaIndex retriever by BM25 and a reranker.

The example reranks documents from an index with a poor embedding, and then memories. It needs no key or network. To use
a real cross-encoder, set for instance
``MEM0_EXAMPLE_RERANKER=cross_encoder:cross-encoder/ms-marco-MiniLM-L-6-v2``.

    pip install mem0-llamaindex
    python examples/llamaindex_rag_rerank.py
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.llms.mock import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore

from mem0_core import Memory
from mem0_llamaindex import Mem0Rerank, Mem0Retriever

LIBRARY = [
    "The ferry from the old harbour leaves every hour from six in the morning.",
    "Bicycles travel free of charge on the tram after eight in the evening.",
    "Dogs are not allowed on the ferry, except for guide dogs.",
    "The tram to the harbour runs until midnight.",
    "A ticket for the ferry costs three euros; children pay half.",
]


class Overlap:
    """Reranker that scores the share of query words in a text, in place of a cross-encoder."""

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        asked = _stems(query)
        return [len(asked & _stems(text)) / len(asked) for text in texts]


def _stems(text: str) -> set[str]:
    return {word[:5] for word in re.findall(r"[a-z]+", text.lower()) if len(word) > 3}


def show(title: str, nodes: Sequence[NodeWithScore]) -> None:
    print(title)
    for node in nodes:
        print(f"  {node.score or 0:.2f}  {node.node.get_content()}")


def main() -> None:
    reranker = os.environ.get("MEM0_EXAMPLE_RERANKER") or Overlap()
    question = "May my dog travel on the ferry?"

    # This embedding finds every document equally near, so only reranking creates an order.
    index = VectorStoreIndex.from_documents([Document(text=text) for text in LIBRARY], embed_model=MockEmbedding(8))
    found = index.as_retriever(similarity_top_k=5)
    show(f"{question}\nBy the index only:", found.retrieve(question))
    best = Mem0Rerank(reranker, top_n=2)
    show("With BM25 and a reranker:", best.postprocess_nodes(found.retrieve(question), query_str=question))

    with tempfile.TemporaryDirectory() as folder, Memory({"path": folder}) as core:
        core.add("I have a dog called Bruno.", user_id="maya")
        core.add("I live near the old harbour.", user_id="maya")
        core.add("I sail every Sunday.", user_id="maya")
        retriever = Mem0Retriever(core, user_id="maya", k=3)
        engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM(), node_postprocessors=[Mem0Rerank(top_n=1)])
        response = engine.query("What is the name of Maya's dog?")
        show("Of Maya's memories:", response.source_nodes)


if __name__ == "__main__":
    main()
