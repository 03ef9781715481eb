#!/usr/bin/env python3
"""An encoder-decoder Transformer in PyTorch that learns to translate for some minutes: the peer of bench/translate.py.

torch.nn.Transformer with norms before each part, GELU, learned positions, two tables, of which that of the target is the
head as well; weights, biases and dropout begin as Tessera's do; AdamW; every pair once per epoch, padded to the longest of
its batch. Reads the files that bench/translate.py has made, with the tokens that Tessera has learned, writes translations
of the held-out sources that fit, and prints one JSON line. --fitting only writes which pairs fit.
"""
import argparse
import json
import math
import pathlib
import random
import time

from tokenizers import Tokenizer, models, pre_tokenizers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--fitting", action="store_true")
    for name, value in {"minutes": 30.0, "threads": 2, "layers": 3, "width": 256, "heads": 8, "vocabulary": 8000,
                        "length": 64, "batch": 32, "lr": 5e-4, "dropout": 0.1, "every": 200}.items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    args = parser.parse_args()
    tokens = Tokens(json.loads((args.work / "vocabulary.json").read_text())["merges"])
    held = fitting(args, tokens, "held.txt")
    if args.fitting:
        for i, name in enumerate(("sources", "references")):
            (args.work / f"fitting.{name}.txt").write_text("".join(p[i] + "\n" for p in held), encoding="utf-8")
        return
    train(args, tokens, fitting(args, tokens, "train.txt"), held)


class Tokens:
    """Byte-level BPE by the library `tokenizers`, with merges as GPT-2's merges.txt has them."""

    def __init__(self, merges):
        pairs = [tuple(line.split(" ")) for line in merges.splitlines()]
        letters = [chr(c) for c in [*range(33, 127), *range(161, 173), *range(174, 256)]]
        letters += [chr(256 + n) for n in range(256 - len(letters))]
        self.ids = {}
        for word in letters + [a + b for a, b in pairs]:
            self.ids.setdefault(word, len(self.ids))
        self.words = list(self.ids)
        byte_of = [*range(33, 127), *range(161, 173), *range(174, 256)]
        byte_of += [b for b in range(256) if b not in set(byte_of)]
        self.bytes = dict(zip(letters, byte_of))
        self.library = Tokenizer(models.BPE(vocab=self.ids, merges=pairs))
        self.library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)

    def encode(self, text):
        return self.library.encode(text).ids

    def decode(self, ids):
        letters = "".join(self.words[i] for i in ids if i < len(self.words))
        return bytes(self.bytes[c] for c in letters).decode("utf-8", errors="replace")


def fitting(args, tokens, name):
    """The pairs of which both sides fit, an end token included: texts and ids."""
    out = []
    for line in (args.work / name).read_text(encoding="utf-8").splitlines():
        texts = line.split("\t")
        ids = [tokens.encode(text) for text in texts]
        if max(map(len, ids)) < args.length:
            out.append((*texts, *ids))
    return out


def train(args, tokens, pairs, held):
    import torch
    import torch.nn as nn
    import torch.nn.functional as F

    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    random.seed(1)
    pad, start, end = args.vocabulary - 3, args.vocabulary - 2, args.vocabulary - 1

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tables = nn.ModuleList(nn.Embedding(args.vocabulary, args.width) for _ in range(2))
            self.positions = nn.ModuleList(nn.Embedding(args.length, args.width) for _ in range(2))
            self.body = nn.Transformer(args.width, args.heads, args.layers, args.layers, 4 * args.width, args.dropout,
                                       "gelu", batch_first=True, norm_first=True)
            self.drop = nn.Dropout(args.dropout)
            for name, p in self.body.named_parameters():
                if name.endswith("bias"):
                    nn.init.zeros_(p)
            for p in self.parameters():
                if p.dim() > 1:
                    nn.init.normal_(p, 0, 0.02)
            for layers, parts in ((self.body.encoder.layers, 2), (self.body.decoder.layers, 3)):
                for layer in layers:
                    layer.dropout = nn.Identity()  # the one inside the feed-forward part, which Tessera has not
                    for name, p in layer.named_parameters():  # GPT-2's: 0.02 / sqrt(parts of the residual stream)
                        if name.endswith(("out_proj.weight", "linear2.weight")):
                            nn.init.normal_(p, 0, 0.02 / math.sqrt(parts * args.layers))

        def embed(self, i, ids):
            return self.drop(self.tables[i](ids) + self.positions[i](torch.arange(ids.shape[1])))

        def forward(self, source, ids):
            hidden = torch.triu(torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool), 1)
            y = self.body(self.embed(0, source), self.embed(1, ids), tgt_mask=hidden, src_key_padding_mask=source == pad,
                          memory_key_padding_mask=source == pad)
            return F.linear(y, self.tables[1].weight)

    def batch_of(some):
        rows = torch.full((3, len(some), 1 + max(len(ids) for pair in some for ids in pair[2:])), pad)
        rows[2] = -100
        for i, (_, _, source, target) in enumerate(some):
            rows[0, i, :len(source) + 1] = torch.tensor([*source, end])
            rows[1, i, :len(target) + 1] = torch.tensor([start, *target])
            rows[2, i, :len(target) + 1] = torch.tensor([*target, end])
        return rows

    def loss_of(some, reduction="mean"):
        source, ids, labels = batch_of(some)
        return F.cross_entropy(model(source, ids).flatten(0, 1), labels.flatten(), reduction=reduction)

    def held_out():
        model.eval()
        with torch.inference_mode():
            total = sum(loss_of(held[i:i + args.batch], "sum").item() for i in range(0, len(held), args.batch))
        model.train()
        return total / sum(len(pair[3]) + 1 for pair in held)

    model = Model()
    decays = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": decays, "weight_decay": 0.01}, {"params": others, "weight_decay": 0}],
                                  lr=args.lr, betas=(0.9, 0.95), fused=True)
    losses, valid, seconds, queue, begin = [], [], [], [], time.time()
    while time.time() - begin < 60 * args.minutes:
        if len(queue) < args.batch:
            queue += random.sample(pairs, len(pairs))
        now = time.time()
        for group in optimizer.param_groups:
            group["lr"] = args.lr * min(1, (len(losses) + 1) / 100)
        loss = loss_of([queue.pop() for _ in range(args.batch)])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.time() - now)
        if len(losses) % args.every == 0:
            valid.append([len(losses), held_out()])

    valid.append([len(losses), held_out()])
    model.eval()
    with torch.inference_mode():
        texts = []
        for i in range(0, len(held), args.batch):
            some = held[i:i + args.batch]
            source = batch_of(some)[0]
            ids = torch.full((len(some), 1), start)
            while ids.shape[1] < args.length and not (ids == end).any(dim=1).all():
                logits = model(source, ids)[:, -1]
                logits[:, [pad, start]] = -math.inf
                ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], 1)
            for row in ids.tolist():
                row = row[1:row.index(end)] if end in row else row[1:]
                texts.append(" ".join(tokens.decode(row).split()))
    (args.work / "pytorch.txt").write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    print(json.dumps({"torch": torch.__version__, "steps": len(losses), "losses": losses, "valid": valid,
                      "median": sorted(seconds)[len(seconds) // 2],
                      "parameters": sum(p.numel() for p in model.parameters())}))


if __name__ == "__main__":
    main()
