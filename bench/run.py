#!/usr/bin/env python3
"""Training steps of Tessera, of PyTorch, and the matrix products alone, measured in turns in one run.

    ./dev bench [FLAG...]                   builds, then runs this; ./dev bench-peers first installs PyTorch
    ./dev bench --only bert-base            one model of gpt2-small, bert-base, nanogpt
    ./dev bench --quick                     does everything work? Small shapes, no figures

Machines change speed from minute to minute, so each round runs every contestant once, every other round in reverse
order, and ratios are taken within a round. On processors that multiply bf16, all three are measured in f32 and in
bf16. Writes a table and a JSON file, named by date, CPU and threads, to bench/results (--quick: to runs/bench). Needs
nothing but Python's own library.
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


DTYPES = ("f32", "bf16")


@dataclasses.dataclass
class Workload:
    """What all contestants compute."""
    name: str  # of the model in torch_models.py too, and of the shapes in gemm_floor.cpp
    preset: str
    batch: int
    context: int
    first_loss: float  # of a model that knows nothing
    lr: str  # constant, so that curves can be compared
    warmup: int
    steps: int  # timed, after the warm-up
    floor: bool = True  # whether the products alone are measured too


GPT2 = Workload("gpt2-small", "gpt2-small", 4, 256, math.log(50257), "1e-4", 2, 3)
BERT = Workload("bert-base", "bert-base-pretrain", 8, 128, math.log(30522) + math.log(2), "1e-4", 2, 3)
NANO = Workload("nanogpt", "nanogpt-shakespeare-cpu", 12, 64, math.log(VOCABULARY), "1e-3", 10, 90, floor=False)
FULL = {w.name: w for w in (GPT2, BERT, NANO)}
QUICK = {w.name: w for w in (dataclasses.replace(NANO, warmup=2, steps=5),
                             dataclasses.replace(GPT2, batch=1, context=16, warmup=1, steps=2),
                             dataclasses.replace(BERT, batch=8, context=32, warmup=1, steps=2))}

# Of the peer: glibc gives large blocks back to the system as they are freed, and each step would touch new pages.
KEEP_MEMORY = ["env", "MALLOC_MMAP_THRESHOLD_=4294967296", "MALLOC_TRIM_THRESHOLD_=8589934592"]


def main():
    os.chdir(pathlib.Path(__file__).resolve().parent.parent)
    args = parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    begin = time.time()
    workloads = [(QUICK if args.quick else FULL)[name] for name in args.only]
    result = {"date": datetime.date.today().isoformat(), "quick": args.quick, "threads": args.threads,
              "rounds": args.rounds, "dtypes": args.dtypes, "machine": report.machine(), "commit": report.commit(),
              "runs": [], "workloads": [dataclasses.asdict(w) for w in workloads]}
    data = text_of(args)
    tasks = contestants(args, workloads, data)
    for number in range(args.rounds):
        for task in tasks if number % 2 == 0 else tasks[::-1]:
            run = {key: task[key] for key in ("workload", "who", "dtype", "how")} | {"round": number}
            say(f"round {number + 1} of {args.rounds}: {run['workload']}, {report.label(run)}")
            run |= task["measure"]()
            say(f"    {run['median']:.4f} s a step")
            result["runs"].append(run)
    result["profiles"] = [profile(args, w, dtype, data) for w in workloads for dtype in args.dtypes]
    result["machine"]["load_after"] = os.getloadavg()[0]
    result["seconds"] = round(time.time() - begin, 1)
    name = "quick" if args.quick else report.name_of(result, f"{result['threads']}-threads")
    save(args.output / name, result, report.table(result))
    if not all(run.get("plausible", True) for run in result["runs"]):
        sys.exit("bench: a loss curve does not look like training: the times mean nothing; the JSON has the curves")
    require_same_models(result)


def require_same_models(result):
    for w in result["workloads"]:
        counts = {report.label(run): run["parameters"] for run in result["runs"]
                  if run["workload"] == w["name"] and "parameters" in run}
        if len(set(counts.values())) > 1:
            sys.exit(f"bench: the models of {w['name']} have different numbers of parameters: {counts}; nanogpt needs a "
                     f"text of {VOCABULARY} characters")


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a smoke run of seconds")
    parser.add_argument("--rounds", type=int, help="turns of every contestant [3; with --quick 2]")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of each side [all cores]")
    parser.add_argument("--only", type=words_of, metavar="MODEL,...",
                        help=f"of {','.join(FULL)} [all; with --quick nanogpt]")
    parser.add_argument("--dtypes", type=words_of, metavar="DTYPE,...",
                        help="f32, bf16 or both; bf16 works on any processor [f32, and bf16 if the processor multiplies it]")
    parser.add_argument("--optimization", action="store_true",
                        help="Tessera also with --no-graph-optimization; as long again a round")
    parser.add_argument("--compile", action="store_true", help="PyTorch also with torch.compile; a minute more a round")
    add_common_flags(parser)
    args = parser.parse_args()
    args.rounds = args.rounds or (2 if args.quick else 3)
    args.only = args.only or (["nanogpt"] if args.quick else list(FULL))
    args.dtypes = args.dtypes or [dtype for dtype in DTYPES if dtype == "f32" or multiplies_bf16()]
    for flag, given, known in (("--only", args.only, FULL), ("--dtypes", args.dtypes, DTYPES)):
        if unknown := [word for word in given if word not in known]:
            parser.error(f"{flag} does not know {', '.join(unknown)}; known are {', '.join(known)}")
    args.output = pathlib.Path(args.output or (WORK if args.quick else "bench/results"))
    if args.threads < 1 or args.rounds < 1:
        parser.error("--threads and --rounds must be at least 1")
    require_programs(parser, args, "tessera", "gemm_floor")
    return args


def words_of(text):
    return list(dict.fromkeys(text.split(",")))


def multiplies_bf16():
    return bool({"avx512_bf16", "amx_bf16"} & set(report.machine()["features"]))


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
    out = []

    def add(w, who, dtype, measure, how=""):
        out.append({"workload": w.name, "who": who, "dtype": dtype, "how": how, "measure": measure})

    peer = has_torch(args)
    for w in workloads:
        for dtype in args.dtypes:
            if w.floor and (dtype == "f32" or multiplies_bf16()):  # oneDNN has no bf16 products elsewhere
                add(w, "floor", dtype, lambda w=w, dtype=dtype: floor(args, w, dtype))
            for how in [""] + ["without graph optimization"] * args.optimization:
                add(w, "tessera", dtype, lambda w=w, dtype=dtype, how=how: tessera(args, w, dtype, data, how), how)
            for how in ([""] + ["compiled"] * args.compile) * peer:
                add(w, "pytorch", dtype, lambda w=w, dtype=dtype, how=how: pytorch(args, w, dtype, how), how)
    return out


def floor(args, w, dtype):
    told, command = told_by([f"{args.build}/gemm_floor", "--model", w.name, "--dtype", dtype, "--threads", args.threads,
                             "--repeats", 1, "--batch", w.batch, "--seq", w.context], args.under)
    found = json.loads(told)
    return {"command": command, "median": found["seconds"], "step_seconds": [found["seconds"]],
            "flops": found["flops"], "pack_seconds": found["pack_seconds"]}


def train_words(args, w, dtype, data, steps):
    """Of `tessera train`, up to the flags that only some need."""
    return [f"{args.build}/tessera", "train", "--preset", w.preset, "--data", data, "--output", WORK / "tessera",
            "--threads", args.threads, "--global-batch-size", w.batch, "--context", w.context, "--steps", steps,
            "--sample-every", 0, "--no-eval-at-end", *precision(dtype)]


def precision(dtype):
    return [] if dtype == "f32" else [f"--{dtype}"]


def tessera(args, w, dtype, data, how):
    folder = WORK / "tessera"
    shutil.rmtree(folder, ignore_errors=True)
    _, command = told_by([
        *train_words(args, w, dtype, data, w.warmup + w.steps), "--lr", w.lr, "--lr-decay-style", "constant",
        "--lr-warmup-steps", 0, *(["--no-graph-optimization", "--recompute-granularity", "none"] if how else [])], args.under)
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    lines = [line for line in lines if line["kind"] == "train"]
    summary = json.loads((folder / "summary.json").read_text())
    shutil.rmtree(folder)  # the checkpoint of GPT-2 small is 1.5 GB
    seconds = [line["step_seconds"] for line in lines[w.warmup:]]
    return {"command": command, "median": report.median(seconds), "step_seconds": seconds,
            "peak_rss_bytes": summary["peak_rss_bytes"], "planned_peak_bytes": summary["planned_peak_bytes"],
            "parameters": summary["parameters"]} | curve([line["loss"] for line in lines], w)


def pytorch(args, w, dtype, how):
    warmup = max(w.warmup, 3) if how else w.warmup
    told, command = told_by([*KEEP_MEMORY, args.peer, "bench/peers/torch_step.py", "--model", w.name, "--dtype", dtype,
                             "--batch", w.batch, "--context", w.context, "--threads", args.threads, "--steps", w.steps,
                             "--warmup", warmup, *(["--compile"] if how else [])], args.under)
    torch = json.loads(told.splitlines()[-1])
    parts = {part: torch[f"{part}_seconds"] for part in ("forward", "backward", "optimizer")}
    return {"command": command, "median": torch["step_seconds"]["median"], "step_seconds": torch["all_step_seconds"],
            "peak_rss_bytes": torch["peak_rss_bytes"], "parameters": torch["parameters"],
            "torch": torch["torch"], "parts": parts} | curve(torch["losses"], w)


def curve(losses, w):
    """Losses, and whether they look like training: from that of a model that knows nothing downwards, and finite."""
    plausible = all(map(math.isfinite, losses)) and abs(losses[0] - w.first_loss) < 0.5 and losses[-1] < losses[0]
    return {"losses": losses, "plausible": plausible}


def profile(args, w, dtype, data):
    """Where a step's time goes, from one more run."""
    file = WORK / "profile.json"
    say(f"the time of each kernel: {w.name}, {dtype}")
    shutil.rmtree(WORK / "tessera", ignore_errors=True)
    _, command = told_by([*train_words(args, w, dtype, data, 5), "--profile", file], args.under)
    shutil.rmtree(WORK / "tessera")
    return {"workload": w.name, "dtype": dtype} | json.loads(file.read_text())["profile"] | {"command": command}


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
