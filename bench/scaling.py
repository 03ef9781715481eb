#!/usr/bin/env python3
"""Two devices of one core each against one device of one core: data and tensor parallel training of GPT-2 small.

    ./dev bench scaling [FLAG...]           builds, then runs this; ./dev bench-peers first installs PyTorch

Two cores are rarely twice one core: they share memory, caches and what the machine gives them of its clock. So a
round also runs two processes of one device that know nothing of each other; what they do together is what the machine
gives, and the most that two devices can reach. PyTorch runs alone and as two processes with DistributedDataParallel
over gloo. Every device has the same batch; with tensor parallel, both share the batch of one. Ratios are taken within
a round, every other round is in reverse order. Writes a table and a JSON file, named by date and CPU, to
bench/results.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import shlex
import shutil
import sys

import report
import run

WORK = pathlib.Path("runs/bench")
TOKENS = 256  # of a sample
NAMES = {"one": "Tessera, one device", "two": "Tessera, two devices",
         "tensor": "Tessera, two devices, tensor parallel", "apart": "Tessera, two processes of one device apart",
         "torch one": "PyTorch, one process", "torch two": "PyTorch, two processes, DDP over gloo"}


def main():
    os.chdir(pathlib.Path(__file__).resolve().parent.parent)
    args = parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    workload = dataclasses.replace(run.FULL[0], warmup=args.warmup, steps=args.steps)
    data = run.text_of(args)
    tasks = {"one": lambda: apart(args, workload, data, args.cores[:1]), "two": lambda: two(args, workload, data),
             "tensor": lambda: two(args, workload, data, tensor=2), "apart": lambda: apart(args, workload, data, args.cores)}
    if run.has_torch(args):
        tasks |= {f"torch {word}": lambda n=n: pytorch(args, workload, n) for n, word in ((1, "one"), (2, "two"))}
    result = run.take_turns(args, NAMES, tasks, lambda found: f"{found['tokens_per_s']:.1f} tokens/s",
                            batch=args.batch, cores=args.cores)
    run.save(args.output / report.name_of(result, "scaling"), result, table(result))
    if not all(found["plausible"] for found in result["runs"]):
        sys.exit("bench: a loss curve does not look like training: the times mean nothing; the JSON has the curves")


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=4, help="samples of 256 tokens per device and step [4]")
    parser.add_argument("--cores", type=lambda text: [int(n) for n in text.split(",")], default=[0, 1], metavar="A,B",
                        help="where single processes run; devices take the first ones [0,1]")
    run.add_turn_flags(parser)
    run.add_common_flags(parser)
    args = parser.parse_args()
    args.output = pathlib.Path(args.output or "bench/results")
    if min(args.rounds, args.batch, args.steps) < 1 or args.warmup < 0:
        parser.error("--rounds, --batch and --steps must be at least 1, --warmup at least 0")
    if len(args.cores) != 2 or not set(args.cores) <= os.sched_getaffinity(0):
        parser.error(f"--cores needs two of {sorted(os.sched_getaffinity(0))}")
    run.require_programs(parser, args, "tessera")
    return args


def two(args, w, data, tensor=1):
    folder = WORK / "scaling"
    return of_runs(w, [folder], run.told_by(train(args, w, data, folder, 2, tensor), args.under)[1])


def apart(args, w, data, cores):
    """One device on each of the cores, at the same time; they share nothing but the machine."""
    folders = [WORK / f"scaling-{core}" for core in cores]
    commands = [["taskset", "-c", str(core), *train(args, w, data, folder, 1)] for core, folder in zip(cores, folders)]
    lines = [f"{shlex.join(command)} & pids=\"$pids $!\"" for command in commands]
    run.told_by(["sh", "-c", "\n".join([*lines, "for pid in $pids; do wait $pid || exit; done"])], args.under)
    return of_runs(w, folders, " & ".join(map(run.line_of, commands)))


def train(args, w, data, folder, devices, tensor=1):
    shutil.rmtree(folder, ignore_errors=True)
    words = [f"{args.build}/tessera", "train", "--preset", w.preset, "--data", data, "--output", folder, "--devices",
             devices, "--threads", 1, "--tensor-model-parallel-size", tensor, "--global-batch-size",
             devices // tensor * args.batch, "--steps", w.warmup + w.steps, "--lr",
             w.lr, "--lr-decay-style", "constant", "--lr-warmup-steps", 0, "--sample-every", 0, "--no-eval-at-end"]
    return [str(word) for word in words]


def of_runs(w, folders, command):
    """What the runs in these folders did together; each counts what it did in its own median step."""
    rates, seconds, curves = [], [], []
    for folder in folders:
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        lines = [line for line in lines if line["kind"] == "train"]
        tokens = lines[0]["step_seconds"] * lines[0]["tokens_per_s"]
        seconds.append([line["step_seconds"] for line in lines[w.warmup:]])
        rates.append(tokens / report.median(seconds[-1]))
        curves.append(run.curve([line["loss"] for line in lines], w))
        shutil.rmtree(folder)  # a checkpoint is 1.5 GB
    return {"command": command, "tokens_per_s": sum(rates), "step_seconds": seconds,
            "losses": [curve["losses"] for curve in curves], "plausible": all(curve["plausible"] for curve in curves)}


def pytorch(args, w, processes):
    text, command = run.told_by([*run.KEEP_MEMORY, args.peer, "bench/peers/torch_ddp.py", "--processes", processes, "--cores",
                                 ",".join(map(str, args.cores)), "--batch", args.batch, "--steps", w.steps,
                                 "--warmup", w.warmup], args.under)
    torch = json.loads(text.splitlines()[-1])
    return {"command": command, "tokens_per_s": torch["tokens_per_s"], "step_seconds": [torch["step_seconds"]],
            "torch": torch["torch"]} | run.curve(torch["losses"], w)


def table(result):
    lines = [f"# {result['date']}: {result['machine']['cpu']}, two devices of one core against one", "",
             *report.about(result), "",
             f"GPT-2 small, {result['batch']} x {TOKENS} tokens per device and step, one thread per device; "
             f"{result['steps']} steps a round after {result['warmup']}.", "",
             "| f32 | tokens/s: median (min to max) | times one | first loss |", "|---|---|---|---|"]
    for who, name in NAMES.items():
        found = report.of_contestant(result, who)
        if not found:
            continue
        rates = [one["tokens_per_s"] for one in found]
        alone = report.of_contestant(result, "torch one" if who.startswith("torch") else "one")
        losses = found[0]["losses"]
        first = losses[0] if isinstance(losses[0], float) else losses[0][0]
        times = "-" if who.endswith("one") else report.spread(found, alone, "tokens_per_s")
        lines.append(f"| {name} | {report.median(rates):.1f} ({min(rates):.1f} to {max(rates):.1f}) | {times} | {first:.3f} |")
    both, most = (report.of_contestant(result, who) for who in ("two", "apart"))
    lines += ["", f"Two devices do {report.spread(both, most, 'tokens_per_s')} of what two processes apart do: of what the "
              "machine gives. Ratios are taken within a round: median (min to max).", "", "## Commands", "", "```sh"]
    lines += dict.fromkeys(found["command"] for found in result["runs"] if found["round"] == 0)
    return "\n".join(lines + ["```", ""])


if __name__ == "__main__":
    main()
