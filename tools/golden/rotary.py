"""The rates of rotary positions that transformers makes of configurations: tests/golden/rotary.json.

    python tools/golden/rotary.py > tests/golden/rotary.json

In float64: transformers works in float32, whose results are within 1e-5 of these.
"""
import contextlib
import json
import types

import torch
import transformers
from transformers import LlamaConfig, modeling_rope_utils

SHORT, LONG = [1.0, 1.05, 1.25, 2.0, 3.5], [1.0, 1.5, 4.0, 9.25, 64.0]
# (head width, longest sample, lengths to try (None: not given), what `rope_parameters` holds)
CASES = [
    (10, 32, [None], {"rope_type": "default"}),
    (6, 32, [None], {"rope_type": "default", "rope_theta": 500000.0}),
    (10, 32, [None], {"rope_type": "linear", "factor": 2.5}),
    (14, 32, [None], {"rope_type": "linear", "factor": 4.0, "partial_rotary_factor": 0.4}),  # 5 channels
    (10, 32, [None, 7, 32, 33, 100], {"rope_type": "dynamic", "factor": 2.0}),
    (12, 32, [64], {"rope_type": "dynamic", "factor": 3.0, "rope_theta": 500.0, "partial_rotary_factor": 0.5}),
    (16, 131072, [None], {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                          "original_max_position_embeddings": 8192, "rope_theta": 500000.0}),
    (22, 4096, [None], {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 0.5, "high_freq_factor": 40.0,
                        "original_max_position_embeddings": 512}),
    (22, 8192, [None], {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048}),
    (22, 8192, [None], {"rope_type": "yarn", "factor": None, "original_max_position_embeddings": 1024}),
    (22, 8192, [None], {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048, "truncate": False}),
    (22, 8192, [None], {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048,
                        "beta_fast": 16, "beta_slow": 2, "attention_factor": 0.75, "rope_theta": 500.0}),
    (22, 8192, [None], {"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 4096,
                        "mscale": 0.707, "mscale_all_dim": 1.0}),
    (22, 8192, [None], {"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 4096, "mscale": 0.707}),
    (24, 8192, [None], {"rope_type": "yarn", "factor": 1.0, "original_max_position_embeddings": 128,
                        "partial_rotary_factor": 0.5}),
    (6, 8192, [None], {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 8, "beta_fast": 1}),
    (6, 8192, [None], {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 6}),  # a ramp of no length
    (10, 131072, [None, 4096, 4097], {"rope_type": "longrope", "original_max_position_embeddings": 4096,
                                      "short_factor": SHORT, "long_factor": LONG}),
    (20, 131072, [9, 5000], {"rope_type": "longrope", "factor": 8.0, "attention_factor": 1.25,
                             "partial_rotary_factor": 0.5, "original_max_position_embeddings": 4096,
                             "short_factor": SHORT, "long_factor": LONG}),
    (10, 4096, [9], {"rope_type": "longrope", "original_max_position_embeddings": 4096,
                     "short_factor": SHORT, "long_factor": LONG}),  # a factor of 1
]


def rates(width, longest, length, parameters):
    """(rates, factor of cosine and sine) as the module stands."""
    config = LlamaConfig(head_dim=width, hidden_size=4 * width, num_attention_heads=4, max_position_embeddings=longest,
                         rope_parameters={"rope_theta": 10000.0, **parameters})
    make = modeling_rope_utils.ROPE_INIT_FUNCTIONS.get(parameters["rope_type"], plain)
    return make(config, device="cpu", seq_len=length)


def plain(config, device, seq_len):
    return transformers.models.llama.modeling_llama.LlamaRotaryEmbedding.compute_default_rope_parameters(config)


@contextlib.contextmanager
def in_float64():
    """What the functions call torch.float is float64."""
    wide = types.ModuleType("torch")
    wide.__dict__.update(torch.__dict__)
    wide.float = wide.float32 = torch.float64
    modules = modeling_rope_utils, transformers.models.llama.modeling_llama
    kept, narrow = torch.Tensor.float, [module.torch for module in modules]
    torch.Tensor.float = torch.Tensor.double
    for module in modules:
        module.torch = wide
    try:
        yield
    finally:
        torch.Tensor.float = kept
        for module, torch_ in zip(modules, narrow):
            module.torch = torch_


def main():
    out = []
    for width, longest, lengths, parameters in CASES:
        for length in lengths:
            with in_float64():
                exact, factor = rates(width, longest, length, parameters)
            single, _ = rates(width, longest, length, parameters)
            assert exact.dtype == torch.float64 and single.dtype == torch.float32
            torch.testing.assert_close(single.double(), exact, rtol=1e-5, atol=0)
            out.append({"width": width, "longest": longest, "length": length, **parameters,
                        "rates": exact.tolist(), "attention": factor})
    print(json.dumps({"transformers": transformers.__version__, "torch": torch.__version__, "cases": out}, indent=0))


if __name__ == "__main__":
    main()
