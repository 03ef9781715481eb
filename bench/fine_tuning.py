#!/usr/bin/env python3
"""A small BERT fine-tuned on a table of GLUE: Tessera beside PyTorch, from the same weights, on the same batches.

    PYTHON bench/fine_tuning.py --data FOLDER [FLAG...]

PYTHON has torch and transformers. FOLDER has train.tsv and dev.tsv of MRPC. transformers makes a BERT with random weights
and no dropout; `build/tessera train` and PyTorch then train it for one epoch. Prints how far the losses of the first
steps are apart, and accuracy and F1 on dev.tsv after the epoch. Ends with 1 where a loss differs by more than --most.
"""
import argparse
import ctypes
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers

SEED, BATCH, CLIP, DECAY = 1, 16, 1.0, 0.01


def main():
    args = parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model, tokenizer = random_bert(args, folder / "model")
        rows = {part: read_rows(args.data / f"{part}.tsv") for part in ("train", "dev")}
        context = tessera(args, folder)
        losses = [line["loss"] for line in lines_of(folder, "train")]
        there, predicted = pytorch(model, tokenizer, rows, context, len(losses), args.lr)
        eval_line = lines_of(folder, "eval")[0]
        told = (folder / "run" / "predictions-epoch-1.tsv").read_text().splitlines()[1:]
    far = [abs(a - b) for a, b in zip(losses, there)]
    print(f"{model.num_parameters():,} parameters, {len(losses)} steps of {BATCH}, context {context}")
    print(f"losses of the first {args.steps} steps: {losses[0]:.6f} to {losses[args.steps - 1]:.6f}, PyTorch's "
          f"{there[0]:.6f} to {there[args.steps - 1]:.6f}; largest difference {max(far[:args.steps]):.1e}")
    labels = [label for _, _, label in rows["dev"]]
    accuracy, f1 = scores(labels, predicted)
    same = sum(line.split("\t")[2] == str(p) for line, p in zip(told, predicted))
    print(f"after the epoch: accuracy {eval_line['accuracy']:.4f}, F1 {eval_line['f1']:.4f}; PyTorch: "
          f"{accuracy:.4f}, {f1:.4f}; {same} of {len(labels)} predictions are the same")
    sys.exit(max(far[:args.steps]) > args.most)


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--vocab", type=pathlib.Path, required=True, help="BERT's vocab.txt")
    parser.add_argument("--steps", type=int, default=50, help="whose losses are compared")
    parser.add_argument("--most", type=float, default=1e-4, help="by which a loss may differ")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--flags", default="", help="more of tessera train, as '--devices 4'")
    return parser.parse_args()


def random_bert(args, folder):
    torch.manual_seed(SEED)
    tokenizer = transformers.BertTokenizer(str(args.vocab), do_lower_case=False)
    config = transformers.BertConfig(
        vocab_size=sum(1 for _ in args.vocab.open(encoding="utf-8")), hidden_size=64, num_hidden_layers=2,
        num_attention_heads=4, intermediate_size=128, max_position_embeddings=128, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, num_labels=2)
    model = transformers.BertForSequenceClassification(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model, tokenizer


def read_rows(path):
    """(first text, second text, label) of each line of MRPC."""
    lines = path.read_text(encoding="utf-8-sig").split("\n")[1:]
    cells = [line.split("\t") for line in lines if line]
    return [(row[3], row[4], int(row[0])) for row in cells]


def tessera(args, folder):
    """Trains an epoch; the context that the run chose."""
    command = ["build/tessera", "train", "--init-from", folder / "model", "--data", args.data / "train.tsv",
               "--valid-data", args.data / "dev.tsv", "--epochs", 1, "--global-batch-size", BATCH, "--lr", args.lr,
               "--lr-decay-style", "constant", "--weight-decay", DECAY, "--clip-grad", CLIP, "--seed", SEED,
               "--adam-beta2", 0.999, "--output", folder / "run", *args.flags.split()]
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
    manifest = next((folder / "run" / "checkpoints").glob("*/manifest.json"))
    recorded = json.loads(manifest.read_text())["texts"]["config"]
    return int(json.loads(recorded)["context"])


def lines_of(folder, kind):
    lines = (folder / "run" / "metrics.jsonl").read_text().splitlines()
    return [line for line in map(json.loads, lines) if line["kind"] == kind]


def pytorch(model, tokenizer, rows, context, steps, lr):
    """The losses of these steps, and what is predicted of the held-out rows after them."""
    def inputs(some):
        texts = tokenizer([a for a, _, _ in some], [b for _, b, _ in some], truncation=True, max_length=context,
                          padding="max_length", return_tensors="pt")
        return {**texts, "labels": torch.tensor([label for _, _, label in some])}

    weights = [a for a in model.parameters() if a.ndim >= 2], [a for a in model.parameters() if a.ndim < 2]
    optimizer = torch.optim.AdamW([{"params": weights[0], "weight_decay": DECAY},
                                   {"params": weights[1], "weight_decay": 0.0}], lr=lr, betas=(0.9, 0.999), eps=1e-8)
    losses, size = [], len(rows["train"])
    model.train()
    for step in range(steps):
        numbers = [place(step * BATCH + i, size) for i in range(BATCH)]
        loss = model(**inputs([rows["train"][i] for i in numbers])).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        logits = [model(**inputs(rows["dev"][i:i + 64])).logits for i in range(0, len(rows["dev"]), 64)]
    return losses, torch.cat(logits).argmax(-1).tolist()


def scores(labels, predicted):
    right = sum(a == b for a, b in zip(labels, predicted))
    both = sum(a == b == 1 for a, b in zip(labels, predicted))
    either = sum(labels) + sum(predicted)
    return right / len(labels), 2 * both / either if either else 0.0


def place(number, size):
    """Which row sample `number` of a run is: src/tessera/token_files/permutation.h."""
    i, epoch = number % size, number // size
    half = max(1, ((size - 1).bit_length() + 1) // 2)
    mask = (1 << half) - 1
    while True:
        left, right = i >> half, i & mask
        for turn in range(8):
            left, right = right, left ^ (philox(order_key(), turn << 32 | right, epoch) & mask)
        i = left << half | right
        if i < size:
            return i


def philox(key, block, step):
    """The first word of Philox-4x32-10."""
    low = 0xFFFFFFFF
    c, k0, k1 = [block & low, block >> 32, step & low, step >> 32], key & low, key >> 32
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k0, p1 & low, (p0 >> 32) ^ c[3] ^ k1, p0 & low]
        k0, k1 = (k0 + 0x9E3779B9) & low, (k1 + 0xBB67AE85) & low
    return c[0]


def order_key(known=[]):
    """The low half of the XXH3-128 hash of the order's name, with the seed."""
    class Hash(ctypes.Structure):
        _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]

    if not known:
        function = ctypes.CDLL("libxxhash.so.0").XXH3_128bits_withSeed
        function.restype, function.argtypes = Hash, [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64]
        known.append(function(b"data.order", len(b"data.order"), SEED).low)
    return known[0]


if __name__ == "__main__":
    main()
