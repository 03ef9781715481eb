#!/usr/bin/env python3
"""Training steps of Tessera, of PyTorch, and the matrix products alone, measured in turns in one run.

    ./dev bench [FLAG...]                   builds, then runs this; ./dev bench-peers first installs PyTorch
    ./dev bench --quick                     does everything work? Small shapes, no figures

Machines change speed from minute to minute, so each round runs every contestant once, every other round in reverse
order, and ratios are taken within a round. Writes a table and a JSON file, named by date, CPU and threads, to
bench/results (--quick: to runs/bench). Needs nothing but Python's own library.
"""
import argparse
import collections
import dataclasses
import datetime
import json
import math
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import time

import report

WORK = pathlib.Path("runs/bench")
VOCABULARY = 65  # characters of the text that is made here: as many as the peer's nanogpt tells apart


@dataclasses.dataclass
class Workload:
    """What both sides train. `vocab` is what their first loss tells: ln(vocab), nearly."""
    name: str
    preset: str
    peer: str  # the model's name in torch_step.py
    vocab: int
    tokens: int  # per step
    lr: str  # the peer's, constant, so that curves can be compared
    warmup: int
    steps: int  # timed, after the warm-up


FULL = [
    Workload("gpt2-small", "gpt2-small", "gpt2-small", 50257, 4 * 256, "1e-4", 2, 3),
    Workload("nanogpt", "nanogpt-shakespeare-cpu", "nanogpt", VOCABULARY, 12 * 64, "1e-3", 10, 90),
]
QUICK = [Workload("nanogpt", "nanogpt-shakespeare-cpu", "nanogpt", VOCABULARY, 12 * 64, "1e-3", 2, 5)]

# Of the peer: glibc gives large blocks back to the system as they are freed, and each step would touch new pages.
KEEP_MEMORY = ["env", "MALLOC_MMAP_THRESHOLD_=4294967296", "MALLOC_TRIM_THRESHOLD_=8589934592"]


def main():
    os.chdir(pathlib.Path(__file__).resolve().parent.parent)
    args = parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    begin = time.time()
    result = {"date": datetime.date.today().isoformat(), "quick": args.quick, "threads": args.threads,
              "rounds": args.rounds, "machine": report.machine(), "commit": report.commit(), "runs": [],
              "workloads": [dataclasses.asdict(w) for w in (QUICK if args.quick else FULL)]}
    data = text_of(args)
    tasks = contestants(args, QUICK if args.quick else FULL, data)
    for number in range(args.rounds):
        for task in tasks if number % 2 == 0 else tasks[::-1]:
            say(f"round {number + 1} of {args.rounds}: {task['workload']}, {task['who']}")
            run = {key: task[key] for key in ("workload", "who")} | {"round": number} | task["measure"]()
            say(f"    {run['median']:.4f} s a step")
            result["runs"].append(run)
    result["profile"] = profile(args, data)
    result["machine"]["load_after"] = os.getloadavg()[0]
    result["seconds"] = round(time.time() - begin, 1)
    name = "quick" if args.quick else report.name_of(result, f"{result['threads']}-threads")
    save(args.output / name, result, report.table(result))
    if not all(run.get("plausible", True) for run in result["runs"]):
        sys.exit("bench: a loss curve does not look like training: the times mean nothing; the JSON has the curves")


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a smoke run of seconds")
    parser.add_argument("--rounds", type=int, help="turns of every contestant [3; with --quick 2]")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of each side [all cores]")
    parser.add_argument("--compile", action="store_true", help="PyTorch also with torch.compile; a minute more a round")
    add_common_flags(parser)
    args = parser.parse_args()
    args.rounds = args.rounds or (2 if args.quick else 3)
    args.output = pathlib.Path(args.output or (WORK if args.quick else "bench/results"))
    if args.threads < 1 or args.rounds < 1:
        parser.error("--threads and --rounds must be at least 1")
    require_programs(parser, args, "tessera", "gemm_floor")
    return args


def add_common_flags(parser):
    parser.add_argument("--data", metavar="FILE", help="text to train on [the licence texts that every Debian has]")
    parser.add_argument("--build", default="build", metavar="FOLDER", help="where the programs are [build]")
    parser.add_argument("--peer", default="build/peers/bin/python", metavar="PYTHON",
                        help="a Python that has PyTorch [build/peers/bin/python]")
    parser.add_argument("--output", metavar="FOLDER", help="where the table goes [bench/results]")
    parser.add_argument("--under", type=shlex.split, default=[], metavar="COMMAND",
                        help="what every contestant is run under, such as 'nice -n -10'")


def add_turn_flags(parser):
    parser.add_argument("--rounds", type=int, default=3, help="turns of every contestant [3]")
    parser.add_argument("--steps", type=int, default=3, help="timed steps of a turn [3]")
    parser.add_argument("--warmup", type=int, default=1, help="steps before them [1]")


def take_turns(args, names, tasks, figure, **about):
    """Every contestant once a round, every other round in reverse order; what becomes of it, as the JSON file has it."""
    begin = time.time()
    result = {"date": datetime.date.today().isoformat(), "rounds": args.rounds, "warmup": args.warmup, "steps": args.steps,
              **about, "machine": report.machine(), "commit": report.commit(), "runs": []}
    for number in range(args.rounds):
        for who in list(tasks) if number % 2 == 0 else list(tasks)[::-1]:
            say(f"round {number + 1} of {args.rounds}: {names[who]}")
            result["runs"].append({"who": who, "round": number} | tasks[who]())
            say(f"    {figure(result['runs'][-1])}")
    result["machine"]["load_after"] = os.getloadavg()[0]
    result["seconds"] = round(time.time() - begin, 1)
    return result


