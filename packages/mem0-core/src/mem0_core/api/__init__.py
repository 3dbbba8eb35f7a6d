"""Flows behind the methods of `Memory`, and the construction of its components.

`add`, `search`, `graph`, `update` and `admin` each hold one group of flows: they validate the arguments, run a pipeline
and convert its result to a dict. `_search_flow` is that of `Memory.search`, and `_principal_search_flow` that of
`Principal.search`. `factory` builds components from a configuration; `rerank` is a public function of its
own. Used by `memory`, `cli` and the framework packages; may import everything but those.
"""
