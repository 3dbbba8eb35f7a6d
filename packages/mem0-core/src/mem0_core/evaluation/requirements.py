"""Requirements on the figures of an evaluation, for the exit code of a continuous integration."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mem0_core.domain.suggestions import suggest
from mem0_core.errors import InputError
from mem0_core.evaluation.figures import FIGURES

_FORM = re.compile(r"(?:(?P<arm>.+):)?(?P<figure>[a-z_]+(?:@\d+)?)\s*(?P<sign>>=|<=|>|<)\s*(?P<bound>\d+(?:\.\d+)?)")
_SIGNS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


@dataclass(frozen=True, slots=True)
class Requirement:
    """A bound of a figure; without an arm, of the first memory."""

    text: str
    arm: str | None
    figure: str
    sign: str
    bound: float


def parse_requirement(text: str) -> Requirement:
    """Parse ``hit@5>=0.8`` or ``memory hybrid:tokens<=900``.

    Raises:
        InputError: the text has another form, or the figure does not exist.
    """
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise InputError(f"{text!r} is not a requirement; pass FIGURE>=NUMBER, such as hit@5>=0.8 or tokens<=900")
    if match["figure"] not in FIGURES:
        raise InputError(f"{text!r} names the unknown figure {match['figure']!r}{suggest(match['figure'], FIGURES)}")
    return Requirement(text.strip(), match["arm"], match["figure"], match["sign"], float(match["bound"]))


def check_requirements(
    result: Mapping[str, Any], requirements: Sequence[Requirement], default_arm: str
) -> list[dict[str, Any]]:
    """Return for each requirement whether it is met, and the value; a figure without questions meets none.

    Raises:
        InputError: a requirement names an arm that was not evaluated.
    """
    checks = []
    for one in requirements:
        arm = one.arm or default_arm
        if arm not in result["arms"]:
            raise InputError(f"{one.text!r} names the unknown arm {arm!r}{suggest(arm, result['arms'])}")
        figure = result["arms"][arm]["figures"].get(one.figure)
        value = None if figure is None else figure["value"]
        met = value is not None and _SIGNS[one.sign](value, one.bound)
        checks.append({"requirement": one.text, "arm": arm, "value": value, "met": met})
    return checks
