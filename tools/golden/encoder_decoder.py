"""Tiny T5 and BART models of Hugging Face transformers, in Tessera's parameter names and packing.

`links` says which of their parameters make which of ours (models.py), and `plain_logits` computes from the packed layout
alone. Pairs of texts are drawn as for the models of translation.py, with the special tokens that T5 and BART have.
"""
import math

import torch
import torch.nn.functional as F
from transformers import BartConfig, BartForConditionalGeneration, T5Config, T5ForConditionalGeneration
from transformers.models.t5.modeling_t5 import T5Attention, T5LayerNorm

import models
import translation
from models import HEADS, LAYERS, VOCAB, WIDTH
from translation import IGNORE, SOURCE, TARGET

NAMES = ("t5", "t5_v1_1", "bart")
FFN, STEPS = 128, 10
HEAD_WIDTH = {"t5": 8, "t5_v1_1": 6, "bart": 8}  # t5_v1_1: another one than WIDTH / HEADS
TOKENS = {"t5": (0, 0, 1), "t5_v1_1": (0, 0, 1), "bart": (1, 2, 2)}  # padding, start, end
FIRST_WORD = 3
OFFSET = 2  # rows of BART's positions that nothing reads
CLASSES = {"t5": T5ForConditionalGeneration, "t5_v1_1": T5ForConditionalGeneration,
           "bart": BartForConditionalGeneration}


class DoubleNorm(T5LayerNorm):
    """T5's norm without its cast to float32, which would spoil a float64 result."""

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))


def hf_model(name, dtype, exact):
    pad, start, end = TOKENS[name]
    common = dict(vocab_size=VOCAB, d_model=WIDTH, pad_token_id=pad, eos_token_id=end, decoder_start_token_id=start,
                  attn_implementation="eager")
    if name == "bart":
        config = BartConfig(encoder_layers=LAYERS, decoder_layers=LAYERS, encoder_attention_heads=HEADS,
                            decoder_attention_heads=HEADS, encoder_ffn_dim=FFN, decoder_ffn_dim=FFN, dropout=0.0,
                            max_position_embeddings=TARGET, bos_token_id=0, forced_eos_token_id=end,
                            scale_embedding=True, **common)
        return BartForConditionalGeneration(config).to(dtype).train()
    second = name == "t5_v1_1"
    config = T5Config(num_layers=LAYERS, num_decoder_layers=LAYERS, num_heads=HEADS, d_kv=HEAD_WIDTH[name], d_ff=FFN,
                      dropout_rate=0.0, feed_forward_proj="gated-gelu" if second else "relu",
                      tie_word_embeddings=not second, n_positions=TARGET, **common)
    model = T5ForConditionalGeneration(config)
    if second:  # as their published weights have it; without a file of weights transformers ties them
        model.lm_head.weight = torch.nn.Parameter(torch.zeros(VOCAB, WIDTH))
    for module in model.modules():
        if exact and isinstance(module, T5LayerNorm):
            module.__class__ = DoubleNorm
    return model.to(dtype).train()


def logits_of(model, name, source, ids):
    return model(input_ids=source, attention_mask=(source != TOKENS[name][0]).long(), decoder_input_ids=ids,
                 use_cache=False).logits


def links(name, model):
    """(our name, their parameters, pack, unpack), as in models.py."""
    same = (lambda a: a, lambda a: [a])
    e = HEAD_WIDTH[name]

    def both(ours, module):
        yield ours + ".weight", [module.weight], *same
        if getattr(module, "bias", None) is not None:
            yield ours + ".bias", [module.bias], *same

    def attention(ours, q, k, v, out):
        parts = [a for a in ("weight", "bias") if getattr(q, a) is not None]
        for kind in parts:
            theirs = [getattr(a, kind) for a in (q, k, v)]
            if ours.endswith("cross"):
                yield f"{ours}.q.{kind}", theirs[:1], *same
                yield f"{ours}.kv.{kind}", theirs[1:], lambda *a: join(a, e), lambda a: part(a, 2, e)
            else:
                yield f"{ours}.qkv.{kind}", theirs, lambda *a: join(a, e), lambda a: part(a, 3, e)
        yield from both(ours + ".proj", out)

    yield from (bart_links if name == "bart" else t5_links)(name, model, both, attention, same)


