#!/usr/bin/env python3
"""Writes tests/golden/families: tiny models of transformers' families, as folders, with what they compute.

    build/golden/bin/python tools/golden/families.py [NAME...]
    build/golden/bin/python tools/golden/families.py --compare NAME FOLDER

Of a new one, its config.json is written by hand: model_type, architectures, and what is not transformers' standard.
Each folder then has config.json and model.safetensors as transformers saves them, and golden.safetensors: what the
task reads (in.NAME), what it makes of it (logits, or start and end), loss, the gradient of each tensor under transformers' names (grad.NAME), five steps of
AdamW (steps.NAME, losses, grad_norms), and a text of 50 tokens behind a prompt, each the likeliest. All is computed in
float64 and rounded once. --compare: the logits of an exported folder beside these.
"""
import contextlib
import math
import pathlib
import re
import sys
import tempfile

import safetensors.torch
import torch
import torch.nn.functional as F
import transformers

import megatron
from family_tasks import IGNORED, task_of

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "families"
STEPS = 5


def main():
    torch.set_num_threads(1)
    if sys.argv[1:2] == ["--compare"]:
        return compare(*sys.argv[2:])
    for name in sys.argv[1:] or sorted(path.name for path in GOLDEN.iterdir()):
        write(name)


def write(name):
    """What flags.txt says is computed, too."""
    flags = GOLDEN / name / "flags.txt"
    with contextlib.ExitStack() as stack:
        for flag in flags.read_text().split("\n") if flags.exists() else ():
            if flag:
                stack.enter_context(FLAGS[flag]())
        write_folder(name)


