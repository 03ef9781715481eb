#!/usr/bin/env python3
"""Tokens per second of `tessera sample`, beside the time that reading the weights once takes, and beside PyTorch.

    ./dev bench decode [FLAG...]            builds, then runs this

GPT-2 small with a context of 1024 writes one text, a token at a time, with keys and values in caches; its weights are
those that it begins with. A token has to read every weight once (of the positions one row alone), so no program that
keeps f32 weights in memory is faster than those bytes divided by the bandwidth of memory, which build/read_bandwidth
measures in each round. --before FOLDER also times build/tessera of another build; --peer PYTHON names a Python with
PyTorch, which runs bench/peers/torch_decode.py. All in turns, every other round in reverse order; ratios are taken
within a round. Writes a table and a JSON file, named by date and CPU, to bench/results.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import turns

WORK = pathlib.Path("runs/bench")
CONTEXT, WIDTH = 1024, 768
NAMES = {"floor": "reading memory", "tessera": "Tessera", "before": "Tessera, the other build", "pytorch": "PyTorch"}


def main():
    os.chdir(pathlib.Path(__file__).resolve().parent.parent)
    args = parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    model = make_model(args)
    weights = weight_bytes(args, model)
    tasks = {"floor": lambda: floor(args, weights), "tessera": lambda: sample(args, args.build, model)}
    if args.before:
        tasks["before"] = lambda: sample(args, args.before, model)
    if turns.has_torch(args):
        tasks["pytorch"] = lambda: pytorch(args)
    result = turns.take_turns(args, NAMES, tasks, lambda found: f"{found['median'] * 1e3:.2f} ms",
                              threads=args.threads, tokens=args.tokens, weight_bytes=weights)
    shutil.rmtree(model)
    turns.save(args.output / turns.name_of(result, f"decode-{args.threads}-threads"), result, table(result))


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="turns of every contestant [3]")
    parser.add_argument("--threads", type=int, default=2, help="of each side [2]")
    parser.add_argument("--tokens", type=int, default=1000, help="written behind a prompt of one, within the context [1000]")
    parser.add_argument("--before", metavar="FOLDER", help="the folder of another build, whose tessera is timed too")
    turns.add_common_flags(parser)
    args = parser.parse_args()
    args.steps, args.warmup = args.tokens, 1  # as other tables call them
    args.output = pathlib.Path(args.output or "bench/results")
    if args.rounds < 1 or args.threads < 1 or not 2 <= args.tokens < CONTEXT:
        parser.error(f"--rounds and --threads must be at least 1, --tokens from 2 to {CONTEXT - 1}")
    turns.require_programs(parser, args, "tessera", "read_bandwidth")
    if args.before and not os.access(f"{args.before}/tessera", os.X_OK):
        parser.error(f"{args.before}/tessera is not there; --before is the folder of a build")
    return args


def make_model(args):
    """The weights that a run begins with: no step is needed for the time of reading them."""
    folder = WORK / "decode"
    shutil.rmtree(folder, ignore_errors=True)
    text = WORK / "licences.txt"
    turns.told_by([f"{args.build}/tessera", "prepare", "licences", "--output", text])
    turns.told_by([f"{args.build}/tessera", "train", "--preset", "gpt2-small", "--context", CONTEXT, "--data", text,
                   "--output", folder, "--steps", 0, "--global-batch-size", 1, "--optimizer", "sgd", "--sample-every", 0,
                   "--no-eval-at-end", "--no-background-save", "--recompute-granularity", "full"])
    return folder


def weight_bytes(args, model):
    """That a token reads: of the positions, one row of CONTEXT."""
    told = turns.told_by([f"{args.build}/tessera", "inspect", model])[0]
    parameters = int(re.search(r"^\s*parameters\s+([\d,]+)$", told, re.MULTILINE)[1].replace(",", ""))
    return 4 * (parameters - (CONTEXT - 1) * WIDTH)


def floor(args, weights):
    told, command = turns.told_by([f"{args.build}/read_bandwidth", "--threads", args.threads, "--mib",
                                   max(weights >> 20, 1)], args.under)
    found = json.loads(told)
    return {"command": command, "median": weights / found["bytes_per_s"], "bytes_per_s": found["bytes_per_s"]}


def sample(args, build, model):
    """A token is one character, and is written as soon as it is drawn. The first comes after the program has begun."""
    words = [f"{build}/tessera", "sample", model, "--prompt", "e", "--tokens", args.tokens, "--threads", args.threads]
    words = [str(word) for word in words]
    marks = []
    with subprocess.Popen([*args.under, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        while piece := os.read(process.stdout.fileno(), 1 << 16):
            # Characters by their first bytes; several where the reader was late.
            marks += [time.perf_counter()] * sum(byte & 0xC0 != 0x80 for byte in piece)
        errors = process.stderr.read().decode(errors="replace")
    if process.returncode != 0:
        sys.exit(f"bench: this failed with {process.returncode}: {' '.join(words)}\n{errors[-4000:]}")
    marks = marks[1:-1]  # without the prompt, and the newline at the end
    if len(marks) != args.tokens:
        sys.exit(f"bench: {len(marks)} characters were written, not {args.tokens}: {' '.join(words)}")
    return times([b - a for a, b in zip(marks, marks[1:])], turns.line_of(words))


def pytorch(args):
    told, command = turns.told_by([*turns.KEEP_MEMORY, args.peer, "bench/peers/torch_decode.py", "--threads",
                                   args.threads, "--context", CONTEXT, "--tokens", args.tokens], args.under)
    found = json.loads(told.splitlines()[-1])
    return times(found["token_seconds"], command) | {"torch": found["torch"], "peak_rss_bytes": found["peak_rss_bytes"]}


def times(seconds, command):
    """Of the tokens behind the first; the mean too, as the median hides what happens seldom."""
    return {"command": command, "median": turns.median(seconds), "mean": sum(seconds) / len(seconds),
            "first_tenth": turns.median(seconds[:max(len(seconds) // 10, 1)]),
            "last_tenth": turns.median(seconds[-max(len(seconds) // 10, 1):])}


def table(result):
    floors = turns.of_contestant(result, "floor")
    rate = turns.median(found["bytes_per_s"] for found in floors)
    lines = [f"# {result['date']}: {result['machine']['cpu']}, decoding with {result['threads']} threads", "",
             *turns.about(result), "",
             f"GPT-2 small, context {CONTEXT}: {result['tokens']} tokens behind a prompt of one, one text. A token reads "
             f"{result['weight_bytes'] / 1e6:.1f} MB of weights; memory gives {rate / 1e9:.1f} GB/s.", "",
             "| f32 | ms a token: median (min to max of rounds) | tokens/s | first tenth, last tenth | mean | times the floor |",
             "|---|---|---|---|---|---|"]
    for who, name in NAMES.items():
        found = turns.of_contestant(result, who)
        if not found:
            continue
        cells = [name, spread([one["median"] for one in found]), f"{1 / turns.median(one['median'] for one in found):.1f}"]
        if who == "floor":
            cells += ["-", "-", "1"]
        else:
            parts = [turns.median(one[key] for one in found) * 1e3 for key in ("first_tenth", "last_tenth", "mean")]
            cells += [f"{parts[0]:.2f}, {parts[1]:.2f}", f"{parts[2]:.2f}", turns.spread(found, floors)]
        lines.append("| " + " | ".join(cells) + " |")
    ours = turns.of_contestant(result, "tessera")
    lines += ["", "Ratios are taken within a round: median (min to max)."]
    for who in ("before", "pytorch"):
        if theirs := turns.of_contestant(result, who):
            lines.append(f"Tessera / {NAMES[who]}: {turns.spread(ours, theirs)} of the time.")
    lines += ["", "## Commands", "", "```sh"]
    lines += dict.fromkeys(found["command"] for found in result["runs"] if found["round"] == 0)
    return "\n".join(lines + ["```", ""])


def spread(seconds):
    ms = [1e3 * s for s in seconds]
    return f"{turns.median(ms):.2f} ({min(ms):.2f} to {max(ms):.2f})"


if __name__ == "__main__":
    main()
