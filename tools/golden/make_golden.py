#!/usr/bin/env python3
"""Writes tests/golden: what PyTorch and Hugging Face transformers compute for tiny models and for tricky ops.

    python3 -m venv build/golden && build/golden/bin/pip install torch numpy transformers safetensors
    build/golden/bin/python tools/golden/make_golden.py [FOLDER]

The committed files were made with the versions that each file's metadata names (torch 2.15.0, transformers 5.23.0,
numpy 2.4.6, safetensors 0.8.0, Python 3.11). Everything is seeded; other versions change the last digits at most.
tests/golden/README.md says what each tensor is.
"""
import functools
import math
import pathlib
import platform
import sys

import numpy
import safetensors
import safetensors.torch
import torch
import torch.nn.functional as F
import transformers

import bert
import bert_tasks
import causal_classes
import electra
import encoder_decoder
import models
import ops
import pangu
import translation
import vit

STEPS, IGNORE = 10, -100
LR_MAX, LR_MIN, WARMUP_STEPS, CLIP = 1e-2, 1e-3, 3, 0.5


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root / "tests" / "golden"
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)  # the order of sums does not hang on the machine
    for seed, family in ((11, "gpt2"), (12, "llama")):
        write(folder / f"{family}.safetensors", golden_model(family, seed))
    for name, variant in (bert.VARIANTS | bert_tasks.VARIANTS).items():
        exact, single, tensors = bert.golden(variant, train)
        report(name, exact, single)
        write(folder / f"{name}.safetensors", tensors)
    for name in causal_classes.FAMILIES:
        exact, single, tensors = causal_classes.golden(name, train)
        report(name, exact, single)
        write(folder / f"{name}.safetensors", tensors)
    exact, single, tensors = electra.golden(22, train)
    report("electra", exact, single)
    write(folder / "electra.safetensors", tensors)
    exact, single, tensors = vit.golden_vit(16, train)
    report("vit", exact, single)
    write(folder / "vit.safetensors", tensors)
    for seed, name in ((14, "transformer"), (15, "transformer_post")):
        write(folder / f"{name}.safetensors", golden_translation(name, seed))
    for seed, name in zip((16, 17, 18), encoder_decoder.NAMES):
        exact, single, tensors = encoder_decoder.golden(name, seed, train, mean_loss)
        report(name, exact, single)
        write(folder / f"{name}.safetensors", tensors)
    exact, single, tensors = pangu.golden(19, train, mean_loss, draw_batches)
    report("pangu", exact, single)
    write(folder / "pangu.safetensors", tensors)
    write(folder / "ops.safetensors", ops.golden_ops(13))


def golden_model(family, seed):
    """Everything in one family's file. Computed in float64 from float32 weights, then rounded to float32."""
    generator = torch.Generator().manual_seed(seed)
    params = models.draw(models.shapes(family), generator)
    ids, labels = draw_batches(1, generator)
    step_ids, step_labels = draw_batches(STEPS, generator)
    ids, labels = ids[0], labels[0]
    check_layout(family, params, ids)

    exact = run(family, params, ids, labels, step_ids, step_labels, torch.float64)
    single = run(family, params, ids, labels, step_ids, step_labels, torch.float32)
    report(family, exact, single)
    out = {"ids": ids.int(), "labels": labels.int(), "step_ids": step_ids.int(), "step_labels": step_labels.int()}
    out |= {"param." + name: value for name, value in params.items()}
    return out | {name: value.float() for name, value in exact.items()}


def draw_batches(count, generator):
    """Random tokens with their next tokens as labels, about a sixth of the labels ignored, unevenly over the rows."""
    shape = (count, models.BATCH, models.CONTEXT)
    text = torch.randint(0, models.VOCAB, (*shape[:2], shape[2] + 1), generator=generator)
    ids, labels = text[..., :-1].clone(), text[..., 1:].clone()
    labels[torch.rand(shape, generator=generator) < 0.1] = IGNORE
    labels[:, 1, 12:] = IGNORE  # as where a document is padded
    return ids, labels


def check_layout(family, params, ids):
    """Our packed parameters mean what the README says: three ways to the same logits, and packing undoes unpacking."""
    model, links = models.hf_model(family, torch.float64, exact=True), functools.partial(models.links, family)
    models.load(model, {name: value.double() for name, value in params.items()}, links)
    back = models.packed(model, links)
    assert back.keys() == params.keys()
    for name, value in params.items():
        assert torch.equal(back[name], value.double()), name
    with torch.no_grad():
        logits = model(ids).logits
        plain = models.plain_logits(family, back, ids)
        assert (logits - plain).abs().max() < 1e-12, "the packed layout does not give transformers' logits"
        stock = models.hf_model(family, torch.float32, exact=False)  # transformers as they ship it
        models.load(stock, params, links)
        assert (logits - stock(ids).logits).abs().max() < 1e-5


