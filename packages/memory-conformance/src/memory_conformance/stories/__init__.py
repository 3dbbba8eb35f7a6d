"""Life stories: people who tell an agent about years of their lives, and questions about what holds, held and changed.

`play` tells the stories of a system's owners and asks the questions; `score` turns the answers into figures; `check`
finds annotations that contradict each other. No model takes part.
"""

from memory_conformance.stories.check import find_problems
from memory_conformance.stories.data import LANGUAGES, TYPES, Person, load_people
from memory_conformance.stories.play import Asked, play
from memory_conformance.stories.score import render_figures, score

__all__ = ["LANGUAGES", "TYPES", "Asked", "Person", "find_problems", "load_people", "play", "render_figures", "score"]
