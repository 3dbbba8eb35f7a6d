"""Catalog of components by name: providers, the packages that they need, and the providers of known models."""

from __future__ import annotations

import re
from typing import Literal

ComponentKind = Literal["llm", "embedder", "reranker", "store", "vector_store", "graph_store"]

_OPENAI_CHAT = "mem0_core.providers.openai:OpenAIChat"
_OPENAI_EMBEDDER = "mem0_core.providers.openai:OpenAIEmbedder"
_SENTENCE_TRANSFORMERS = "mem0_core.providers.sentence_transformers:SentenceTransformerEmbedder"

PROVIDERS: dict[str, dict[str, str]] = {
    "llm": {
        **dict.fromkeys(
            ["openai", "openai_structured", "ollama", "vllm", "lmstudio", "minimax", "sarvam"], _OPENAI_CHAT
        ),
        "local": "mem0_core.providers.local:create_local_chat",
        "llama_cpp": "mem0_core.providers.llama_cpp:LlamaCppChat",
        "openvino": "mem0_core.providers.openvino:OpenVinoChat",
        "transformers": "mem0_core.providers.transformers:TransformersChat",
    },
    "embedder": {
        "local": "mem0_core.providers.numpy_embedder:create_local_embedder",
        "numpy": "mem0_core.providers.numpy_embedder:NumpyEmbedder",
        "onnx": "mem0_core.providers.onnx:OnnxEmbedder",
        "openvino": "mem0_core.providers.openvino_embedder:OpenVinoEmbedder",
        **dict.fromkeys(["openai", "ollama", "lmstudio", "together"], _OPENAI_EMBEDDER),
        **dict.fromkeys(["huggingface", "sentence_transformers"], _SENTENCE_TRANSFORMERS),
        "jina": "mem0_core.providers.sentence_transformers:jina",
        "fastembed": "mem0_core.providers.fastembed:FastEmbedEmbedder",
        "hash": "mem0_core.testing:HashEmbedder",
    },
    "reranker": {
        "local": "mem0_core.providers.local_reranker:LocalReranker",
        "local_list": "mem0_core.providers.list_reranker:LocalListReranker",
        "sentence_transformers": "mem0_core.providers.rerankers:TransformersReranker",
        "sentence_transformer": "mem0_core.providers.rerankers:TransformersReranker",
        "huggingface": "mem0_core.providers.rerankers:huggingface",
        "qwen": "mem0_core.providers.rerankers:qwen",
        "llm": "mem0_core.api.factory:llm_reranker",
        "llm_reranker": "mem0_core.api.factory:llm_reranker",
    },
    "store": {
        "sqlite": "mem0_core.stores.sqlite.store:SQLiteStore",
        "postgres": "mem0_core.stores.postgres.store:PostgresStore",
    },
    "vector_store": {
        "embedded": "mem0_core.stores.vector.embedded:create_embedded_index",
        "numpy": "mem0_core.stores.vector.embedded:NumpyIndex",
        "exact": "mem0_core.stores.vector.exact:ExactIndex",
        "faiss": "mem0_core.stores.vector.faiss:FaissIndex",
        **dict.fromkeys(["pgvector", "supabase"], "mem0_core.stores.postgres.vectors:PgvectorIndex"),
    },
    "graph_store": {
        "sqlite": "mem0_core.stores.graph.embedded:EmbeddedGraph",
        "neo4j": "mem0_core.stores.graph.neo4j:Neo4jGraph",
        "ladybug": "mem0_core.stores.graph.ladybug:LadybugGraph",
        "kuzu": "mem0_core.stores.graph.ladybug:LadybugGraph",
        "memgraph": "mem0_core.stores.graph.shared_cypher:MemgraphGraph",
        "neptune": "mem0_core.stores.graph.shared_cypher:NeptuneGraph",
        "neptunedb": "mem0_core.stores.graph.shared_cypher:NeptuneGraph",
    },
}
"""``provider -> module:name``; a module is imported once a configuration names its provider."""

