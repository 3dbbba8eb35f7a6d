"""Prompt completions for prompt_toolkit; importing this module requires that library."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

if TYPE_CHECKING:
    from mem0_core.cli._prompt import PromptState


class SessionCompleter(Completer):
    """Offers the completions of `PromptState` for the last word before the cursor."""

    def __init__(self, session: PromptState) -> None:
        self._session = session

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        line = document.text_before_cursor
        word = line.rpartition(" ")[2]
        for found in self._session.completions(line):
            yield Completion(found, start_position=-len(word))
