"""Layout of a drawing: each component is laid out by forces, and the components are packed into rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mem0_core.graph.traversal import connect

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Points = NDArray[np.float64]


_SPACING_PIXELS = 90.0  # between neighbors in a large drawing; small ones have up to twice as much, for their labels
_MAX_EXACT_NODES = 300  # up to this number each node repels every other; above it, a sample repels each
_SAMPLE_SIZE = 30
_ROUNDS = 120
_CENTER_PULL = 0.03
_CORE_SHARE = 0.85  # nodes beyond the radius of this share are drawn nearer


def layout(count: int, pairs: Sequence[tuple[int, int]]) -> Points:
    """Return the positions in pixels, (count, 2), of the nodes 0 to count - 1, connected by `pairs`.

    Deterministic; takes some seconds for 5,000 nodes.
    """
    positions = np.zeros((count, 2))
    parts = _components(count, pairs)
    drawn = []
    for part in parts:
        number = {node: index for index, node in enumerate(part)}
        inner = [(number[one], number[other]) for one, other in pairs if one in number and one != other]
        drawn.append(_lay_out_component(len(part), np.array(inner, np.int64).reshape(-1, 2)))
    for part, points, corner in zip(parts, drawn, _pack_boxes([_box_size(points) for points in drawn]), strict=True):
        positions[part] = points - points.min(axis=0) + corner
    spacing = _SPACING_PIXELS * (1 + 1 / (1 + count / 60))
    return (positions - positions.mean(axis=0)) * spacing if count else positions


def _components(count: int, pairs: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Return the nodes of each component, the largest first."""
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    parts: dict[int, list[int]] = {}
    for node, part in enumerate(connect(count, ends[:, 0], ends[:, 1]).tolist()):
        parts.setdefault(part, []).append(node)
    return sorted(parts.values(), key=lambda part: (-len(part), part[0]))


def _lay_out_component(count: int, pairs: NDArray[np.int64]) -> Points:
    """Lay out one component by forces that cool down (Fruchterman and Reingold, 1991)."""
    rng = np.random.default_rng(count)
    points = rng.standard_normal((count, 2)) * math.sqrt(count)
    if count == 1:
        return points * 0
    for step in range(_ROUNDS):
        force = _compute_repulsion(points, rng) - _CENTER_PULL * points
        away = points[pairs[:, 1]] - points[pairs[:, 0]]
        pull = away * np.linalg.norm(away, axis=1, keepdims=True)
        np.add.at(force, pairs[:, 0], pull)
        np.add.at(force, pairs[:, 1], -pull)
        length = np.linalg.norm(force, axis=1, keepdims=True)
        heat = 0.15 * math.sqrt(count) * (1 - step / _ROUNDS) + 0.01
        points += force / np.maximum(length, 1e-9) * np.minimum(length, heat)
    return _pull_outliers(points)


def _pull_outliers(points: Points) -> Points:
    """Draw points far out nearer, so that the others need not be drawn small."""
    points = points - points.mean(axis=0)
    radius = np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-9)
    core = np.quantile(radius, _CORE_SHARE)
    return points * np.where(radius > core, core * (1 + np.log(np.maximum(radius / core, 1.0))) / radius, 1.0)


def _compute_repulsion(points: Points, rng: np.random.Generator) -> Points:
    """Return the force on each point from the others, or from a sample of them."""
    count = len(points)
    others = points[None] if count <= _MAX_EXACT_NODES else points[rng.integers(0, count, (count, _SAMPLE_SIZE))]
    away_x, away_y = (points[:, None, axis] - others[..., axis] for axis in (0, 1))
    near = 1 / np.maximum(away_x * away_x + away_y * away_y, 0.01)
    share = 1.0 if count <= _MAX_EXACT_NODES else count / _SAMPLE_SIZE
    return np.stack(((away_x * near).sum(axis=1), (away_y * near).sum(axis=1)), axis=1) * share


def _box_size(points: Points) -> tuple[float, float]:
    width, height = points.max(axis=0) - points.min(axis=0) + 2
    return float(width), float(height)


def _pack_boxes(sizes: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the corners of boxes put in rows, about as wide in total as high."""
    row_width = max([1.3 * math.sqrt(sum(width * height for width, height in sizes)), *(width for width, _ in sizes)])
    corners, x, y, row_height = [], 0.0, 0.0, 0.0
    for width, height in sizes:
        if x and x + width > row_width:
            x, y, row_height = 0.0, y + row_height, 0.0
        corners.append((x, y))
        x, row_height = x + width, max(row_height, height)
    return corners
