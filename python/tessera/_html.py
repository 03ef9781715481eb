"""Reports as notebooks show them: HTML that needs nothing else."""

from __future__ import annotations

import html
import math
from typing import Iterable, List, Sequence

_WIDTH, _HEIGHT, _LEFT, _BELOW = 480, 160, 56, 18  # of a chart, in pixels
_MOST_POINTS = 400


def text(value: object) -> str:
    """A value as a cell shows it, escaped."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: ""}[value]
    return html.escape(f"{value:.6g}" if isinstance(value, float) else str(value))


def table(rows: Iterable[Sequence[object]], head: Sequence[object] = ()) -> str:
    """Numbers are aligned to the right."""

    def row(cells: Sequence[object], tag: str) -> str:
        out = ""
        for cell in cells:
            number = isinstance(cell, (int, float)) and not isinstance(cell, bool)
            out += f'<{tag} style="text-align:{"right" if number else "left"}">{text(cell)}</{tag}>'
        return f"<tr>{out}</tr>"

    begin = f"<thead>{row(head, 'th')}</thead>" if head else ""
    return f"<table>{begin}<tbody>{''.join(row(cells, 'td') for cells in rows)}</tbody></table>"


def bytes_text(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            break
        count, unit = count / 1024, "TiB"
    return f"{count:.4g} {unit}"


def chart(values: Sequence[float], what: str) -> str:
    """A curve of values over steps, as SVG; many are shown by means of neighbours."""
    every = max(1, math.ceil(len(values) / _MOST_POINTS))
    points: List[tuple] = []
    for begin in range(0, len(values), every):
        part = [float(v) for v in values[begin : begin + every] if math.isfinite(v)]
        if part:
            points.append((begin + (min(every, len(values) - begin) + 1) / 2, sum(part) / len(part)))
    if not points:
        return ""
    low, high = min(y for _, y in points), max(y for _, y in points)
    span, last = (high - low) or 1.0, max(len(values) - 1, 1)
    wide, tall = _WIDTH - _LEFT - 4, _HEIGHT - _BELOW - 8

    def place(x: float, y: float) -> str:
        return f"{_LEFT + wide * (x - 1) / last:.1f},{4 + tall * (high - y) / span:.1f}"

    labels = [(_LEFT - 4, 12, "end", high), (_LEFT - 4, 4 + tall, "end", low)]
    labels += [(_LEFT, _HEIGHT - 4, "start", 1), (_WIDTH - 4, _HEIGHT - 4, "end", len(values))]
    words = "".join(
        f'<text x="{x}" y="{y}" text-anchor="{anchor}">{text(value)}</text>'
        for x, y, anchor, value in labels
    )
    line = " ".join(place(x, y) for x, y in points)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
        f'font-size="11" font-family="sans-serif" fill="currentColor"><title>{text(what)}</title>{words}'
        f'<path d="M{_LEFT},4V{4 + tall}H{_WIDTH - 4}" fill="none" stroke="currentColor" '
        f'stroke-opacity="0.3"/><polyline points="{line}" fill="none" stroke="#2a6fb0" '
        f'stroke-width="1.5"/></svg>'
    )
