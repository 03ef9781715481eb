"""What the libraries `tokenizers` and `sentencepiece` make of texts that are hard: tests/golden/tokenizers.json.

    python tools/golden/tokenizer_files.py > tests/golden/tokenizers.json            # small tokenizers of every part
    python tools/golden/tokenizer_files.py DATA                                      # prints digests of real vocabularies

Of each tokenizer the file has the ids of some texts, and a digest of the ids of all: FNV-1a of 64 bits over, for each
text, the number of ids and the ids, each as 32 bits. DATA is a folder with bert/ and gpt2/, as the tests have it.
"""
import base64
import json
import os
import random
import sys
import tempfile
import unicodedata

import sentencepiece
import tokenizers
from tokenizers import Tokenizer

SHOWN = 6


def texts():
    choose = random.Random(1)
    by_category = {}
    for c in range(0x110000):
        if not 0xD800 <= c <= 0xDFFF:
            by_category.setdefault(unicodedata.category(chr(c)), []).append(c)
    out = ["ab abc cab", "Ab x!  xab<s>y <S> S12 é É", "", " ", "  a  b ", "\r\n\t \n", "e\u0301\u0323 \u0323\u0301e"]
    for points in by_category.values():
        out.append("".join(chr(choose.choice(points)) for _ in range(10)))
        out.append(" x".join(chr(choose.choice(points)) for _ in range(4)) + " a")
    out += [
        "\U0001F468\u200d\U0001F469\u200d\U0001F467\U0001F3FD x\U0001F1E9\U0001F1EA", "\u4e2d\u6587\u5b57\U00020000\U0002A700\U0002B820\U0002B920",
        "\ud55c\uad6d\uc5b4 \u1100\u1161\u11a8 \uac00\u11a8\u11a8", "\u0627\u0644\u0639\u0631\u0628\u064a\u0629 \u05e2\u05d1\u05e8\u05d9\u05ea \u0661\u0662", "\x00\x01\x7f\x80\x9fa\x00b",
        "\u200b\u200c\u200d\u2060\ufeffzero", "a\u00a0b\u2003c\u3000d\u1680e\u180ef\u2028g\u2029h\x85i\x0bj\x0ck",
        "\u0130stanbul \u00dfSS \u03a3\u0391\u03a3 \u03c2 \u01c5 \ufb01 \u212b \u212a", "^" * 300, " " * 99, "a" + " " * 7 + "b",
        "x" * 100 + " " + "y" * 101 + " " + "\u00e9" * 101, "'s 't 're 've 'm 'll 'd 'S 'RE 'Ll'", "don't we'll they've do not n't . , !",
        "[CLS] [SEP] [MASK]x[UNK][PAD] [cls]", "<|endoftext|>a<|endoftext|> <s> </s> <unk>", "1\u00bd\u00b2\u2167\uff11\uff12 3.14 1234567",
        "hello   world\n\n\nfoo  \n bar\t\tbaz ", "a\u0345\u0301b \u0f73\u0f75\u0f81 \u0344", "\uff46\uff55\uff4c\uff4c \u2460\u2461 \ufb01ne", "a_b-c.d/e\\f",
        "\u2581a \u2581\u2581b <0x0A>", "\ufffd\uffff\U0010ffff\U000e0001 \u32ff\u0378\U00011938\U00011935\U00011930",
    ]
    words = ["a", "b", "c", "ab", "abc", " ", "  ", "x", "\u00e9", "\u00c9", "Ab", "x!", "<S>", "<s>", "<S>S", "cc", "1", "12", "!", "'s", "\u2581",
             "\n", "'LL", "Xy", "xab", "\u00a0", "\uff21\uff22", "<u>", "the", "xy"]
    out += ["".join(choose.choice(words) for _ in range(choose.randint(2, 14))) for _ in range(60)]
    return out


def byte_characters():
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printed]
    return [chr(b if b in printed else 256 + others.index(b)) for b in range(256)]


