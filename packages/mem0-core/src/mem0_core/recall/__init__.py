"""Search and everything that reads memories: candidates, ranking, relations, reranking, context, traversal, diagnosis.

The flows here read stores, indexes and models through `mem0_core.interfaces`, and write nothing. `ingest`, `admin`,
`api` and the adapters may import this package. It imports `graph`, `language`, `llm`, `flow`, `interfaces` and
`domain`; never `ingest`, `api` or a store. Import its public modules directly: importing one must not import NumPy,
unless it computes on the graph (`exploration`).
"""
