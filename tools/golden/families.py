#!/usr/bin/env python3
"""Writes tests/golden/families: tiny models of transformers' families, as folders, with what they compute.

    build/golden/bin/python tools/golden/families.py [NAME...]

A family is a row of ROWS. Its folder has config.json and model.safetensors as transformers saves them, and
golden.safetensors: ids, labels, logits, loss, the gradient of each tensor under transformers' names (grad.NAME), and
five steps of AdamW: step_ids, step_labels, losses, grad_norms. All is computed in float64 and rounded once.
"""
import math
import pathlib
import sys
import types

import safetensors.torch
import torch
import torch.nn.functional as F
import transformers

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "families"
IGNORED = -100
BATCH, CONTEXT, STEPS = 3, 13, 5
DECODER = dict(vocab_size=37, hidden_size=16, intermediate_size=22, num_hidden_layers=2, num_attention_heads=4,
               num_key_value_heads=2, max_position_embeddings=32, rms_norm_eps=1e-5, attention_dropout=0.0,
               bos_token_id=None, eos_token_id=None, pad_token_id=None, use_cache=False)


def rope(base, **more):
    return {"rope_parameters": {"rope_type": "default", "rope_theta": base, **more}}


# name: (class, configuration)
ROWS = {
    "qwen2": (transformers.Qwen2ForCausalLM, DECODER | rope(1e6)),
    "qwen2_tied": (transformers.Qwen2ForCausalLM, DECODER | rope(1e4) | dict(tie_word_embeddings=True)),
    "qwen3": (transformers.Qwen3ForCausalLM, DECODER | rope(1e6) | dict(head_dim=6)),
    "qwen3_bias": (transformers.Qwen3ForCausalLM, DECODER | rope(1e6) | dict(head_dim=4, attention_bias=True)),
}


def main():
    torch.set_num_threads(1)
    for name in sys.argv[1:] or ROWS:
        write(name, *ROWS[name])


def write(name, model_class, configuration):
    config = model_class.config_class(**configuration)
    config._attn_implementation = "eager" if config.model_type in NEED_EAGER else "sdpa"
    model = model_class(config).train()
    generator = torch.Generator().manual_seed(sum(name.encode()))
    with torch.no_grad():
        for key, value in model.named_parameters():
            drawn = 0.1 * torch.randn(value.shape, generator=generator)
            value.copy_(1 + drawn if "norm" in key and value.dim() == 1 and not key.endswith("bias") else drawn)
    folder = GOLDEN / name
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    draw = lambda *shape: torch.randint(0, config.vocab_size, shape, generator=generator)
    ids, labels = draw(STEPS + 1, BATCH, CONTEXT), draw(STEPS + 1, BATCH, CONTEXT)
    labels[:, 1, -4:] = IGNORED
    with torch.no_grad():
        shipped = model(ids[0]).logits
    exact(model.double())
    logits = model(ids[0]).logits
    assert (logits - shipped).abs().max() < 1e-5 * logits.abs().max(), name
    loss = loss_of(logits, labels[0])
    loss.backward()
    out = {"ids": ids[0].int(), "labels": labels[0].int(), "logits": logits, "loss": loss,
           "step_ids": ids[1:].int(), "step_labels": labels[1:].int()}
    out |= {f"grad.{key}": value.grad for key, value in model.named_parameters()}
    out["losses"], out["grad_norms"] = five_steps(model, ids[1:], labels[1:])
    out = {key: (value.detach() if value.dtype == torch.int32 else value.detach().float()).contiguous()
           for key, value in out.items()}
    safetensors.torch.save_file(out, folder / "golden.safetensors",
                                {"torch": torch.__version__, "transformers": transformers.__version__})
    print(name, sum(value.numel() for value in model.parameters()), "parameters")


NEED_EAGER = ()


def exact(model):
    """In place of what drops to float32 whatever the dtype: norms, and angles of positions."""
    for module in model.modules():
        kind = type(module).__name__
        if kind.endswith("RMSNorm"):
            module.forward = types.MethodType(rms_norm, module)
        elif kind.endswith("RotaryEmbedding"):
            module.forward = types.MethodType(rotary, module)


def rms_norm(self, x):
    return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))


def rotary(self, x, position_ids):
    parameters = self.config.rope_parameters
    assert parameters["rope_type"] == "default", parameters
    width = getattr(self.config, "head_dim", None) or self.config.hidden_size // self.config.num_attention_heads
    dims = torch.arange(0, width, 2, dtype=torch.float64)
    angle = position_ids[..., None].double() * parameters["rope_theta"] ** (-dims / width)
    angle = torch.cat((angle, angle), dim=-1)
    return angle.cos(), angle.sin()


def loss_of(logits, labels):
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1), ignore_index=IGNORED)


def five_steps(model, ids, labels):
    """AdamW with betas 0.9 and 0.95, eps 1e-8, decay 0.1 of what has two dims or more, norm 0.5 at most, and the rates
    of ten steps of a cosine from 1e-2 to 1e-3 behind three of warm-up."""
    parameters = list(model.parameters())
    means, squares = ([torch.zeros_like(p) for p in parameters] for _ in range(2))
    losses, norms = [], []
    for step in range(len(ids)):
        model.zero_grad()
        loss = loss_of(model(ids[step]).logits, labels[step])
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
