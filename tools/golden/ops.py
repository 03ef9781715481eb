"""Torch's float64 results for ops that are easy to get slightly wrong, with their gradients.

Inputs are float32 numbers held as float64, so that a float32 kernel can read them without loss.
"""
import math

import torch
import torch.nn.functional as F

NEG_INF = -math.inf


def golden_ops(seed):
    """All cases in one dict: NAME.in.K, NAME.out.K, NAME.dout.K and NAME.din.K."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape, scale=1.0):
        return (scale * torch.randn(shape, generator=generator)).double()

    tensors = {}

    def case(name, function, *inputs):
        """Runs `function`; every output gets a random cotangent, every floating input that has one a gradient."""
        inputs = [a.clone().requires_grad_(a.is_floating_point()) for a in inputs]
        outputs = function(*inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        douts = [normal(*out.shape) for out in outputs]
        torch.autograd.backward(outputs, douts)
        for k, value in enumerate(inputs):
            tensors[f"{name}.in.{k}"] = value.detach()
            if value.grad is not None:
                tensors[f"{name}.din.{k}"] = value.grad
        for k, (out, dout) in enumerate(zip(outputs, douts)):
            tensors[f"{name}.out.{k}"], tensors[f"{name}.dout.{k}"] = out.detach(), dout

    norms(case, normal)
    pointwise(case)
    softmaxes(case, normal)
    losses(case, normal)
    attentions(case, normal)
    positions(case, normal)
    repeated = torch.tensor([[2, 5, 2, 2, 0], [6, 2, 5, 0, 6], [2, 2, 2, 2, 2]], dtype=torch.int32)  # 1, 3, 4 never
    case("embedding", lambda table, ids: F.embedding(ids, table), normal(7, 4), repeated)
    attentions_of_families(case, normal)
    return dict(sorted(tensors.items()))


def norms(case, normal):
    def layer_norm(x, gain, bias):
        return F.layer_norm(x, x.shape[-1:], gain, bias, 1e-5)

    def rms_norm(x, gain):
        return F.rms_norm(x, x.shape[-1:], gain, 1e-5)

    gain, bias = rounded(1 + normal(10, scale=0.1)), normal(10, scale=0.1)
    case("layer_norm", layer_norm, normal(3, 4, 10), gain, bias)
    # A mean far from zero: E[x^2] - E[x]^2 loses every digit of the variance in float32.
    case("layer_norm_offset", layer_norm, rounded(1000 + normal(5, 10)), gain, bias)
    small = normal(5, 10, scale=1e-3)
    small[2] = 0.75  # a row without variance: eps alone divides
    case("layer_norm_small", layer_norm, small, gain, bias)
    case("rms_norm", rms_norm, normal(3, 4, 10), gain)
    small = normal(5, 10, scale=1e-3)
    small[2] = 0.0
    case("rms_norm_small", rms_norm, small, gain)


def pointwise(case):
    tails = [-100, -40, -30, -14, -12, 12, 14, 30, 40, 100, -1e-6, 1e-6, 0]
    x = torch.cat((torch.linspace(-8, 8, 65), torch.tensor(tails, dtype=torch.float32))).double()
    case("gelu_erf", F.gelu, x)
    case("gelu_tanh", lambda a: F.gelu(a, approximate="tanh"), x)
    case("silu", F.silu, x)


def softmaxes(case, normal):
    x = normal(2, 4, 9, scale=2)
    x[0, 1] = rounded(x[0, 1] + 10000)  # the maximum must be taken off first
    x[0, 2, 3:] = NEG_INF  # a masked tail
    x[1, 0, :8] = NEG_INF  # one value left
    x[1, 2] = 1.5  # all equal
    case("softmax", lambda a: a.softmax(-1), x)
    case("softmax_middle", lambda a: a.softmax(1), normal(3, 5, 4))


def losses(case, normal):
    logits = normal(7, 11, scale=3)
    logits[2] = rounded(logits[2] + 1000)
    logits[5] = rounded(logits[5] - 1000)
    labels = torch.tensor([3, -100, 0, 10, -100, 7, 3], dtype=torch.int32)

    def per_row(x, target):
        return F.cross_entropy(x, target.long(), ignore_index=-100, reduction="none"), x.logsumexp(-1)

    case("cross_entropy", lambda x, target: per_row(x, target)[0], logits, labels)
    case("cross_entropy_with_logsumexp", per_row, logits, labels)
    case("cross_entropy_mean", lambda x, target: F.cross_entropy(x, target.long(), ignore_index=-100), logits, labels)


def attentions(case, normal):
    """Every tensor is [batch, seq, heads, head_dim]; the scale is 1 / sqrt(head_dim)."""

    def attention(q, k, v, mask=None, causal=True):
        seq, keys = q.shape[1], k.shape[1]
        visible = torch.ones(seq, keys, dtype=torch.bool).tril() if causal else torch.ones(seq, keys, dtype=torch.bool)
        if mask is not None:
            visible = visible & mask[:, None, None, :]
        q, k, v = (a.transpose(1, 2) for a in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=visible, enable_gqa=True).transpose(1, 2)

    def inputs(seq, keys, scale=1.0):
        return normal(2, seq, 4, 6, scale=scale), normal(2, keys, 2, 6, scale=scale), normal(2, keys, 2, 6)

    case("attention", attention, *inputs(5, 5))
    # Longer than a tile of a streaming kernel and no multiple of one, with scores of tens.
    case("attention_long", attention, *inputs(71, 71, scale=3))
    # Keys padded on the right: 9 real ones in row 0, 4 in row 1. Every query still sees key 0.
    mask = torch.arange(9)[None, :] < torch.tensor([[9], [4]])
    case("attention_padded", attention, *inputs(9, 9), mask)
    case("attention_padded_not_causal", lambda *a: attention(*a, causal=False), *inputs(9, 9), mask)
    case("attention_cross", lambda *a: attention(*a, causal=False), *inputs(5, 8))


def attentions_of_families(case, normal):
    """What some families add to attention, with the shapes of `attentions`."""

    def attention(q, k, v, mask=None, causal=True, window=0, cap=0.0, slopes=None):
        ahead = torch.arange(k.shape[1])[None, :] - torch.arange(q.shape[1])[:, None]
        visible = torch.ones_like(ahead, dtype=torch.bool)
        if causal:
            visible = visible & (ahead <= 0)
        if window > 0:
            visible = visible & (ahead.abs() < window)
        if mask is not None:
            visible = visible & mask[:, None, None, :]
        k, v = (a.repeat_interleave(q.shape[2] // a.shape[2], 2) for a in (k, v))
        scores = torch.einsum("bshe,bthe->bhst", q, k) / math.sqrt(q.shape[-1])
        if cap > 0:
            scores = cap * torch.tanh(scores / cap)
        if slopes is not None:
            scores = scores + slopes.flatten()[:, None, None] * ahead
        return torch.einsum("bhst,bthe->bshe", scores.masked_fill(~visible, NEG_INF).softmax(-1), v)

    def inputs(seq, keys, scale=1.0):
        return normal(2, seq, 4, 6, scale=scale), normal(2, keys, 2, 6, scale=scale), normal(2, keys, 2, 6)

    case("attention_window", lambda *a: attention(*a, window=20), *inputs(71, 71))
    case("attention_window_both_sides", lambda *a: attention(*a, causal=False, window=3), *inputs(9, 11))
    mask = torch.arange(9)[None, :] < torch.tensor([[9], [7]])  # each query sees a real key
    case("attention_window_padded", lambda *a: attention(*a, window=4), *inputs(9, 9), mask)
    case("attention_cap", lambda *a: attention(*a, cap=5.0), *inputs(71, 71, scale=3))
    slopes = torch.tensor([[0.5, 0.25], [0.0625, 0.0078125]]).double()
    case("attention_slopes", lambda q, k, v, m: attention(q, k, v, slopes=m.detach()), *inputs(71, 71), slopes)
    case("attention_window_cap_slopes",
         lambda q, k, v, m: attention(q, k, v, causal=False, window=8, cap=2.0, slopes=m.detach()),
         *inputs(13, 17), slopes)


def positions(case, normal):
    """Rotate-half form on [batch, seq, heads, head_dim]: channel i turns with channel i + head_dim / 2."""

    def rope(x, at):
        half = x.shape[-1] // 2
        frequency = 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
        angle = (at.double()[..., None] * frequency)[:, :, None, :]
        a, b = x[..., :half], x[..., half:]
        return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), -1)

    near = torch.stack((torch.arange(7), torch.tensor([3, 4, 0, 1, 2, 31, 100]))).int()  # documents restart at 0
    case("rope", rope, normal(2, 7, 3, 8), near)
    case("rope_far", rope, normal(1, 4, 2, 8), torch.tensor([[255, 257, 4095, 100000]], dtype=torch.int32))


def rounded(x):
    """The nearest float32 numbers, held as float64."""
    return x.float().double()
