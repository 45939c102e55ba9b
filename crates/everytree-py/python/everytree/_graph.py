"""Where the vertices of a dependency graph go: strongly linked ones near each other."""

from __future__ import annotations

import numpy as np


def strongest(probabilities: np.ndarray, directed: bool, most: int) -> list[tuple[int, int, float]]:
    """The most probable edges as (from, to, probability); of two directions between the same vertices, both."""
    pairs = []
    side = len(probabilities)
    for v in range(side):
        for u in range(side if directed else v):
            if u != v and probabilities[v, u] > 0.02:
                pairs.append((u, v, float(probabilities[v, u])))
    pairs.sort(key=lambda edge: -edge[2])
    return pairs[:most]


def layout(side: int, edges: list[tuple[int, int, float]]) -> np.ndarray:
    """Places in the unit square: springs between linked vertices, and all push each other away (Fruchterman and Reingold)."""
    if side == 0:
        return np.empty((0, 2))
    angle = 2 * np.pi * np.arange(side) / max(side, 1)
    places = np.column_stack([np.cos(angle), np.sin(angle)])
    pull = np.zeros((side, side))
    for u, v, p in edges:
        pull[u, v] = pull[v, u] = max(pull[u, v], p)
    ideal = 1.6 / np.sqrt(max(side, 1))
    for step in range(200):
        apart = places[:, None, :] - places[None, :, :]
        distance = np.sqrt((apart**2).sum(axis=2)) + 1e-6
        push = ideal**2 / distance**2 - pull * distance / ideal
        np.fill_diagonal(push, 0.0)
        force = (apart / distance[:, :, None] * (push * 1.0)[:, :, None]).sum(axis=1)
        force -= 0.05 * places
        length = np.sqrt((force**2).sum(axis=1, keepdims=True)) + 1e-9
        places = places + force / length * np.minimum(length, 0.2 * (1 - step / 200))
    low, high = places.min(axis=0), places.max(axis=0)
    return (places - low) / np.maximum(high - low, 1e-9)
