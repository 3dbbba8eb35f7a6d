"""Calls as the documentation of mem0 1.x shows them, with a scripted model: arguments, positions and results."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mem0_core import AsyncMemory, Memory
from mem0_core.config import MemoryConfig
from mem0_core.testing import HashEmbedder, ScriptedChat

TALK = [
    {"role": "user", "content": "Which film fits tonight?"},
    {"role": "assistant", "content": "Perhaps a thriller?"},
    {"role": "user", "content": "No thrillers please, I prefer science fiction."},
    {"role": "assistant", "content": "Noted."},
]
FACTS = {"facts": ["Dislikes thrillers", "Prefers science fiction"]}


def read_facts(task: str, messages: Any) -> Any:
    return FACTS if "fact" in task else {"memory": []}


def keys(folder: Path) -> dict[str, Any]:
    """Return a configuration of mem0's keys; the model is scripted."""
    return {
        "history_db_path": str(folder / "memory.db"),
        "version": "v1.1",
        "llm": ScriptedChat(read_facts),
        "embedder": HashEmbedder(),
        "vector_store": {
            "provider": "qdrant",
            "config": {"path": str(folder / "qdrant"), "embedding_model_dims": 1536},
        },
    }


def test_the_calls_of_a_quickstart(tmp_path: Path) -> None:
    m = Memory.from_config(config_dict=keys(tmp_path))
    added = m.add(TALK, user_id="alice", metadata={"category": "films"})
    assert [(one["event"], one["memory"]) for one in added["results"]] == [("ADD", fact) for fact in FACTS["facts"]]
    every = m.get_all(user_id="alice")["results"]
    assert {"id", "memory", "hash", "created_at", "updated_at", "metadata", "user_id"} <= set(every[0])
    assert every[0]["metadata"] == {"category": "films"}
    memory_id = every[0]["id"]
    assert m.get(memory_id) == every[0]
    found = m.search(query="What do I prefer?", user_id="alice", limit=3)["results"]
    assert all(0 <= one["score"] <= 1 for one in found)
    assert "\n".join(f"- {entry['memory']}" for entry in found)
    assert m.update(memory_id=memory_id, data="Loves science fiction") == {"message": "Memory updated successfully!"}
    assert [row["event"] for row in m.history(memory_id=memory_id)] == ["ADD", "UPDATE"]
    m.add(TALK, user_id="alice", metadata={"category": "films"}, infer=False)
    assert len(m.get_all(user_id="alice", filters={"category": "films"}, limit=100)["results"]) > 2
    m.delete(memory_id=memory_id)
    assert m.get(memory_id) is None
    m.delete_all("alice")
    assert m.get_all(user_id="alice") == {"results": [], "relations": []}
    m.reset()
    m.close()


def test_the_calls_by_position(tmp_path: Path) -> None:
    with Memory.from_config(keys(tmp_path)) as m:
        (one, _) = m.add(TALK, user_id="alice")["results"]
        assert m.search("science fiction", user_id="alice")["results"]
        m.update(one["id"], "Avoids thrillers", {"category": "taste"})
        updated = m.get(one["id"])
        assert updated is not None
        assert updated["metadata"] == {"category": "taste"}
        assert len(m.history(one["id"])) == 2
        m.delete(one["id"])
        m.delete_all("alice")


def test_the_calls_of_the_async_class(tmp_path: Path) -> None:
    async def use() -> None:
        m = await AsyncMemory.from_config(config_dict=keys(tmp_path))
        await m.add(messages=TALK, user_id="alice")
        found, every = await asyncio.gather(
            m.search(query="films", user_id="alice"), m.get_all(user_id="alice", limit=100)
        )
        assert found["results"]
        memory_id = every["results"][0]["id"]
        assert await m.get(memory_id=memory_id)
        await m.update(memory_id=memory_id, data="Avoids thrillers")
        assert len(await m.history(memory_id=memory_id)) == 2
        await m.delete(memory_id=memory_id)
        await m.delete_all(user_id="alice")
        await m.close()

    asyncio.run(use())


