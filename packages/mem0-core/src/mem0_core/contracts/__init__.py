"""Contract suites: pytest classes that every backend subclasses."""

from mem0_core.contracts.graph import GraphIndexContract
from mem0_core.contracts.stores import (
    COSINE_TOLERANCE,
    MemoryStoreContract,
    VectorIndexContract,
    assert_nearest,
    in_threads,
    make_changes,
    make_item,
    make_relation_changes,
    unit_vectors,
)

__all__ = [
    "COSINE_TOLERANCE",
    "GraphIndexContract",
    "MemoryStoreContract",
    "VectorIndexContract",
    "assert_nearest",
    "in_threads",
    "make_changes",
    "make_item",
    "make_relation_changes",
    "unit_vectors",
]
