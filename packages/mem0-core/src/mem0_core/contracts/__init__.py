"""Contract suites, one per capability: pytest classes that every store and index subclasses.

::

    class TestMyStore(RecordsContract, VectorsContract):
        @pytest.fixture
        def store(self, tmp_path):
            store = complete_store(MyStore(tmp_path))
            yield store
            store.close()

`MemoryStoreContract` is the union for a store with every capability. Needs pytest; nothing else in the package does.
May import `domain`, `interfaces` and `language`; imported by tests only.
"""

from mem0_core.contracts.feed import FeedContract
from mem0_core.contracts.feedback import FeedbackContract
from mem0_core.contracts.graph_index import GraphIndexContract
from mem0_core.contracts.graph_store import GraphStoreContract, MergesContract
from mem0_core.contracts.history import HistoryContract
from mem0_core.contracts.lexicon import LexiconContract
from mem0_core.contracts.maintenance import MaintenanceContract
from mem0_core.contracts.messages import MessagesContract
from mem0_core.contracts.queue import ImportsContract, QueueContract
from mem0_core.contracts.records import RecordsContract
from mem0_core.contracts.samples import (
    ALICE,
    AT,
    BEFORE,
    BOB,
    COSINE_TOLERANCE,
    DIMS,
    LATER,
    SPACE,
    assert_nearest,
    in_threads,
    make_changes,
    make_item,
    make_relation_changes,
    unit_vectors,
)
from mem0_core.contracts.spaces import SpacesContract
from mem0_core.contracts.store import MemoryStoreContract
from mem0_core.contracts.vectors import VectorIndexContract, VectorsContract

__all__ = [
    "ALICE",
    "AT",
    "BEFORE",
    "BOB",
    "COSINE_TOLERANCE",
    "DIMS",
    "LATER",
    "SPACE",
    "FeedContract",
    "FeedbackContract",
    "GraphIndexContract",
    "GraphStoreContract",
    "HistoryContract",
    "ImportsContract",
    "LexiconContract",
    "MaintenanceContract",
    "MemoryStoreContract",
    "MergesContract",
    "MessagesContract",
    "QueueContract",
    "RecordsContract",
    "SpacesContract",
    "VectorIndexContract",
    "VectorsContract",
    "assert_nearest",
    "in_threads",
    "make_changes",
    "make_item",
    "make_relation_changes",
    "unit_vectors",
]
