"""tessera.verify and tessera.bench, and what they return."""

from __future__ import annotations

import math
from typing import Callable, Dict, List, Optional, TYPE_CHECKING

from . import _html
from ._call import Call
from ._listed import keywords_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import _keywords as keywords


class Verification:
    """How far a mesh is from one device. As text it is what the command prints.

    passed  every relative error is within the tolerance
    worst   the largest of them
    rows    a dict for each tensor, the worst first: name, step (at which it was worst),
            relative_error, ok
    report  all of it, as `tessera verify --json`
    """

    def __init__(self, result: dict):
        self.report: dict = result["report"]
        self.passed: bool = self.report["ok"]
        self.worst = _number(self.report["max_relative_error"], math.inf)
        self.rows: List[dict] = self.report["rows"]
        self._text: str = result["text"]

    def __str__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        rows = [
            (row["name"], row["step"], _number(row["relative_error"], math.inf), row["ok"])
            for row in self.rows[:10]
        ]
        verdict = "the same numbers" if self.passed else "NOT the same numbers"
        where = f"{self.report['devices']} devices ({self.report['mesh']})"
        return f"<p>{_html.text(f'{where}: {verdict}')}</p>" + _html.table(
            rows, ("tensor", "step", "relative error", "within the tolerance")
        )

    def __repr__(self) -> str:
        passed = "passed" if self.passed else "failed"
        return f"<tessera.Verification {passed}: worst {self.worst:.2e} of {self.report['worst']}>"


class Benchmark:
    """What switches cost and bring. As text it is what the command prints.

    results       a dict for each row: name, step_seconds, tokens_per_s, ratio, peak_bytes, failure, ...
    step_seconds  median of a step, by name; None where nothing was measured
    ratios        speed over that of the first row, by name; None where turns disagree
    turns         rounds that were asked for
    report        all of it, as `tessera bench --json`
    """

    def __init__(self, result: dict):
        self.report: dict = result["report"]
        self.results: List[dict] = self.report["results"]
        self.turns: int = self.report["turns"]
        self._text: str = result["text"]

    @property
    def step_seconds(self) -> Dict[str, Optional[float]]:
        return {row["name"]: row["step_seconds"] for row in self.results}

    @property
    def ratios(self) -> Dict[str, Optional[float]]:
        return {row["name"]: row["ratio"] for row in self.results}

    def __str__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        def cells(row: dict) -> tuple:
            spread = row["ratio_spread"]
            ratio = None if spread is None else f"{spread[0]:.2f} to {spread[1]:.2f}"
            memory = row["peak_bytes"] or row["planned_peak_bytes"]
            return (
                row["name"],
                row["step_seconds"],
                row["tokens_per_s"],
                row["ratio"],
                ratio,
                None if memory is None else _html.bytes_text(memory),
                row["failure"],
            )

        head = ("switches", "seconds a step", "tokens/s", "speed", "of turns", "a device takes", "")
        about = f"{self.report['model']}, {self.turns} turns; {self.report['processor']}"
        return f"<p>{_html.text(about)}</p>" + _html.table(map(cells, self.results), head)

    def __repr__(self) -> str:
        rows = ", ".join(
            f"{name} {'not measured' if seconds is None else f'{seconds:.4g} s'}"
            for name, seconds in self.step_seconds.items()
        )
        return f"<tessera.Benchmark of {self.report['model']}: {rows}>"


def _number(value: Optional[float], without: float) -> float:
    return without if value is None else value  # JSON has neither inf nor nan


@keywords_of("verify")
def verify(*, lines: Optional[Callable[[str], object]] = print, **flags: Unpack[keywords.Verify]) -> Verification:
    """Compares some steps on a mesh with the same on one device, as `tessera verify` does.

        tessera.verify(preset="gpt2-tiny", devices=4, tensor_model_parallel_size=2).worst

    flags  those of the command (docs/reference/flags.md), as for train()
    lines  hears notices; None: nobody does

    Other numbers are no exception: see Verification.passed.
    """
    return Verification(Call(lines).command("verify", flags))


@keywords_of("bench")
def bench(*, lines: Optional[Callable[[str], object]] = print, **flags: Unpack[keywords.Bench]) -> Benchmark:
    """Measures what switches cost and bring, as `tessera bench` does.

        tessera.bench(preset="gpt2-tiny", switches="bf16,zero-1", devices=2).ratios["bf16"]

    flags  those of the command (docs/reference/flags.md), as for train()
    lines  hears of each turn; None: nobody does

    Turns are processes, so no other call may run meanwhile. Ctrl-C ends the turn at hand.
    """
    return Benchmark(Call(lines, alone=True).command("bench", flags))
