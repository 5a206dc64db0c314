"""Train a small model of text on rows of tokens in Parquet; stop it anywhere, go on with any number of ranks.

    python examples/make_data.py data
    torchrun --nproc-per-node 2 examples/train.py data/tokens --checkpoint run.pt --stop-after 100
    torchrun --nproc-per-node 1 examples/train.py data/tokens --checkpoint run.pt

The second run goes on with the very next batch: steps and losses are those of a run without a stop, on one rank
or on two (but for the last digits, as ranks add up in another order).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

import dataflow as flow


class NextToken(nn.Module):
    """Guess each token from the eight in front of it."""

    def __init__(self, tokens: int = 256, width: int = 64) -> None:
        super().__init__()
        self.embed = nn.Embedding(tokens, width)
        self.mix = nn.Conv1d(width, width, kernel_size=8)
        self.guess = nn.Linear(width, tokens)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """The mean loss over (rows, tokens) of int64."""
        seen = self.mix(self.embed(rows).transpose(1, 2)).relu().transpose(1, 2)
        loss: torch.Tensor = cross_entropy(self.guess(seen[:, :-1]).flatten(0, 1), rows[:, 8:].flatten())
        return loss


def train(arguments: argparse.Namespace) -> None:
    pipe = (
        flow.read(arguments.data, columns=["tokens"])
        .pad({"tokens": arguments.row_tokens}, truncate=True)
        .shuffle("8MB")
        .seed(7)
        # Without lanes= there are as many as ranks at the start, and other ranks would begin another order.
        .batch(global_size=arguments.global_batch, lanes=4)
    )
    torch.manual_seed(0)
    model = NextToken()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    steps = 0

    # The loader asks torch.distributed which rank this is.
    with pipe.loader() as loader:
        if arguments.checkpoint.exists():
            saved = torch.load(arguments.checkpoint)
            model.load_state_dict(saved["model"])
            optimizer.load_state_dict(saved["optimizer"])
            loader.load_state_dict(saved["input"])
            steps = saved["steps"]
        wrapped = DistributedDataParallel(model)
        stop_at = steps + arguments.stop_after if arguments.stop_after else None
        while loader.epoch < arguments.epochs and steps != stop_at:
            for batch in loader:
                loss = wrapped(batch["tokens"].long())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                steps += 1
                report(steps, loss.detach())
                if steps == stop_at:
                    break
                if steps % arguments.save_every == 0:
                    save(arguments.checkpoint, model, optimizer, loader.state_dict(), steps)
            save(arguments.checkpoint, model, optimizer, loader.state_dict(), steps)
        if dist.get_rank() == 0:
            print(loader.report())


def report(steps: int, loss: torch.Tensor) -> None:
    dist.all_reduce(loss)
    if dist.get_rank() == 0:
        print(f"step {steps} loss {loss.item() / dist.get_world_size():.4f}", flush=True)


def save(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, place: Mapping[str, object], steps: int
) -> None:
    """Write a checkpoint, whole or not at all; one rank's place in the input is enough for all."""
    if dist.get_rank() == 0:
        parts = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "input": place,
            "steps": steps,
        }
        begun = path.with_name(path.name + ".begun")
        torch.save(parts, begun)
        begun.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train on rows of tokens; start it with torchrun.")
    parser.add_argument("data", help="Parquet files with a column `tokens`: a folder, a pattern, a URL")
    parser.add_argument("--checkpoint", type=Path, required=True, help="go on from it if it is there")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--global-batch", type=int, default=48, help="rows of all ranks together")
    parser.add_argument("--row-tokens", type=int, default=128, help="rows are padded or cut to this length")
    parser.add_argument("--save-every", type=int, default=50, metavar="STEPS")
    parser.add_argument("--stop-after", type=int, metavar="STEPS")
    arguments = parser.parse_args()
    if "RANK" not in os.environ:
        parser.error("start it with torchrun, as the top of this file shows")
    dist.init_process_group("gloo")
    try:
        train(arguments)
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
