"""Job queue of PostgreSQL, for workers in many processes on many hosts."""

from __future__ import annotations

from typing import Any

from mem0_core.interfaces import Job
from mem0_core.stores.sql.queue import SqlJobQueue

__all__ = ["PostgresJobQueue"]


class PostgresJobQueue(SqlJobQueue):
    """A `JobQueue` with async methods."""

    ahas_ready_job: Any
    alease_ready: Any

    async def alease(self, worker: str, *, seconds: float, limit: int = 1) -> list[Job]:
        jobs: list[Job] = []
        if await self.ahas_ready_job():
            jobs = await self.alease_ready(worker, seconds=seconds, limit=limit)
        return jobs
