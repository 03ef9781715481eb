"""What transformers' AutoTokenizer makes of small folders of tokenizers: tests/golden/tokenizer_folders.json.

    python tools/golden/tokenizer_folders.py > tests/golden/tokenizer_folders.json

Each kind of tokenizer, with every flag that matters, and each of these folders with one key or one file changed or left
out. A case is a base folder and what is changed in it: a file, or a key (its path within the file) and the new value.
`ids` are those of each text without special tokens, with them, and of two texts as a pair; null: transformers fails.
Needs `pip install transformers sentencepiece protobuf`.
"""
import base64
import copy
import io
import json
import os
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
import sentencepiece
import transformers
from transformers import AutoTokenizer

transformers.logging.set_verbosity_error()
TEXTS = ["Hello World the CAT sat", "na\u00efve caf\u00e9 \u4e2d x<new>y <s>", " ab  abc [MASK] <mask> <extra_id_1>\n", "the <|im|> cat </s>[CLS] ``a''"]
LETTERS = [chr(c) for c in range(33, 127)]


def byte_characters():
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printed]
    return [chr(b if b in printed else 256 + others.index(b)) for b in range(256)]


def token(content, **flags):
    return {"content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True, **flags}


def document(model, specials, **parts):
    added = [{"id": i, **token(t)} for i, t in specials.items()]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None, "pre_tokenizer": None,
            "post_processor": None, "decoder": None, "model": model, **parts}


def sentence_piece(kind, **names):
    lines = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the cat sat on the mat", "hello world", "Hello World the CAT sat", "na\u00efve caf\u00e9 ab abc", "a bad cab"] * 20),
        model_writer=lines, vocab_size=52, model_type=kind, normalization_rule_name="identity", hard_vocab_limit=False, num_threads=1,
        **{"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3, "control_symbols": ["[CLS]", "[SEP]"], "user_defined_symbols": ["[MASK]"], **names},
        minloglevel=2)
    return lines.getvalue()


