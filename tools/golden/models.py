"""The two tiny models in Tessera's parameter names and packing, and the same models in Hugging Face transformers.

A model is a dict of tensors in Tessera's names. `load` copies one into a Hugging Face model, `packed` reads one
back (parameters, or their gradients), and `plain_logits` computes the logits from the packed layout alone, so that
the layout itself is checked and not only that packing and unpacking undo each other.
"""
import math

import torch
import torch.nn.functional as F
from transformers import (GPT2Config, GPT2ForSequenceClassification, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM,
                          LlamaForSequenceClassification)
from transformers.models.llama.modeling_llama import LlamaRMSNorm, LlamaRotaryEmbedding

LAYERS, HEADS, WIDTH, VOCAB, CONTEXT, BATCH = 2, 4, 32, 61, 16, 4
HEAD_DIM = WIDTH // HEADS
KV_HEADS = {"gpt2": HEADS, "llama": 2}
FFN = {"gpt2": 128, "llama": 86}
EPS, ROPE_BASE = 1e-5, 10000.0


class DoubleRMSNorm(LlamaRMSNorm):
    """Llama's norm without its cast to float32, which would spoil a float64 result."""

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))


class DoubleRotary(LlamaRotaryEmbedding):
    """Llama's cosines and sines with angles in float64."""

    def forward(self, x, position_ids):
        dims = torch.arange(0, HEAD_DIM, 2, dtype=torch.float64)
        angle = position_ids[..., None].double() * ROPE_BASE ** (-dims / HEAD_DIM)
        angle = torch.cat((angle, angle), dim=-1)
        return angle.cos().to(x.dtype), angle.sin().to(x.dtype)


