#!/usr/bin/env python3
"""Writes tests/golden/hub_defaults.json: what a key that config.json lacks means to transformers.

    build/golden/bin/python tools/golden/hub_defaults.py
"""
import dataclasses
import json
import pathlib

import transformers

import megatron

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"
FOLDERS = [*(GOLDEN / "hub").iterdir(), *(GOLDEN / "families").iterdir()]


def main():
    shared = {field.name for field in dataclasses.fields(transformers.PreTrainedConfig)}
    configs = {type(transformers.AutoConfig.from_pretrained(folder)) for folder in FOLDERS
               if not folder.name.startswith("megatron_lm_")}
    out = {config.model_type: {field.name: field.default for field in dataclasses.fields(config)
                               if field.name not in shared and field.default is not dataclasses.MISSING}
           for config in configs}
    out |= dict.fromkeys(("megatron-lm-gpt", "megatron-lm-llama", "megatron-lm-bert"), megatron.STANDARD)
    (GOLDEN / "hub_defaults.json").write_text(json.dumps(out, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
