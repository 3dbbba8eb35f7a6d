"""Examples that `--help` shows for each command."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, ...]] = {
    "add": (
        'mem0-core add "My sister Anna works at Acme." --user maya',
        'mem0-core add "I moved to Porto." --user maya --at 2025-07-28',
    ),
    "search": (
        'mem0-core search "Who works at Acme?" --user maya',
        "mem0-core search tea --user maya --limit 3 --json",
    ),
    "answer": (
        'mem0-core answer "Where does my sister work?" --user maya',
        'mem0-core answer "Where did I live?" --user maya --as-of 2025-05-01',
    ),
    "context": ('mem0-core context "Plan a dinner for Anna" --user maya --max-tokens 500',),
    "explain-missing": ('mem0-core explain-missing "soup" 8a3f61c2 --user maya',),
    "get-all": ("mem0-core get-all --user maya", "mem0-core list --user maya --json"),
    "get": ("mem0-core get 8a3f61c2",),
    "history": ("mem0-core history 8a3f61c2",),
    "update": ('mem0-core update 8a3f61c2 "My sister Anna works at Galp."',),
    "update-by-query": ('mem0-core update-by-query "Anna Acme" "Anna retired." --user maya --dry-run',),
    "delete": ("mem0-core delete 8a3f61c2 --dry-run", "mem0-core delete 8a3f61c2 --purge"),
    "delete-by-query": ('mem0-core delete-by-query "old address" --user maya --dry-run',),
    "delete-all": ("mem0-core delete-all --user maya --yes",),
    "reset": ("mem0-core reset --path /tmp/trial --yes",),
    "erase": ('mem0-core erase --user maya --reason "request 4711"',),
    "retract": ("mem0-core retract tool:web_search --user maya", "mem0-core retract notes.txt --purge"),
    "feedback": ("mem0-core feedback 8a3f61c2 useful", "mem0-core feedback 8a3f61c2 withdrawn"),
    "pin": ("mem0-core pin 8a3f61c2", "mem0-core pin 8a3f61c2 --off"),
    "pending": ("mem0-core pending --user maya",),
    "flush": ("mem0-core flush --timeout 60",),
    "retry": ("mem0-core retry 3",),
    "rebuild": ("mem0-core rebuild --embedder mem0-minilm",),
    "relations": ("mem0-core relations --user maya --ended", "mem0-core relations --user maya --as-of 2025-05-01"),
    "traverse": ('mem0-core traverse "my sister\'s dog" --user maya',),
    "query": (
        'mem0-core query "MATCH (a)-[:works_at]->(b) RETURN a, b" --user maya',
        'mem0-core query "MATCH (a {name: $who})-[r]->(b) RETURN r, b" --parameter who=Anna --user maya',
    ),
    "visualize": ("mem0-core visualize --user maya --out graph.html", "mem0-core visualize Anna --user maya --depth 1"),
    "merge": (
        "mem0-core merge --user maya",
        'mem0-core merge entities --name "Rob Miller" --name "Robert Miller" --apply --user maya',
    ),
    "merges": ("mem0-core merges --user maya",),
    "unmerge": ("mem0-core unmerge 8a3f61c2",),
    "adopt": ("mem0-core adopt", "mem0-core adopt /srv/agent/mem0 --collection support --json"),
    "import": (
        "mem0-core import conversations.json --user maya",
        "mem0-core import notes.txt --format text --user maya",
    ),
    "export": ("mem0-core export memories.jsonl", "mem0-core export graph --format csv --user maya"),
    "backup": ("mem0-core backup monday.db",),
    "restore": ("mem0-core restore monday.db --force",),
    "migrate": ("mem0-core migrate --from ./data --to postgresql://localhost/memories",),
    "schema": ("mem0-core schema --store postgres --partitions 16",),
    "verify": ("mem0-core verify", "mem0-core verify --json"),
    "stats": ("mem0-core stats", "mem0-core stats --user maya --json"),
    "eval": (
        "mem0-core eval chats.jsonl --suggest",
        "mem0-core eval chats.jsonl --compare memory-eval.json",
        'mem0-core eval chats.jsonl --questions questions.json --recipe hybrid --recipe mem0 --require "hit@5>=0.8"',
    ),
    "doctor": ("mem0-core doctor", "mem0-core doctor --check --json"),
    "mcp": ("mem0-core mcp --user maya", "mem0-core mcp --user maya --read-only"),
    "serve": ("mem0-core serve", "mem0-core serve --host 0.0.0.0 --allow-host memory.internal"),
    "keys": ("mem0-core keys", "mem0-core keys --create laptop --user maya", "mem0-core keys --revoke 8a3f61c2"),
    "hook": ("mem0-core hook --user maya < event.json", "mem0-core hook --url http://127.0.0.1:8765 < event.json"),
    "prompt": ("mem0-core prompt --user maya",),
    "completion": ("source <(mem0-core completion bash)", "mem0-core completion fish | source"),
}

EPILOG = """\
examples:
  mem0-core add "My sister Anna works at Acme." --user maya
  mem0-core search "Who works at Acme?" --user maya
  mem0-core answer "Where does my sister work?" --user maya
  mem0-core --user maya                        # start a prompt

environment: MEM0_USER replaces --user, MEM0_CORE_HOME replaces --path, NO_COLOR turns colors off.
exit codes: 0 success, 1 failure, 2 wrong usage, 3 unrepaired problems (doctor) or unmet
requirements (eval), 4 no such memory, 130 interrupted."""


def format_examples(command: str) -> str | None:
    """Return the examples of a command as the end of its help; None if it has none."""
    lines = EXAMPLES.get(command)
    return "\n".join(["examples:", *(f"  {line}" for line in lines)]) if lines else None