def vocabulary():
    tokens = ["<unk>", "a", "b", "c", "d", "\u2581", "e", "ab", "abc", "\u2581a", "\u00e9", "x", "[UNK]", "!", "1", "2", "12", "##b", "##c", "b</w>", "ab</w>"]
    tokens += [f"<0x{b:02X}>" for b in range(256)]
    return {token: i for i, token in enumerate(dict.fromkeys(tokens + byte_characters()))}


VOCABULARY = vocabulary()
MERGES = [["a", "b"], ["ab", "c"], ["\u2581", "a"], ["1", "2"]]
PIECES = [["<unk>", 0.0], ["\u2581", -2.0], ["a", -3.1], ["b", -3.2], ["ab", -4.0], ["\u2581a", -3.5], ["c", -5.0], ["abc", -6.1], ["\u00e9", -7.0],
          ["!", -7.5], ["1", -8.0], ["x", -3.3], ["\u2581\u2581", -4.4], ["bc", -2.5]] + [[f"<0x{b:02X}>", -10.0] for b in range(256)]


def bpe(**options):
    return {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
            "fuse_unk": False, "byte_fallback": True, "ignore_merges": False, "vocab": VOCABULARY, "merges": MERGES, **options}


def unigram(**options):
    return {"type": "Unigram", "unk_id": 0, "vocab": PIECES, **options}


