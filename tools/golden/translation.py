"""Two tiny encoder-decoder models: torch.nn.Transformer with embeddings, positions and a head around it.

`Model` computes; `links` says which of its parameters make which of ours, so that a model can be loaded from tensors
in Tessera's names and packing, and read back. `plain_logits` computes from the packed layout alone.
"""
import math

import torch
import torch.nn.functional as F

import models
from models import EPS, HEADS, HEAD_DIM, LAYERS, VOCAB, WIDTH, pack_qkv, unpack_qkv

BATCH, SOURCE, TARGET, FFN = models.BATCH, 12, 16, 128
PAD, START, END = VOCAB - 3, VOCAB - 2, VOCAB - 1
IGNORE = -100

# pre-norm with GELU, two tables, learned positions, tied head; post-norm with ReLU, one table, sines, a head of its own
POST = {"transformer": False, "transformer_post": True}


class Model(torch.nn.Module):
    def __init__(self, name):
        super().__init__()
        self.post = post = POST[name]
        self.source = torch.nn.Embedding(VOCAB, WIDTH)
        if post:
            self.head = torch.nn.Parameter(torch.empty(VOCAB, WIDTH))
        else:
            self.target = torch.nn.Embedding(VOCAB, WIDTH)
            self.source_position = torch.nn.Parameter(torch.empty(SOURCE, WIDTH))
            self.target_position = torch.nn.Parameter(torch.empty(TARGET, WIDTH))
        self.stacks = torch.nn.Transformer(WIDTH, HEADS, LAYERS, LAYERS, FFN, 0.0, F.relu if post else F.gelu,
                                           layer_norm_eps=EPS, batch_first=True, norm_first=not post)

    def forward(self, source, ids):
        tables = (self.source, self.source if self.post else self.target)
        # Vaswani et al. 2017, section 3.4: rows are multiplied where positions are sines.
        scale = math.sqrt(WIDTH) if self.post else 1
        x, y = (scale * table(tokens) + self.positions(at, tokens.shape[1]) for at, (table, tokens)
                in enumerate(zip(tables, (source, ids))))
        hidden = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).triu(1)  # true: not seen
        out = self.stacks(x, y, tgt_mask=hidden, src_key_padding_mask=source == PAD,
                          tgt_key_padding_mask=ids == PAD, memory_key_padding_mask=source == PAD)
        return F.linear(out, self.head if self.post else self.target.weight)

    def positions(self, of_target, length):
        if self.post:
            return sines(length).to(self.head.dtype)
        return (self.target_position if of_target else self.source_position)[:length]


