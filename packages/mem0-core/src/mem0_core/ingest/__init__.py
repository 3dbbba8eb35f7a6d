"""Writing to the memory: extract facts and relations, reconcile them with the stored memories, commit once.

`remember.ingest` runs one add; `bulk` imports many messages; `updates` and `by_query` change or delete memories;
`conversation` keeps summaries and assembles context; `entity_resolution` merges names; `worker` runs queued jobs.
The package may import recall, graph, llm, language, flow, interfaces, domain and errors. Only admin, interchange,
api and the adapters may import it. Nothing is exported here: import from the modules.
"""
