"""Chat models, embedders and rerankers: OpenAI's protocol, and models that run in this process.

The configuration names each class by its module, and every library is imported on first use. Framework adapters share
`adapters` and `prompted_tools`. A private module holds code that several providers share.

``api`` and the framework packages may import this package. It imports ``llm``, ``flow``, ``interfaces``, ``domain`` and
``errors``.
"""
