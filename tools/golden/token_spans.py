"""Where the tokens of `tokenizers` stand in a text, in bytes: tests/golden/token_spans.json.

    python tools/golden/token_spans.py > tests/golden/token_spans.json      # the small tokenizers of tokenizers.json
    python tools/golden/token_spans.py DATA                                 # prints digests of real vocabularies

A digest is that of tokenizer_files.py, over the ids, begins and ends of each text. DATA is a folder with bert/, gpt2/ and
mrpc/, as the tests have it; texts are then the lines of MRPC's training part.
"""
import json
import pathlib
import sys

import tokenizers
from tokenizers import BertWordPieceTokenizer, Tokenizer, models, pre_tokenizers, processors

CASES = ["BERT None True", "BERT True False", "BERT False True", "WordPiece", "RoBERTa", "Whitespace"]
SHOWN = 3


def spans(tokenizer, text):
    encoded = tokenizer.encode(text, add_special_tokens=False)
    at = [0]
    for c in text:
        at.append(at[-1] + len(c.encode()))
    # A token without a character is at no place.
    offsets = [(b, e) if b < e else (0, 0) for b, e in encoded.offsets]
    return encoded.ids, [at[b] for b, _ in offsets], [at[e] for _, e in offsets]


def digest(all_spans):
    value = 0xCBF29CE484222325
    def take(number):
        nonlocal value
        value = (value ^ (number & 0xFFFFFFFFFFFFFFFF)) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    for parts in all_spans:
        for numbers in parts:
            take(len(numbers))
            for number in numbers:
                take(number)
    return f"{value:016x}"


def windows():
    """Which tokens of a text each sample has with a question before it, as run_qa of transformers cuts them."""
    words = Tokenizer(models.WordLevel({"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "q": 3, **{str(i): 4 + i for i in range(64)}}, "[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    out = []
    for context, stride, question, text in [(16, 4, 3, 40), (16, 4, 3, 10), (16, 4, 3, 11), (16, 4, 3, 16), (16, 4, 3, 17), (12, 0, 2, 21), (12, 6, 2, 21),
                                            (12, 6, 2, 0), (8, 2, 2, 3), (8, 2, 2, 4), (24, 8, 5, 64)]:
        words.enable_truncation(context, stride=stride, strategy="only_second")
        first = words.encode(" ".join(["q"] * question), " ".join(str(i) for i in range(text)))
        cut = [[i - 4 for i in sample.ids if i > 3] for sample in (first, *first.overflowing)]
        out.append({"context": context, "doc_stride": stride, "question": question, "text": text, "windows": [[c[0] if c else 0, len(c)] for c in cut]})
    return out


def real(folder):
    texts = (pathlib.Path(folder) / "mrpc" / "msr_paraphrase_train.txt").read_text(encoding="utf-8-sig").split("\n")
    gpt2 = Tokenizer(models.BPE.from_file(f"{folder}/gpt2/vocab.json", f"{folder}/gpt2/merges.txt"))
    gpt2.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    gpt2.post_processor = processors.ByteLevel(trim_offsets=True)
    kinds = {name: BertWordPieceTokenizer(f"{folder}/bert/bert-base-{name}-vocab.txt", lowercase=name == "uncased") for name in ("uncased", "cased")}
    for name, tokenizer in {**kinds, "gpt2": gpt2}.items():
        print(name, len(texts), digest([spans(tokenizer, text) for text in texts]))


def main():
    if len(sys.argv) == 2:
        return real(sys.argv[1])
    golden = json.loads((pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "tokenizers.json").read_text())
    out = []
    for case in golden["cases"]:
        if case["name"] not in CASES:
            continue
        document = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": None,
                    "decoder": None, **json.loads(json.dumps(case["document"])), "post_processor": None}
        if isinstance(document["model"]["vocab"], str):
            document["model"]["vocab"] = golden[document["model"]["vocab"]]
        tokenizer = Tokenizer.from_str(json.dumps(document))
        tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
        all_spans = [spans(tokenizer, text) for text in golden["texts"]]
        out.append({"name": case["name"], "spans": all_spans[:SHOWN], "all": digest(all_spans)})
    json.dump({"tokenizers": tokenizers.__version__, "cases": out, "windows": windows()}, sys.stdout, ensure_ascii=True, separators=(",", ":"))
    print()


main()