def t5_links(name, model, both, attention, same):
    yield "embed.token.weight", [model.shared.weight], *same
    if name == "t5_v1_1":
        yield "head.weight", [model.lm_head.weight], *same
    for stack, block in (("encoder", "embed"), ("decoder", "embed_target")):
        module = getattr(model, stack)
        table = module.block[0].layer[0].SelfAttention.relative_attention_bias.weight
        yield block + ".relative.weight", [table], *same
        yield from both(stack + ".norm", module.final_layer_norm)
        for i, layer in enumerate(module.block):
            at, own, last = f"{stack}.layers.{i}.", layer.layer[0], layer.layer[-1]
            a, f = own.SelfAttention, last.DenseReluDense
            yield from attention(at + "attn", a.q, a.k, a.v, a.o)
            yield from both(at + "norm1", own.layer_norm)
            if stack == "decoder":
                c = layer.layer[1].EncDecAttention
                yield from attention(at + "cross", c.q, c.k, c.v, c.o)
                yield from both(at + "norm_cross", layer.layer[1].layer_norm)
            for ours, theirs in (("gate", "wi_0"), ("up", "wi_1"), ("up", "wi"), ("down", "wo")):
                if hasattr(f, theirs):
                    yield from both(at + "mlp." + ours, getattr(f, theirs))
            yield from both(at + "norm2", last.layer_norm)


def bart_links(name, model, both, attention, same):
    yield "embed.token.weight", [model.model.shared.weight], *same
    for stack, block in (("encoder", "embed"), ("decoder", "embed_target")):
        module = getattr(model.model, stack)
        yield block + ".position.weight", [module.embed_positions.weight], *same
        yield from both(block + ".norm", module.layernorm_embedding)
        for i, layer in enumerate(module.layers):
            at, a = f"{stack}.layers.{i}.", layer.self_attn
            yield from attention(at + "attn", a.q_proj, a.k_proj, a.v_proj, a.out_proj)
            yield from both(at + "norm1", layer.self_attn_layer_norm)
            if stack == "decoder":
                c = layer.encoder_attn
                yield from attention(at + "cross", c.q_proj, c.k_proj, c.v_proj, c.out_proj)
                yield from both(at + "norm_cross", layer.encoder_attn_layer_norm)
            yield from both(at + "mlp.up", layer.fc1)
            yield from both(at + "mlp.down", layer.fc2)
            yield from both(at + "norm2", layer.final_layer_norm)


def join(parts, e):
    """Rows of several matrices or biases, for each head those of the first, of the second, and so on."""
    return torch.cat([a.reshape(HEADS, 1, e, *a.shape[1:]) for a in parts], dim=1).flatten(0, 2)


def part(joined, count, e):
    return [a.flatten(0, 2) for a in joined.reshape(HEADS, count, e, *joined.shape[1:]).split(1, dim=1)]


def of_name(name):
    return lambda model: links(name, model)


def draw(name, generator):
    """Random parameters that leave nothing at a special value, as those of the other golden models."""
    empty = models.packed(hf_model(name, torch.float32, True), of_name(name))
    return models.draw({path: value.shape for path, value in empty.items()}, generator)


def kinds_of_distances(both, distances):
    """T5's kinds, by the definition: half of them near, the others wider by a factor each, up to 128."""
    kinds = 16 if both else 32
    out = []
    for distance in distances:  # of a key from the query
        steps = abs(distance) if both else max(-distance, 0)
        near = kinds // 2
        far = near + int(math.log(max(steps, near) / near) / math.log(128 / near) * (kinds - near) + 1e-9)
        out.append((steps if steps < near else min(far, kinds - 1)) + (kinds if both and distance > 0 else 0))
    return torch.tensor(out)