def sines(length):
    """Sines in the first half of the channels, cosines in the second."""
    angle = torch.arange(length)[:, None] * 10000.0 ** (-2 * torch.arange(WIDTH // 2, dtype=torch.float64) / WIDTH)
    return torch.cat((angle.sin(), angle.cos()), -1)


def links(model):
    """(our name, their parameters, pack, unpack), as in models.py."""
    same = (lambda a: a, lambda a: [a])

    def both(name, module):
        yield name + ".weight", [module.weight], *same
        yield name + ".bias", [module.bias], *same

    def attention(name, module):
        for kind in ("weight", "bias"):
            joined = getattr(module, "in_proj_" + kind)
            if name.endswith("attn"):
                yield f"{name}.qkv.{kind}", [joined], lambda a: pack_qkv(*a.chunk(3)), \
                    lambda a: [torch.cat(unpack_qkv(a, HEADS))]
            else:
                yield f"{name}.{{q,kv}}.{kind}", [joined], split_cross, join_cross
        yield from both(name + ".proj", module.out_proj)

    yield "embed.token.weight", [model.source.weight], *same
    if model.post:
        yield "head.weight", [model.head], *same
    else:
        yield "embed.position.weight", [model.source_position], *same
        yield "embed_target.token.weight", [model.target.weight], *same
        yield "embed_target.position.weight", [model.target_position], *same
    for stack in ("encoder", "decoder"):
        module = getattr(model.stacks, stack)
        yield from both(stack + ".norm", module.norm)
        for i, layer in enumerate(module.layers):
            at = f"{stack}.layers.{i}."
            yield from attention(at + "attn", layer.self_attn)
            norms = ["norm1", "norm2"]
            if stack == "decoder":
                yield from attention(at + "cross", layer.multihead_attn)
                norms.insert(1, "norm_cross")
            for ours, theirs in zip(norms, (layer.norm1, layer.norm2, getattr(layer, "norm3", None))):
                yield from both(at + ours, theirs)
            yield from both(at + "mlp.up", layer.linear1)
            yield from both(at + "mlp.down", layer.linear2)


def split_cross(joined):
    """Theirs: all queries, all keys, all values. Ours: q, and kv with each head's key and then its value."""
    q, k, v = joined.chunk(3)
    heads = [a.reshape(HEADS, 1, HEAD_DIM, *a.shape[1:]) for a in (k, v)]
    return q, torch.cat(heads, dim=1).flatten(0, 2)


def join_cross(ours):
    q, kv = ours
    k, v = (a.flatten(0, 2) for a in kv.reshape(HEADS, 2, HEAD_DIM, *kv.shape[1:]).split(1, dim=1))
    return [torch.cat((q, k, v))]


def named(name, packed):
    """Our tensors by name of one link: one, or q and kv."""
    if "{q,kv}" not in name:
        return {name: packed}
    return dict(zip((name.replace("{q,kv}", part) for part in ("q", "kv")), packed))


def read(model, of=lambda parameter: parameter.data):
    """Our tensors, sorted by name, read from each parameter (or, by `of`, from its gradient)."""
    out = {}
    for name, theirs, pack, _ in links(model):
        out |= named(name, pack(*[of(a) for a in theirs]))
    return {name: value.clone().contiguous() for name, value in sorted(out.items())}


def load(model, params):
    """Copies our parameters into the model, and proves that every one of its parameters was set."""
    seen = set()
    with torch.no_grad():
        for name, theirs, _, unpack in links(model):
            ours = list(named(name, (params.get(name.replace("{q,kv}", "q")), params.get(name.replace("{q,kv}", "kv")))
                              if "{q,kv}" in name else params[name]).values())
            for parameter, value in zip(theirs, unpack(ours if len(ours) == 2 else ours[0]), strict=True):
                assert parameter.shape == value.shape, name
                parameter.copy_(value)
                seen.add(parameter)
    assert seen == set(model.parameters())


@torch.no_grad()
def greedy(model, source, start=START):
    """The logits by which the likeliest token is written behind those before it, from the start token on, also behind
    an end token: [batch, TARGET, VOCAB]. All of the text is computed again for each token."""
    ids, out = torch.full((len(source), 1), start), []
    for _ in range(TARGET):
        out.append(model(source, ids)[:, -1])
        first, second = out[-1].topk(2).values.unbind(-1)
        assert (first - second).min() > 1e-4, "rounding would choose another token"
        ids = torch.cat((ids, out[-1].argmax(-1, keepdim=True)), 1)
    return torch.stack(out, 1)


def draw(name, generator):
    """Random parameters that leave nothing at a special value: norm gains near 1, biases not 0."""
    params = {}
    for path, like in read(Model(name)).items():
        value = 0.1 * torch.randn(like.shape, generator=generator, dtype=torch.float32)
        params[path] = 1 + value if "norm" in path and path.endswith(".weight") else value
    return params


def draw_batches(count, generator, tokens=(PAD, START, END), words_in=(0, PAD)):
    """Random pairs of unequal lengths, padded; some labels are ignored inside, too."""
    pad, start, end = tokens
    source = torch.full((count, BATCH, SOURCE), pad)
    ids, labels = torch.full((count, BATCH, TARGET), pad), torch.full((count, BATCH, TARGET), IGNORE)
    for at in range(count):
        for row in range(BATCH):
            s, t = (1 + int(torch.randint(most - 1, (), generator=generator)) for most in (SOURCE, TARGET))
            if row == 0:
                s, t = SOURCE - 1, TARGET - 1  # no padding at all
            words = torch.randint(*words_in, (s + t,), generator=generator)
            source[at, row, :s], source[at, row, s] = words[:s], end
            ids[at, row, 0], ids[at, row, 1:t + 1] = start, words[s:]
            labels[at, row, :t], labels[at, row, t] = words[s:], end
    labels[torch.rand(labels.shape, generator=generator) < 0.1] = IGNORE
    return source, ids, labels


def plain_logits(name, params, source, ids):
    """The logits by the packed layout alone, without torch.nn.Transformer."""
    p, post = params, POST[name]

    def linear(path, x):
        return F.linear(x, p[path + ".weight"], p[path + ".bias"])

    def norm(path, x):
        return F.layer_norm(x, (WIDTH,), p[path + ".weight"], p[path + ".bias"], EPS)

    def attend(path, q, k, v, seen):  # [b, s, heads, e]; seen [b, 1 or s, t]
        scores = torch.einsum("bshe,bthe->bhst", q, k) / math.sqrt(HEAD_DIM)
        weights = scores.masked_fill(~seen[:, None], -math.inf).softmax(-1)
        return linear(path + ".proj", torch.einsum("bhst,bthe->bshe", weights, v).flatten(2))

    def heads(path, x, parts):
        return linear(path, x).view(*x.shape[:2], HEADS, parts, HEAD_DIM).unbind(3)

    def part(norm_path, x, f):
        return norm(norm_path, x + f(x)) if post else x + f(norm(norm_path, x))

    def layers(stack, x, seen, encoded=None, encoded_seen=None):
        for i in range(LAYERS):
            at = f"{stack}.layers.{i}."
            x = part(at + "norm1", x, lambda y: attend(at + "attn", *heads(at + "attn.qkv", y, 3), seen))
            if encoded is not None:
                x = part(at + "norm_cross", x, lambda y: attend(at + "cross", *heads(at + "cross.q", y, 1),
                                                                *heads(at + "cross.kv", encoded, 2), encoded_seen))
            act = F.relu if post else F.gelu
            x = part(at + "norm2", x, lambda y: linear(at + "mlp.down", act(linear(at + "mlp.up", y))))
        return norm(stack + ".norm", x)

    def embed(block, tokens):
        table = p["embed.token.weight" if post else block + ".token.weight"]
        if not post:
            return table[tokens] + p[block + ".position.weight"]
        return table[tokens] * WIDTH ** 0.5 + sines(tokens.shape[1])

    real, causal = source != PAD, torch.ones(TARGET, TARGET, dtype=torch.bool).tril()
    encoded = layers("encoder", embed("embed", source), real[:, None])
    out = layers("decoder", embed("embed_target", ids), causal & (ids != PAD)[:, None], encoded, real[:, None])
    return F.linear(out, p["head.weight" if post else "embed_target.token.weight"])


def check_layout(name, params, source, ids):
    """Our packed parameters mean what the README says: two ways to the same logits, and packing undoes unpacking."""
    model, exact = Model(name).double(), {path: value.double() for path, value in params.items()}
    load(model, exact)
    back = read(model)
    assert back.keys() == params.keys()
    for path, value in exact.items():
        assert torch.equal(back[path], value), path
    with torch.no_grad():
        difference = (model(source, ids) - plain_logits(name, exact, source, ids)).abs().max()
    assert difference < 1e-12, "the packed layout does not give the logits of torch.nn.Transformer"
