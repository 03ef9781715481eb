#!/usr/bin/env python3
"""Writes tests/golden/chat/tokens.json and two small tokenizers: ids of dialogues, and which of them are answers.

    build/golden/bin/python tools/golden/chat_tokens.py
"""
import json
import pathlib

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers
import transformers

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "chat"
SPECIAL = ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|user|>", "<|assistant|>", "<|system|>"]
ROLES = {"bos_token": "<s>", "eos_token": "</s>"}


def corpus():
    dialogues = json.loads((FOLDER / "dialogues.json").read_text())
    texts = [str(message.get("content")) for dialogue in dialogues.values() for message in dialogue["messages"]]
    return texts + ["user\nassistant\nsystem\n [INST] [/INST] Be brief. Where is Ulm? On the Danube. Thanks"]


def byte_level():
    out = tokenizers.Tokenizer(models.BPE())
    out.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    out.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=330, special_tokens=SPECIAL, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    out.train_from_iterator(corpus(), trainer)
    return out


def metaspace():
    """Of the kind of LLaMA's: a blank before a text, which parts of it do not have."""
    out = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    out.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    out.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    pieces = ["<unk>", *SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=420, special_tokens=pieces, show_progress=False)
    out.train_from_iterator(corpus(), trainer)
    return out


def write(name, tokenizer):
    folder = FOLDER / name
    folder.mkdir(exist_ok=True)
    model = json.loads(tokenizer.to_str())
    (folder / "tokenizer.json").write_text(json.dumps(model, ensure_ascii=False) + "\n")
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **ROLES}
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")
    return transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), **ROLES)


def answers(tokenizer, template, messages):
    """Answers by the prefixes of a dialogue, as bytes [begin, end) of its text."""
    def text(count, prompt):
        return tokenizer.apply_chat_template(messages[:count], chat_template=template, tokenize=False,
                                             add_generation_prompt=prompt)
    whole = text(len(messages), False)
    out = []
    for i, message in enumerate(messages):
        if message["role"] == "assistant":
            if i == 0:
                return None  # transformers writes no empty dialogue
            before, behind = text(i, True), text(i + 1, False)
            if not (behind.startswith(before) and whole.startswith(behind)):
                return None
            out.append((len(before), len(behind)))
    return out


def row(name, tokenizer, template, dialogue, messages):
    source = (FOLDER / template).read_text()
    try:
        both = tokenizer.apply_chat_template(messages, chat_template=source, tokenize=True, return_dict=True,
                                             return_assistant_tokens_mask="generation" in template)
    except Exception:
        return None
    ids = both["input_ids"]
    if "generation" in template:
        counts = both["assistant_masks"]
    else:
        spans = answers(tokenizer, source, messages)
        if spans is None:
            return None
        text = tokenizer.apply_chat_template(messages, chat_template=source, tokenize=False)
        places = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        assert places["input_ids"] == ids
        counts = [int(any(begin < last and end > first for first, last in spans))
                  for begin, end in places["offset_mapping"]]
    if not any(counts):
        return None
    return {"tokenizer": name, "template": template, "dialogue": dialogue, "ids": ids, "counts": counts}


def main():
    dialogues = json.loads((FOLDER / "dialogues.json").read_text())
    rows = []
    for name, made in (("byte_level", byte_level()), ("metaspace", metaspace())):
        tokenizer = write(name, made)
        for template in ("chatml.jinja", "generation.jinja", "brackets.jinja", "turns.jinja", "zephyr.jinja"):
            for dialogue, content in dialogues.items():
                if set(content) == {"messages"} and dialogue not in ("nobody", "no content"):
                    rows.append(row(name, tokenizer, template, dialogue, content["messages"]))
    rows = [one for one in rows if one]
    lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in rows)
    (FOLDER / "tokens.json").write_text("[\n" + lines + "\n]\n")
    print(len(rows), "dialogues")


if __name__ == "__main__":
    main()