def write_folder(name):
    folder = GOLDEN / name
    config = transformers.AutoConfig.from_pretrained(folder)
    model_class = class_of(config)
    task = task_of(model_class, config)
    config._attn_implementation = config._experts_implementation = "eager"
    model = without_rows_of_padding(new_model(model_class, config).train())
    generator = torch.Generator().manual_seed(sum(name.encode()))
    with torch.no_grad():
        for key, value in [*learned(model), *constants(model)]:
            drawn = (0.1 if value.dim() < 2 else 0.4) * torch.randn(value.shape, generator=generator)
            scale = value.dim() == 1 and re.search(r"norm|\.ln[._]", key.lower()) and not key.endswith("bias")
            value.copy_(1 + drawn if scale else drawn)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    first, *steps = (task.inputs(config, generator) for _ in range(STEPS + 1))
    with torch.no_grad():
        shipped = task.outputs(model, first)
    with InDouble():
        numbers = numbers_of(task, exact(model), first, steps, shipped)
        numbers |= task.text(exact(model), generator) if task.text else {}
    out = {f"in.{key}": value for key, value in first.items()}
    out |= {f"steps.{key}": torch.stack([step[key] for step in steps]) for key in first} | numbers
    out = {key: (value.detach().float() if value.is_floating_point() else value.int()).contiguous()
           for key, value in out.items()}
    safetensors.torch.save_file(out, folder / "golden.safetensors",
                                {"torch": torch.__version__, "transformers": transformers.__version__})
    print(name, sum(value.numel() for value in model.parameters()), "parameters,",
          sum(path.stat().st_size for path in folder.iterdir()) // 1000, "KB")


def class_of(config):
    """Of Megatron-LM's own folders, ours."""
    (name,) = config.architectures
    return getattr(megatron if config.model_type.startswith("megatron-lm-") else transformers, name)


def new_model(model_class, config):
    """Versions of T5 with gates have a head of their own, which transformers ties where it reads no weights."""
    model = model_class(config)
    if getattr(config, "feed_forward_proj", "").startswith("gated") and hasattr(model, "lm_head"):
        model.lm_head.weight = torch.nn.Parameter(torch.zeros_like(model.lm_head.weight))
    return model


def learned(model):
    """All parameters but sines, which are there as a table of positions."""
    return [(key, value) for key, value in model.named_parameters() if value.requires_grad]


def constants(model):
    """What is added to logits, or to scores of experts, and does not learn."""
    return [(key, value) for key, value in model.named_buffers() if key.endswith(("final_logits_bias", "e_score_correction_bias"))]


class ResidualScores:
    """Attention of modeling_bert as in RealFormer (He et al. 2020): scores of the layer before are added to each layer's."""

    def __enter__(self):
        self.module, self.scores = transformers.models.bert.modeling_bert, None
        self.kept = self.module.eager_attention_forward, self.module.BertEncoder.forward
        def encoder(encoder, *args, **kwargs):
            self.scores = None
            return self.kept[1](encoder, *args, **kwargs)
        def attention(layer, q, k, v, mask, scaling=None, **_):
            scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
            self.scores = scores if self.scores is None else self.scores + scores
            shares = torch.softmax(self.scores if mask is None else self.scores + mask, dim=-1)
            return torch.matmul(shares, v).transpose(1, 2).contiguous(), shares
        self.module.eager_attention_forward, self.module.BertEncoder.forward = attention, encoder

    def __exit__(self, *_):
        self.module.eager_attention_forward, self.module.BertEncoder.forward = self.kept


# By a flag in flags.txt, what transformers' models do not do.
FLAGS = {"--residual-attention true": ResidualScores}


def exact(model):
    out = without_rows_of_padding(new_model(type(model), model.config).double().train())
    out.load_state_dict(model.state_dict())
    return out


def without_rows_of_padding(model):
    """The rows of padding learn as any others; transformers keeps gradients from them."""
    for module in model.modules():
        if isinstance(module, torch.nn.Embedding):
            module.padding_idx = None
    return model


def numbers_of(task, model, first, steps, shipped):
    outputs = task.outputs(model, first)
    for name, value in outputs.items():
        assert (value - shipped[name]).abs().max() < 1e-5 * value.abs().max(), (name, (value - shipped[name]).abs().max())
    loss = loss_of(outputs, first)
    loss.backward()
    gradients = {f"grad.{key}": value for key, value in as_saved(model, lambda value: value.grad).items()}
    losses, norms = five_steps(task, model, steps)
    return outputs | {"loss": loss, "losses": losses, "grad_norms": norms} | gradients


def as_saved(model, what):
    """Tensors that are as the parameters, under the names by which these are saved. Constants have zeros."""
    copy = new_model(type(model), model.config).double()
    with torch.no_grad():
        for (_, to), (_, value) in zip(learned(copy), learned(model)):
            to.copy_(what(value))
    with tempfile.TemporaryDirectory() as folder:
        copy.save_pretrained(folder)
        saved = safetensors.torch.load_file(pathlib.Path(folder) / "model.safetensors")
    fixed = {key for key, value in model.named_parameters() if not value.requires_grad}
    return {key: value for key, value in saved.items() if key not in fixed}


def compare(name, folder):
    golden = safetensors.torch.load_file(GOLDEN / name / "golden.safetensors")
    config = transformers.AutoConfig.from_pretrained(folder)
    model_class = class_of(config)
    task = task_of(model_class, config)
    model = model_class.from_pretrained(folder, dtype=torch.float32).eval()
    inputs = {key[3:]: value for key, value in golden.items() if key.startswith("in.")}
    with torch.no_grad():
        outputs = task.outputs(model, inputs)
    for key, value in outputs.items():
        print(f"{name}: {key} differ by {(value - golden[key]).abs().max():.2g} at most, the largest is "
              f"{golden[key].abs().max():.2g}")


class InDouble(torch.overrides.TorchFunctionMode):
    """In place of what drops to float32 whatever the dtype: norms, softmax, angles of positions."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.Tensor.float:
            return args[0].double()
        double = lambda x: torch.float64 if x is torch.float32 else x
        return function(*map(double, args), **{key: double(x) for key, x in (kwargs or {}).items()})


def loss_of(outputs, given):
    """The mean of what is lost by each output, of which the last dim are the classes: of `logits` on labels, of others on
    what the task reads by their name. Of pretraining it is the sum."""
    losses = [F.cross_entropy(value.reshape(-1, value.shape[-1]),
                              given["labels" if name == "logits" else name].reshape(-1).long(), ignore_index=IGNORED)
              for name, value in outputs.items()]
    return sum(losses) / (1 if "next" in outputs else len(losses))


def five_steps(task, model, steps):
    """AdamW with betas 0.9 and 0.95, eps 1e-8, decay 0.1 of what has two dims or more, norm 0.5 at most, and the rates
    of ten steps of a cosine from 1e-2 to 1e-3 behind three of warm-up."""
    parameters = [value for _, value in learned(model)]
    means, squares = ([torch.zeros_like(p) for p in parameters] for _ in range(2))
    losses, norms = [], []
    for step, given in enumerate(steps):
        model.zero_grad()
        loss = loss_of(task.outputs(model, given), given)
        loss.backward()
        norm = math.sqrt(sum(p.grad.pow(2).sum().item() for p in parameters))
        scale = min(1.0, 0.5 / (norm + 1e-6))
        rate = 1e-2 * step / 3 if step <= 3 else 1e-3 + 0.5 * (1 + math.cos(math.pi * (step - 3) / 7)) * 9e-3
        with torch.no_grad():
            for p, mean, square in zip(parameters, means, squares):
                gradient = p.grad * scale
                mean.mul_(0.9).add_(gradient, alpha=0.1)
                square.mul_(0.95).add_(gradient * gradient, alpha=0.05)
                update = (mean / (1 - 0.9 ** (step + 1))) / ((square / (1 - 0.95 ** (step + 1))).sqrt() + 1e-8)
                if p.dim() >= 2:
                    p.mul_(1 - rate * 0.1)
                p.sub_(rate * update)
        losses.append(loss.item())
        norms.append(norm)
    return torch.tensor(losses), torch.tensor(norms)


if __name__ == "__main__":
    main()
