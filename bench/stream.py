#!/usr/bin/env python3
"""A text larger than memory as a stream: read through once, then trained on far behind its begin, and resumed there.

    ./dev build && cmake --build build --target stream
    python3 -B bench/stream.py FOLDER [--gigabytes 10] [--offset 0.9] [--steps 500] [--keep]

Makes FOLDER/text.jsonl of documents of drawn words, the same each time, and removes it at the end. Prints how fast it
is read and encoded and in how much memory; the speed and memory of a run that begins at the share --offset of the
text; and whether a run that is interrupted in the middle, and resumed, ends with the same bits.
"""
import argparse
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import time

LINES = 20_000  # of a part, which is written again and again with other numbers


def make_text(path, size):
    """Lines of 500 words or so; each has the number that makes it another one."""
    draw = random.Random(1)
    words = ["".join(draw.choice("etaoinshrdlucmfw") for _ in range(draw.randint(1, 9))) for _ in range(20_000)]
    part = [" ".join(draw.choices(words, k=draw.randint(50, 900))) for _ in range(LINES)]
    with open(path, "w", buffering=1 << 20) as file:
        written = 0
        for number in itertools.count():
            line = '{"id": %d, "text": "%d %s"}\n' % (number, number, part[number * 7919 % LINES])
            file.write(line)
            written += len(line)
            if written >= size:
                return


def peak_of(command):
    """Runs it; its output, and the most memory that it had."""
    before = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    out = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"failed: {' '.join(command)}")
    return out, used.ru_maxrss * 1024, time.monotonic() - before


def train(args, output, offset, more=()):
    run = f"{args.folder}/{output}"
    command = [args.program, "train", "--preset", "gpt2-tiny", "--data", f"{args.folder}/text.jsonl", "--stream",
               "--vocabulary", "bytes", "--seq-length", "256", "--global-batch-size", "8",
               "--stream-offset", str(offset), "--steps", str(args.steps), "--output", run, *more]
    out = peak_of(command)[1:]
    with open(f"{run}/summary.json") as file:
        return run, json.load(file), *out


def digest(args, run):
    return subprocess.run([args.program, "inspect", run, "--digest"], check=True, capture_output=True,
                          text=True).stdout.split()[-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--gigabytes", type=float, default=10)
    parser.add_argument("--offset", type=float, default=0.9)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--program", default="build/tessera")
    parser.add_argument("--reader", default="build/stream")
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    path = f"{args.folder}/text.jsonl"
    runs = []
    try:
        make_text(path, int(args.gigabytes * 1e9))
        size = os.path.getsize(path)
        print(f"text: {size / 1e9:.2f} GB")
        out, peak, _ = peak_of([args.reader, path, "--column", "text", "--workers", str(args.workers)])
        read = json.loads(out)
        print(f"read through: {read['seconds']:.0f} s, {read['mb_per_s']:.0f} MB/s, {read['tokens_per_s'] / 1e6:.1f} "
              f"million tokens/s, {peak / 2**20:.0f} MiB")
        offset = int(size * args.offset)
        whole, summary, peak, seconds = train(args, "whole", offset)
        runs.append(whole)
        print(f"{args.steps} steps from byte {offset}: {seconds:.0f} s, {summary['tokens_per_s']:.0f} tokens/s, "
              f"{peak / 2**20:.0f} MiB")
        runs.append(f"{args.folder}/parts")
        train(args, "parts", offset, ["--exit-interval", str(args.steps // 2)])
        parts, _, peak, seconds = train(args, "parts", offset, ["--resume", "auto"])
        print(f"resumed after {args.steps // 2}: {seconds:.0f} s, {peak / 2**20:.0f} MiB")
        same = digest(args, whole) == digest(args, parts)
        print("the same bits" if same else "OTHER BITS")
        return 0 if same else 1
    finally:
        if not args.keep:
            for run in runs:
                shutil.rmtree(run, ignore_errors=True)
            if os.path.exists(path):
                os.remove(path)


if __name__ == "__main__":
    sys.exit(main())
