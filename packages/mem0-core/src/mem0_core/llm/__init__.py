"""Requests to language models: prompts, readers for the replies, and token counts.

`prompts` and `graph_prompts` build requests; `replies`, `graph_replies` and `triplet_lines` read the answers on top of
`_json_replies`; `ask` sends a request with one repair; `tokens` counts tokens. The package may import language, flow,
interfaces, domain and errors. Graph, providers, recall, ingest and the layers above may import it.
"""
