#!/usr/bin/env python3
"""A training step by tessera.Trainer with samples of Python, beside that of `tessera train` on the same text.

    ./dev bench python [FLAG...]            builds, then runs this

Samples are rows of numpy, one __getitem__ each; also with a callback, for which each step waits. Models: gpt2-tiny, whose steps are so
short that every call shows, nanoGPT's recipe for CPUs, and GPT-2 small with a small context. Each contestant is a process of its own, in turns, every
other round in reverse order; ratios are taken within a round. Times are those between steps on the clock of who reads
what a run prints, so that what happens between two steps counts too. Prints a table; --output writes it with its figures.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import turns

WORK = pathlib.Path("runs/bench")
MODELS = {
    "gpt2-tiny": {"flags": ["--preset", "gpt2-tiny", "--vocab-size", 128], "context": 32, "batch": 16, "steps": 600, "every": 20},
    "nanogpt": {"flags": ["--preset", "nanogpt-shakespeare-cpu", "--vocab-size", 128], "context": 64, "batch": 12, "steps": 400, "every": 20},
    "gpt2-small": {"flags": ["--preset", "gpt2-small", "--vocab-size", 50257], "context": 64, "batch": 1, "steps": 10, "every": 1},
}
NAMES = {"command": "`tessera train`", "python": "`tessera.Trainer`", "callback": "the same with a callback"}


def main():
    os.chdir(pathlib.Path(__file__).resolve().parent.parent)
    if len(sys.argv) > 1 and sys.argv[1] == "--train":
        return train(*sys.argv[2:])
    args = parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    text = WORK / "licences.txt"
    turns.told_by([f"{args.build}/tessera", "prepare", "licences", "--output", text])
    for model in args.models:
        args.warmup, args.steps = MODELS[model]["every"], MODELS[model]["steps"]
        tasks = {"command": lambda: command(args, model, text), "python": lambda: trainer(args, model, text, "--plain"),
                 "callback": lambda: trainer(args, model, text, "--callback")}
        result = turns.take_turns(args, NAMES, tasks, lambda run: f"{run['median'] * 1e3:.3f} ms", model=model,
                                  threads=args.threads)
        if len({run["parameters"] for run in result["runs"]}) > 1:
            sys.exit("bench: these are two models")
        turns.show(args.output, f"python-{model}", result, table(result))


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="turns of each [5]")
    parser.add_argument("--threads", type=int, default=2, help="of each [2]")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), help="[all]")
    turns.add_common_flags(parser)
    args = parser.parse_args()
    turns.require_programs(parser, args, "tessera", "python/tessera/libtessera_c.so")
    return args


def flags_of(args, model, output):
    of = MODELS[model]
    return [*of["flags"], "--context", of["context"], "--global-batch-size", of["batch"], "--steps", of["steps"],
            "--threads", args.threads, "--log-every", of["every"], "--eval-iters", 0, "--no-eval-at-end", "--eval-every", 0,
            "--sample-every", 0, "--save-every", 0, "--held-out", 0, "--output", output]


def command(args, model, text):
    output = WORK / "python-command"
    return timed(args, model, [f"{args.build}/tessera", "train", "--data", text, *flags_of(args, model, output)], output)


def trainer(args, model, text, how):
    output = WORK / "python-trainer"
    words = [sys.executable, "-B", "bench/python.py", "--train", args.build, text, how, *flags_of(args, model, output)]
    return timed(args, model, words, output)


def timed(args, model, words, output):
    shutil.rmtree(output, ignore_errors=True)
    words = [str(word) for word in words]
    marks = []
    with subprocess.Popen([*args.under, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if line.startswith("step ") and "loss" in line:
                marks.append((int(line.split()[1].split("/")[0]), time.perf_counter(), cpu_seconds(process.pid)))
        errors = process.stderr.read()
    if process.returncode != 0:
        sys.exit(f"bench: this failed with {process.returncode}: {' '.join(words)}\n{errors[-4000:]}")
    with open(output / "metrics.jsonl") as file:
        inside = [line["step_seconds"] for line in map(json.loads, file) if line["kind"] == "train"]
    with open(output / "summary.json") as file:
        parameters = json.load(file)["parameters"]
    shutil.rmtree(output)  # the checkpoint of GPT-2 small is 1.5 GB
    marks = marks[1:]
    between = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(marks, marks[1:])]
    cpu = (marks[-1][2] - marks[0][2]) / (marks[-1][0] - marks[0][0])
    return {"command": turns.line_of(words), "median": turns.median(between), "inside": turns.median(inside[2:]), "cpu": cpu,
            "parameters": parameters}


def cpu_seconds(process):
    """Of all its threads: what other programs do in the meantime is not in it."""
    words = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def train(build, text, how, *flags):
    """In a process of its own."""
    sys.path.insert(0, f"{build}/python")
    import numpy
    import tessera

    names = [word[2:].replace("-", "_") for word in flags if word.startswith("--")]
    keywords = dict(zip(names, values_of(flags)))
    with open(text, encoding="utf-8") as file:
        letters = file.read()
    known = {letter: i for i, letter in enumerate(sorted(set(letters)))}
    ids = numpy.array([known[letter] for letter in letters])
    context = int(keywords["context"])

    class Windows:
        def __len__(self):
            return len(ids) // context - 1

        def __getitem__(self, i):
            row = ids[i * context : (i + 1) * context]
            return {"input_ids": row, "labels": row}

    seen = []
    args = tessera.TrainingArguments(**keywords)
    callbacks = [lambda step: seen.append(step.loss)] if how == "--callback" else []
    tessera.Trainer(args=args, train_dataset=Windows(), callbacks=callbacks,
                    lines=lambda line: print(line, flush=True)).train()


def values_of(flags):
    for i, word in enumerate(flags):
        if word.startswith("--"):
            alone = i + 1 == len(flags) or flags[i + 1].startswith("--")
            yield True if alone else flags[i + 1]


def table(result):
    lines = [f"# {result['date']}: {result['machine']['cpu']}, {result['model']} from Python", "", *turns.about(result), "",
             "| | ms a step: median (min to max of rounds) | within the step | ms of processors a step |", "|---|---|---|---|"]
    for who, name in NAMES.items():
        found = turns.of_contestant(result, who)
        ms, inside, cpu = ([1e3 * run[key] for run in found] for key in ("median", "inside", "cpu"))
        cells = [f"{turns.median(ms):.3f} ({min(ms):.3f} to {max(ms):.3f})", f"{turns.median(inside):.3f}", f"{turns.median(cpu):.3f}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    command = turns.of_contestant(result, "command")
    lines.append("")
    for who in ("python", "callback"):
        found = turns.of_contestant(result, who)
        used = turns.median(a["cpu"] / b["cpu"] for a, b in zip(found, command))
        lines.append(f"{NAMES[who]} / command: {turns.spread(found, command)} of the time, {used:.3f} of the processors' time.")
    lines += ["", "Ratios are taken within a round: median (min to max).", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
