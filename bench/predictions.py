#!/usr/bin/env python3
"""Steps of many plans of small models on this machine, beside the time that `tessera plan` predicts for them.

    bench/predictions.py [--ranks LIST] [--rounds N] [--steps N] [--output FOLDER]

For each number of ranks: calibrates the machine, predicts and measures what PLANS names, lets `tessera plan --auto`
choose a plan, and measures that beside the fastest ones once more, in turns. Prints a table; writes it, with all
figures as JSON.
"""
import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from random import Random

import turns

MODELS = {
    "gpt2": "--family gpt2 --layers 4 --width 256 --heads 8 --context 128 --vocab-size 2048 --global-batch-size 16",
    "encoder-decoder": "--family transformer --layers 2 --decoder-layers 2 --width 256 --heads 8 --context 64 "
                       "--source-context 64 --vocab-size 2048 --global-batch-size 16",
}
TP, CP, PP = "--tensor-model-parallel-size", "--context-parallel-size", "--pipeline-model-parallel-size"
MICRO, SCHEDULE, ZERO = "--micro-batch-size", "--pipeline-schedule", "--zero-stage"
PLANS = {
    2: ["", f"{MICRO} 2", f"{MICRO} 1", f"{ZERO} 1", f"{ZERO} 2", f"{ZERO} 3", f"{ZERO} 2 {MICRO} 2",
        f"{ZERO} 3 {MICRO} 2", "--recompute-granularity full", "--offload-optimizer", "--bf16", f"--bf16 {ZERO} 2",
        f"{TP} 2", f"{TP} 2 --sequence-parallel", f"{TP} 2 {MICRO} 4", f"{TP} 2 --bf16", f"{CP} 2",
        f"{PP} 2 {MICRO} 2 {SCHEDULE} 1f1b", f"{PP} 2 {MICRO} 4 {SCHEDULE} gpipe", f"{PP} 2 {MICRO} 2 {SCHEDULE} zb-h1",
        f"{PP} 2 {MICRO} 2 {SCHEDULE} interleaved --virtual-pipeline-stages 2"],
    4: ["", f"{MICRO} 1", f"{ZERO} 2", f"{ZERO} 3", f"{TP} 2", f"{TP} 2 --sequence-parallel", f"{TP} 2 {ZERO} 2 --bf16",
        f"{TP} 4", f"{PP} 2 {MICRO} 1 {SCHEDULE} 1f1b", f"{PP} 2 {TP} 2 {MICRO} 2 {SCHEDULE} 1f1b",
        f"{PP} 4 {MICRO} 2 {SCHEDULE} 1f1b", f"{PP} 4 {MICRO} 1 {SCHEDULE} 1f1b"],
    8: ["", f"{ZERO} 3", f"{TP} 2", f"{TP} 4 --sequence-parallel", f"{PP} 2 {MICRO} 1 {SCHEDULE} 1f1b",
        f"{PP} 2 {TP} 2 {MICRO} 2 {SCHEDULE} 1f1b"],
}

CHOSEN = {"chosen": [], "chosen, any floats": ["--auto-precision"]}
# The fastest of some others is also the luckiest: turns of the comparison with these are at least as many.
LEAST_TURNS_AGAIN = 7


def main():
    args = parse_args()
    result = {"date": turns.datetime.date.today().isoformat(), "rounds": args.rounds, "steps": args.steps,
              "machine": turns.machine(), "commit": turns.commit(), "files": {}, "runs": []}
    begin = time.time()
    with tempfile.TemporaryDirectory() as folder:
        for ranks in map(int, args.ranks.split(",")):
            bench = Bench(args, ranks, pathlib.Path(folder))
            result["files"][ranks] = bench.file.read_text()
            for model in MODELS:
                result["runs"] += bench.compared(model)
    result["machine"]["load_after"] = turns.os.getloadavg()[0]
    result["seconds"] = time.time() - begin
    text = table_of(result)
    if args.output:
        turns.save(pathlib.Path(args.output) / turns.name_of(result, "predictions"), result, text)
    else:
        print(text)


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", metavar="FOLDER", help="where the program is [build]")
    parser.add_argument("--ranks", default="2,4,8", metavar="LIST", help="how many ranks [2,4,8]")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="turns of each plan [3]")
    parser.add_argument("--steps", type=int, default=6, metavar="N", help="timed steps in a turn [6]")
    parser.add_argument("--output", metavar="FOLDER", help="where the table goes, as bench/results")
    args = parser.parse_args()
    turns.require_programs(parser, args, "tessera")
    return args


def write_pairs(file):
    """Texts for an encoder-decoder, as what it trains on has to be told. Steps take the same time on any."""
    random = Random(1)
    words = ["".join(random.choices("abcdefghijklmnop", k=random.randint(2, 7))) for _ in range(400)]
    lines = (" ".join(random.choices(words, k=8))[:60] for _ in range(400))
    pathlib.Path(file).write_text("".join(f"{line}\t{line[::-1]}\n" for line in lines), encoding="utf-8")


