#!/usr/bin/env python3
"""Writes tests/golden/preferences.safetensors: DPO of models in tests/golden/hub and adapters, five steps in double.

    build/golden/bin/python tools/golden/preferences.py

Of each case: steps.NAME, the inputs of five steps; their losses, norms of gradients, and means of rewards. The loss is DPOTrainer's of TRL 1.16: sums of log-probabilities of answers, beta
and label smoothing, and as the reference the weights that it begins with, or the model without its adapters.
"""
import copy
import pathlib

import peft
import safetensors.torch
import torch
import torch.nn.functional as F
import transformers

import families
import family_tasks

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"
PAIRS = 4
CASES = {"gpt2": (0.1, 0.0), "llama": (0.5, 0.1), "adapters/gpt2": (0.1, 0.0), "adapters/llama": (0.3, 0.2)}


def main():
    torch.set_num_threads(1)
    out = {}
    for name, (beta, smoothing) in CASES.items():
        generator = torch.Generator().manual_seed(sum(name.encode()))
        model, reference = loaded(name)
        with families.InDouble():
            made = case(model, reference, beta, smoothing, generator)
        out |= {f"{name}.{key}": value for key, value in made.items()}
        print(name, out[f"{name}.losses"].tolist())
    out = {key: (value.detach().float() if value.is_floating_point() else value.int()).contiguous()
           for key, value in out.items()}
    safetensors.torch.save_file(out, GOLDEN / "preferences.safetensors",
                                {"torch": torch.__version__, "transformers": transformers.__version__})


def loaded(name):
    """A model, and what it begins with, or it without its adapters."""
    base = GOLDEN / "hub" / name.removeprefix("adapters/")
    model = transformers.AutoModelForCausalLM.from_pretrained(base, attn_implementation="eager").double()
    if not name.startswith("adapters/"):
        return model, copy.deepcopy(model)
    adapted = peft.PeftModel.from_pretrained(copy.deepcopy(model), GOLDEN / name, is_trainable=True,
                                             autocast_adapter_dtype=False)
    return adapted.double(), model


def case(model, reference, beta, smoothing, generator):
    steps = [inputs(model.config, generator) for _ in range(families.STEPS)]
    means = {"chosen": [], "rejected": [], "accuracies": []}

    class Task:
        @staticmethod
        def outputs(_, given):
            with torch.no_grad():
                before = {answer: sums(reference, given, answer) for answer in ("chosen", "rejected")}
            return {answer: beta * (sums(model, given, answer) - before[answer]) for answer in before}

    def loss_of(rewards, _):
        for answer, value in rewards.items():
            means[answer].append(value.mean().detach())
        margins = rewards["chosen"] - rewards["rejected"]
        means["accuracies"].append((margins > 0).double().mean())
        return (-F.logsigmoid(margins) * (1 - smoothing) - F.logsigmoid(-margins) * smoothing).mean()

    families.loss_of = loss_of
    losses, norms = families.five_steps(Task, model, steps)
    return ({"losses": losses, "grad_norms": norms} | {key: torch.stack(value) for key, value in means.items()} |
            {f"steps.{key}": torch.stack([step[key] for step in steps]) for key in steps[0]})


def sums(model, given, answer):
    logits = model(input_ids=given[f"{answer}_ids"].long()).logits
    labels = given[f"{answer}_labels"].long()
    lost = F.cross_entropy(logits.transpose(1, 2), labels, ignore_index=family_tasks.IGNORED, reduction="none")
    return -lost.sum(-1)


def inputs(config, generator):
    """Prompts of 2 to 5 tokens, answers of 1 to 8, padding."""
    shape = PAIRS, family_tasks.CONTEXT
    out = {f"{answer}_{what}": torch.full(shape, 0 if what == "ids" else family_tasks.IGNORED)
           for what in ("ids", "labels") for answer in ("chosen", "rejected")}
    for row in range(PAIRS):
        prompt = family_tasks.draw(config.vocab_size, generator, 2 + int(family_tasks.draw(4, generator, 1)))
        for answer in ("chosen", "rejected"):
            tokens = torch.cat([prompt, family_tasks.draw(config.vocab_size, generator, 1 + int(family_tasks.draw(8, generator, 1)))])
            out[f"{answer}_ids"][row, :len(tokens) - 1] = tokens[:-1]
            out[f"{answer}_labels"][row, len(prompt) - 1:len(tokens) - 1] = tokens[len(prompt):]
    return out


if __name__ == "__main__":
    main()