def require_programs(parser, args, *names):
    for name in names:
        if not os.access(f"{args.build}/{name}", os.X_OK):
            parser.error(f"{args.build}/{name} is not there; run ./dev bench, which builds it")


def has_torch(args):
    probe = [args.peer, "-c", "import torch"]
    found = os.access(args.peer, os.X_OK) and subprocess.run(probe, capture_output=True).returncode == 0
    if not found:
        say(f"PyTorch is skipped: {args.peer} does not have it; ./dev bench-peers installs it")
    return found


def contestants(args, workloads, data):
    """What a round runs, in order."""
    out = [{"workload": "gpt2-small", "who": "floor", "measure": lambda: floor(args)}]
    peer = has_torch(args)
    for w in workloads:
        out.append({"workload": w.name, "who": "tessera", "measure": lambda w=w: tessera(args, w, data)})
        for how in ([()] if peer else []) + ([("--compile",)] if peer and args.compile else []):
            out.append({"workload": w.name, "who": "pytorch compiled" if how else "pytorch",
                        "measure": lambda w=w, how=how: pytorch(args, w, how)})
    return out


def floor(args):
    shape = ["--batch", "1", "--seq", "64"] if args.quick else []
    told, command = told_by([f"{args.build}/gemm_floor", "--threads", args.threads, "--repeats", 1, *shape], args.under)
    floor = json.loads(told)
    return {"command": command, "median": floor["seconds"], "step_seconds": [floor["seconds"]],
            "flops": floor["flops"], "pack_seconds": floor["pack_seconds"]}


def tessera(args, w, data):
    folder = WORK / "tessera"
    shutil.rmtree(folder, ignore_errors=True)
    _, command = told_by([
        f"{args.build}/tessera", "train", "--preset", w.preset, "--data", data, "--output", folder, "--threads",
        args.threads, "--steps", w.warmup + w.steps, "--lr", w.lr, "--lr-decay-style", "constant", "--lr-warmup-steps",
        0, "--sample-every", 0, "--no-eval-at-end"], args.under)
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    lines = [line for line in lines if line["kind"] == "train"]
    summary = json.loads((folder / "summary.json").read_text())
    shutil.rmtree(folder)  # the checkpoint of GPT-2 small is 1.5 GB
    seconds = [line["step_seconds"] for line in lines[w.warmup:]]
    return {"command": command, "median": report.median(seconds), "step_seconds": seconds,
            "peak_rss_bytes": summary["peak_rss_bytes"], "planned_peak_bytes": summary["planned_peak_bytes"],
            "parameters": summary["parameters"]} | curve([line["loss"] for line in lines], w)


def pytorch(args, w, how):
    warmup = max(w.warmup, 3) if how else w.warmup
    told, command = told_by([*KEEP_MEMORY, args.peer, "bench/peers/torch_step.py", "--model", w.peer, "--threads",
                             args.threads, "--steps", w.steps, "--warmup", warmup, *how], args.under)
    torch = json.loads(told.splitlines()[-1])
    parts = {part: torch[f"{part}_seconds"] for part in ("forward", "backward", "optimizer")}
    return {"command": command, "median": torch["step_seconds"]["median"], "step_seconds": torch["all_step_seconds"],
            "peak_rss_bytes": int(torch["peak_rss_mib"] * 2**20), "parameters": torch["parameters"],
            "torch": torch["torch"], "parts": parts} | curve(torch["losses"], w)


def curve(losses, w):
    """Losses, and whether they look like training: from about ln(vocab) downwards, and finite."""
    start = math.log(w.vocab)
    plausible = all(map(math.isfinite, losses)) and abs(losses[0] - start) < 0.5 and losses[-1] < losses[0]
    return {"losses": losses, "plausible": plausible}


def profile(args, data):
    """Where a step's time goes, from one more run."""
    preset, folder, file = "gpt2-tiny" if args.quick else "gpt2-small", WORK / "tessera", WORK / "profile.json"
    say("the time of each kernel")
    shutil.rmtree(folder, ignore_errors=True)
    _, command = told_by([
        f"{args.build}/tessera", "train", "--preset", preset, "--data", data, "--output", folder, "--threads",
        args.threads, "--steps", 5, "--no-eval-at-end", "--profile", file], args.under)
    shutil.rmtree(folder)
    return {"preset": preset} | json.loads(file.read_text())["profile"] | {"command": command}


def text_of(args):
    """The text: what was given, or the licence texts, cut down to their 65 commonest characters, so that our
    vocabulary is as large as the peer's."""
    if args.data:
        return args.data
    whole, out = WORK / "licences.txt", WORK / "text.txt"
    told_by([f"{args.build}/tessera", "prepare", "licences", "--output", whole])
    text = whole.read_text(encoding="utf-8")
    keep = {c for c, _ in sorted(collections.Counter(text).items(), key=lambda item: (-item[1], item[0]))[:VOCABULARY]}
    out.write_text("".join(c for c in text if c in keep), encoding="utf-8")
    return out


def told_by(words, under=()):
    """Runs a command; returns what it printed, and the command as a line that holds on any machine."""
    words = [str(word) for word in words]
    done = subprocess.run([*under, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"bench: this failed with {done.returncode}: {shlex.join(words)}\n{done.stderr[-4000:]}")
    return done.stdout, line_of(words)


def line_of(words):
    words = [str(word) for word in words]
    return shlex.join(pathlib.Path(word).name if os.path.isabs(word) else word for word in words)


def save(name, result, text):
    """The table, printed too, and what it was made from."""
    name.parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(f"{name}.json").write_text(report.json_text(result))
    pathlib.Path(f"{name}.md").write_text(text)
    print(text)
    say(f"written to {name}.md and {name}.json")


def say(text):
    print(f"-- {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
