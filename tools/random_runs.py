#!/usr/bin/env python3
"""Trains models that are drawn at random: family, task, mesh, precision, adapter, schedule, memory.

    tools/random_runs.py [--runs N] [--seed S] [--only K] TESSERA

A run trains four steps, goes on to the sixth from its checkpoint, and is exported. It must end well, or be refused with
an exit code that docs/reference/errors.md has for flags, data and weights, and a message. A mesh in f32 must have the
losses of one device. Prints a line for each run, and exits with 1 if one is wrong.
"""
import argparse
import json
import math
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
SIZES = "--layers 4 --width 32 --heads 4 --dropout 0 --global-batch-size 8".split()
PICTURES = "--image-size 8 --patch-size 4 --classes 4".split()
REFUSED = {2, 3, 4}
NEAR = 2e-5  # of losses of a mesh, relative


def families():
    """(family, tasks) by the reference: a row without tasks has those of its kind."""
    page = (ROOT / "docs/reference/families.md").read_text()
    kinds = {}
    for kind, tasks in re.findall(r"^- ([a-z -]+): ((?:`[a-z_0-9]+`[, \n]*)+)", page, re.M):
        kinds[kind] = re.findall(r"`([a-z_0-9]+)`", tasks)
    out = []
    for name, kind, learns in re.findall(r"^\| `([^`]+)` \| ([^|]+) \| [^|]+ \| ([^|]*) \|", page, re.M):
        out.append((name, re.findall(r"`([a-z_0-9]+)`", learns) or kinds[kind.strip()]))
    return out


def write_pictures(path, draw, count=48, width=8):
    """As docs/guides/data.md has them: pictures of three channels, of four classes."""
    pixels = struct.pack(f"<{count * 3 * width * width}f", *(draw.gauss(0, 1) for _ in range(count * 3 * width * width)))
    labels = struct.pack(f"<{count}q", *(draw.randint(0, 3) for _ in range(count)))
    head = json.dumps({
        "pixel_values": {"dtype": "F32", "shape": [count, 3, width, width], "data_offsets": [0, len(pixels)]},
        "labels": {"dtype": "I64", "shape": [count], "data_offsets": [len(pixels), len(pixels) + len(labels)]}}).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + pixels + labels)


class Data:
    """A small file for each task, and the flags that name it."""

    def __init__(self, folder):
        self.folder, draw = folder, random.Random(1)
        words = "the cat saw Anna in Rome and Bob ran home to sleep".split()
        texts = [" ".join(draw.choices(words, k=draw.randint(3, 9))) for _ in range(96)]
        labels = [draw.choice(["yes", "no"]) for _ in texts]
        lines = lambda rows: "\n".join(json.dumps(row) for row in rows) + "\n"
        table = lambda head, rows: "\n".join("\t".join(row) for row in [head, *rows]) + "\n"
        numbers = [f"{len(text) / 10:.1f}" for text in texts]
        self.files = {
            "text.txt": "\n".join(texts * 4),
            "labels.tsv": table(["text", "label"], zip(texts, labels)),
            "numbers.tsv": table(["text", "label"], zip(texts, numbers)),
            "several.tsv": table(["text", "label"], zip(texts, [draw.choice(["a", "b", "a,b"]) for _ in texts])),
            "pairs.tsv": table(["source", "target"], zip(texts, reversed(texts))),
            "groups.tsv": table(["one", "two"], zip(texts, reversed(texts))),
            "words.jsonl": lines({"tokens": text.split(), "ner_tags": ["B-PER" if word in ("Anna", "Bob") else "O"
                                                                        for word in text.split()]} for text in texts),
            "questions.json": json.dumps({"data": [{"paragraphs": [
                {"context": text, "qas": [{"id": str(i), "question": "who", "answers": [
                    {"text": text.split()[0], "answer_start": 0}]}]} for i, text in enumerate(texts)]}]}),
            "answers.jsonl": lines({"prompt": text[:8], "chosen": text[8:16], "rejected": text[:4]} for text in texts),
        }
        self.files["choices.jsonl"] = lines(
            {"question": text, "choices": draw.sample(texts, 3), "answer": draw.randint(0, 2)} for text in texts)
        for name, content in self.files.items():
            (folder / name).write_text(content)
        write_pictures(folder / "pictures.safetensors", draw)
        self.rows = {
            "sequence_classification": ("labels.tsv", "--text-column text --label-column label"),
            "regression": ("numbers.tsv", "--text-column text --label-column label"),
            "multi_label_classification": ("several.tsv", "--text-column text --label-column label"),
            "seq2seq_lm": ("pairs.tsv", "--text-column source --target-column target --source-context 32"),
            "sentence_embedding": ("groups.tsv", "--text-column one --text-pair-column two"),
            "token_classification": ("words.jsonl", ""),
            "multiple_choice": ("choices.jsonl", "--text-column question --text-pair-column choices --label-column answer"),
            "image_classification": ("pictures.safetensors", ""),
            "question_answering": ("questions.json", "--doc-stride 8"),
            "preference": ("answers.jsonl", f"--tokenizer {ROOT / 'tests/golden/chat/byte_level'}"),
            "denoising": ("text.txt", ""),
            "causal_lm": ("text.txt", ""),
            "masked_lm": ("text.txt", ""),
            "pretraining": ("text.txt", ""),
        }

    def flags(self, task):
        name, flags = self.rows[task]
        return ["--data", str(self.folder / name), *flags.split()]


