#!/usr/bin/env python3
"""What a model learns of a translation in a given time: Tessera beside PyTorch.

    ./dev bench translate --pairs FILE [FLAG...]      builds, then runs this

Both train the same encoder-decoder Transformer on the same pairs, with the same learned tokens, batches, optimizer and
learning rates, for --minutes each, one after the other; then both translate the held-out sources greedily. Losses are
means over the held-out tokens, BLEU is that of `tessera score` for both. FILE has a source, a tab and a target in each
line, as `tessera prepare wmt14` writes it; its last lines are held out. Writes a table, a JSON file and a drawing of
Tessera's losses, named by date and CPU, to bench/results.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

import turns

WORK = pathlib.Path("runs/bench/translate")
EVERY = 200  # steps between two looks at the held-out part, of each side
NAMES = {"tessera": "Tessera", "pytorch": "PyTorch"}


def main():
    os.chdir(pathlib.Path(__file__).resolve().parent.parent)
    args = parse_args()
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    split(args)
    tasks = {"tessera": lambda: tessera(args)}
    if not turns.has_torch(args):
        sys.exit("bench: the comparison needs PyTorch, and its virtual environment tokenizers")
    tasks["pytorch"] = lambda: pytorch(args)
    result = turns.take_turns(
        args, NAMES, tasks,
        lambda found: f"{found['steps']} steps, validation loss {found['valid'][-1][1]:.4f}, BLEU {found['bleu']:.2f}",
        **{key: getattr(args, key) for key in ("minutes", "threads", "layers", "width", "heads", "vocabulary", "length",
                                               "batch", "lr", "dropout", "pairs_trained", "pairs_held_out")})
    counts = {r["who"]: r["parameters"] for r in result["runs"]}
    if len(set(counts.values())) > 1:
        sys.exit(f"bench: the two models are not the same: they have other numbers of parameters, {counts}")
    name = args.output / turns.name_of(result, "translate")
    turns.save(name, result, table(result))
    turns.told_by([f"{args.build}/tessera", "chart", WORK / "tessera", "--output", f"{name}.svg"])


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", required=True, metavar="FILE", help="source, tab, target in each line")
    parser.add_argument("--minutes", type=float, default=30, help="of training, of each side [30]")
    parser.add_argument("--threads", type=int, default=2, help="of each side [2]")
    parser.add_argument("--held-out", type=float, default=0.05, help="share of the lines, the last ones [0.05]")
    parser.add_argument("--layers", type=int, default=3, help="of the encoder, and of the decoder [3]")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--vocabulary", type=int, default=8000, help="learned tokens, special ones included [8000]")
    parser.add_argument("--length", type=int, default=64, help="most tokens of a source and of a target [64]")
    parser.add_argument("--batch", type=int, default=32, help="pairs in a step [32]")
    parser.add_argument("--lr", type=float, default=5e-4)
    parser.add_argument("--dropout", type=float, default=0.1)
    turns.add_common_flags(parser)
    args = parser.parse_args()
    args.rounds, args.steps, args.warmup = 1, 0, 0  # as other tables call them
    args.output = pathlib.Path(args.output or "bench/results")
    turns.require_programs(parser, args, "tessera")
    return args


def split(args):
    """Files of what trains and of what is held out: the same for both."""
    lines = [line for line in pathlib.Path(args.pairs).read_text(encoding="utf-8").split("\n") if line]
    held = max(1, round(len(lines) * args.held_out))
    (WORK / "train.txt").write_text("".join(line + "\n" for line in lines[:-held]), encoding="utf-8")
    (WORK / "held.txt").write_text("".join(line + "\n" for line in lines[-held:]), encoding="utf-8")
    args.pairs_trained, args.pairs_held_out = len(lines) - held, held


def tessera(args):
    folder = WORK / "tessera"
    words = [f"{args.build}/tessera", "train", "--family", "transformer", "--layers", args.layers, "--width", args.width,
             "--heads", args.heads, "--ffn-width", 4 * args.width, "--vocabulary", "bpe", "--vocab-size", args.vocabulary,
             "--source-context", args.length, "--context", args.length, "--dropout", args.dropout, "--data",
             WORK / "train.txt", "--valid-data", WORK / "held.txt", "--global-batch-size", args.batch, "--lr", args.lr,
             "--lr-decay-style", "constant", "--lr-warmup-steps", 100, "--adam-beta2", 0.95, "--weight-decay", 0.01,
             "--clip-grad", 1.0, "--threads", args.threads, "--steps", 10**6, "--eval-every", EVERY, "--no-eval-at-end",
             "--output", folder]
    words = [str(word) for word in words]
    log = open(WORK / "tessera.log", "w")
    training = subprocess.Popen([*args.under, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    begin = None
    while training.poll() is None:  # the minutes begin with the first step, as PyTorch's do
        metrics = folder / "metrics.jsonl"
        if begin is None and metrics.exists() and metrics.stat().st_size > 0:
            begin = time.time()
        if begin is not None and time.time() - begin > 60 * args.minutes:
            training.send_signal(signal.SIGTERM)
            training.wait()
        time.sleep(0.2)
    if training.returncode not in (0, 75):
        sys.exit(f"bench: training failed with {training.returncode}: {(WORK / 'tessera.log').read_text()[-2000:]}")
    steps = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    trained = [line for line in steps if line["kind"] == "train"]
    counted = re.search(r"([0-9,]+) parameters", (WORK / "tessera.log").read_text())
    # The validation loss of the last step: a run that goes on for no step validates.
    turns.told_by([*words[:2], "--config", folder / "config.toml", "--output", folder, "--resume", "auto", "--steps",
                 trained[-1]["step"], "--eval-at-end"], args.under)
    valid = [line for line in map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
             if line["kind"] == "valid"]
    keep_fitting(args, folder)
    turns.told_by([words[0], "sample", folder, "--input", WORK / "fitting.sources.txt", "--output", WORK / "tessera.txt",
                 "--rows", 16, "--threads", args.threads], args.under)
    return scored(args, "tessera", {
        "command": turns.line_of(words), "parameters": int(counted[1].replace(",", "")),
        "steps": trained[-1]["step"], "losses": [line["loss"] for line in trained],
        "valid": [[line["step"], line["loss"]] for line in valid],
        "median": turns.median([line["step_seconds"] for line in trained])})


def keep_fitting(args, folder):
    """The tokens that Tessera learned, for the peer, and the held-out pairs of which both sides fit."""
    newest = sorted((folder / "checkpoints").iterdir())[-1]
    manifest = json.loads((newest / "manifest.json").read_text())
    text = next(value for value in strings_of(manifest) if '"merges"' in value and '"tessera vocabulary"' in value)
    (WORK / "vocabulary.json").write_text(text)
    turns.told_by([args.peer, "bench/peers/torch_translate.py", "--fitting", "--work", WORK, "--length", args.length])


def strings_of(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from strings_of(part)


def pytorch(args):
    words = [args.peer, "bench/peers/torch_translate.py", "--work", WORK, "--minutes", args.minutes, "--every",
             EVERY]
    for key in ("threads", "layers", "width", "heads", "vocabulary", "length", "batch", "lr", "dropout"):
        words += [f"--{key}", getattr(args, key)]
    told, command = turns.told_by([*turns.KEEP_MEMORY, *words], args.under)
    return scored(args, "pytorch", json.loads(told.splitlines()[-1]) | {"command": command})


def scored(args, who, found):
    """BLEU over the held-out pairs that fit, and some of the translations."""
    told, _ = turns.told_by([f"{args.build}/tessera", "score", "--hypotheses", WORK / f"{who}.txt", "--references",
                           WORK / "fitting.references.txt"])
    found["score"] = told.strip()
    found["bleu"] = float(re.search(r"BLEU\D*([0-9.]+)", told)[1])
    lines = [(WORK / name).read_text(encoding="utf-8").splitlines()
             for name in ("fitting.sources.txt", f"{who}.txt", "fitting.references.txt")]
    found["examples"] = [list(three) for three in zip(*lines)][:5]
    return found


def curve_at(found, end):
    """Mean training loss of the steps before `end`, and the validation loss there; dashes behind the last step."""
    if found["steps"] < end:
        return "- | -"
    return f"{statistics.fmean(found['losses'][end - EVERY:end]):.3f} | {dict(map(tuple, found['valid']))[end]:.3f}"


def table(result):
    out = [f"# Translation in {result['minutes']:g} minutes", "", *turns.about(result), "",
           f"{result['layers']} + {result['layers']} layers of width {result['width']}, {result['vocabulary']} tokens, "
           f"{result['runs'][0]['parameters']:,} parameters, dropout {result['dropout']:g}; {result['pairs_trained']} pairs, "
           f"{result['pairs_held_out']} held out, sources and targets of at most {result['length']} tokens, "
           f"{result['batch']} in a step.", "",
           "| | steps | s per step | first loss | last loss | validation loss | BLEU |", "|---|---|---|---|---|---|---|"]
    for r in result["runs"]:
        out.append(f"| {NAMES[r['who']]} | {r['steps']} | {r['median']:.3f} | {r['losses'][0]:.4f} | "
                   f"{r['losses'][-1]:.4f} | {r['valid'][-1][1]:.4f} | {r['bleu']:.2f} |")
    out += ["", "Losses step by step, as training sees them (means of the steps since the row before) and in validation:", "",
            "| step | " + " | ".join(f"{NAMES[r['who']]}, training | validation" for r in result["runs"]) + " |",
            "|---|" + "---|---|" * len(result["runs"])]
    for end in range(EVERY, max(r["steps"] for r in result["runs"]) + 1, EVERY):
        out.append(f"| {end} | " + " | ".join(curve_at(r, end) for r in result["runs"]) + " |")
    for r in result["runs"]:
        out += ["", f"## What {NAMES[r['who']]} writes", ""]
        for source, written, reference in r["examples"]:
            out += [f"- {source}", f"  - written: {written}", f"  - reference: {reference}"]
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    main()
