#!/usr/bin/env python3
"""The losses of the nanoGPT recipe in f32, bf16 and fp16, by Tessera and by PyTorch.

    ./dev bench curves [FLAG...]            builds, then runs this; ./dev bench-peers first installs PyTorch

All runs begin with the same weights, and step by step have the same samples and learning rates, so curves differ by
rounding alone. The table has mean losses of every --every steps, and the loss over the held-out part of the text after
the last step. Writes a table, a JSON file and a drawing, named by date and CPU, to bench/results. Speed is not measured.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import sys

import report
import run

WORK = pathlib.Path("runs/bench/curves")
OURS, THEIRS = ("f32", "bf16", "fp16"), ("f32", "bf16")
NAMES = {**{f"tessera-{dtype}": f"Tessera, {dtype}" for dtype in OURS},
         **{f"pytorch-{dtype}": f"PyTorch, {dtype}" for dtype in THEIRS}}
FIRST = "tessera-f32"  # the run that others are compared with


def main():
    os.chdir(pathlib.Path(__file__).resolve().parent.parent)
    args = parse_args()
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    run.WORK.mkdir(parents=True, exist_ok=True)
    data = run.text_of(args)
    tessera(args, data, "start", "f32", steps=0)
    tasks = {f"tessera-{dtype}": lambda dtype=dtype: tessera(args, data, f"tessera-{dtype}", dtype, args.steps)
             for dtype in OURS if f"tessera-{dtype}" in args.who}
    if run.has_torch(args):
        tasks |= {f"pytorch-{dtype}": lambda dtype=dtype: pytorch(args, data, dtype) for dtype in THEIRS
                  if f"pytorch-{dtype}" in args.who}
    result = run.take_turns(args, NAMES, tasks, lambda found: f"held-out loss {found['held_out']:.4f}",
                            dtypes=[dtype for dtype in OURS if f"tessera-{dtype}" in args.who], every=args.every)
    check_first(result)
    name = args.output / report.name_of(result, "curves")
    run.save(name, result, table(result))
    run.told_by([f"{args.build}/tessera", "chart", *(WORK / who for who in tasks), "--output", f"{name}.svg"])


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=500, help="of each run [500]")
    parser.add_argument("--every", type=int, default=50, help="steps of a row of the table [50]")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of each side [all cores]")
    parser.add_argument("--who", type=run.words_of, default=list(NAMES), help=f"runs: {','.join(NAMES)} [all]")
    run.add_common_flags(parser)
    args = parser.parse_args()
    args.rounds, args.warmup = 1, 0  # as other tables call them
    args.output = pathlib.Path(args.output or "bench/results")
    if args.threads < 1 or not 1 <= args.every <= args.steps:
        parser.error(f"--threads must be at least 1, and --every from 1 to the {args.steps} of --steps, not {args.every}")
    if unknown := [who for who in args.who if who not in NAMES]:
        parser.error(f"--who does not know {', '.join(unknown)}; known are {', '.join(NAMES)}")
    if FIRST not in args.who:
        parser.error(f"--who needs {FIRST}, which the others are compared with")
    run.require_programs(parser, args, "tessera")
    return args


def tessera(args, data, name, dtype, steps):
    """The recipe as it is, but for its length."""
    folder = WORK / name
    _, command = run.told_by([f"{args.build}/tessera", "train", "--preset", run.NANO.preset, "--data", data, "--output",
                              folder, "--threads", args.threads, "--seed", 1, "--steps", steps, "--sample-every", 0,
                              *run.precision(dtype), *([] if steps else ["--no-eval-at-end"])], args.under)
    if steps == 0:
        return None
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    losses = {kind: [line["loss"] for line in lines if line["kind"] == kind] for kind in ("train", "valid")}
    skipped = [line["step"] for line in lines if line.get("skipped")]
    return {"command": command, "losses": losses["train"], "held_out": losses["valid"][-1], "skipped": skipped}


def pytorch(args, data, dtype):
    start = WORK / "start/checkpoints/step-00000000"
    told, command = run.told_by([*run.KEEP_MEMORY, args.peer, "bench/peers/torch_curve.py", "--start", start, "--rates",
                                 WORK / FIRST / "metrics.jsonl", "--data", data, "--dtype", dtype, "--threads",
                                 args.threads], args.under)
    found = json.loads(told.splitlines()[-1]) | {"command": command, "skipped": []}
    folder = WORK / f"pytorch-{dtype}"  # for `tessera chart`
    folder.mkdir()
    lines = [{"kind": "train", "step": i + 1, "loss": loss} for i, loss in enumerate(found["losses"])]
    lines.append({"kind": "valid", "step": len(found["losses"]), "loss": found["held_out"]})
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return found


def check_first(result):
    """The first losses are of the same weights and samples, so in f32 they are equal but for rounding."""
    ours = report.of_contestant(result, FIRST)[0]["losses"][0]
    for found in result["runs"]:
        most = 1e-5 if found["who"].endswith("f32") else 1e-2
        if not abs(found["losses"][0] / ours - 1) <= most:
            sys.exit(f"bench: {NAMES[found['who']]} begins with the loss {found['losses'][0]:.6f}, {NAMES[FIRST]} with "
                     f"{ours:.6f}: they do not have the same weights and samples")


def means(found, every):
    """Of blocks of steps; a step that was skipped counts, if it has a loss."""
    blocks = [found["losses"][i:i + every] for i in range(0, len(found["losses"]), every)]
    return [statistics.fmean(loss for loss in block if loss is not None) for block in blocks]


def table(result):
    runs = {who: report.of_contestant(result, who)[0] for who in NAMES if report.of_contestant(result, who)}
    every, steps = result["every"], result["steps"]
    rows = {who: means(found, every) + [found["held_out"]] for who, found in runs.items()}
    out = [f"# {result['date']}: {result['machine']['cpu']}, losses in f32, bf16 and fp16", "", *report.about(result), "",
           f"{steps} steps of the nanoGPT recipe, the same weights at the start, the same samples and learning rates. Mean "
           "training loss of the steps, and the loss over the held-out part of the text after the last one.", "",
           "| steps | " + " | ".join(NAMES[who] for who in runs) + " |", "|---|" + "---|" * len(runs)]
    names = [f"{i + 1} to {min(i + every, steps)}" for i in range(0, steps, every)] + ["held out"]
    for i, name in enumerate(names):
        out.append(f"| {name} | " + " | ".join(f"{row[i]:.4f}" for row in rows.values()) + " |")
    out += ["", f"Largest difference from {NAMES[FIRST]}, in a row of the table and in the held-out loss:", ""]
    for who in runs:
        if who != FIRST:
            gaps = [abs(a - b) for a, b in zip(rows[who], rows[FIRST])]
            skipped = f"; {len(runs[who]['skipped'])} steps skipped" if runs[who]["skipped"] else ""
            out.append(f"- {NAMES[who]}: {max(gaps[:-1]):.4f}, {gaps[-1]:.4f}{skipped}")
    out += ["", "## Commands", "", "```sh", *(found["command"] for found in result["runs"]), "```", ""]
    return "\n".join(out)


if __name__ == "__main__":
    main()
