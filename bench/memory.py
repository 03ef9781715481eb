#!/usr/bin/env python3
"""What ways to need less memory bring, and what they cost.

    ./dev bench memory [FLAG...]            builds, then runs this

Three tables. GPT-2 small on one device: bytes and step times with recomputing and each kind of offloading, in turns,
every other round in reverse order. GPT-2 small on four devices: bytes of the fullest rank with ZeRO, tensor parallelism
and stages, of one step. A GPT of 1.3e9 parameters on four devices, planned only, beside the memory that users of
Megatron-LM's 16-bit training on four GPUs of 32 GB reported for the same model and batch. Every run has to use as many
bytes as were planned, in both memories; and the losses of the first table have to be the same to the last bit. Writes
tables and a JSON file, named by date and CPU, to bench/results.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess

import report
import run

WORK = pathlib.Path("runs/bench")
MIB = 2**20
KEEP = ["--recompute-granularity", "none"]  # what switches are compared with
SWITCHES = {
    "plain": ("nothing", KEEP),
    "elementwise": ("recompute elementwise (the default)", []),
    "selective": ("recompute selective", ["--recompute-granularity", "selective"]),
    "full": ("recompute full", ["--recompute-granularity", "full"]),
    "optimizer": ("offload the optimizer", [*KEEP, "--offload-optimizer"]),
    "gradients": ("offload gradients", [*KEEP, "--offload-gradients"]),
    "parameters": ("offload parameters", [*KEEP, "--offload-parameters"]),
    "activations": ("offload activations", [*KEEP, "--offload-activations"]),
    "all": ("offload all, recompute full", ["--offload-optimizer", "--offload-gradients", "--offload-parameters",
                                            "--offload-activations", "--recompute-granularity", "full"]),
}
TENSOR, STAGES = "--tensor-model-parallel-size", "--pipeline-model-parallel-size"
# Flags, reported MiB, and the parameters that the reporter's fullest rank holds.
ALL = 1313722368
MESHES = {
    "DP4": ([], 25061, ALL),
    "ZeRO-1": (["--zero-stage", 1], 15709, ALL),
    "ZeRO-2": (["--zero-stage", 2], 15693, ALL),
    "ZeRO-3": (["--zero-stage", 3], None, ALL),
    "ZeRO-3, kept for a step": (["--zero-stage", 3, "--fsdp-gather", "step"], None, ALL),
    "TP2": ([TENSOR, 2], 11300, 658190336),
    "TP4": ([TENSOR, 4], 5673, 330424320),
    "PP2": ([STAGES, 2], 12375, 709419008),
    "PP4": ([STAGES, 4], 8141, 407269376),
    "TP2 x PP2": ([TENSOR, 2, STAGES, 2], 6211, 355962880),
}
LARGE = ["--family", "gpt2", "--layers", 24, "--width", 2048, "--heads", 32, "--context", 1024, "--vocab-size", 50304,
         "--tokenizer-type", "bytes", "--global-batch-size", 4, "--micro-batch-size", 1, "--devices", 4]
LARGE_WAYS = {"": KEEP, "recompute full": ["--recompute-granularity", "full"],
              "recompute full, offload activations": ["--recompute-granularity", "full", "--offload-activations"]}


def main():
    os.chdir(pathlib.Path(__file__).resolve().parent.parent)
    args = parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    data = run.text_of(args)
    names = {who: name for who, (name, flags) in SWITCHES.items()}
    tasks = {who: lambda flags=SWITCHES[who][1]: train(args, data, flags, args.warmup + args.steps) for who in SWITCHES}
    result = run.take_turns(args, names, tasks, lambda found: f"{found['step_median']:.3f} s a step", context=args.context,
                            batch=args.batch)
    plain = report.of_contestant(result, "plain")[0]["losses"]
    for found in result["runs"]:
        assert found["losses"] == plain, f"{found['who']} has other losses than plain: {found['losses']}, {plain}"
    result["meshes"] = {}
    for name, (flags, _, _) in MESHES.items():
        run.say(f"four devices: {name}")
        result["meshes"][name] = train(args, data, ["--devices", 4, "--micro-batch-size", 1, *flags], 1)
    result["planned"] = {name: {way: plan(args, data, [*flags, *more]) for way, more in LARGE_WAYS.items()}
                         for name, (flags, _, _) in MESHES.items()}
    result["switched"] = {who: plan(args, data, flags) for who, (_, flags) in SWITCHES.items()}
    run.save(args.output / report.name_of(result, "memory"), result, table(result))


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--context", type=int, default=256, help="tokens of a sample [256]")
    parser.add_argument("--batch", type=int, default=4, help="samples of a step, one micro-batch on one device [4]")
    run.add_turn_flags(parser)
    run.add_common_flags(parser)
    args = parser.parse_args()
    args.output = pathlib.Path(args.output or "bench/results")
    if min(args.rounds, args.steps, args.context) < 1 or args.warmup < 0 or args.batch < 4 or args.batch % 4 != 0:
        parser.error("--rounds, --context and --steps must be at least 1, --warmup at least 0, --batch a multiple of 4")
    run.require_programs(parser, args, "tessera")
    return args


def train(args, data, flags, steps):
    folder = WORK / "memory"
    shutil.rmtree(folder, ignore_errors=True)
    words = [f"{args.build}/tessera", "train", "--preset", "gpt2-small", "--context", args.context, "--vocab-size", 50257,
             "--tokenizer-type", "bytes", "--data", data, "--output", folder, "--global-batch-size", args.batch,
             "--steps", steps, "--lr", 1e-4, "--lr-decay-style", "constant", "--lr-warmup-steps", 0, "--dropout", 0.1,
             "--sample-every", 0, "--no-eval-at-end", *flags]
    command = run.told_by([str(word) for word in words], args.under)[1]
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    lines = [line for line in lines if line["kind"] == "train"]
    summary = json.loads((folder / "summary.json").read_text())
    shutil.rmtree(folder)  # a checkpoint is 1.5 GB
    for memory in ("peak", "host"):
        planned, measured = summary[f"planned_{memory}_bytes"], summary[f"measured_{memory}_bytes"]
        assert planned == measured, f"{memory}: {planned} bytes planned, {measured} used: {command}"
    seconds = [line["step_seconds"] for line in lines[min(args.warmup, steps - 1):]]
    return {"command": command, "step_seconds": seconds, "step_median": report.median(seconds),
            "losses": [line["loss"] for line in lines], "device_bytes": summary["measured_peak_bytes"],
            "host_bytes": summary["measured_host_bytes"], "flops": summary["flops_per_step"],
            "recomputed_flops": summary["recomputed_flops_per_step"]}


def plan(args, data, flags):
    words = [f"{args.build}/tessera", "plan", *LARGE, "--data", data, *flags, "--json"]
    found = json.loads(subprocess.run([str(word) for word in words], check=True, capture_output=True).stdout)
    return {"device_bytes": found["planned_peak_bytes"], "host_bytes": found["planned_host_bytes"]}


def table(result):
    def mib(count):
        return f"{count / MIB:.0f}"

    plain = report.of_contestant(result, "plain")
    lines = [f"# {result['date']}: {result['machine']['cpu']}, memory", "", *report.about(result), "",
             f"GPT-2 small on one device, {result['batch']} samples of {result['context']} tokens, one micro-batch, dropout "
             f"0.1; {result['steps']} steps a round after {result['warmup']}. Bytes planned are bytes used, in both memories; "
             "losses are the same to the last bit.", "",
             "| f32 | device, MiB | host, MiB | FLOPs, times plain | step time, times plain: median (min to max) |",
             "|---|---|---|---|---|"]
    for who, (name, _) in SWITCHES.items():
        found = report.of_contestant(result, who)
        times = [one["step_median"] / other["step_median"] for one, other in zip(found, plain)]
        lines.append(f"| {name} | {mib(found[0]['device_bytes'])} | {mib(found[0]['host_bytes'])} | "
                     f"{found[0]['flops'] / plain[0]['flops']:.3f} | "
                     f"{report.median(times):.3f} ({min(times):.3f} to {max(times):.3f}) |")
    lines += ["", "On four devices, the fullest rank:", "", "| f32 | MiB | of DP4 |", "|---|---|---|"]
    whole = result["meshes"]["DP4"]["device_bytes"]
    for name, found in result["meshes"].items():
        lines.append(f"| {name} | {mib(found['device_bytes'])} | {found['device_bytes'] / whole:.3f} |")
    lines += ["", "GPT of 1,313,722,368 parameters (24 layers, width 2048, 32 heads, vocabulary 50304, 1024 positions), four "
              "devices, global batch 4, micro-batch 1: planned, f32, beside what was reported of 16-bit training. Bytes per "
              "parameter are of the parameters that the reporter's fullest rank holds.", "",
              "| | " + " | ".join(f"{way or 'plain'}, MiB | B/parameter" for way in LARGE_WAYS)
              + " | reported, MiB | B/parameter |", "|---|" + "---|---|" * (len(LARGE_WAYS) + 1)]
    for name, (_, reported, parameters) in MESHES.items():
        cells = [cell for way in LARGE_WAYS for count in [result["planned"][name][way]["device_bytes"]]
                 for cell in (mib(count), f"{count / parameters:.2f}")]
        cells += [str(reported), f"{reported * MIB / parameters:.2f}"] if reported else ["-", "-"]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += ["", "The same on DP4, by switch:", "", "| | device, MiB | host, MiB |", "|---|---|---|"]
    for who, (name, _) in SWITCHES.items():
        found = result["switched"][who]
        lines.append(f"| {name} | {mib(found['device_bytes'])} | {mib(found['host_bytes'])} |")
    lines += ["", "## Commands", "", "```sh"]
    lines += dict.fromkeys(found["command"] for found in result["runs"] if found["round"] == 0)
    return "\n".join(lines + ["```", ""])


if __name__ == "__main__":
    main()
