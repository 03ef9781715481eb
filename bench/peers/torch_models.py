"""The models that Tessera is measured beside, in PyTorch as a careful user would write them.

    gpt2-small  12 layers, 12 heads, width 768, vocabulary 50257, batch 4 x 256, dropout 0.1, biases, no clipping
    bert-base   12 layers, 12 heads, width 768, vocabulary 30522, batch 8 x 128, dropout 0.1, biases, no clipping
    nanogpt     4 layers, 4 heads, width 128, vocabulary 65, batch 12 x 64, no dropout, no biases, clipping at 1.0

GPT-2 and nanoGPT are pre-norm. BERT is post-norm and predicts 15 % of the tokens from logits at every position, and
whether its second half follows the first. All have a head that is tied to the token embedding, attention by
scaled_dot_product_attention, and fused AdamW.
"""
import contextlib
import dataclasses
import platform
import resource

import torch
import torch.nn as nn
import torch.nn.functional as F

DTYPES = ("f32", "bf16")


@dataclasses.dataclass
class Shape:
    family: str
    layers: int
    heads: int
    width: int
    vocab: int
    batch: int
    context: int
    dropout: float
    bias: bool
    rate: float
    betas: tuple
    decay: float
    clip: float  # 0: none
    # What torch_turn.py is told, and the others leave as it was published.
    ffn: int = 0  # hidden width of the feed-forward part; 0: 4 x width
    norm_eps: float | None = None  # None: 1e-12 of BERT, else 1e-5
    adam_eps: float = 1e-8
    tied: bool = True  # the head is the token embedding

    def eps(self):
        return self.norm_eps if self.norm_eps is not None else 1e-12 if self.family == "bert" else 1e-5


SHAPES = {
    "gpt2-small": Shape("gpt2", 12, 12, 768, 50257, 4, 256, 0.1, True, 1e-4, (0.9, 0.95), 0.1, 0.0),
    "bert-base": Shape("bert", 12, 12, 768, 30522, 8, 128, 0.1, True, 1e-4, (0.9, 0.999), 0.01, 0.0),
    "nanogpt": Shape("gpt2", 4, 4, 128, 65, 12, 64, 0.0, False, 1e-3, (0.9, 0.99), 0.1, 1.0),
}


class Block(nn.Module):
    """With `apart`, queries, keys and values come from a layer each, so that heads can be shared out to devices."""

    def __init__(self, shape, apart):
        super().__init__()
        width, bias, hidden = shape.width, shape.bias, shape.ffn or 4 * shape.width
        self.shape, self.bert = shape, shape.family == "bert"
        self.norm1, self.norm2 = (nn.LayerNorm(width, eps=shape.eps(), bias=bias) for _ in range(2))
        if apart:
            self.q, self.k, self.v = (nn.Linear(width, width, bias=bias) for _ in range(3))
        else:
            self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.proj = nn.Linear(width, width, bias=bias)
        self.up, self.down = nn.Linear(width, hidden, bias=bias), nn.Linear(hidden, width, bias=bias)

    def forward(self, x, seen=None):
        if self.bert:
            x = self.norm1(x + self.attend(x, seen))
            return self.norm2(x + self.feed(x))
        x = x + self.attend(self.norm1(x))
        return x + self.feed(self.norm2(x))

    def attend(self, x, seen=None):
        """`seen` [batch, 1, 1, seq], bool: which keys are tokens."""
        batch, seq, _ = x.shape
        rows = self.qkv(x).chunk(3, -1) if hasattr(self, "qkv") else (self.q(x), self.k(x), self.v(x))
        dim = self.shape.width // self.shape.heads
        q, k, v = (part.view(batch, seq, -1, dim).transpose(1, 2) for part in rows)  # each [batch, heads, seq, dim]
        y = F.scaled_dot_product_attention(q, k, v, seen, dropout_p=self.shape.dropout, is_causal=not self.bert)
        return F.dropout(self.proj(y.transpose(1, 2).reshape(batch, seq, -1)), self.shape.dropout)

    def feed(self, x):
        h = F.gelu(self.up(x), approximate="none" if self.bert else "tanh")
        return F.dropout(self.down(h), self.shape.dropout)


