"""The models of torch_turn.py, in PyTorch as a careful user would write them.

GPT-2 is pre-norm. BERT is post-norm and predicts masked tokens, and whether its second half follows the first. Attention
is by scaled_dot_product_attention, AdamW fused.
"""
import contextlib
import dataclasses

import torch
import torch.nn as nn
import torch.nn.functional as F


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
    ffn: int  # hidden width of the feed-forward part
    norm_eps: float
    adam_eps: float
    tied: bool  # the head is the token embedding


class Block(nn.Module):
    """With `apart`, queries, keys and values come from a layer each, so that heads can be shared out to devices."""

    def __init__(self, shape, apart):
        super().__init__()
        width, bias, hidden = shape.width, shape.bias, shape.ffn
        self.shape, self.bert = shape, shape.family == "bert"
        self.norm1, self.norm2 = (nn.LayerNorm(width, eps=shape.norm_eps, bias=bias) for _ in range(2))
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
            self.segment, self.norm = nn.Embedding(2, width), nn.LayerNorm(width, eps=shape.norm_eps)
            self.dense, self.dense_norm = nn.Linear(width, width), nn.LayerNorm(width, eps=shape.norm_eps)
            self.head_bias = nn.Parameter(torch.zeros(shape.vocab))
            self.pooler, self.next = nn.Linear(width, width), nn.Linear(width, 2)
        else:
            self.norm = nn.LayerNorm(width, eps=shape.norm_eps, bias=shape.bias)
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


def precision(dtype, device="cpu"):
    """What forward runs in: autocast computes products in bf16, and norms, softmax and losses in f32."""
    return torch.autocast(device, dtype=torch.bfloat16) if dtype == "bf16" else contextlib.nullcontext()


def make_optimizer(model, shape):
    """Fused AdamW wants tensors of different classes (of one device, of a mesh) in different groups."""
    groups = {}
    for parameter in model.parameters():
        groups.setdefault((type(parameter.data), parameter.ndim >= 2), []).append(parameter)
    return torch.optim.AdamW([{"params": some, "weight_decay": shape.decay if matrix else 0.0}
                              for (_, matrix), some in groups.items()], lr=shape.rate, betas=shape.betas,
                             eps=shape.adam_eps, fused=True)