def added(content, **options):
    return {"id": 0, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": True, "special": False, **options}


def parts():
    """name -> normalizer, pre_tokenizer, model, post_processor, decoder, added_tokens; what is left out is null"""
    def one(of, kind, **options):
        return {of: {"type": kind, **options}}
    level = {"add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    level_decoder = one("decoder", "ByteLevel", **level)
    for name in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "ByteLevel"):
        yield name, one("normalizer", name)
    yield "strip and first", {**one("normalizer", "Strip", strip_left=True, strip_right=True),
                              **one("pre_tokenizer", "Metaspace", replacement="\u2581", prepend_scheme="first", split=True)}
    yield "replace", one("normalizer", "Sequence", normalizers=[
        {"type": "Replace", "pattern": {"Regex": r"\s{2,}|\p{L}\p{M}|[0-9]+"}, "content": " "},
        {"type": "Replace", "pattern": {"String": "ab"}, "content": "c"}])
    yield "llama 2", {
        **one("normalizer", "Sequence", normalizers=[{"type": "Prepend", "prepend": "\u2581"},
                                                     {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]),
        "model": bpe(fuse_unk=True),
        **one("decoder", "Sequence", decoders=[{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"},
                                               {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}])}
    for accents, lower in ((None, True), (True, False), (False, True)):
        yield f"BERT {accents} {lower}", {**one("normalizer", "BertNormalizer", clean_text=lower, handle_chinese_chars=True,
                                                strip_accents=accents, lowercase=lower), **one("pre_tokenizer", "BertPreTokenizer")}
    for name in ("Whitespace", "WhitespaceSplit"):
        yield name, one("pre_tokenizer", name)
    for each in (True, False):
        yield f"Digits {each}", one("pre_tokenizer", "Digits", individual_digits=each)
    yield "CharDelimiterSplit", one("pre_tokenizer", "CharDelimiterSplit", delimiter="a")
    for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        yield f"Punctuation {behavior}", one("pre_tokenizer", "Punctuation", behavior=behavior)
        for invert, pattern in ((False, {"Regex": r"\w+|\s"}), (True, {"String": "a"}), (False, {"Regex": "x*"})):
            yield f"Split {behavior} {invert} {pattern}", one("pre_tokenizer", "Split", pattern=pattern, behavior=behavior, invert=invert)
    llama3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
              r"|\s+(?!\S)|\s+")
    special = {"<s>": {"id": "<s>", "ids": [3], "tokens": ["<s>"]}}
    first, second = ({"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}})
    begin, begin_second = ({"SpecialToken": {"id": "<s>", "type_id": t}} for t in (0, 1))
    yield "llama 3", {
        **one("pre_tokenizer", "Sequence", pretokenizers=[
            {"type": "Split", "pattern": {"Regex": llama3}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", **level, "use_regex": False}]),
        "model": bpe(ignore_merges=True, unk_token=None, byte_fallback=False),
        **one("post_processor", "Sequence", processors=[
            {"type": "ByteLevel", **level},
            {"type": "TemplateProcessing", "single": [begin, first], "pair": [begin, first, begin_second, second], "special_tokens": special}]),
        **level_decoder}
    yield "RoBERTa", {**one("pre_tokenizer", "ByteLevel", **{**level, "add_prefix_space": True}), "model": bpe(byte_fallback=False),
                      **one("post_processor", "RobertaProcessing", sep=["c", 3], cls=["d", 4], trim_offsets=True, add_prefix_space=True),
                      **level_decoder, "added_tokens": [added("ab"), added("<s>", special=True, normalized=False)]}
    words = {"type": "WordLevel", "unk_token": "<unk>", "vocab": VOCABULARY}
    yield "BertProcessing", {**one("pre_tokenizer", "Whitespace"), "model": words,
                             **one("post_processor", "BertProcessing", sep=["c", 3], cls=["d", 4]),
                             **one("decoder", "WordPiece", prefix="##", cleanup=True)}
    for scheme in ("always", "first", "never"):
        for split in (True, False):
            yield f"Metaspace {scheme} {split}", {
                **one("pre_tokenizer", "Metaspace", replacement="\u2581", prepend_scheme=scheme, split=split), "model": unigram(),
                **one("decoder", "Metaspace", replacement="\u2581", prepend_scheme=scheme, split=split),
                "added_tokens": [added("<s>", special=True, normalized=False), added("xab")]}
    yield "end_of_word_suffix", {**one("pre_tokenizer", "WhitespaceSplit"), **one("decoder", "BPEDecoder", suffix="</w>"),
                                 "model": bpe(end_of_word_suffix="</w>", merges=[["a", "b</w>"]])}
    yield "continuing_subword_prefix", {**one("pre_tokenizer", "WhitespaceSplit"), **one("decoder", "WordPiece", prefix="##", cleanup=False),
                                        "model": bpe(continuing_subword_prefix="##", merges=["a ##b", "ab ##c"])}
    yield "fuse_unk", {"model": bpe(fuse_unk=True, byte_fallback=False)}
    yield "no fuse_unk", {"model": bpe(byte_fallback=False)}
    yield "WordPiece", {**one("pre_tokenizer", "BertPreTokenizer"), "model": {
        "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 5, "vocab": VOCABULARY}}
    yield "Unigram", {"model": unigram()}
    yield "Unigram byte_fallback", {"model": unigram(byte_fallback=True),
                                    **one("decoder", "Sequence", decoders=[{"type": "ByteFallback"}, {"type": "Fuse"}])}
    yield "added tokens", {**one("normalizer", "Lowercase"), **one("pre_tokenizer", "Whitespace"), "model": words, "added_tokens": [
        added("Ab", lstrip=True), added("x!", rstrip=True), added("<S>", special=True, normalized=False, lstrip=True, rstrip=True),
        added("cc", single_word=True), added("<S>S", normalized=False), added("\u00c9", single_word=True, normalized=False),
        added("  ", normalized=False, rstrip=True)]}
    yield "Precompiled", one("normalizer", "Precompiled", precompiled_charsmap=base64.b64encode(charsmap()).decode())


def document(given):
    out = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": None,
           "post_processor": None, "decoder": None, "model": bpe(), **given}
    return out


def digest(lists):
    value = 0xCBF29CE484222325
    for numbers in lists:
        for number in [len(numbers), *numbers]:
            value = ((value ^ number) * 0x100000001B3) % 2 ** 64
    return f"{value:016x}"


def record(name, encode, pair, decode, all_texts):
    ids = [encode(text) for text in all_texts]
    decoded = [list(decode(i).encode()) for i in ids]
    out = {"name": name, "ids": ids[:SHOWN], "all": digest(ids), "decoded": digest(decoded)}
    if pair:
        out["pairs"] = digest([pair(a, b) for a, b in zip(all_texts, all_texts[1:])])
    return out


def of_tokenizer(name, tokenizer, all_texts):
    def pair(a, b):
        encoded = tokenizer.encode(a, b)
        return encoded.ids + encoded.type_ids
    return record(name, lambda text: tokenizer.encode(text).ids, pair, lambda ids: tokenizer.decode(ids, skip_special_tokens=False), all_texts)


RULES = [("\uff21", "A"), ("\ufb01", "fi"), ("e \u0301", "\u00e9"), ("\u3000", " "), ("\t", " "), ("\r \n", " "), ("\u2460", "1"), ("\u200b", "")]


def trained(**options):
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/text", "w", encoding="utf-8") as file:
            file.write("\n".join(["ab abc cab the xy the cab", "a b c ab the thé", "fine cab 12 21 the abc!"] * 9))
        with open(f"{folder}/rules.tsv", "w", encoding="utf-8") as file:
            for source, target in RULES:
                hexadecimal = [" ".join(f"{ord(c):X}" for c in text.replace(" ", "") or text) for text in (source, target)]
                file.write("\t".join(hexadecimal) + "\n")
        options = {"normalization_rule_tsv": f"{folder}/rules.tsv", "hard_vocab_limit": False, **options}
        sentencepiece.SentencePieceTrainer.train(input=f"{folder}/text", model_prefix=f"{folder}/m", minloglevel=2, **options)
        with open(f"{folder}/m.model", "rb") as file:
            return file.read()


def charsmap():
    """Of a model: field 2 of its field 3."""
    def fields(data):
        at = 0
        def varint():
            nonlocal at
            value = shift = 0
            while True:
                byte = data[at]
                at += 1
                value |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    return value
        while at < len(data):
            tag = varint()
            size = varint() if tag % 8 == 2 else 4 if tag % 8 == 5 else None
            if size is None:
                varint()
                continue
            yield tag >> 3, data[at:at + size]
            at += size
    spec = dict(fields(trained(vocab_size=40)))[3]
    return dict(fields(spec))[2]


def sentence_pieces(all_texts):
    for kind in ("unigram", "bpe"):
        for options in ({}, {"byte_fallback": True, "vocab_size": 300}, {"user_defined_symbols": ["<u>", "xy"], "add_dummy_prefix": False},
                        {"remove_extra_whitespaces": False}, {"treat_whitespace_as_suffix": True}):
            model = trained(**{"model_type": kind, "vocab_size": 40, **options})
            processor = sentencepiece.SentencePieceProcessor(model_proto=model)
            out = record(f"{kind} {options}", processor.encode, None, processor.decode, all_texts)
            yield {**out, "model": base64.b64encode(model).decode()}


def main():
    all_texts = texts()
    if len(sys.argv) == 2:
        from tokenizers import BertWordPieceTokenizer, decoders, models, pre_tokenizers
        folder = sys.argv[1]
        for name in ("uncased", "cased"):
            bert = BertWordPieceTokenizer(f"{folder}/bert/bert-base-{name}-vocab.txt", lowercase=name == "uncased")
            print(json.dumps(of_tokenizer(name, bert, all_texts)))
        gpt2 = Tokenizer(models.BPE.from_file(f"{folder}/gpt2/vocab.json", f"{folder}/gpt2/merges.txt"))
        gpt2.pre_tokenizer, gpt2.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
        gpt2.add_special_tokens(["<|endoftext|>"])
        print(json.dumps(of_tokenizer("gpt2", gpt2, all_texts)))
        return
    cases = []
    for name, given in parts():
        whole = document(given)
        made = of_tokenizer(name, Tokenizer.from_str(json.dumps(whole)), all_texts)
        short = json.loads(json.dumps(whole))
        if short["model"]["vocab"] in (VOCABULARY, PIECES):
            short["model"]["vocab"] = "tokens" if isinstance(short["model"]["vocab"], dict) else "pieces"
        cases.append({**made, "document": {key: value for key, value in short.items() if value}})
    json.dump({"tokenizers": tokenizers.__version__, "sentencepiece": sentencepiece.__version__, "texts": all_texts,
               "tokens": VOCABULARY, "pieces": PIECES, "cases": cases, "sentencepieces": list(sentence_pieces(all_texts))},
              sys.stdout, ensure_ascii=True, separators=(",", ":"))
    print()


main()
