#!/usr/bin/env python3
"""Writes tests/golden/adapters: PEFT's adapters of the models in tests/golden/hub, as folders, with what they compute.

    build/golden/bin/python tools/golden/adapters.py [NAME...]

Each folder has adapter_config.json and adapter_model.safetensors as PEFT saves them, and golden.safetensors, as
tools/golden/families.py writes it, without gradients: of its five steps what PEFT trains learns alone.
"""
import json
import pathlib
import shutil
import sys

import peft
import safetensors.torch
import torch
import transformers

import families
import family_tasks

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"
ADAPTERS = {
    "llama": peft.LoraConfig(task_type="CAUSAL_LM", r=3, lora_alpha=5, use_rslora=True, target_modules="all-linear"),
    "llama_values": peft.LoraConfig(task_type="CAUSAL_LM", r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"]),
    "gpt2": peft.LoraConfig(task_type="CAUSAL_LM", r=3, target_modules=["c_attn", "mlp.c_proj"], fan_in_fan_out=True),
    "bert_classes": peft.LoraConfig(task_type="SEQ_CLS", r=4, target_modules=["query", "key", "attention.output.dense"]),
    "bert_choices": peft.LoraConfig(r=3, target_modules=["query", "value"], modules_to_save=["classifier"]),
    "t5": peft.LoraConfig(task_type="SEQ_2_SEQ_LM", r=4, target_modules=["q", "v", "wo"]),
    "t5_classes": peft.LoraConfig(task_type="SEQ_CLS", r=3, target_modules=["q", "wo"],
                                  modules_to_save=["classification_head"]),
    "llama_dora": peft.LoraConfig(task_type="CAUSAL_LM", r=3, use_dora=True,
                                  target_modules=["q_proj", "v_proj", "down_proj"]),
    "gpt2_dora": peft.LoraConfig(task_type="CAUSAL_LM", r=2, lora_alpha=3, use_dora=True, fan_in_fan_out=True,
                                 target_modules=["c_attn", "mlp.c_proj"]),
    "deepseek_v3": peft.LoraConfig(task_type="CAUSAL_LM", r=3, target_modules=["q_a_proj", "q_b_proj", "kv_a_proj_with_mqa",
                                                                               "kv_b_proj", "o_proj"]),
    "gpt2_tags": peft.LoraConfig(task_type="TOKEN_CLS", r=3, target_modules=["c_attn"], fan_in_fan_out=True),
}


def main():
    torch.set_num_threads(1)
    for name in sys.argv[1:] or ADAPTERS:
        write(name)


def write(name):
    base = name.removesuffix("_values").removesuffix("_dora")
    models = next(kind for kind in ("hub", "families") if (GOLDEN / kind / base).exists())
    folder = GOLDEN / "adapters" / name
    config = transformers.AutoConfig.from_pretrained(GOLDEN / models / base)
    model_class = families.class_of(config)
    is_gpt2 = model_class.__name__.endswith("LMHeadModel")
    task = family_tasks.CAUSAL if is_gpt2 else family_tasks.task_of(model_class, config)
    generator = torch.Generator().manual_seed(sum(name.encode()))
    with families.InDouble():
        model = families.without_rows_of_padding(
            model_class.from_pretrained(GOLDEN / models / base, attn_implementation="eager",
                                        experts_implementation="eager").double())
        adapted = peft.get_peft_model(model, ADAPTERS[name], autocast_adapter_dtype=False).double().train()
        with torch.no_grad():
            for key, value in adapted.named_parameters():
                if value.requires_grad:
                    drawn = 0.3 * torch.randn(value.shape, generator=generator)
                    value.copy_((value * (1 + drawn) if "magnitude" in key else drawn).float())
        adapted.save_pretrained(folder)
        # It draws what it reads as a model of its class.
        asked = type("Adapted", (), {"config": config, "base_model_prefix": model.base_model_prefix,
                                     "__call__": lambda self, *args, **given: adapted(*args, **given)})()
        first, *steps = (task.inputs(config, generator) for _ in range(families.STEPS + 1))
        outputs = task.outputs(asked, first)
        loss = families.loss_of(outputs, first)
        asked.named_parameters, asked.zero_grad = adapted.named_parameters, adapted.zero_grad
        losses, norms = families.five_steps(task, asked, steps)
    out = {f"in.{key}": value for key, value in first.items()}
    out |= {f"steps.{key}": torch.stack([step[key] for step in steps]) for key in first}
    out |= outputs | {"loss": loss, "losses": losses, "grad_norms": norms}
    out = {key: (value.detach().float() if value.is_floating_point() else value.int()).contiguous()
           for key, value in out.items()}
    safetensors.torch.save_file(out, folder / "golden.safetensors",
                                {"torch": torch.__version__, "peft": peft.__version__})
    stored = safetensors.torch.load_file(folder / "adapter_model.safetensors")
    safetensors.torch.save_file({key: value.float() for key, value in stored.items()},
                                folder / "adapter_model.safetensors", {"format": "pt"})
    said = json.loads((folder / "adapter_config.json").read_text())
    said["base_model_name_or_path"] = f"../../{models}/{base}"
    (folder / "adapter_config.json").write_text(json.dumps(said, indent=2, sort_keys=True) + "\n")
    (folder / "README.md").unlink(missing_ok=True)
    print(name, loss.item(), losses.tolist())


if __name__ == "__main__":
    main()