class Model(nn.Module):
    """From (ids, labels) [batch, context] to the mean loss. BERT also takes types of tokens and labels of pairs.

    It may also be told what is `seen`: 0 at padding. With `masked` [batch, k], labels are those of the k tokens of a
    sample that are there. `counts`: what the sums of the losses of tokens and of pairs are divided by; None: how many
    there are.
    """

    def __init__(self, shape, apart=False):
        super().__init__()
        self.shape, width = shape, shape.width
        self.token = nn.Embedding(shape.vocab, width)
        self.position = nn.Embedding(shape.context, width)
        self.blocks = nn.ModuleList(Block(shape, apart) for _ in range(shape.layers))
        if shape.family == "bert":
            self.segment, self.norm = nn.Embedding(2, width), nn.LayerNorm(width, eps=shape.eps())
            self.dense, self.dense_norm = nn.Linear(width, width), nn.LayerNorm(width, eps=shape.eps())
            self.head_bias = nn.Parameter(torch.zeros(shape.vocab))
            self.pooler, self.next = nn.Linear(width, width), nn.Linear(width, 2)
        else:
            self.norm = nn.LayerNorm(width, eps=shape.eps(), bias=shape.bias)
            if not shape.tied:
                self.head = nn.Linear(width, shape.vocab, bias=False)
        for parameter in self.parameters():
            if parameter.ndim >= 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids, labels, types=None, follows=None, seen=None, masked=None, counts=(None, None)):
        drop = self.shape.dropout
        x = self.token(ids) + self.position.weight[: ids.shape[1]]
        if self.shape.family == "bert":
            x = F.dropout(self.norm(x + self.segment(types)), drop)
            seen = None if seen is None else seen.bool()[:, None, None]
            for block in self.blocks:
                x = block(x, seen)
            pair = self.next(torch.tanh(self.pooler(x[:, 0])))
            rows = x if masked is None else x.gather(1, masked[:, :, None].expand(-1, -1, x.shape[2]))
            logits = F.linear(self.dense_norm(F.gelu(self.dense(rows))), self.token.weight, self.head_bias)
            return loss_of(logits, labels, counts[0]) + loss_of(pair, follows, counts[1])
        x = F.dropout(x, drop)
        for block in self.blocks:
            x = block(x)
        return loss_of(self.logits(self.norm(x)), labels, counts[0])

    def logits(self, x):
        return F.linear(x, self.token.weight) if self.shape.tied else self.head(x)


def loss_of(logits, labels, count=None):
    rows, labels = logits.flatten(0, -2).float(), labels.flatten()
    if count is None:
        return F.cross_entropy(rows, labels)
    return F.cross_entropy(rows, labels, reduction="sum") / count


def random_batch(shape):
    """What `Model` takes: random ids and labels; of BERT's labels 15 % count, as they are the masked tokens."""
    ids, labels = torch.randint(0, shape.vocab, (2, shape.batch, shape.context))
    if shape.family != "bert":
        return ids, labels
    labels[torch.rand(labels.shape) > 0.15] = -100
    types = (torch.arange(shape.context) >= shape.context // 2).long().expand(shape.batch, -1)
    return ids, labels, types, torch.randint(0, 2, (shape.batch,))


def precision(dtype):
    """What forward runs in: autocast computes products in bf16, and norms, softmax and losses in f32."""
    return torch.autocast("cpu", dtype=torch.bfloat16) if dtype == "bf16" else contextlib.nullcontext()


def make_optimizer(model, shape):
    """Fused AdamW wants tensors of different classes (of one device, of a mesh) in different groups."""
    groups = {}
    for parameter in model.parameters():
        groups.setdefault((type(parameter.data), parameter.ndim >= 2), []).append(parameter)
    return torch.optim.AdamW([{"params": some, "weight_decay": shape.decay if matrix else 0.0}
                              for (_, matrix), some in groups.items()], lr=shape.rate, betas=shape.betas,
                             eps=shape.adam_eps, fused=True)


def peak_rss_bytes():
    """Of this program; getrusage counts also what ran in this process before exec."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        peaks = [line.split()[1] for line in file if line.startswith("VmHWM:")]
    return int((peaks or [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss])[0]) * 1024  # Linux counts KiB


def about():
    return {"peer": "torch", "torch": torch.__version__, "python": platform.python_version()}
