"""What the counters of the stages say about the bottleneck."""

from __future__ import annotations

__all__ = ["advice"]

# Shares of the time: of what is seldom, and of what leaves too little else to judge by.
_SELDOM = 0.05
_MOSTLY = 0.5


def advice(stages: dict[str, dict[str, int | float]], elapsed_s: float, threads: int) -> tuple[str, str]:
    """The stage that limits throughput, and what would help: two short texts.

    The trainer limits where it was seldom kept waiting; otherwise the stage with the most work. The wait for a first
    batch says nothing about the ones that follow, so a run that did little else has no other verdict.
    """
    deliver = stages.get("deliver", {})
    started, waited = deliver.get("start_s", 0.0), deliver.get("wait_s", 0.0)
    work = {name: s["busy_s"] for name, s in stages.items() if name != "deliver" and s["busy_s"] > 0}
    if elapsed_s <= 0 or not work:
        return "nothing yet", "iterate the loader first"
    if started > _MOSTLY * elapsed_s:
        return (
            "the start",
            f"{started:.2f} of {elapsed_s:.2f} s were the wait for the first batch: run it longer",
        )
    share = waited / (elapsed_s - started)
    if share < _SELDOM:
        return (
            "the training loop",
            f"input kept up: behind the first batch it was waited for {share:.1%} of the time",
        )
    slowest = max(work, key=lambda name: work[name])
    if slowest == "read":
        full = work[slowest] > 0.8 * threads * elapsed_s
        hint = (
            "more cores, fewer columns, or a lighter compression"
            if full
            else "more threads= or a faster store"
        )
        return slowest, hint
    if slowest in ("order", "arrange", "assemble"):
        return slowest, "larger batches or fewer lanes a rank; without shuffle there is least to do"
    return (
        slowest,
        f"make {slowest} cheaper: batched=True, fewer rows (filter first), or a library that frees the GIL",
    )
