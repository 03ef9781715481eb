#!/usr/bin/env python3
"""Compares the event files of a run with its metrics.jsonl, read by TensorBoard itself.

    compare_event_files.py RUN EVENTS

RUN is the --output of `tessera train`, EVENTS its --tensorboard-dir. It needs the package tensorboard. Every number of
metrics.jsonl must be in the events, as f32, under its tag and step, once; and the events must have no others.
"""

import json
import math
import struct
import sys

NAMES = {"lr": "learning_rate", "tokens_per_s": "tokens_per_second"}
GROUPS = {"train": "train/", "valid": "eval/", "eval": "eval/", "test": "test/"}
NOT_IN_METRICS = {"train/epoch"}


def as_f32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def of_metrics(path):
    out = {}
    for line in open(path):
        row = json.loads(line)
        if row["kind"] not in GROUPS:
            continue
        for key, value in row.items():
            if key in ("kind", "step", "weights"):
                continue
            tag = GROUPS[row["kind"]] + NAMES.get(key, key)
            out[tag, row["step"]] = math.nan if value is None else as_f32(float(value))
    return out


def of_events(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    reader = EventAccumulator(folder, size_guidance={"scalars": 0})
    reader.Reload()
    out, twice = {}, []
    for tag in reader.Tags()["scalars"]:
        for event in reader.Scalars(tag):
            if (tag, event.step) in out:
                twice.append((tag, event.step))
            out[tag, event.step] = event.value
    return out, twice


def differ(a, b):
    # Nine digits of metrics.jsonl give an f32 back; of an f64, its nearest f32 or a neighbour.
    return math.isfinite(a) and math.isfinite(b) and abs(a - b) > 1.2e-7 * abs(a)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    metrics = of_metrics(sys.argv[1] + "/metrics.jsonl")
    events, twice = of_events(sys.argv[2])
    events = {key: value for key, value in events.items() if key[0] not in NOT_IN_METRICS}
    problems = [f"twice: {key}" for key in twice]
    problems += [f"only in metrics.jsonl: {key}" for key in metrics.keys() - events.keys()]
    problems += [f"only in the events: {key}" for key in events.keys() - metrics.keys()]
    for key in metrics.keys() & events.keys():
        if differ(metrics[key], events[key]):
            problems.append(f"{key}: {metrics[key]} in metrics.jsonl, {events[key]} in the events")
    for problem in sorted(problems):
        print(problem)
    tags = sorted({tag for tag, _ in events})
    print(f"{len(events)} values of {len(tags)} tags: {', '.join(tags)}; {len(problems)} problems")
    return bool(problems) or not events


if __name__ == "__main__":
    sys.exit(main())
