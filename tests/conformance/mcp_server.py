"""A small MCP server on standard input and output, with an owner as an argument of its tools, and names of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def answer(notes: list[list[str]], tool: str, arguments: dict[str, Any]) -> Any:
    who = arguments["who"]
    if tool == "save_note":
        notes.append([who, arguments["content"]])
    if tool == "remove_note":
        notes[arguments["note"]] = ["", ""]
    words = str(arguments.get("words", "")).casefold().split()
    found = [
        {"key": number, "content": text}
        for number, (owner, text) in enumerate(notes)
        if owner == who and all(word in text.casefold() for word in words)
    ]
    return found[-1] if tool == "save_note" else found[: arguments.get("top")]


def main(folder: Path) -> None:
    path = folder / "notes.json"
    notes = json.loads(path.read_text()) if path.exists() else []
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        response: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"], "result": {}}
        if request["method"] == "tools/call":
            try:
                found = answer(notes, request["params"]["name"], request["params"]["arguments"])
                content = [{"type": "text", "text": json.dumps({"notes": found})}]
                response["result"] = {"content": content}
                path.write_text(json.dumps(notes))
            except (LookupError, TypeError) as error:
                response["result"] = {"isError": True, "content": [{"type": "text", "text": str(error)}]}
        sys.stdout.write(json.dumps(response) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
