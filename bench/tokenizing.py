#!/usr/bin/env python3
"""Tokenizing with the Hugging Face library `tokenizers` and with build/tokenize, in turns, with the same threads.

    python bench/tokenizing.py TEXT --bert vocab.txt --gpt2 FOLDER [--threads 2]

Needs the Python packages tokenizers and, for the build, `ninja -C build tokenize`. The text is cut at line ends into
documents of about 10 kB. The fastest of three turns of each counts; ids are compared one by one by their number here,
and bit for bit in the tests.
"""
import argparse
import os
import subprocess
import time


def documents(text):
    out, at = [], 0
    while at < len(text):
        end = text.find(b"\n", min(at + 10000, len(text) - 1))
        end = len(text) if end < 0 else end + 1
        out.append(text[at:end].decode())
        at = end
    return out


def reference(kind, path):
    from tokenizers import BertWordPieceTokenizer, Tokenizer, models, pre_tokenizers
    if kind == "bert":
        return BertWordPieceTokenizer(path, lowercase=True)
    out = Tokenizer(models.BPE.from_file(f"{path}/vocab.json", f"{path}/merges.txt"))
    out.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("text")
    parser.add_argument("--bert")
    parser.add_argument("--gpt2")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--program", default="build/tokenize")
    args = parser.parse_args()
    os.environ["RAYON_NUM_THREADS"] = str(args.threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "true"
    with open(args.text, "rb") as file:
        text = file.read()
    docs = documents(text)
    for kind, path in (("bert", args.bert), ("gpt2", args.gpt2)):
        if not path:
            continue
        library = reference(kind, path)
        theirs, ours = [], []
        for _ in range(3):
            begin = time.perf_counter()
            encoded = library.encode_batch(docs)
            theirs.append(len(text) / (time.perf_counter() - begin) / 1e6)
            count = sum(len(e.ids) for e in encoded)
            said = subprocess.run([args.program, path, args.text, str(args.threads)], check=True,
                                  capture_output=True, text=True).stdout.split()
            ours.append(float(said[0]))
            if int(said[2]) != count:
                raise SystemExit(f"{kind}: {said[2]} ids, and {count} of the library")
        print(f"{kind}: {count} ids of {len(text) / 1e6:.1f} MB by {args.threads} threads: tokenizers "
              f"{max(theirs):.1f} MB/s, Tessera {max(ours):.1f} MB/s")


if __name__ == "__main__":
    main()
