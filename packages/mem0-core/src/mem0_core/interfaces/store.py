"""The whole store that the pipelines work with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from mem0_core.interfaces.history import MemoryHistory
from mem0_core.interfaces.records import MemoryRecords
from mem0_core.interfaces.vectors import VectorSource

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mem0_core.domain.filters import Filter
    from mem0_core.domain.records import Scope
    from mem0_core.interfaces.archive import Archive
    from mem0_core.interfaces.feed import ChangeFeed
    from mem0_core.interfaces.graph import GraphStore
    from mem0_core.interfaces.lexicon import Lexicon
    from mem0_core.interfaces.maintenance import StoreMaintenance
    from mem0_core.interfaces.merges import MergeLedger
    from mem0_core.interfaces.messages import MessageLog, Summary
    from mem0_core.interfaces.queue import JobQueue, Lease
    from mem0_core.interfaces.spaces import SpaceLedger


@runtime_checkable
class MemoryStore(MemoryRecords, VectorSource, MemoryHistory, Protocol):
    """A primary store with every capability. A commit changes all of them in one transaction.

    SQLite and PostgreSQL are such stores. A smaller store implements `RecordStore`; `stores.minimal` completes it.
    Every method raises StoreError when the database fails; nothing is written then.
    """

    @property
    def graph(self) -> GraphStore: ...
    @property
    def merges(self) -> MergeLedger: ...
    @property
    def message_log(self) -> MessageLog: ...
    @property
    def feed(self) -> ChangeFeed: ...
    @property
    def jobs(self) -> JobQueue: ...
    @property
    def lexicon(self) -> Lexicon: ...
    @property
    def spaces(self) -> SpaceLedger: ...
    @property
    def archive(self) -> Archive: ...
    @property
    def maintenance(self) -> StoreMaintenance: ...

    def rows(self, scope: Scope, *, filter: Filter | None = None, as_of: str | None = None) -> NDArray[np.int64]:
        """See `MemoryRecords.rows`."""
        ...

    def import_checkpoint(self, scope: Scope, key: str) -> int:
        """Return the number of messages done of an import into exactly this scope; 0 for an unknown key.

        Checkpoints are erased with their scope.
        """
        ...

    def save_summary(self, scope: Scope, summary: Summary, lease: Lease) -> bool:
        """Save a summary and complete the jobs of a lease. Returns False, and saves nothing, if the lease is lost."""
        ...
