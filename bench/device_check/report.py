"""The verdicts as lines for people, and as one JSON object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.device_check.check import Check, Verdict
from bench.report import number
from connectors.contract import Json

__all__ = ["as_json", "line", "summary"]


def line(verdict: Verdict) -> str:
    """One verdict: what, the figure, the bar, and whether it is reached."""
    check = verdict.check
    figure = "no figure" if verdict.measured is None else f"{number(verdict.measured)} {check.unit}".rstrip()
    note, _, _ = verdict.note.partition("\n")
    told = f"  {check.name:<50}{figure:>16}  {_bar(check):>8}  {_word(verdict):<6}  {note}"
    return told.rstrip()


def summary(verdicts: Sequence[Verdict], seconds: float) -> str:
    """How many checks failed, and in which time all ran."""
    failed = sum(not verdict.ok for verdict in verdicts)
    return f"{len(verdicts)} checks in {seconds:.0f} s, {failed or 'none'} failed"


def as_json(verdicts: Sequence[Verdict], machine: Mapping[str, Json], gpu: str | None) -> dict[str, Json]:
    """The machine, the name of its GPU, and every verdict; `ok` where none failed."""
    return {
        "machine": dict(machine),
        "gpu": gpu,
        "ok": all(verdict.ok for verdict in verdicts),
        "checks": [_json_of(verdict) for verdict in verdicts],
    }


def _json_of(verdict: Verdict) -> dict[str, Json]:
    check = verdict.check
    return {
        "name": check.name,
        "measured": verdict.measured,
        "unit": check.unit,
        "at_least": check.at_least,
        "at_most": check.at_most,
        "ok": verdict.ok,
        "note": verdict.note,
    }


def _bar(check: Check) -> str:
    bars = (("<=", check.at_most), (">=", check.at_least))
    return ", ".join(f"{sign} {number(bar)}" for sign, bar in bars if bar is not None)


def _word(verdict: Verdict) -> str:
    if not verdict.ok:
        return "FAILED"
    return "" if verdict.check.at_least is None and verdict.check.at_most is None else "ok"
