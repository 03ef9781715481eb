#!/usr/bin/env python3
"""Two stages of a pipeline on two cores, beside data and tensor parallel on the same two, and one device on one.

    ./dev bench pipeline [FLAG...]          builds, then runs this

Eight equal blocks of width 768 with a vocabulary of 256 bytes, and eight equal micro-batches: each stage has half of
the work, and 1F1B waits for 1 of 9 turns, so that two stages can at most be 16/9 times as fast as one device, where two
cores are twice one. Two cores rarely are: what data parallel 2 reaches, which has nothing to wait for but one sum, is
taken as what they give. The figure is the speed-up of the pipeline as a part of 16/9 of half the speed-up of data
parallel, within each round. Every other round is in reverse order. Writes a table and a JSON file, named by date and
CPU, to bench/results.
"""
import argparse
import json
import os
import pathlib
import shutil

import report
import run

WORK = pathlib.Path("runs/bench")
MICRO_BATCHES, STAGES = 8, 2
IDEAL = STAGES * MICRO_BATCHES / (MICRO_BATCHES + STAGES - 1)
STAGED = ["--devices", 2, "--pipeline-model-parallel-size", STAGES]
CONTESTANTS = {
    "one": ("one device", ["--devices", 1]),
    "data": ("data parallel 2", ["--devices", 2]),
    "tensor": ("tensor parallel 2", ["--devices", 2, "--tensor-model-parallel-size", 2]),
    "1f1b": ("two stages, 1f1b", STAGED),
    "gpipe": ("two stages, gpipe", STAGED + ["--pipeline-schedule", "gpipe"]),
    "interleaved": ("two stages, interleaved, two chunks on each", STAGED + ["--pipeline-schedule", "interleaved"]),
    "zb-h1": ("two stages, zb-h1", STAGED + ["--pipeline-schedule", "zb-h1"]),
    "zb-v": ("two stages, zb-v", STAGED + ["--pipeline-schedule", "zb-v"]),
}


def main():
    os.chdir(pathlib.Path(__file__).resolve().parent.parent)
    args = parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    data = run.text_of(args)
    tasks = {who: lambda flags=CONTESTANTS[who][1]: train(args, data, flags) for who in args.who}
    result = run.take_turns(args, {who: name for who, (name, flags) in CONTESTANTS.items()}, tasks,
                            lambda found: f"{found['step_median']:.3f} s a step", context=args.context)
    run.save(args.output / report.name_of(result, "pipeline"), result, table(result))


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--context", type=int, default=256, help="tokens of a sample; a micro-batch has one [256]")
    parser.add_argument("--who", type=lambda words: words.split(","), default=list(CONTESTANTS),
                        help=f"contestants: {','.join(CONTESTANTS)} [all]")
    run.add_turn_flags(parser)
    run.add_common_flags(parser)
    args = parser.parse_args()
    args.output = pathlib.Path(args.output or "bench/results")
    if min(args.rounds, args.steps, args.context) < 1 or args.warmup < 0:
        parser.error("--rounds, --context and --steps must be at least 1, --warmup at least 0")
    unknown = [who for who in args.who if who not in CONTESTANTS]
    if unknown or not {"one", "data"} <= set(args.who):
        parser.error(f"--who needs one and data, and others of {', '.join(CONTESTANTS)}; not {', '.join(unknown) or args.who}")
    run.require_programs(parser, args, "tessera")
    return args


def train(args, data, flags):
    folder = WORK / "pipeline"
    shutil.rmtree(folder, ignore_errors=True)
    words = [f"{args.build}/tessera", "train", "--preset", "gpt2-small", "--layers", 8, "--context", args.context,
             "--tokenizer-type", "bytes", "--vocab-size", 256, "--data", data, "--output", folder, "--threads", 1, "--global-batch-size",
             MICRO_BATCHES, "--micro-batch-size", 1, "--steps", args.warmup + args.steps, "--lr", 1e-4,
             "--lr-decay-style", "constant", "--lr-warmup-steps", 0, "--sample-every", 0, "--no-eval-at-end", *flags]
    command = run.told_by([str(word) for word in words], args.under)[1]
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    lines = [line for line in lines if line["kind"] == "train"]
    shutil.rmtree(folder)  # a checkpoint is 0.7 GB
    seconds = [line["step_seconds"] for line in lines[args.warmup:]]
    return {"command": command, "step_seconds": seconds, "step_median": report.median(seconds),
            "losses": [line["loss"] for line in lines]}


def table(result):
    def times(who):
        return [found["step_median"] for found in report.of_contestant(result, who)]

    def spread(values):
        return f"{report.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"

    one, data = times("one"), times("data")
    gives = [a / b for a, b in zip(one, data)]
    lines = [f"# {result['date']}: {result['machine']['cpu']}, two stages on two cores", "", *report.about(result), "",
             f"Eight blocks of width 768, vocabulary 256, {MICRO_BATCHES} micro-batches of {result['context']} tokens, one "
             f"thread per device; {result['steps']} steps a round after {result['warmup']}. Part: of {IDEAL:.3f} times "
             "half the speed-up of data parallel.", "",
             "| f32 | s a step: median (min to max) | times one | part | first loss |", "|---|---|---|---|---|"]
    for who, (name, flags) in CONTESTANTS.items():
        found = report.of_contestant(result, who)
        if not found:
            continue
        ups = [a / b for a, b in zip(one, times(who))]
        part = spread([up / (IDEAL * give / 2) for up, give in zip(ups, gives)]) if flags[:4] == STAGED else "-"
        lines.append(f"| {name} | {spread(times(who))} | {spread(ups)} | {part} | {found[0]['losses'][0]:.4f} |")
    lines += ["", "Ratios are taken within a round: median (min to max).", "", "## Commands", "", "```sh"]
    lines += dict.fromkeys(found["command"] for found in result["runs"] if found["round"] == 0)
    return "\n".join(lines + ["```", ""])


if __name__ == "__main__":
    main()
