"""Columns of words as numbers."""

from __future__ import annotations

from typing import List


def typed(words: List[str]) -> list:
    """Whole numbers or floats, where every word of a column is one; else the words. "007" and "1_000"
    are words."""
    if any("_" in word or (word[:1] == "0" and word[1:2].isdigit()) for word in words):
        return words
    for number in (int, float):
        try:
            return [number(word) for word in words]
        except ValueError:
            pass
    return words