def bases():
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hello", "world", "the", "cat", "Hello", "sat", "naive", "na\u00efve", "\u4e2d"]
    words += LETTERS + ["##" + c for c in LETTERS] + ["##bc"]
    words = list(dict.fromkeys(words))
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"] + byte_characters() + ["he", "ll", "\u0120t", "\u0120a", "\u0120ab"]
    vocabulary = {t: i for i, t in enumerate(pieces)}
    merges = ["h e", "l l", "\u0120 t", "\u0120 a", "\u0120a b"]
    wordpiece = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                 "vocab": {w: i for i, w in enumerate(words)}}
    bpe = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
           "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocabulary, "merges": merges}
    uni, spm_bpe = sentence_piece("unigram"), sentence_piece("bpe")
    proto = sentencepiece.SentencePieceProcessor(model_proto=uni)
    unigram = {"type": "Unigram", "unk_id": 1, "vocab": [[proto.IdToPiece(i), proto.GetScore(i)] for i in range(proto.GetPieceSize())],
               "byte_fallback": False}
    uni_deberta = sentence_piece("unigram", pad_piece="[PAD]", bos_id=1, bos_piece="[CLS]", eos_id=2, eos_piece="[SEP]", unk_id=3, unk_piece="[UNK]",
                                 control_symbols=[])
    uni_pegasus = sentence_piece("unigram", eos_id=1, bos_id=-1, unk_id=2, control_symbols=[], user_defined_symbols=[])
    pieces_of = lambda first: {**unigram, "vocab": first + [[c, -3.0] for c in ["\u2581", *LETTERS, "\u2581the", "\u2581ab", "\u2581Hello", "\u00e9"]]}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    marks = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
    bert = document(wordpiece, {i: words[i] for i in range(5)},
                    normalizer={"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
                    pre_tokenizer={"type": "BertPreTokenizer"}, post_processor={"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
                    decoder={"type": "WordPiece", "prefix": "##", "cleanup": True})
    gpt2 = document(bpe, {2: "</s>"}, pre_tokenizer=level, decoder=dict(level))
    roberta = document(bpe, {i: pieces[i] for i in range(5)}, pre_tokenizer=level, decoder=dict(level),
                       post_processor={"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0], "trim_offsets": True, "add_prefix_space": True})
    t5 = document(unigram, {0: "<pad>", 3: "</s>"}, pre_tokenizer=marks, decoder=dict(marks))
    gemma_pieces = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "</s>", "<0xE2>", "<0xC3>", "<0x0A>"] + LETTERS + ["\u2581", "he", "\u2581t", "\u2581the", "\u2581\u2581"]
    gemma = document({**bpe, "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True, "vocab": {t: i for i, t in enumerate(gemma_pieces)},
                      "merges": ["h e", "\u2581 t", "\u2581t he", "\u2581 \u2581"]}, {i: gemma_pieces[i] for i in range(5)},
                     post_processor={"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<bos>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                                     "pair": [{"SpecialToken": {"id": "<bos>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                                     "special_tokens": {"<bos>": {"id": "<bos>", "ids": [2], "tokens": ["<bos>"]}}})
    mpnet_words = ["<s>", "<pad>", "</s>", "[UNK]", *words, "<mask>"]
    mpnet_txt = "\n".join(mpnet_words) + "\n"
    mpnet = document({**wordpiece, "vocab": {w: i for i, w in enumerate(dict.fromkeys(mpnet_words))}}, {i: mpnet_words[i] for i in range(3)})
    camembert = document(pieces_of([["<s>NOTUSED", 0.0], ["<pad>", 0.0], ["</s>NOTUSED", 0.0], ["<unk>", 0.0], ["<unk>NOTUSED", -100.0], ["<s>", 0.0], ["</s>", 0.0],
                                    ["<mask>", 0.0]]), {1: "<pad>", 5: "<s>", 6: "</s>", 7: "<mask>"}, pre_tokenizer=marks, decoder=dict(marks))
    deberta = document(pieces_of([["[PAD]", 0.0], ["[CLS]", 0.0], ["[SEP]", 0.0], ["[UNK]", 0.0]]), {0: "[PAD]", 1: "[CLS]", 2: "[SEP]", 3: "[UNK]"},
                       pre_tokenizer=marks, decoder=dict(marks))
    pegasus = document(pieces_of([["<pad>", 0.0], ["</s>", 0.0], ["<mask_1>", 0.0], ["<mask_2>", 0.0], ["<unk_2>", -100.0], ["<unk_3>", -100.0], ["<unk_4>", -100.0],
                                  ["<unk>", 0.0]]), {0: "<pad>", 1: "</s>"}, pre_tokenizer=marks, decoder=dict(marks))
    vocab_txt = "\n".join(words) + "\n"
    vocab_json, merges_txt = json.dumps(vocabulary), "#version: 0.2\n" + "\n".join(merges) + "\n"
    roles = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>", "cls_token": "<s>", "sep_token": "</s>",
             "mask_token": {"content": "<mask>", "lstrip": True, "rstrip": False, "normalized": False, "single_word": False}}
    decoder = {"300": token("<|im|>", lstrip=True), "301": token("<new>", special=False, normalized=True, single_word=True), "2": token("</s>", rstrip=True)}
    slots = {"tokenizer_class": "BertTokenizer", "do_lower_case": False, "strip_accents": True, "tokenize_chinese_chars": False, "model_max_length": 512,
             "clean_up_tokenization_spaces": True, "cls_token": "[CLS]", "sep_token": "[SEP]", "additional_special_tokens": ["<new>", "<|im|>"]}
    return {
        "bert-json": {"tokenizer.json": bert, "tokenizer_config.json": slots},
        "bert-json-type": {"tokenizer.json": bert, "config.json": {"model_type": "bert"}},
        "bert-file": {"tokenizer.json": bert, "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": False, "pad_token": "[PAD]"}},
        "bert-txt": {"vocab.txt": vocab_txt, "tokenizer_config.json": {**slots, "strip_accents": False},
                     "special_tokens_map.json": {"mask_token": {"content": "[MASK]", "lstrip": True, "rstrip": False}, "pad_token": "<new>"}},
        "bert-txt-type": {"vocab.txt": vocab_txt, "config.json": {"model_type": "bert"}, "added_tokens.json": {"<new>": 300, "<|im|>": 299}},
        "gpt2-files": {"vocab.json": vocab_json, "merges.txt": merges_txt, "config.json": {"model_type": "gpt2"},
                       "added_tokens.json": {"<|im|>": 267, "<new>": 266}, "special_tokens_map.json": {"bos_token": "</s>", "eos_token": "</s>", "unk_token": "</s>"},
                       "tokenizer_config.json": {"add_bos_token": True, "add_eos_token": False, "add_prefix_space": True, "tokenizer_class": "GPT2Tokenizer"}},
        "gpt2-json": {"tokenizer.json": gpt2, "tokenizer_config.json": {"tokenizer_class": "GPT2TokenizerFast", "add_prefix_space": True, "add_bos_token": True,
                      "added_tokens_decoder": decoder, "bos_token": "</s>", "eos_token": "</s>", "unk_token": "</s>"}},
        "gpt2-file": {"tokenizer.json": gpt2, "tokenizer_config.json": {"added_tokens_decoder": decoder, "extra_special_tokens": ["<extra_id_1>"],
                      "tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "</s>", "image_token": "<|img|>"}},
        "roberta-files": {"vocab.json": vocab_json, "merges.txt": merges_txt, "config.json": {"model_type": "roberta"}},
        "roberta-map": {"vocab.json": vocab_json, "merges.txt": merges_txt, "config.json": {"model_type": "roberta"}, "special_tokens_map.json": roles,
                        "tokenizer_config.json": {"add_prefix_space": True}},
        "roberta-json": {"tokenizer.json": roberta, "tokenizer_config.json": {"tokenizer_class": "RobertaTokenizer", "add_prefix_space": True, **{
            k: v for k, v in roles.items() if isinstance(v, str)}}},
        "bart-files": {"vocab.json": vocab_json, "merges.txt": merges_txt, "tokenizer_config.json": {"tokenizer_class": "BartTokenizer",
                       "mask_token": {"__type": "AddedToken", **token("<mask>", lstrip=True)}}},
        "neox-json": {"tokenizer.json": gpt2, "tokenizer_config.json": {"tokenizer_class": "GPTNeoXTokenizer", "eos_token": "</s>", "bos_token": "</s>", "add_bos_token": True}},
        "qwen2-files": {"vocab.json": vocab_json, "merges.txt": merges_txt, "tokenizer_config.json": {"tokenizer_class": "Qwen2Tokenizer", "additional_special_tokens": ["<|im|>"]}},
        "t5-model": {"spiece.model": uni, "config.json": {"model_type": "t5"}},
        "t5-model-ids": {"spiece.model": uni, "tokenizer_config.json": {"tokenizer_class": "T5Tokenizer", "extra_ids": 3, "eos_token": "</s>"},
                         "special_tokens_map.json": {"additional_special_tokens": ["<extra_id_0>", "<extra_id_1>", "<extra_id_2>"], "pad_token": "<pad>"}},
        "t5-json": {"tokenizer.json": t5, "tokenizer_config.json": {"tokenizer_class": "T5Tokenizer", "extra_ids": 2, "eos_token": "</s>"}},
        "albert-model": {"spiece.model": uni, "config.json": {"model_type": "albert"}},
        "albert-model-flags": {"spiece.model": uni, "tokenizer_config.json": {"tokenizer_class": "AlbertTokenizer", "do_lower_case": False, "keep_accents": True,
                               "remove_space": True, "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": {"__type": "AddedToken", **token("[MASK]", lstrip=True)}}},
        "llama-model": {"tokenizer.model": spm_bpe, "tokenizer_config.json": {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "add_eos_token": True,
                        "legacy": True, "bos_token": "<s>", "eos_token": "</s>"}, "added_tokens.json": {"<new>": 60}},
        "llama-model-type": {"tokenizer.model": spm_bpe, "config.json": {"model_type": "llama"}},
        "llama-model-new": {"tokenizer.model": spm_bpe, "config.json": {"model_type": "llama"}, "tokenizer_config.json": {"tokenizer_class": "LlamaTokenizerFast", "add_prefix_space": False}},
        "unigram-file": {"tokenizer.model": uni, "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "legacy": False, "add_bos_token": True}},
        "xlmr-model": {"sentencepiece.bpe.model": uni, "tokenizer_config.json": {"tokenizer_class": "XLMRobertaTokenizer"}},
        "gemma-json": {"tokenizer.json": gemma, "tokenizer_config.json": {"tokenizer_class": "GemmaTokenizer", "add_bos_token": True, "eos_token": "</s>"}},
        "gemma-json-type": {"tokenizer.json": gemma, "config.json": {"model_type": "gemma2"}},
        "mpnet-txt": {"vocab.txt": mpnet_txt, "tokenizer_config.json": {"tokenizer_class": "MPNetTokenizer", "do_lower_case": True, "strip_accents": False}},
        "mpnet-json": {"tokenizer.json": mpnet, "tokenizer_config.json": {"tokenizer_class": "MPNetTokenizer", "mask_token": {"__type": "AddedToken",
                       **token("<mask>", lstrip=True)}}},
        "camembert-model": {"sentencepiece.bpe.model": uni, "config.json": {"model_type": "camembert"}},
        "camembert-json": {"tokenizer.json": camembert, "tokenizer_config.json": {"tokenizer_class": "CamembertTokenizer", "add_prefix_space": True,
                           "additional_special_tokens": ["<s>NOTUSED"]}},
        "deberta-model": {"spm.model": uni_deberta, "tokenizer_config.json": {"do_lower_case": False, "vocab_type": "spm"}, "config.json": {"model_type": "deberta-v2"}},
        "deberta-json": {"tokenizer.json": deberta, "tokenizer_config.json": {"tokenizer_class": "DebertaV2Tokenizer", "do_lower_case": True,
                         "split_by_punct": True, "add_prefix_space": False, "unk_id": 1}},
        "pegasus-model": {"spiece.model": uni_pegasus, "tokenizer_config.json": {"tokenizer_class": "PegasusTokenizer"}},
        "pegasus-json": {"tokenizer.json": pegasus, "tokenizer_config.json": {"tokenizer_class": "PegasusTokenizer", "offset": 5, "mask_token_sent": "<mask_1>",
                         "mask_token": "<mask_2>", "additional_special_tokens": ["<mask_1>", "<unk_2>"]}},
        "llama-bytes": {"tokenizer.json": gpt2, "tokenizer_config.json": {"tokenizer_class": "LlamaTokenizer", "eos_token": "</s>", "legacy": False}},
    }


def altered(value):
    """Values that a key may have instead."""
    if isinstance(value, bool):
        return [not value]
    if value is None:
        return [True]
    if isinstance(value, str):
        return [value + "x", "\u2581"]
    if isinstance(value, (int, float)):
        return [value + 1]
    return [[]] if isinstance(value, list) else [{}]


def keys_within(value, depth):
    for key in value if isinstance(value, dict) else []:
        if key in ("vocab", "merges"):
            continue
        yield [key]
        if depth > 1:
            yield from ([key, *rest] for rest in keys_within(value[key], depth - 1))
    if isinstance(value, list):
        for i, item in enumerate(value[:2]):
            yield from ([i, *rest] for rest in keys_within(item, depth))


def changes(folder):
    yield {}
    for name, content in folder.items():
        if name == "config.json":
            yield {"file": name, "path": ["model_type"], "value": "gpt2"}
        yield {"file": name}
        if not isinstance(content, dict):
            continue
        for path in keys_within(content, 3):
            value = content
            for key in path:
                value = value[key]
            yield {"file": name, "path": path}
            for other in altered(value):
                yield {"file": name, "path": path, "value": other}


def changed(folder, change):
    out = copy.deepcopy(folder)
    if "path" not in change:
        out.pop(change.get("file"), None)
        return out
    value = out[change["file"]]
    for key in change["path"][:-1]:
        value = value[key]
    if "value" in change:
        value[change["path"][-1]] = change["value"]
    else:
        del value[change["path"][-1]]
    return out


def ids_of(folder):
    with tempfile.TemporaryDirectory() as where:
        for name, content in folder.items():
            with open(os.path.join(where, name), "wb") as file:
                file.write(content if isinstance(content, bytes) else (content if isinstance(content, str) else json.dumps(content)).encode())
        try:
            tokenizer = AutoTokenizer.from_pretrained(where)
            pair = tokenizer(TEXTS[0], TEXTS[3], truncation=False)["input_ids"]
            return [[tokenizer.encode(t, add_special_tokens=False) for t in TEXTS], [tokenizer.encode(t) for t in TEXTS], pair]
        except BaseException:  # the library's own panics too
            return None


def main():
    folders, cases, results = bases(), [], []
    for name, folder in folders.items():
        for change in changes(folder):
            ids = ids_of(changed(folder, change))
            if ids is not None and ids not in results:
                results.append(ids)
            cases.append({"folder": name, **change, "ids": None if ids is None else results.index(ids)})
    contents, named = [], {}
    for name, folder in folders.items():
        named[name] = {}
        for file, content in folder.items():
            shown = {"base64": base64.b64encode(content).decode()} if isinstance(content, bytes) else content
            if shown not in contents:
                contents.append(shown)
            named[name][file] = contents.index(shown)
    out = {"texts": TEXTS, "contents": contents, "folders": named, "results": results, "cases": cases}
    print("{")
    for key in ("texts", "folders"):
        print(f'"{key}": {json.dumps(out[key])},')
    for key in ("contents", "results", "cases"):
        print(f'"{key}": [\n' + ",\n".join(json.dumps(x, separators=(",", ":")) for x in out[key]) + "\n]" + ("," if key != "cases" else ""))
    print("}")


main()
