#!/usr/bin/env python3
"""Writes tests/golden/user_scripts.json: what `model(**batch).loss` of transformers is for batches of user scripts.

    build/golden/bin/python tools/golden/user_scripts.py

Models are those of tests/golden/hub (hub.py). A batch has the features of each sample by name; `asked` are those that
transformers was given in their place, where a script of Tessera gives others.
"""
import json
import pathlib

import torch
import transformers

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"
SAMPLES, LENGTH, TARGET, IGNORED = 4, 10, 6, -100
LENGTHS = [10, 7, 4, 9]
CAUSAL, MASKED, SEQ2SEQ = "causal_lm", "masked_lm", "seq2seq_lm"


def main():
    torch.manual_seed(50)
    cases = []
    for folder in ("gpt2", "llama"):
        model_class = {"gpt2": transformers.GPT2LMHeadModel, "llama": transformers.LlamaForCausalLM}[folder]
        add = adder(cases, folder, CAUSAL, model_class)
        ids = tokens(add.vocabulary, LENGTH)
        add("labels are the ids", input_ids=ids, labels=ids)
        right = padding(LENGTHS)
        add("padded on the right", input_ids=ids, attention_mask=right, labels=where(right, ids, IGNORED))
        add("padding counts", input_ids=ids, attention_mask=right, labels=ids)
        left = right.flip(1)
        first = torch.roll(left, 1, 1)
        first[:, 0] = 0
        first[0, 0] = 1
        add("padded on the left", input_ids=ids, attention_mask=left, labels=where(left * first, ids, IGNORED))
        holes = torch.ones_like(right)
        holes[:, 3] = 0
        holes[1, 5:7] = 0
        add("holes", input_ids=ids, attention_mask=holes, labels=ids)
    for folder in ("bert_masked", "albert_masked", "roberta"):
        model_class = {"bert_masked": transformers.BertForMaskedLM, "albert_masked": transformers.AlbertForMaskedLM,
                       "roberta": transformers.RobertaForMaskedLM}[folder]
        add = adder(cases, folder, MASKED, model_class)
        ids, mask = tokens(add.vocabulary, LENGTH), padding(LENGTHS)
        types = torch.zeros_like(ids)
        if folder != "roberta":
            types[:, 3:] = 1
        labels = where(torch.rand(ids.shape) < 0.4, ids, IGNORED)
        labels[:, 1] = ids[:, 1]
        labels = where(mask, labels, IGNORED)
        add("types", input_ids=ids, attention_mask=mask, token_type_ids=types, labels=labels)
        add("no types", input_ids=ids, attention_mask=mask, labels=labels)
    for folder in ("t5", "t5_v1_1", "bart"):
        model_class = transformers.BartForConditionalGeneration if folder == "bart" else \
            transformers.T5ForConditionalGeneration
        add = adder(cases, folder, SEQ2SEQ, model_class)
        pad = add.config.pad_token_id
        mask = padding(LENGTHS)
        ids = where(mask, tokens(add.vocabulary, LENGTH), pad)
        written = padding([6, 3, 5, 1], TARGET)
        labels = where(written, tokens(add.vocabulary, TARGET), IGNORED)
        add("a mask", input_ids=ids, attention_mask=mask, labels=labels)
        add("no mask", input_ids=ids, labels=labels, asked={"attention_mask": mask})
        begun = tokens(add.vocabulary, TARGET)
        add("what is written", input_ids=ids, attention_mask=mask, decoder_input_ids=begun, labels=labels)
        partly = mask.clone()
        partly[:, 2] = 0
        add("some tokens are not seen", input_ids=ids, attention_mask=partly, labels=labels)
        add("by names of Tessera", source=ids, ids=begun, labels=labels, hub=("input_ids", "decoder_input_ids"),
            asked={"attention_mask": mask})
    with open(GOLDEN / "user_scripts.json", "w") as file:
        rows = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
        file.write(f"[\n{rows}\n]\n")


def tokens(vocabulary, length):
    return torch.randint(3, vocabulary, (SAMPLES, length))


def padding(lengths, length=LENGTH):
    return (torch.arange(length)[None, :] < torch.tensor(lengths)[:, None]).long()


def where(mask, a, b):
    return torch.where(mask.bool(), a, torch.tensor(b))


def adder(cases, folder, task, model_class):
    model = model_class.from_pretrained(GOLDEN / "hub" / folder, dtype=torch.float64).eval()

    def add(name, asked=None, hub=None, **features):
        given = dict(features)
        for ours, theirs in zip(("source", "ids"), hub or ()):
            given[theirs] = given.pop(ours)
        with torch.no_grad():
            loss = model(**given, **(asked or {})).loss.item()
        cases.append({"name": name, "folder": folder, "task": task, "loss": loss,
                      "features": {key: value.tolist() for key, value in features.items()}})
    add.config = model.config
    add.vocabulary = model.config.vocab_size
    return add


if __name__ == "__main__":
    main()