def test_a_configuration_object(tmp_path: Path) -> None:
    config = MemoryConfig(history_db_path=tmp_path / "memory.db", embedder=HashEmbedder())
    with Memory(config=config) as m:
        m.add("I avoid thrillers", user_id="alice", agent_id="guide", run_id="evening-1", infer=False)
        for ids in ({"user_id": "alice"}, {"agent_id": "guide"}, {"run_id": "evening-1"}):
            assert len(m.get_all(**ids)["results"]) == 1  # type: ignore[arg-type]
    memory = AsyncMemory(config=config)
    assert asyncio.run(memory.get_all(user_id="alice"))["results"]
    asyncio.run(memory.close())


@pytest.mark.parametrize("provider", ["openai", "ollama", "lmstudio", "vllm", "openai_structured"])
def test_providers_with_mem0s_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    address = {} if provider.startswith("openai") else {f"{provider}_base_url": "http://localhost:1"}
    given = {"model": "m", "temperature": 0.1, "max_tokens": 2000, "top_p": 0.1, **address}
    config = {"path": str(tmp_path), "llm": {"provider": provider, "config": given}}
    with Memory(config, embedder=HashEmbedder()) as m:
        assert m.get_all(user_id="alice")["results"] == []


@pytest.mark.parametrize(
    ("roles", "ids", "options", "is_for_agent"),
    [
        (("user",), {"agent_id": "guide"}, {}, False),
        (("user", "assistant"), {"agent_id": "guide"}, {}, True),
        (("user", "assistant"), {"agent_id": "guide", "user_id": "alice"}, {}, True),
        (("user", "assistant"), {"user_id": "alice"}, {}, False),
        (("user", "assistant"), {"run_id": "evening-1"}, {}, False),
        (("user", "assistant"), {"agent_id": "guide", "user_id": "alice"}, {"facts_about": "owner"}, False),
        (("user", "assistant"), {"agent_id": "guide"}, {"facts_about": "owner"}, True),
        (("user", "assistant"), {"agent_id": "guide"}, {"facts_about": "user"}, False),
        (("user",), {"user_id": "alice"}, {"facts_about": "agent"}, True),
    ],
)
@pytest.mark.parametrize("background", [False, True])
def test_the_prompt_of_facts_follows_agent_id_and_roles(
    tmp_path: Path,
    roles: tuple[str, ...],
    ids: dict[str, Any],
    options: dict[str, Any],
    is_for_agent: bool,
    background: bool,
) -> None:
    chat = ScriptedChat(read_facts)
    with Memory(path=tmp_path, llm=chat, embedder=HashEmbedder(), graph=False) as m:
        m.add(
            [{"role": role, "content": "I like quiet films."} for role in roles],
            background=background,
            **ids,
            **options,
        )
        assert m.flush(60)
    prompt = str(chat.calls[0].messages[0]["content"])
    assert ("assistant information organizer" in prompt) is is_for_agent


def test_unknown_values_of_facts_about_name_the_accepted_ones(tmp_path: Path) -> None:
    with Memory(path=tmp_path, embedder=HashEmbedder()) as m, pytest.raises(ValueError, match=r"'agnet'.*'agent'"):
        m.add("I like tea", user_id="alice", facts_about="agnet")  # type: ignore[arg-type]


def test_results_of_an_add_name_changes_only(tmp_path: Path) -> None:
    with Memory(path=tmp_path, embedder=HashEmbedder()) as m:
        (first,) = m.add("I like tea", user_id="alice")["results"]
        again = m.add("I like tea", user_id="alice")
        assert again["results"] == []
        assert [(one["id"], one["event"]) for one in again["unchanged"]] == [(first["id"], "NONE")]


def test_search_and_get_all_return_a_hundred_memories_by_default(tmp_path: Path) -> None:
    with Memory(path=tmp_path, embedder=HashEmbedder()) as m:
        m.add_many([f"Film {number} is quiet" for number in range(120)], user_id="alice")
        assert len(m.search("quiet films", user_id="alice")["results"]) == 100
        assert len(m.get_all(user_id="alice")["results"]) == 100
        assert len(m.get_all(user_id="alice", limit=None)["results"]) == 120
        assert len(m.get_all(user_id="alice", top_k=7)["results"]) == 7
        best = [one["id"] for one in m.search("quiet films", user_id="alice")["results"][:10]]
        assert [one["id"] for one in m.search("quiet films", user_id="alice", limit=10)["results"]] == best


