#!/usr/bin/env python3
"""The problems of MiniMalloc's benchmark by `tessera plan --minimalloc`: the time of each, and whether its offsets hold.

    python3 bench/minimalloc.py FOLDER [--capacity BYTES] [--rounds 3] [--build FOLDER] [--output FOLDER]

FOLDER has the CSV files (github.com/google/minimalloc, benchmarks/challenging). Each is a process on one core; the
fastest of the turns counts, start included. Writes DATE-CPU-minimalloc.json and .md into bench/results.
"""
import argparse
import csv
import functools
import os
import pathlib
import time

import turns


def check(path, placed, capacity):
    """Offsets within the capacity, and no two buffers that are alive together overlap."""
    wanted = {row["id"]: row for row in csv.DictReader(open(path))}
    rows = list(csv.DictReader(placed.splitlines()))
    assert {row["id"] for row in rows} == set(wanted), f"{path}: other buffers"
    at = [(int(row["offset"]), int(row["offset"]) + int(row["size"]), int(row["lower"]), int(row["upper"]))
          for row in rows]
    assert all(0 <= low and high <= capacity for low, high, _, _ in at), f"{path}: above the capacity"
    for i, a in enumerate(at):
        for b in at[:i]:
            together, apart = a[2] < b[3] and b[2] < a[3], a[1] <= b[0] or b[1] <= a[0]
            assert apart or not together, f"{path}: buffers overlap"


def turn(args, path):
    command = [f"{args.build}/tessera", "plan", "--minimalloc", path, "--memory-cap", args.capacity]
    begin = time.perf_counter()
    placed, line = turns.told_by(command, args.under)
    seconds = time.perf_counter() - begin
    check(path, placed, args.capacity)
    return {"seconds": seconds, "buffers": placed.count("\n") - 1, "command": line}


def table(result, names):
    lines = [f"# {result['date']}: {result['machine']['cpu']}, MiniMalloc's problems", "", *turns.about(result)[:1], "",
             f"Capacity {result['capacity']} bytes; {result['rounds']} turns of each on one core, start included; load of "
             f"the machine {result['machine']['load_before']:.2f} before and {result['machine']['load_after']:.2f} after.",
             "", "| file | buffers | seconds, fastest | slowest |", "|---|---|---|---|"]
    fastest = slowest = 0
    for who in names:
        found = turns.of_contestant(result, who)
        low, high = min(run["seconds"] for run in found), max(run["seconds"] for run in found)
        fastest, slowest = fastest + low, slowest + high
        lines.append(f"| {who} | {found[0]['buffers']} | {low:.3f} | {high:.3f} |")
    return "\n".join([*lines, f"| all | | {fastest:.3f} | {slowest:.3f} |", ""])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--capacity", type=int, default=1 << 20)
    parser.add_argument("--rounds", type=int, default=3)
    turns.add_common_flags(parser)
    args = parser.parse_args()
    turns.require_programs(parser, args, "tessera")
    args.warmup = args.steps = 0
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    names = {path.name: path.name for path in sorted(args.folder.glob("*.csv"))}
    tasks = {name: functools.partial(turn, args, args.folder / name) for name in names}
    result = turns.take_turns(args, names, tasks, lambda run: f"{run['seconds']:.3f} s", capacity=args.capacity)
    folder = pathlib.Path(args.output or "bench/results")
    turns.save(folder / turns.name_of(result, "minimalloc"), result, table(result, names))


if __name__ == "__main__":
    main()