FRAMEWORK_PROVIDERS: dict[str, dict[str, str]] = {
    "llm": {
        "anthropic": "langchain-anthropic",
        "aws_bedrock": "langchain-aws",
        "azure_ai": "langchain-azure-ai",
        "azure_openai": "langchain-openai",
        "azure_openai_structured": "langchain-openai",
        "bedrock": "langchain-aws",
        "bedrock_converse": "langchain-aws",
        "cohere": "langchain-cohere",
        "deepseek": "langchain-deepseek",
        "fireworks": "langchain-fireworks",
        "gemini": "langchain-google-genai",
        "google_genai": "langchain-google-genai",
        "google_vertexai": "langchain-google-vertexai",
        "groq": "langchain-groq",
        "huggingface": "langchain-huggingface",
        "ibm": "langchain-ibm",
        "litellm": "langchain-litellm",
        "mistralai": "langchain-mistralai",
        "nvidia": "langchain-nvidia-ai-endpoints",
        "openrouter": "langchain-openrouter",
        "perplexity": "langchain-perplexity",
        "together": "langchain-together",
        "upstage": "langchain-upstage",
        "xai": "langchain-xai",
    },
    "embedder": {
        "aws_bedrock": "langchain-aws",
        "azure_ai": "langchain-azure-ai",
        "azure_openai": "langchain-openai",
        "bedrock": "langchain-aws",
        "cohere": "langchain-cohere",
        "gemini": "langchain-google-genai",
        "google_genai": "langchain-google-genai",
        "google_vertexai": "langchain-google-vertexai",
        "mistralai": "langchain-mistralai",
        "vertexai": "langchain-google-vertexai",
    },
    "reranker": {
        "cohere": "langchain-cohere",
        "zero_entropy": "zeroentropy",
        "voyageai": "langchain-voyageai",
        "nvidia": "langchain-nvidia-ai-endpoints",
        "aws_bedrock": "langchain-aws",
        "pinecone": "langchain-pinecone",
        "flashrank": "langchain-community flashrank",
        "jina": "langchain-community",
    },
    "vector_store": {
        "azure_ai_search": "langchain-azure-ai",
        "cassandra": "langchain-community cassio",
        "chroma": "langchain-chroma",
        "databricks": "databricks-langchain",
        "elasticsearch": "langchain-elasticsearch",
        "milvus": "langchain-milvus",
        "mongodb": "langchain-mongodb",
        "opensearch": "langchain-community opensearch-py",
        "pinecone": "langchain-pinecone",
        "qdrant": "langchain-qdrant",
        "redis": "langchain-redis",
        "s3_vectors": "langchain-aws",
        "turbopuffer": "langchain-turbopuffer",
        "upstash_vector": "langchain-community upstash-vector",
        "valkey": "langchain-aws valkey-glide-sync",
        "weaviate": "langchain-weaviate",
    },
}
"""Providers that ``mem0-langchain`` builds from LangChain's classes, each with the packages of its class."""

MODULES = {"opensearch-py": "opensearchpy", "valkey-glide-sync": "glide_sync"}
"""Modules of the packages above that have another name than the package."""

CLIENT_ONLY_STORES = {
    "azure_mysql": "neither LangChain nor LlamaIndex has a class for it",
    "baidu": "LangChain's class for it cannot delete",
    "neptune": "neither LangChain nor LlamaIndex has a class for its vectors",
    "vertex_ai_vector_search": "LangChain's class for it needs a bucket, which mem0's keys do not name",
}
"""mem0's vector stores that are not built from their keys, each with the reason."""

POSTGRES_VECTOR_STORES = ("pgvector", "supabase")
"""Vector stores that are PostgreSQL, and so may hold everything else too."""

PGVECTOR_KEYS = ("dbname", "user", "password", "host", "port", "sslmode")
"""mem0's keys of pgvector that locate the database."""

PGVECTOR_ONLY_KEYS = (
    *(*PGVECTOR_KEYS, "connection_string", "connection_pool", "minconn", "maxconn"),
    *("diskann", "hnsw", "index_method", "index_measure"),
)
"""mem0's keys of pgvector and Supabase that locate the store, or have no effect here."""