def test_a_rerank_without_a_reranker_leaves_the_order(tmp_path: Path) -> None:
    with Memory(path=tmp_path, embedder=HashEmbedder()) as m:
        m.add("I like quiet films", user_id="alice")
        found = m.search("Which films do I like?", user_id="alice", limit=3, rerank=True)
        assert [one["memory"] for one in found["results"]] == ["I like quiet films"]
        assert found["note"] == "rerank=True has no effect: no reranker is configured"
        assert "note" not in m.search("Which films do I like?", user_id="alice")


FILTERS: list[tuple[dict[str, Any], set[str]]] = [
    ({"genre": "drama"}, {"a"}),
    ({"rating": {"gt": 6}, "year": {"lte": 2020}}, {"a"}),
    ({"genre": {"ne": "drama"}}, {"b", "c"}),
    ({"genre": {"in": ["drama", "comedy"]}, "seen": {"nin": [True]}}, {"b"}),
    ({"title": {"contains": "Quiet"}}, {"a"}),
    ({"title": {"icontains": "quiet"}}, {"a", "b"}),
    ({"seen": "*"}, {"a", "b"}),
    ({"AND": [{"genre": "comedy"}, {"rating": {"gte": 5}}]}, {"b"}),
    ({"OR": [{"genre": "comedy"}, {"rating": {"gte": 8}}]}, {"a", "b"}),
    ({"NOT": [{"genre": "comedy"}, {"genre": "drama"}]}, {"c"}),
    ({"AND": [{"OR": [{"genre": "drama"}, {"genre": "comedy"}]}, {"NOT": [{"seen": True}]}]}, {"b"}),
    ({"AND": [{"user_id": "alice"}, {"genre": "drama"}]}, {"a"}),
]
FILMS = {
    "a": {"genre": "drama", "rating": 8, "year": 2019, "title": "A Quiet House", "seen": True},
    "b": {"genre": "comedy", "rating": 6, "year": 2022, "title": "the quiet guest", "seen": False},
    "c": {"genre": "crime", "rating": 3, "year": 2021, "title": "Noise"},
}


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with Memory(path=tmp_path_factory.mktemp("films"), embedder=HashEmbedder()) as m:
        for key, metadata in FILMS.items():
            m.add(f"Saw the film {key}", user_id="alice", metadata={"key": key, **metadata}, infer=False)
        yield m


@pytest.mark.parametrize(("filters", "expected"), FILTERS, ids=[str(filters) for filters, _ in FILTERS])
def test_the_filters_of_mem0s_guide(films: Memory, filters: dict[str, Any], expected: set[str]) -> None:
    found = films.search("Which film?", user_id="alice", filters=filters)["results"]
    assert {(one["metadata"] or {})["key"] for one in found} == expected


def test_an_unknown_operator_is_a_value_error(films: Memory) -> None:
    with pytest.raises(ValueError, match="'unknown'"):
        films.search("Which film?", user_id="alice", filters={"genre": {"unknown": "drama"}})


def test_images_prompts_and_procedures(tmp_path: Path) -> None:
    """Calls of mem0's guides to custom prompts, images and procedural memory."""
    seen: list[str] = []

    def reply(task: str, messages: Any) -> Any:
        seen.append(str(messages))
        return "Opened the catalog, then ordered two tickets." if "procedural" in task else read_facts(task, messages)

    config = {
        "path": str(tmp_path),
        "llm": ScriptedChat(reply),
        "embedder": HashEmbedder(),
        "custom_fact_extraction_prompt": "Return film tastes as JSON with the key facts.",
        "custom_update_memory_prompt": "Compare the facts with the memories.",
    }
    with Memory.from_config(config_dict=config) as m:
        m.add(TALK, user_id="alice")
        assert "Return film tastes" in seen[0]
        image = {"role": "user", "content": {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}}
        m.add([{"role": "user", "content": "This is my poster."}, image], user_id="alice")
        steps = m.add(TALK, agent_id="guide", memory_type="procedural_memory")["results"]
        assert [one["memory"] for one in steps] == ["Opened the catalog, then ordered two tickets."]


def test_an_async_memory_in_a_loop_of_its_own_thread(tmp_path: Path) -> None:
    async def use() -> list[str]:
        m = AsyncMemory.from_config(keys(tmp_path))
        await m.add(messages="I prefer science fiction", user_id="alice", infer=False)
        texts = [one["memory"] for one in (await m.get_all(user_id="alice"))["results"]]
        await m.close()
        return texts

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: asyncio.run(use())).result(60) == ["I prefer science fiction"]
