"""tessera.plan, and what it returns."""

from __future__ import annotations

from typing import Callable, List, Optional, TYPE_CHECKING

from . import _html
from ._call import Call
from ._listed import keywords_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import _keywords as keywords


class Plan:
    """What a training step would take: nothing was run. As text it is what the command prints.

    report  a dict, as `tessera plan --json` (docs/reference/files.md)
    memory  bytes of a device at the fullest moment, by what they hold; None with auto=True
    flags   with auto=True, the plan that was chosen: all its flags, a word each; else None
    """

    def __init__(self, result: dict):
        self.report: dict = result["report"]
        self.memory: Optional[dict] = self.report.get("memory")
        self.flags: Optional[List[str]] = self.report.get("plan")
        self._text: str = result["text"]

    def __str__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        held = self.memory or {}
        rows = [(what, _html.bytes_text(count)) for what, count in held.items() if count]
        peak = [("the fullest moment", _html.bytes_text(self.report["planned_peak_bytes"]))] if held else []
        table = _html.table(rows + peak, ("held by a device", "bytes")) if held else ""
        return f"{table}<pre>{_html.text(self._text)}</pre>"

    def __repr__(self) -> str:
        return f"<tessera.Plan: {self.report['planned_peak_bytes']} bytes of a device>"


@keywords_of("plan")
def plan(*, lines: Optional[Callable[[str], object]] = print, **flags: Unpack[keywords.Plan]) -> Plan:
    """Plans a run as `tessera plan` does: memory, communication and work, without running it.

        plan = tessera.plan(preset="gpt2-small", devices=8, zero_stage=1)
        plan.memory["optimizer"]
        tessera.plan(preset="gpt2-small", devices=8, auto=True).flags

    flags  those of the command (docs/reference/flags.md), as for train()
    lines  hears notices, and the progress of a search; None: nobody does

    A wrong flag or file raises a tessera.Error. Ctrl-C waits until the plan is made.
    """
    return Plan(Call(lines).command("plan", flags))
