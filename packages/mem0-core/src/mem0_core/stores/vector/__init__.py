"""Vector indexes: projections of the primary store's vectors, by numpy, FAISS or a vector store of a framework.

`embedded` chooses between a scan on numpy and `faiss`, which searches large partitions by HNSW. `external` follows any
store that implements `ExternalStore`. All read changes by sequence number, so they can be behind but not wrong.

``api``, the configuration and the framework adapters may import this package. It imports ``interfaces``, ``domain``
and ``errors``.
"""