def plain_logits(name, params, source, ids):
    """The logits by the packed layout alone, without transformers."""
    p, t5, e = params, name != "bart", HEAD_WIDTH[name]

    def linear(path, x):
        return F.linear(x, p[path + ".weight"], p.get(path + ".bias"))

    def norm(path, x):
        if t5:
            return p[path + ".weight"] * x * (x.pow(2).mean(-1, keepdim=True) + 1e-6).rsqrt()
        return F.layer_norm(x, (WIDTH,), p[path + ".weight"], p[path + ".bias"], 1e-5)

    def attend(path, q, k, v, seen, bias):  # [b, s, heads, e]; seen [b or 1, 1 or s, t]; bias [heads, s, t]
        scores = torch.einsum("bshe,bthe->bhst", q, k) * (1 if t5 else e ** -0.5) + bias
        weights = scores.masked_fill(~seen[:, None], -math.inf).softmax(-1)
        return linear(path + ".proj", torch.einsum("bhst,bthe->bshe", weights, v).flatten(2))

    def heads(path, x, parts):
        return linear(path, x).view(*x.shape[:2], HEADS, parts, e).unbind(3)

    def part(norm_path, x, f):
        return x + f(norm(norm_path, x)) if t5 else norm(norm_path, x + f(x))

    def feed_forward(path, x):
        up = linear(path + ".up", x)
        if name == "t5_v1_1":
            return linear(path + ".down", F.gelu(linear(path + ".gate", x), approximate="tanh") * up)
        return linear(path + ".down", F.relu(up) if t5 else F.gelu(up))

    def layers(stack, x, seen, bias, encoded=None, encoded_seen=None):
        for i in range(LAYERS):
            at = f"{stack}.layers.{i}."
            x = part(at + "norm1", x, lambda y: attend(at + "attn", *heads(at + "attn.qkv", y, 3), seen, bias))
            if encoded is not None:
                x = part(at + "norm_cross", x, lambda y: attend(at + "cross", *heads(at + "cross.q", y, 1),
                                                                *heads(at + "cross.kv", encoded, 2), encoded_seen, 0))
            x = part(at + "norm2", x, lambda y: feed_forward(at + "mlp", y))
        return norm(stack + ".norm", x) if t5 else x

    def embed(block, tokens):
        rows, n = p["embed.token.weight"][tokens], tokens.shape[1]
        if t5:
            return rows
        return norm(block + ".norm", rows * WIDTH ** 0.5 + p[block + ".position.weight"][OFFSET:OFFSET + n])

    def bias(block, n):
        if not t5:
            return 0
        distances = [key - query for query in range(n) for key in range(n)]
        kinds = kinds_of_distances(block == "embed", distances)
        return p[block + ".relative.weight"][kinds].view(n, n, HEADS).permute(2, 0, 1)

    real, n = (source != TOKENS[name][0])[:, None], ids.shape[1]
    causal = torch.ones(1, n, n, dtype=torch.bool).tril()
    encoded = layers("encoder", embed("embed", source), real, bias("embed", source.shape[1]))
    out = layers("decoder", embed("embed_target", ids), causal, bias("embed_target", n), encoded, real)
    if name == "t5":
        out = out * WIDTH ** -0.5
    return F.linear(out, p.get("head.weight", p["embed.token.weight"]))


def check(name, params, source, ids):
    """Our packed parameters mean what the README says: three ways to the same logits, and packing undoes unpacking."""
    model, exact = hf_model(name, torch.float64, True), {path: value.double() for path, value in params.items()}
    models.load(model, exact, of_name(name))
    back = models.packed(model, of_name(name))
    assert back.keys() == params.keys()
    for path, value in exact.items():
        assert torch.equal(back[path], value), path
    stock = hf_model(name, torch.float32, False)  # transformers as they ship it
    models.load(stock, params, of_name(name))
    with torch.no_grad():
        logits = logits_of(model, name, source, ids)
        assert (logits - plain_logits(name, exact, source, ids)).abs().max() < 1e-12, "the packed layout is another"
        assert (logits - logits_of(stock, name, source, ids)).abs().max() < 1e-5
    if name != "bart":
        far = range(-400, 401)
        for both in (True, False):
            theirs = T5Attention._relative_position_bucket(torch.tensor(far), both, 32, 128)
            assert torch.equal(theirs, kinds_of_distances(both, far))


def golden(name, seed, train, mean_loss):
    """`train(model, of_step, packed)` are the ten steps that make_golden.py takes with every model."""
    generator = torch.Generator().manual_seed(seed)
    params, tokens = draw(name, generator), TOKENS[name]
    batch = [a[0] for a in translation.draw_batches(1, generator, tokens, (FIRST_WORD, VOCAB))]
    steps = translation.draw_batches(STEPS, generator, tokens, (FIRST_WORD, VOCAB))
    check(name, params, *batch[:2])

    def run(dtype):
        model = hf_model(name, dtype, exact=dtype == torch.float64)
        models.load(model, {path: value.to(dtype) for path, value in params.items()}, of_name(name))
        logits = logits_of(model, name, *batch[:2])
        loss = mean_loss(logits, batch[2])
        loss.backward()
        greedy = translation.greedy(lambda *a: logits_of(model, name, *a), batch[0], tokens[1])
        out = {"logits": logits.detach(), "loss": loss.detach(), "greedy": greedy}
        grads = models.packed(model, of_name(name), lambda a: a.grad)
        out |= {"grad." + path: value for path, value in grads.items()}
        of_step = (lambda step: mean_loss(logits_of(model, name, *[a[step] for a in steps[:2]]), steps[2][step]))
        return out | train(model, of_step, lambda: models.packed(model, of_name(name)))

    exact, single = run(torch.float64), run(torch.float32)
    inputs = ("source", "ids", "labels")
    out = {path: value.int() for path, value in zip(inputs, batch)}
    out |= {"step_" + path: value.int() for path, value in zip(inputs, steps)}
    out |= {"param." + path: value for path, value in params.items()}
    if name == "t5":  # of the keys at -200 to 200 from a query
        out["kinds"] = torch.stack([kinds_of_distances(both, range(-200, 201)) for both in (True, False)]).int()
    return exact, single, out | {path: value.float() for path, value in exact.items()}