class Bench:
    """Plans for so many ranks."""

    def __init__(self, args, ranks, folder):
        self.args, self.ranks, self.program = args, ranks, f"{args.build}/tessera"
        self.file, self.pairs = folder / f"ranks-{ranks}.toml", str(folder / "pairs.tsv")
        write_pairs(self.pairs)
        turns.say(f"calibrating for {ranks} ranks")
        turns.told_by([self.program, "doctor", "--calibrate", self.file, "--devices", ranks])

    def asked(self, *words):
        return json.loads(turns.told_by([self.program, *words, "--json"])[0])

    def compared(self, model):
        """Of all plans of the model: what was predicted, then what was measured."""
        data = ["--data", self.pairs] if model == "encoder-decoder" else []
        told = [*data, *shlex.split(MODELS[model]), "--devices", str(self.ranks)]
        flags = {name or "plain": [*told, *shlex.split(name)] for name in PLANS[self.ranks]}
        plans = {name: self.asked("plan", *flags[name], "--no-eval-at-end", "--machine", self.file) for name in flags}
        for name, more in CHOSEN.items():
            plans[name] = self.asked("plan", "--auto", *told, *more, "--machine", self.file)
            flags[name] = plans[name]["plan"]
        measured = {name: self.measured(model, name, flags[name]) for name in flags}
        again = self.again(model, flags, measured)
        return [{"model": model, "ranks": self.ranks, "plan": name, "predicted": plans[name]["predicted_step_seconds"],
                 "planned": plans[name]["planned_peak_bytes"], **measured[name], "again": again.get(name),
                 "flags": turns.line_of(flags[name])} for name in flags]

    def measured(self, model, name, flags):
        turns.say(f"{self.ranks} ranks, {model}: {name}")
        run = self.asked("bench", *flags, "--turns", self.args.rounds, "--steps", self.args.steps)["results"][0]
        if run["failure"]:
            sys.exit(f"predictions: {shlex.join(flags)} fails: {run['failure']}")
        return {"seconds": run["step_seconds"], "spread": run["spread"], "used": run["planned_peak_bytes"]}

    def again(self, model, flags, measured):
        """The chosen plans and the three fastest others of the same floats, in turns: the medians of each."""
        out = {}
        for chosen in CHOSEN:
            others = [name for name in flags if name not in CHOSEN and (CHOSEN[chosen] or "--bf16" not in flags[name])]
            names = [chosen, *sorted(others, key=lambda name: measured[name]["seconds"])[:3]]
            runs = [{name: self.measured(model, name, flags[name])["seconds"] for name in names}
                    for _ in range(max(self.args.rounds, LEAST_TURNS_AGAIN))]
            medians = {name: statistics.median(run[name] for run in runs) for name in names}
            out[chosen] = {"seconds": medians.pop(chosen), "others": medians}
        return out


def table_of(result):
    runs = result["runs"]
    lines = ["| ranks | model | plan | measured, ms | predicted, ms | error |", "|---|---|---|---|---|---|"]
    for run in runs:
        lines.append(f"| {run['ranks']} | {run['model']} | `{run['plan']}` | {1e3 * run['seconds']:.1f} | "
                     f"{1e3 * run['predicted']:.1f} | {100 * (run['predicted'] / run['seconds'] - 1):+.1f} % |")
    lines += ["", "| plans | how many | mean error | median | largest | rank correlation | memory as planned |",
              "|---|---|---|---|---|---|---|"]
    for ranks in [None, *sorted({run["ranks"] for run in runs})]:
        own = [run for run in runs if ranks in (None, run["ranks"])]
        errors = [100 * abs(run["predicted"] / run["seconds"] - 1) for run in own]
        exact = sum(run["planned"] == run["used"] for run in own)
        lines.append(f"| {f'{ranks} ranks' if ranks else 'all'} | {len(own)} | {statistics.mean(errors):.1f} % | "
                     f"{statistics.median(errors):.1f} % | {max(errors):.1f} % | {mean_correlation(own):.2f} | "
                     f"{exact} of {len(own)} |")
    lines += ["", "| ranks | model | chosen plan, ms | best of the others, ms | best / chosen |", "|---|---|---|---|---|"]
    for run in runs:
        if run["again"]:
            name, best = min(run["again"]["others"].items(), key=lambda item: item[1])
            chosen = run["again"]["seconds"]
            lines.append(f"| {run['ranks']} | {run['model']}, {run['plan']} | {1e3 * chosen:.1f} | {1e3 * best:.1f}: "
                         f"`{name}` | {best / chosen:.3f} |")
    return "\n".join([*turns.about(result), "", *lines]) + "\n"


def mean_correlation(runs):
    """Spearman's, over the plans of each model on each number of ranks; their mean."""
    groups = {}
    for run in runs:
        groups.setdefault((run["ranks"], run["model"]), []).append(run)
    return statistics.mean(statistics.correlation(places_of([run["predicted"] for run in group]),
                                                  places_of([run["seconds"] for run in group]))
                           for group in groups.values())


def places_of(values):
    return [sorted(values).index(value) for value in values]


if __name__ == "__main__":
    main()
