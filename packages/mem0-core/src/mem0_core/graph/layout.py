"""Where the nodes of a drawing lie: each component by forces, and the components packed beside one another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mem0_core.graph.traversal import connected

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Points = NDArray[np.float64]

__all__ = ["layout"]

_SPACE = 90.0  # pixels between neighbours in a large drawing; few nodes have up to twice as much, for their labels
_EXACT = 300  # nodes up to which each repels each; above, each is repelled by a sample of them
_SAMPLE = 30
_ROUNDS = 120
_CENTRE = 0.03  # how strongly everything is drawn to the middle
_CORE = 0.85  # share of the nodes beyond which what is far out is drawn nearer


def layout(count: int, pairs: Sequence[tuple[int, int]]) -> Points:
    """Positions, (count, 2) in pixels, of the nodes 0 to count - 1 that are joined in `pairs`.

    Always the same for the same; takes some seconds for 5,000 nodes.
    """
    places = np.zeros((count, 2))
    parts = _components(count, pairs)
    drawn = []
    for part in parts:
        number = {node: place for place, node in enumerate(part)}
        inner = [(number[one], number[other]) for one, other in pairs if one in number and one != other]
        drawn.append(_spread(len(part), np.array(inner, np.int64).reshape(-1, 2)))
    for part, points, corner in zip(parts, drawn, _packed([_size(points) for points in drawn]), strict=True):
        places[part] = points - points.min(axis=0) + corner
    space = _SPACE * (1 + 1 / (1 + count / 60))
    return (places - places.mean(axis=0)) * space if count else places


def _components(count: int, pairs: Sequence[tuple[int, int]]) -> list[list[int]]:
    """The nodes of each component, the largest first."""
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    parts: dict[int, list[int]] = {}
    for node, part in enumerate(connected(count, ends[:, 0], ends[:, 1]).tolist()):
        parts.setdefault(part, []).append(node)
    return sorted(parts.values(), key=lambda part: (-len(part), part[0]))


def _spread(count: int, pairs: NDArray[np.int64]) -> Points:
    """Fruchterman and Reingold (1991): what is joined attracts, everything repels, and it cools down."""
    chance = np.random.default_rng(count)
    points = chance.standard_normal((count, 2)) * math.sqrt(count)
    if count == 1:
        return points * 0
    for step in range(_ROUNDS):
        force = _repelled(points, chance) - _CENTRE * points
        away = points[pairs[:, 1]] - points[pairs[:, 0]]
        pull = away * np.linalg.norm(away, axis=1, keepdims=True)
        np.add.at(force, pairs[:, 0], pull)
        np.add.at(force, pairs[:, 1], -pull)
        length = np.linalg.norm(force, axis=1, keepdims=True)
        heat = 0.15 * math.sqrt(count) * (1 - step / _ROUNDS) + 0.01
        points += force / np.maximum(length, 1e-9) * np.minimum(length, heat)
    return _gathered(points)


def _gathered(points: Points) -> Points:
    """The points, with those far out drawn nearer, so that they do not make all the others small."""
    points = points - points.mean(axis=0)
    radius = np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-9)
    core = np.quantile(radius, _CORE)
    return points * np.where(radius > core, core * (1 + np.log(np.maximum(radius / core, 1.0))) / radius, 1.0)


def _repelled(points: Points, chance: np.random.Generator) -> Points:
    count = len(points)
    others = points[None] if count <= _EXACT else points[chance.integers(0, count, (count, _SAMPLE))]
    away_x, away_y = (points[:, None, axis] - others[..., axis] for axis in (0, 1))
    near = 1 / np.maximum(away_x * away_x + away_y * away_y, 0.01)
    share = 1.0 if count <= _EXACT else count / _SAMPLE
    return np.stack(((away_x * near).sum(axis=1), (away_y * near).sum(axis=1)), axis=1) * share


def _size(points: Points) -> tuple[float, float]:
    width, height = points.max(axis=0) - points.min(axis=0) + 2
    return float(width), float(height)


def _packed(sizes: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Corners of boxes put in rows, about as wide in all as they are high."""
    row_width = max([1.3 * math.sqrt(sum(width * height for width, height in sizes)), *(width for width, _ in sizes)])
    corners, x, y, row_height = [], 0.0, 0.0, 0.0
    for width, height in sizes:
        if x and x + width > row_width:
            x, y, row_height = 0.0, y + row_height, 0.0
        corners.append((x, y))
        x, row_height = x + width, max(row_height, height)
    return corners