BASE_URLS = {
    "ollama": "http://localhost:11434/v1",
    "vllm": "http://localhost:8000/v1",
    "lmstudio": "http://localhost:1234/v1",
    "minimax": "https://api.minimax.io/v1",
    "sarvam": "https://api.sarvam.ai/v1",
    "together": "https://api.together.xyz/v1",
}
"""Default addresses of servers with the OpenAI protocol."""

KEY_VARIABLES = {"minimax": "MINIMAX_API_KEY", "sarvam": "SARVAM_API_KEY", "together": "TOGETHER_API_KEY"}
"""Environment variables with the API keys of hosted servers; as in mem0."""

BASE_URL_KEYS = (
    "base_url",
    *(f"{name}_base_url" for name in ("openai", "ollama", "vllm", "lmstudio", "minimax", "sarvam", "together")),
)
"""mem0's names for the address of a server."""

_MODELS: dict[str, tuple[tuple[str, str], ...]] = {
    "llm": (
        (r"gpt-oss[:-]", "ollama"),
        (r"gpt[-\d]|(chatgpt|codex|o[1-9])\b", "openai"),
        (r"claude\b", "anthropic"),
        (r"gemini\b", "gemini"),
        (r"grok\b", "xai"),
        (r"deepseek-(chat|reasoner)$", "deepseek"),
        (r"(mistral|magistral|ministral|codestral|pixtral|devstral)-(tiny|small|medium|large|latest|\d)", "mistralai"),
        (r"open-mi[sx]tral", "mistralai"),
        (r"command\b", "cohere"),
        (r"sonar\b", "perplexity"),
        (r"minimax\b", "minimax"),
        (r"sarvam\b", "sarvam"),
        (
            r"(llama|codellama|tinyllama|qwen|qwq|gemma|phi|mistral|mixtral|deepseek|smollm|granite|olmo|falcon|vicuna|"
            r"orca|solar|yi|starcoder|nemotron|hermes|dolphin|openchat|zephyr|wizardlm|stablelm|exaone|glm|kimi)"
            r"[\w.-]*(:[\w.-]+)?$",
            "ollama",
        ),
    ),
    "embedder": (
        (r"(mem0-minilm|(?-i:all-MiniLM-L6-v2))$", "local"),
        (r"text-embedding-(3|ada)\b", "openai"),
        (r"text-embedding-00\d|gemini-embedding|embedding-001", "gemini"),
        (r"embed-(english|multilingual|v\d)", "cohere"),
        (r"mistral-embed|codestral-embed", "mistralai"),
        (r"jinaai/|jina-embeddings", "jina"),
        (
            r"(nomic-embed-text|mxbai-embed|all-minilm|snowflake-arctic-embed|bge-m3|embeddinggemma|qwen3-embedding)"
            r"[\w.-]*(:[\w.-]+)?$",
            "ollama",
        ),
        (r"[\w.-]+/[\w.-]+$", "huggingface"),
    ),
    "reranker": (
        (r"mem0-reranker$", "local"),
        (r"mem0-list-reranker$", "local_list"),
        (r"rerank-(v\d|english|multilingual)", "cohere"),
        (r"zerank\b", "zero_entropy"),
        (r"rerank-(lite-)?\d", "voyageai"),
        (r"qwen/.*reranker", "qwen"),
        (r"cross-encoder/", "sentence_transformers"),
        (r"[\w.-]+/[\w.-]+$", "huggingface"),
    ),
}
"""Beginnings of model names, each with the provider of these models; the first that matches counts."""


PACKAGED_MODELS: dict[str, tuple[str, ...]] = {
    "embedder": ("mem0-minilm", "all-MiniLM-L6-v2"),
    "reranker": ("mem0-reranker", "mem0-list-reranker"),
}
"""Models of ``mem0-models``."""


def find_model_provider(kind: ComponentKind, model: str) -> str | None:
    """Return the provider of a model that is known by its name, or None."""
    for pattern, provider in _MODELS.get(kind, ()):
        if re.match(pattern, model, re.IGNORECASE):
            return provider
    return None
