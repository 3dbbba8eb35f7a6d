"""Computations on the graph of one scope: adjacency arrays, traversal, the query language, drawings.

All of it is pure, over an `Adjacency`; only `lookup` makes calls, to the graph's index and to a model. `recall`,
`ingest`, `api` and `cli` may import this package. It imports `language`, `llm`, `flow`, `interfaces` and `domain`;
never `recall`, `ingest` or a store. Import its modules directly and late: all but `lookup` import NumPy.
"""