def run(family, params, ids, labels, step_ids, step_labels, dtype):
    """One forward and backward pass, then ten optimizer steps from the same weights."""
    model, links = models.hf_model(family, dtype, exact=dtype == torch.float64), functools.partial(models.links, family)
    models.load(model, {name: value.to(dtype) for name, value in params.items()}, links)
    logits = model(ids).logits
    loss = mean_loss(logits, labels)
    loss.backward()
    out = {"logits": logits.detach(), "loss": loss.detach()}
    out |= {"grad." + name: value for name, value in models.packed(model, links, lambda a: a.grad).items()}
    of_step = (lambda step: mean_loss(model(step_ids[step]).logits, step_labels[step]))
    return out | train(model, of_step, lambda: models.packed(model, links))


def golden_translation(name, seed):
    """The same for a model with a source, of torch.nn.Transformer."""
    generator = torch.Generator().manual_seed(seed)
    params = translation.draw(name, generator)
    batch = [a[0] for a in translation.draw_batches(1, generator)]
    steps = translation.draw_batches(STEPS, generator)
    translation.check_layout(name, params, *batch[:2])
    results = []
    for dtype in (torch.float64, torch.float32):
        model = translation.Model(name).to(dtype).train()
        translation.load(model, {path: value.to(dtype) for path, value in params.items()})
        results.append(run_translation(model, batch, steps))
    report(name, *results)
    names = ("source", "ids", "labels")
    out = {name: value.int() for name, value in zip(names, batch)}
    out |= {"step_" + name: value.int() for name, value in zip(names, steps)}
    out |= {"param." + name: value for name, value in params.items()}
    return out | {name: value.float() for name, value in results[0].items()}


def run_translation(model, batch, steps):
    logits = model(*batch[:2])
    loss = mean_loss(logits, batch[2])
    loss.backward()
    out = {"logits": logits.detach(), "loss": loss.detach(), "greedy": translation.greedy(model, batch[0])}
    out |= {"grad." + name: value for name, value in translation.read(model, lambda a: a.grad).items()}
    of_step = (lambda step: mean_loss(model(*[a[step] for a in steps[:2]]), steps[2][step]))
    return out | train(model, of_step, lambda: translation.read(model, lambda a: a.data))



def train(model, loss_of_step, packed):
    """Ten optimizer steps: what is measured, and the weights after them."""
    decayed = [a for a in model.parameters() if a.ndim >= 2]
    others = [a for a in model.parameters() if a.ndim < 2]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
                                  betas=(0.9, 0.95), eps=1e-8)
    losses, rates, norms = [], [], []
    for step in range(STEPS):
        rates.append(learning_rate(step * models.BATCH))
        for group in optimizer.param_groups:
            group["lr"] = rates[-1]
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of_step(step)
        loss.backward()
        norms.append(clip(model.parameters()))
        losses.append(loss.item())
        optimizer.step()
    out = {"final." + name: value for name, value in packed().items()}
    for name, values in (("losses", losses), ("lrs", rates), ("grad_norms", norms)):
        out[name] = torch.tensor(values, dtype=torch.float64)
    return out


def mean_loss(logits, labels):
    """Mean over the labels that are not ignored. Labels are aligned: no shift here."""
    return F.cross_entropy(logits.reshape(-1, models.VOCAB), labels.reshape(-1), ignore_index=IGNORE)


def learning_rate(seen, most=LR_MAX, least=LR_MIN, warmup=WARMUP_STEPS * models.BATCH, end=STEPS * models.BATCH):
    """Linear warm-up, then a cosine; counted in samples before this step, so that the first step has rate 0."""
    if seen <= warmup:
        return most * seen / warmup
    if seen > end:
        return least
    ratio = (seen - warmup) / (end - warmup)
    return least + 0.5 * (1 + math.cos(math.pi * ratio)) * (most - least)


def clip(parameters):
    """Scales the gradients to a global norm of at most CLIP; returns the norm before. A tied weight counts once."""
    grads = [a.grad for a in parameters]
    norm = torch.sqrt(sum(grad.pow(2).sum() for grad in grads))
    coefficient = CLIP / (norm + 1e-6)
    if coefficient < 1:
        for grad in grads:
            grad.mul_(coefficient)
    return norm.item()


def report(family, exact, single):
    """Prints how far torch's own float32 is from its float64: the scale for a test's tolerance."""
    worst = {}
    for name, value in exact.items():
        kind = name.split(".")[0]
        if family != "llama" and name.endswith("kv.bias"):
            kind += " of kv.bias"
        worst[kind] = max(worst.get(kind, 0.0), (value - single[name].double()).abs().max().item())
    print(f"{family}: float32 against float64, largest absolute difference")
    for kind, value in worst.items():
        print(f"    {kind:22} {value:.1e}")
    for name in [a for a in ("loss", "losses", "lrs", "grad_norms") if a in exact]:
        print(f"    {name} = {[round(value, 6) for value in exact[name].reshape(-1).tolist()]}")


def write(path, tensors):
    packages = (torch, transformers, numpy, safetensors)
    versions = [f"{package.__name__} {package.__version__.split('+')[0]}" for package in packages]
    # One entry: safetensors writes several in random order, and the bytes would differ from run to run.
    metadata = {"made_with": ", ".join([*versions, f"python {platform.python_version()}"])}
    safetensors.torch.save_file({name: value.contiguous() for name, value in tensors.items()}, path, metadata)
    print(f"{path.name}: {len(tensors)} tensors, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