def shapes(family):
    """Every parameter's shape, in the order in which random weights are drawn."""
    g = KV_HEADS[family]
    qkv, ffn, bias = (g * (HEADS // g + 2)) * HEAD_DIM, FFN[family], family == "gpt2"
    out = {"embed.token.weight": (VOCAB, WIDTH)}
    if family == "gpt2":
        out["embed.position.weight"] = (CONTEXT, WIDTH)

    def add(name, shape, with_bias):
        out[name + ".weight"] = shape
        if with_bias:
            out[name + ".bias"] = shape[:1]

    for i in range(LAYERS):
        add(f"layers.{i}.norm1", (WIDTH,), bias)
        add(f"layers.{i}.attn.qkv", (qkv, WIDTH), bias)
        add(f"layers.{i}.attn.proj", (WIDTH, WIDTH), bias)
        add(f"layers.{i}.norm2", (WIDTH,), bias)
        if family == "llama":
            add(f"layers.{i}.mlp.gate", (ffn, WIDTH), False)
        add(f"layers.{i}.mlp.up", (ffn, WIDTH), bias)
        add(f"layers.{i}.mlp.down", (WIDTH, ffn), bias)
    add("norm", (WIDTH,), bias)
    if family == "llama":
        add("head", (VOCAB, WIDTH), False)
    return out


def draw(shapes, generator):
    """Random parameters that leave nothing at a special value: norm gains near 1, biases not 0."""
    params = {}
    for name, shape in shapes.items():
        value = 0.1 * torch.randn(shape, generator=generator, dtype=torch.float32)
        params[name] = 1 + value if "norm" in name and name.endswith(".weight") else value
    return params


def hf_model(family, dtype, exact, classes=0):
    """A Hugging Face model of the family; `exact` replaces the parts that compute in float32 whatever the dtype.

    With `classes` it classifies samples by their last token that is not padding, which is token 0.
    """
    common = dict(vocab_size=VOCAB, bos_token_id=None, eos_token_id=None, pad_token_id=None, use_cache=False)
    if classes:
        common |= dict(pad_token_id=0, num_labels=classes)
    if family == "gpt2":
        config = GPT2Config(n_layer=LAYERS, n_head=HEADS, n_embd=WIDTH, n_inner=FFN[family], n_positions=CONTEXT,
                            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, activation_function="gelu_new",
                            layer_norm_epsilon=EPS, tie_word_embeddings=True, **common)
        config._attn_implementation = "sdpa"
        return (GPT2ForSequenceClassification if classes else GPT2LMHeadModel)(config).to(dtype).train()
    config = LlamaConfig(num_hidden_layers=LAYERS, num_attention_heads=HEADS, num_key_value_heads=KV_HEADS[family],
                         hidden_size=WIDTH, intermediate_size=FFN[family], max_position_embeddings=CONTEXT,
                         rms_norm_eps=EPS, hidden_act="silu", attention_bias=False, mlp_bias=False,
                         attention_dropout=0.0, tie_word_embeddings=False,
                         rope_parameters={"rope_type": "default", "rope_theta": ROPE_BASE}, **common)
    config._attn_implementation = "sdpa"  # the eager form takes its softmax in float32
    model = (LlamaForSequenceClassification if classes else LlamaForCausalLM)(config).to(dtype).train()
    if exact:
        model.model.rotary_emb.__class__ = DoubleRotary
        for module in model.modules():
            if isinstance(module, LlamaRMSNorm):
                module.__class__ = DoubleRMSNorm
    return model


def links(family, model):
    """(our name, their parameters, pack, unpack): `pack` makes ours of theirs, `unpack` a list of theirs of ours."""
    same = (lambda a: a, lambda a: [a])
    if hasattr(model, "score"):
        yield "score.weight", [model.score.weight], *same
    transposed = (lambda a: a.t(), lambda a: [a.t()])  # their Conv1D keeps [in, out]
    if family == "gpt2":
        t = model.transformer
        yield "embed.token.weight", [t.wte.weight], *same
        yield "embed.position.weight", [t.wpe.weight], *same
        for i, block in enumerate(t.h):
            p = f"layers.{i}."
            yield p + "attn.qkv.weight", [block.attn.c_attn.weight], \
                lambda a: pack_qkv(*a.t().chunk(3)), lambda a: [torch.cat(unpack_qkv(a, HEADS)).t()]
            yield p + "attn.qkv.bias", [block.attn.c_attn.bias], \
                lambda a: pack_qkv(*a.chunk(3)), lambda a: [torch.cat(unpack_qkv(a, HEADS))]
            for ours, theirs in (("attn.proj", block.attn.c_proj), ("mlp.up", block.mlp.c_fc),
                                 ("mlp.down", block.mlp.c_proj)):
                yield p + ours + ".weight", [theirs.weight], *transposed
                yield p + ours + ".bias", [theirs.bias], *same
            for ours, theirs in (("norm1", block.ln_1), ("norm2", block.ln_2)):
                yield p + ours + ".weight", [theirs.weight], *same
                yield p + ours + ".bias", [theirs.bias], *same
        yield "norm.weight", [t.ln_f.weight], *same
        yield "norm.bias", [t.ln_f.bias], *same
        return
    t, g = model.model, KV_HEADS[family]
    yield "embed.token.weight", [t.embed_tokens.weight], *same
    for i, block in enumerate(t.layers):
        p, a = f"layers.{i}.", block.self_attn
        yield p + "attn.qkv.weight", [a.q_proj.weight, a.k_proj.weight, a.v_proj.weight], \
            pack_qkv, lambda w: unpack_qkv(w, g)
        for ours, theirs in (("attn.proj", a.o_proj), ("mlp.gate", block.mlp.gate_proj), ("mlp.up", block.mlp.up_proj),
                             ("mlp.down", block.mlp.down_proj), ("norm1", block.input_layernorm),
                             ("norm2", block.post_attention_layernorm)):
            yield p + ours + ".weight", [theirs.weight], *same
    yield "norm.weight", [t.norm.weight], *same
    if hasattr(model, "lm_head"):
        yield "head.weight", [model.lm_head.weight], *same


def pack_qkv(q, k, v):
    """Rows in the order (g (r+2) e): for each key-value head its r query heads, then its key, then its value."""
    g = k.shape[0] // HEAD_DIM
    parts = [a.reshape(g, -1, HEAD_DIM, *a.shape[1:]) for a in (q, k, v)]
    return torch.cat(parts, dim=1).flatten(0, 2)


def unpack_qkv(packed, g):
    """The q, k and v matrices (or biases) of packed rows."""
    parts = packed.reshape(g, -1, HEAD_DIM, *packed.shape[1:])
    r = parts.shape[1] - 2
    return [a.flatten(0, 2) for a in parts.split([r, 1, 1], dim=1)]


def load(model, params, links):
    """Copies our parameters into the model, and proves that every one of its parameters was set."""
    seen = set()
    with torch.no_grad():
        for name, theirs, _, unpack in links(model):
            for parameter, value in zip(theirs, unpack(params[name]), strict=True):
                assert parameter.shape == value.shape, name
                parameter.copy_(value)
                seen.add(parameter)
    assert seen == set(model.parameters())


def packed(model, links, of=lambda parameter: parameter.data):
    """Our tensors, sorted by name, read from each parameter (or, by `of`, from its gradient)."""
    out = {name: pack(*[of(a) for a in theirs]).clone().contiguous() for name, theirs, pack, _ in links(model)}
    return dict(sorted(out.items()))


def plain_logits(family, params, ids, last=None):
    """The logits by the packed layout alone, without transformers; of classes at the tokens `last`."""
    p, g = params, KV_HEADS[family]
    r, (b, t) = HEADS // g, ids.shape

    def linear(name, x):
        return F.linear(x, p[name + ".weight"], p.get(name + ".bias"))

    def norm(name, x):
        if family == "gpt2":
            return F.layer_norm(x, (WIDTH,), p[name + ".weight"], p[name + ".bias"], EPS)
        return F.rms_norm(x, (WIDTH,), p[name + ".weight"], EPS)

    def rope(x):  # [b, t, heads, e]
        half = HEAD_DIM // 2
        frequency = ROPE_BASE ** (-torch.arange(half, dtype=torch.float64) / half)
        angle = (torch.arange(t, dtype=torch.float64)[:, None] * frequency)[None, :, None].to(x.dtype)
        a, c = x[..., :half], x[..., half:]
        return torch.cat((a * angle.cos() - c * angle.sin(), c * angle.cos() + a * angle.sin()), -1)

    x = p["embed.token.weight"][ids]
    if family == "gpt2":
        x = x + p["embed.position.weight"][:t]
    hidden = torch.ones(t, t, dtype=torch.bool).triu(1)
    for i in range(LAYERS):
        at = f"layers.{i}."
        rows = linear(at + "attn.qkv", norm(at + "norm1", x)).view(b, t, g, r + 2, HEAD_DIM)
        q, k, v = rows[..., :r, :].flatten(2, 3), rows[..., r, :], rows[..., r + 1, :]
        if family == "llama":
            q, k = rope(q), rope(k)
        q = q.view(b, t, g, r, HEAD_DIM)
        scores = torch.einsum("btgre,bsge->bgrts", q, k) / math.sqrt(HEAD_DIM)
        weights = scores.masked_fill(hidden, -math.inf).softmax(-1)
        x = x + linear(at + "attn.proj", torch.einsum("bgrts,bsge->btgre", weights, v).flatten(2))
        h = norm(at + "norm2", x)
        if family == "gpt2":
            h = F.gelu(linear(at + "mlp.up", h), approximate="tanh")
        else:
            h = F.silu(linear(at + "mlp.gate", h)) * linear(at + "mlp.up", h)
        x = x + linear(at + "mlp.down", h)
    if last is not None:
        return F.linear(norm("norm", x)[torch.arange(b), last.long()], p["score.weight"])
    return F.linear(norm("norm", x), p.get("head.weight", p["embed.token.weight"]))
