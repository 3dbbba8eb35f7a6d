"""Protocols that models, stores and indexes implement, one module per capability.

A chat model, an embedder and a reranker are one method each. A first store implements `RecordStore` (seven methods);
`MemoryStore` is the union of all capabilities. Every method may have an ``a<method>`` counterpart with the same
arguments (``acomplete``, ``aembed``): `flow.arun` awaits it, and uses a thread otherwise.
May be imported by everything but `domain`; imports only `domain` and `errors`.
"""

from mem0_core.interfaces.archive import Archive
from mem0_core.interfaces.chat import ChatModel, Reply, Task, Tool, ToolCall
from mem0_core.interfaces.embedder import Embedder, check_embedding_space
from mem0_core.interfaces.feed import ChangeFeed
from mem0_core.interfaces.graph import (
    EdgeRow,
    GraphChanges,
    GraphDelta,
    GraphIndex,
    GraphMemory,
    GraphNeighborhood,
    GraphOptions,
    GraphStore,
    NodeRow,
)
from mem0_core.interfaces.history import MemoryHistory
from mem0_core.interfaces.lexicon import (
    FeatureChanges,
    Lexicon,
    MemoryFeatures,
    MemoryFeatureSet,
    ScopeState,
    VersionedLexicon,
    WordKind,
)
from mem0_core.interfaces.maintenance import StoreMaintenance
from mem0_core.interfaces.merges import MergeLedger, MergePlan
from mem0_core.interfaces.messages import MessageLog, Summary
from mem0_core.interfaces.ports import AdjacencyCache, Ports
from mem0_core.interfaces.queue import Job, JobKind, JobQueue, Lease, QueuedTurn
from mem0_core.interfaces.records import (
    CommitResult,
    EmbeddedItem,
    MemoryRecords,
    OnConflict,
    PlannedUpdate,
    RecordStore,
    RetractionResult,
)
from mem0_core.interfaces.reranker import Candidate, ContextReranker, ListwiseReranker, Passage, Reranker
from mem0_core.interfaces.spaces import ForgottenMember, SpaceLedger
from mem0_core.interfaces.store import MemoryStore
from mem0_core.interfaces.vectors import (
    ChangePosition,
    VectorChanges,
    VectorIndex,
    VectorReader,
    VectorSource,
    drop_below_threshold,
)

__all__ = [
    "AdjacencyCache",
    "Archive",
    "Candidate",
    "ChangeFeed",
    "ChangePosition",
    "ChatModel",
    "CommitResult",
    "ContextReranker",
    "EdgeRow",
    "EmbeddedItem",
    "Embedder",
    "FeatureChanges",
    "ForgottenMember",
    "GraphChanges",
    "GraphDelta",
    "GraphIndex",
    "GraphMemory",
    "GraphNeighborhood",
    "GraphOptions",
    "GraphStore",
    "Job",
    "JobKind",
    "JobQueue",
    "Lease",
    "Lexicon",
    "ListwiseReranker",
    "MemoryFeatureSet",
    "MemoryFeatures",
    "MemoryHistory",
    "MemoryRecords",
    "MemoryStore",
    "MergeLedger",
    "MergePlan",
    "MessageLog",
    "NodeRow",
    "OnConflict",
    "Passage",
    "PlannedUpdate",
    "Ports",
    "QueuedTurn",
    "RecordStore",
    "Reply",
    "Reranker",
    "RetractionResult",
    "ScopeState",
    "SpaceLedger",
    "StoreMaintenance",
    "Summary",
    "Task",
    "Tool",
    "ToolCall",
    "VectorChanges",
    "VectorIndex",
    "VectorReader",
    "VectorSource",
    "VersionedLexicon",
    "WordKind",
    "check_embedding_space",
    "drop_below_threshold",
]
