#!/usr/bin/env python3
"""Two devices of one core each against one device of one core: GPT-2 small, by each way to use two devices.

    ./dev bench scaling [FLAG...]           builds, then runs this; ./dev bench-peers first installs PyTorch
    ./dev bench scaling --quick             does everything work? A small model, no figures

Two cores are rarely twice one core: they share memory, caches and what the machine gives them of its clock. So a
round also runs two processes of one device that know nothing of each other; what they do together is what the machine
gives, and the most that two devices can reach. Tessera trains data parallel, tensor parallel and with ZeRO-3; PyTorch
with DistributedDataParallel, with DTensor and with FSDP2, all over gloo. Every device has the same batch; with tensor
parallel, both share the batch of one. Ratios are taken within a round, every other round is in reverse order. Writes a
table and a JSON file, named by date and CPU, to bench/results (--quick: to runs/bench).
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
OURS = {"two": ("data parallel", 2, []), "zero3": ("ZeRO-3", 2, ["--zero-stage", 3]),
        "tensor": ("tensor parallel", 1, ["--tensor-model-parallel-size", 2])}  # name, batches, flags
THEIRS = {"torch ddp": "DDP", "torch fsdp2": "FSDP2", "torch tp": "tensor parallel by DTensor"}
NAMES = {"one": "Tessera, one device", **{who: f"Tessera, two devices, {name}" for who, (name, _, _) in OURS.items()},
         "apart": "Tessera, two processes of one device apart", "torch single": "PyTorch, one process",
         **{who: f"PyTorch, two processes, {name}" for who, name in THEIRS.items()}}


def main():
    os.chdir(pathlib.Path(__file__).resolve().parent.parent)
    args = parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    workload = dataclasses.replace(run.NANO if args.quick else run.GPT2, warmup=args.warmup, steps=args.steps,
                                   batch=args.batch)
    data = run.text_of(args)
    tasks = {"one": lambda: apart(args, workload, data, args.cores[:1])}
    for who, (_, batches, flags) in OURS.items():
        tasks[who] = lambda batches=batches, flags=flags: two(args, workload, data, batches, flags)
    tasks["apart"] = lambda: apart(args, workload, data, args.cores)
    if run.has_torch(args):
        tasks |= {who: lambda who=who: pytorch(args, workload, who.split()[1]) for who in ("torch single", *THEIRS)}
    result = run.take_turns(args, NAMES, tasks, lambda found: f"{found['tokens_per_s']:.1f} tokens/s", quick=args.quick,
                            batch=args.batch, context=workload.context, model=workload.name, cores=args.cores,
                            dtypes=[args.dtype])
    name = "quick-scaling" if args.quick else report.name_of(result, "scaling" + args.dtype.replace("f32", ""))
    run.save(args.output / name, result, table(result))
    if not all(found["plausible"] for found in result["runs"]):
        sys.exit("bench: a loss curve does not look like training: the times mean nothing; the JSON has the curves")


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a smoke run of the nanogpt recipe")
    parser.add_argument("--batch", type=int, help="samples per device and step [4, with --quick 12]")
    parser.add_argument("--dtype", choices=run.DTYPES, default="f32", help="of all contestants [f32]")
    parser.add_argument("--cores", type=lambda text: [int(n) for n in text.split(",")], default=[0, 1], metavar="A,B",
                        help="where single processes run; devices take the first ones [0,1]")
    run.add_turn_flags(parser)
    run.add_common_flags(parser)
    args = parser.parse_args()
    args.output = pathlib.Path(args.output or (WORK if args.quick else "bench/results"))
    args.batch = (run.NANO if args.quick else run.GPT2).batch if args.batch is None else args.batch
    if min(args.rounds, args.batch, args.steps) < 1 or args.warmup < 0:
        parser.error("--rounds, --batch and --steps must be at least 1, --warmup at least 0")
    if len(args.cores) != 2 or not set(args.cores) <= os.sched_getaffinity(0):
        parser.error(f"--cores needs two of {sorted(os.sched_getaffinity(0))}")
    run.require_programs(parser, args, "tessera")
    return args


def two(args, w, data, batches, flags):
    folder = WORK / "scaling"
    return of_runs(w, [folder], 2, run.told_by(train(args, w, data, folder, 2, batches, flags), args.under)[1])


def apart(args, w, data, cores):
    """One device on each of the cores, at the same time; they share nothing but the machine."""
    folders = [WORK / f"scaling-{core}" for core in cores]
    commands = [["taskset", "-c", str(core), *train(args, w, data, folder, 1, 1, [])]
                for core, folder in zip(cores, folders)]
    lines = [f"{shlex.join(command)} & pids=\"$pids $!\"" for command in commands]
    run.told_by(["sh", "-c", "\n".join([*lines, "for pid in $pids; do wait $pid || exit; done"])], args.under)
    return of_runs(w, folders, 1, " & ".join(map(run.line_of, commands)))


def train(args, w, data, folder, devices, batches, flags):
    shutil.rmtree(folder, ignore_errors=True)
    words = [f"{args.build}/tessera", "train", "--preset", w.preset, "--data", data, "--output", folder, "--devices",
             devices, "--threads", 1, *flags, "--global-batch-size", batches * w.batch, "--steps", w.warmup + w.steps,
             "--lr", w.lr, "--lr-decay-style", "constant", "--lr-warmup-steps", 0, "--sample-every", 0,
             "--no-eval-at-end", *run.precision(args.dtype)]
    return [str(word) for word in words]


def of_runs(w, folders, devices, command):
    """What the runs in these folders did together; each counts what it did in its own median step. Devices are threads
    of one process, so each has its share of the process's memory."""
    rates, seconds, curves, summaries = [], [], [], []
    for folder in folders:
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        lines = [line for line in lines if line["kind"] == "train"]
        tokens = lines[0]["step_seconds"] * lines[0]["tokens_per_s"]
        seconds.append([line["step_seconds"] for line in lines[w.warmup:]])
        rates.append(tokens / report.median(seconds[-1]))
        curves.append(run.curve([line["loss"] for line in lines], w))
        summaries.append(json.loads((folder / "summary.json").read_text()))
        shutil.rmtree(folder)  # a checkpoint is 1.5 GB
    return {"command": command, "tokens_per_s": sum(rates), "step_seconds": seconds,
            "arena_bytes": max(summary["measured_peak_bytes"] for summary in summaries),
            "peak_rss_bytes": [summary["peak_rss_bytes"] // devices for summary in summaries for _ in range(devices)],
            "losses": [curve["losses"] for curve in curves], "plausible": all(curve["plausible"] for curve in curves)}


def pytorch(args, w, mode):
    text, command = run.told_by([*run.KEEP_MEMORY, args.peer, "bench/peers/torch_parallel.py", "--mode", mode, "--model",
                                 w.name, "--dtype", args.dtype, "--cores", ",".join(map(str, args.cores)), "--batch",
                                 w.batch, "--steps", w.steps, "--warmup", w.warmup], args.under)
    torch = json.loads(text.splitlines()[-1])
    return {"command": command, "tokens_per_s": torch["tokens_per_s"], "step_seconds": [torch["step_seconds"]],
            "peak_rss_bytes": torch["peak_rss_bytes"], "torch": torch["torch"]} | run.curve(torch["losses"], w)


def table(result):
    lines = [f"# {result['date']}: {result['machine']['cpu']}, two devices of one core against one", "",
             *report.about(result), "",
             f"{result['model']}, {result['batch']} x {result['context']} tokens per device and step, one thread per "
             f"device; {result['steps']} steps a round after {result['warmup']}. Peak RSS: of Tessera's two devices, which "
             "are threads, half of the process; the arena has all tensors of the device.", "",
             "| | tokens/s: median (min to max) | times one | peak RSS of each rank, MiB | arena, MiB | first loss |",
             "|---|---|---|---|---|---|"]
    for who, name in NAMES.items():
        found = report.of_contestant(result, who)
        if not found:
            continue
        rates = [one["tokens_per_s"] for one in found]
        alone = report.of_contestant(result, "torch single" if who.startswith("torch") else "one")
        losses = found[0]["losses"]
        first = losses[0] if isinstance(losses[0], float) else losses[0][0]
        times = "-" if found == alone else report.spread(found, alone, "tokens_per_s")
        ranks = ", ".join(f"{max(peaks) / 2**20:.0f}" for peaks in zip(*(one["peak_rss_bytes"] for one in found)))
        arena = f"{found[0]['arena_bytes'] / 2**20:.0f}" if "arena_bytes" in found[0] else "-"
        lines.append(f"| {name} | {report.median(rates):.1f} ({min(rates):.1f} to {max(rates):.1f}) | {times} | {ranks} | "
                     f"{arena} | {first:.3f} |")
    both, most = (report.of_contestant(result, who) for who in ("two", "apart"))
    lines += ["", f"Data parallel devices do {report.spread(both, most, 'tokens_per_s')} of what two processes apart do: of what the "
              "machine gives. Ratios are taken within a round: median (min to max).", "", "## Commands", "", "```sh"]
    lines += dict.fromkeys(found["command"] for found in result["runs"] if found["round"] == 0)
    return "\n".join(lines + ["```", ""])


if __name__ == "__main__":
    main()
