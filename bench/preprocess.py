#!/usr/bin/env python3
"""Token files by the pattern of Megatron-LM's tool preprocess_data and by `tessera preprocess_data`, in turns.

    python bench/preprocess.py TEXT --gpt2 FOLDER [--workers 2]

Needs the Python packages tokenizers and megatron-core. Megatron-LM's tool is not a part of megatron-core; what it does
is done here in the same way: a pool of processes encodes JSON lines, 32 at a time, by the library `tokenizers`, and
this process writes with megatron-core's IndexedDatasetBuilder. TEXT is cut at line ends into documents of about 10 kB.
The fastest of three turns of each counts, start included; the files have to be the same.
"""
import argparse
import filecmp
import json
import multiprocessing
import os
import pathlib
import subprocess
import tempfile
import time

from megatron.core.datasets.indexed_dataset import DType, IndexedDatasetBuilder
from tokenizers import Tokenizer, models, pre_tokenizers

from tokenizing import documents

encoder = None


def start(folder):
    global encoder
    encoder = Tokenizer(models.BPE.from_file(f"{folder}/vocab.json", f"{folder}/merges.txt"))
    encoder.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)


def encode(line):
    return encoder.encode(json.loads(line)["text"]).ids


def reference(lines, folder, workers, prefix):
    start(folder)
    builder = IndexedDatasetBuilder(f"{prefix}.bin", dtype=DType.optimal_dtype(encoder.get_vocab_size()))
    with multiprocessing.Pool(workers, initializer=start, initargs=(folder,)) as pool, open(lines) as file:
        for ids in pool.imap(encode, file, 32):
            builder.add_document(ids, [len(ids)])
    builder.finalize(f"{prefix}.idx")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("text")
    parser.add_argument("--gpt2", required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--program", default="build/tessera")
    args = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # as in Megatron-LM's workers
    text = pathlib.Path(args.text).read_bytes()
    theirs, ours = [], []
    with tempfile.TemporaryDirectory() as folder:
        lines, there, here = (f"{folder}/{name}" for name in ("lines.jsonl", "there", "here"))
        with open(lines, "w") as file:
            file.writelines(json.dumps({"text": document}) + "\n" for document in documents(text))
        for _ in range(3):
            begin = time.perf_counter()
            reference(lines, args.gpt2, args.workers, there)
            theirs.append(len(text) / (time.perf_counter() - begin) / 1e6)
            begin = time.perf_counter()
            subprocess.run([args.program, "preprocess_data", "--input", lines, "--output-prefix", here, "--overwrite",
                            "--tokenizer-type", "GPT2BPETokenizer", "--vocab-file", f"{args.gpt2}/vocab.json",
                            "--merge-file", f"{args.gpt2}/merges.txt", "--workers", str(args.workers)],
                           check=True, capture_output=True)
            ours.append(len(text) / (time.perf_counter() - begin) / 1e6)
            for end in ("bin", "idx"):
                if not filecmp.cmp(f"{there}.{end}", f"{here}_text_document.{end}", shallow=False):
                    raise SystemExit(f"the .{end} files differ")
    print(f"{len(text) / 1e6:.1f} MB by {args.workers} workers: Megatron-LM's way {max(theirs):.1f} MB/s, "
          f"Tessera {max(ours):.1f} MB/s; the same files")


if __name__ == "__main__":
    main()
