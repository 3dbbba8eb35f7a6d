"""LangChain's chat models and embeddings by provider name: ``Memory(llm="anthropic:claude-sonnet-4-5")``.

The entry points of the package list the providers here; mem0's names (``gemini``, ``aws_bedrock``) are accepted next to
LangChain's. Providers that mem0-core implements itself (``openai``, ``ollama``, ...) take precedence;
``"langchain:openai:gpt-4o-mini"`` selects LangChain's.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

from mem0_langchain.models import chat, embedder

__all__ = ["CHAT_PROVIDERS", "EMBEDDING_PROVIDERS", "chats", "embedders"]

CHAT_PROVIDERS = {
    **dict.fromkeys(["anthropic", "azure_ai", "azure_openai", "bedrock", "bedrock_converse", "cohere", "deepseek"]),
    **dict.fromkeys(["fireworks", "google_genai", "google_vertexai", "groq", "huggingface", "ibm", "litellm"]),
    **dict.fromkeys(["mistralai", "nvidia", "openrouter", "perplexity", "together", "upstage", "xai"]),
    "aws_bedrock": "bedrock_converse",
    "gemini": "google_genai",
}
"""Name -> what LangChain calls it, None for the same."""
EMBEDDING_PROVIDERS = {
    **dict.fromkeys(["azure_ai", "azure_openai", "bedrock", "cohere", "google_genai", "google_vertexai", "mistralai"]),
    "aws_bedrock": "bedrock",
    "gemini": "google_genai",
}
"""Likewise for embeddings."""

chats = SimpleNamespace(**{name: partial(chat, provider=theirs or name) for name, theirs in CHAT_PROVIDERS.items()})
embedders = SimpleNamespace(
    **{name: partial(embedder, provider=theirs or name) for name, theirs in EMBEDDING_PROVIDERS.items()}
)