def draw_mesh(draw):
    devices = draw.choice([1, 2, 2, 4, 4, 8])
    left, flags = devices, ["--devices", str(devices)]
    for flag in ("tensor-model", "pipeline-model", "context"):
        size = draw.choice([1, 1, 2]) if left % 2 == 0 else 1
        if size > 1:
            flags += [f"--{flag}-parallel-size", str(size)]
            left //= size
            if flag == "tensor-model" and draw.random() < 0.5:
                flags.append("--sequence-parallel")
            if flag == "pipeline-model" and draw.random() < 0.5:
                flags += ["--pipeline-schedule", draw.choice(["gpipe", "1f1b", "zb-h1", "interleaved"])]
    if draw.random() < 0.6:
        flags += ["--zero-stage", str(draw.randint(0, 3))]
    if draw.random() < 0.5:
        flags += ["--micro-batch-size", str(draw.choice([1, 2]))]
    return flags


def draw_rest(draw):
    precision = draw.choice([[], [], [], ["--bf16"], ["--fp16"], ["--bf16", "--reduce-dtype", "bf16"]])
    adapter = draw.choice([[], [], ["--lora-rank", "4"], ["--lora-rank", "2", "--rslora", "--lora-targets", "all-linear"],
                           ["--lora-rank", "4", "--dora"], ["--lora-rank", "3", "--lora-dropout", "0.1"],
                           ["--freeze", "*layers.0.*"]])
    memory = draw.choice([[], [], ["--recompute-granularity", "full"], ["--recompute-granularity", "selective"]])
    optimizer = draw.choice([[], [], ["--optimizer", "lamb"], ["--optimizer", "sgd"], ["--optimizer", "adam"]])
    return precision + adapter + memory + optimizer, bool(precision), bool(adapter) and "--freeze" not in adapter


def losses(output):
    lines = (json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines())
    return [line["loss"] for line in lines if line["kind"] == "train"]


class Wrong(Exception):
    pass


def tessera(command, *args):
    """(exit code, what it said). What is neither an end nor a refusal is wrong."""
    line = [str(each) for each in (command, *args)]
    try:
        ran = subprocess.run(line, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise Wrong("hangs: " + " ".join(line)) from None
    said = ran.stderr.strip()
    if ran.returncode not in {0} | REFUSED or (ran.returncode and len(said) < 20):
        raise Wrong(f"exit code {ran.returncode}: {said[-400:]}\n  {' '.join(line)}")
    return ran.returncode, said


def one_run(program, draw, data, folder):
    family, task = draw.choice([(name, task) for name, tasks in families() for task in tasks if task in data.rows])
    mesh, (rest, rounds, adapts) = draw_mesh(draw), draw_rest(draw)
    length = [] if task == "image_classification" else ["--context", 32]
    model = ["--family", family, *SIZES, *(length or PICTURES), "--task", task, *data.flags(task)]
    told = " ".join([family, task, *mesh, *rest])
    if adapts and draw.random() < 0.7:  # of a folder, as users have it
        code, said = tessera(program, "train", *model, "--steps", 1, "--output", folder / "first")
        if code == 0:
            code, said = tessera(program, "export", folder / "first", "--output", folder / "base")
        if code:
            return told, "refused: " + said
        model = ["--init-from", folder / "base", *length, "--dropout", 0, "--global-batch-size", 8, "--task", task,
                 *data.flags(task)]
    run = folder / "run"
    every = ["train", *model, *rest, "--steps", 6, "--log-every", 1, "--eval-iters", 2, "--save-every", 2]
    code, said = tessera(program, *every, *mesh, "--exit-interval", 4, "--output", run)
    if code:
        return told, "refused: " + said
    code, said = tessera(program, *every, *mesh, "--resume", "auto", "--output", run)
    if code:
        raise Wrong("does not go on: " + said)
    ours = losses(run)
    if len(ours) != 6 or not all(math.isfinite(loss) for loss in ours):
        raise Wrong(f"losses {ours}")
    if not rounds and "--lora-dropout" not in rest:
        code, said = tessera(program, *every, "--output", folder / "one")
        if code:
            raise Wrong("one device refuses it: " + said)
        theirs = losses(folder / "one")
        if any(abs(a - b) > NEAR * abs(b) for a, b in zip(ours, theirs)):
            raise Wrong(f"losses {ours}, on one device {theirs}")
    code, said = tessera(program, "export", run, "--output", folder / "out")
    return told, "ok" if code == 0 else "ok, not exported: " + said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="the run of this number alone")
    parser.add_argument("tessera", type=pathlib.Path)
    args = parser.parse_args()
    counts = {"ok": 0, "refused": 0, "wrong": 0}
    with tempfile.TemporaryDirectory() as scratch:
        data = Data(pathlib.Path(scratch))
        for number in range(1, args.runs + 1) if args.only is None else [args.only]:
            folder = pathlib.Path(scratch, str(number))
            folder.mkdir()
            try:
                told, end = one_run(args.tessera.resolve(), random.Random(f"{args.seed} {number}"), data, folder)
            except Wrong as wrong:
                told, end = "", f"wrong: {wrong}"
            counts[re.match("[a-z]+", end)[0]] += 1
            print(number, told, end.replace(scratch, ""), sep="  ", flush=True)
            shutil.rmtree(folder)
    print(", ".join(f"{count} {end}" for end, count in counts.items()))
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
