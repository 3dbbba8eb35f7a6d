"""The doctor, where vectors are searched in a vector store of LangChain's."""

from __future__ import annotations

from pathlib import Path

from qdrant_client import QdrantClient

from mem0_core.testing import HashEmbedder
from tests.frameworks.langchain.test_vectors import qdrant
from tests.support import open_memory

DIMS = 32


def test_what_a_vector_store_lost_or_kept_by_hand_is_found_and_mended(tmp_path: Path) -> None:
    client = QdrantClient(":memory:")
    with open_memory(tmp_path, embedder=HashEmbedder(dims=DIMS), index=qdrant(client, DIMS)) as memory:
        memory.add_many([f"memory number {number} of things" for number in range(40)], user_id="ann")
        memory.search("things", user_id="ann")
        assert memory.doctor()["findings"] == []
        points, _ = client.scroll("memories", limit=100)
        rows = {point.payload["metadata"].get("mem0_row"): point.id for point in points if point.payload}
        client.delete("memories", [rows[row] for row in (3, 4)])
        (found,) = memory.doctor(repair=False)["findings"]
        assert "user_id 'ann'" in found["what"]
        assert "of 40 vectors: lacks 2" in found["what"]
        assert not found["mended"]
        (mended,) = memory.doctor()["findings"]
        assert mended["mended"]
        assert memory.doctor()["findings"] == []
        assert client.count("memories").count == len(points)
    client.close()
