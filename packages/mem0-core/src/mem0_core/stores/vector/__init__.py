"""Vector indexes: projections of the primary store's vectors, by FAISS or by a vector store of a framework.

`faiss` scans small partitions exactly and searches large ones by HNSW. `external` follows any store that implements
`ExternalStore`. Both read changes by sequence number, so they can be behind but not wrong.

``api``, the configuration and the framework adapters may import this package. It imports ``interfaces``, ``domain``
and ``errors``.
"""
