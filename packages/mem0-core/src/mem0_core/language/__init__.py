"""Language without a model: messages, terms, temporal expressions, names, questions, and rule-based extraction.

All modules are pure functions of texts. The package may import domain and errors only. Every layer above may import it:
llm, graph, stores, recall, ingest, admin, interchange and api. Nothing is exported here: import from the modules.
"""
