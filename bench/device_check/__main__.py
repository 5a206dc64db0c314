"""`python -m bench.device_check`: check the GPU of this machine."""

from __future__ import annotations

import json
import time
from typing import Annotated, Final

import torch
import typer

from bench.device_check.check import Check, Verdict, run_checks
from bench.device_check.checks import checks_of
from bench.device_check.report import as_json, line, summary
from bench.device_check.size import FULL
from bench.machine import machine_record

__all__ = ["app", "main"]

NO_GPU: Final = "no GPU: nothing checked"

app = typer.Typer(add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})


@app.command()
def main(as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
    """Check images by DALI, the copies to the device and the rates on this machine's GPU.

    Exits with 1 if a check fails, and with 0 where there is no GPU.
    """
    if not torch.cuda.is_available():
        print(json.dumps(as_json([], machine_record(), None)) if as_json_ else NO_GPU)
        return
    device = torch.device("cuda", torch.cuda.current_device())
    gpu = torch.cuda.get_device_name(device)
    if not as_json_:
        print(f"{gpu}, torch {torch.__version__}")
    start = time.perf_counter()
    verdicts = _heard(checks_of(device, FULL), quiet=as_json_)
    if as_json_:
        print(json.dumps(as_json(verdicts, machine_record(), gpu)))
    else:
        print(summary(verdicts, time.perf_counter() - start))
    if not all(verdict.ok for verdict in verdicts):
        raise typer.Exit(1)


def _heard(checks: list[Check], *, quiet: bool) -> list[Verdict]:
    """The verdicts, each of which is printed when it is there."""
    verdicts = []
    for verdict in run_checks(checks):
        if not quiet:
            print(line(verdict), flush=True)
        verdicts.append(verdict)
    return verdicts


if __name__ == "__main__":
    app()
