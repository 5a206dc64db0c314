"""What a training came to: samples a second, first batch, input stall, memory."""

from __future__ import annotations

from dataclasses import dataclass

from bench.demo.processes import Heard

__all__ = ["Figures", "figures_of"]


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Of one training. The first step is left out of rate and stall: it waits for the first batch.

    `stall` is the share of the time that rank 0 waited for input. `peak_mb` is the peak PSS of all ranks with
    their workers, minus their PSS when all is imported and the model is made. `losses` are means over the ranks,
    by step.
    """

    ranks: int
    steps: int
    samples_per_s: float
    first_batch_s: float
    stall: float
    peak_mb: float
    losses: dict[int, float]
    took_s: float


def figures_of(heard: Heard) -> Figures:
    """The figures of what the ranks of one training said."""
    steps = min(map(len, heard.steps))
    lead = heard.steps[0][:steps]
    took_s = sum(record["took_s"] for record in lead[1:])
    samples = sum(record["samples"] for records in heard.steps for record in records[1:steps])
    imports = sum(record["imports_bytes"] for record in heard.first)
    return Figures(
        ranks=len(heard.steps),
        steps=steps,
        samples_per_s=samples / took_s,
        first_batch_s=max(records[0]["waited_s"] for records in heard.steps),
        stall=sum(record["waited_s"] for record in lead[1:]) / took_s,
        peak_mb=max(0, heard.peak_bytes - imports) / 1e6,
        losses={
            ranks[0]["step"]: sum(record["loss"] for record in ranks) / len(ranks)
            for ranks in zip(*heard.steps, strict=False)
        },
        took_s=heard.took_s,
    )
