"""Layers and losses: functions of values that declare parameters, by the names that they have in
C++ (src/tessera/nn).

They are called inside of a function that tessera.compile traces. A layer's parameters are below its
name and the scopes that are open: linear(x, "up", 64) has up.weight [64, in] and up.bias [64].
"""

from __future__ import annotations

import dataclasses
from typing import List, NamedTuple, Optional, Sequence, Union

from . import ops
from ._errors import UsageError
from ._graph import Value, call, one


@dataclasses.dataclass(frozen=True)
class Init:
    """How a weight begins. Made by the functions below."""

    kind: str
    value: float
    fan: Optional[str] = None
    parts: Optional[int] = None


def constant_init(value: float) -> Init:
    """All one number."""
    return Init("constant", float(value))


def zeros_init() -> Init:
    """All 0."""
    return constant_init(0)


def ones_init() -> Init:
    """All 1."""
    return constant_init(1)


def normal_init(deviation: float = 0.02) -> Init:
    """Normal, of mean 0."""
    return Init("normal", deviation)


def truncated_normal_init(deviation: float = 0.02) -> Init:
    """Normal, drawn again beyond two standard deviations."""
    return Init("truncated_normal", deviation)


def uniform_init(bound: float) -> Init:
    """Uniform from -bound to bound."""
    return Init("uniform", bound)


_RELU_GAIN = 1.4142135623730951


def he_normal_init(fan: str = "in", gain: float = _RELU_GAIN) -> Init:
    """Normal of standard deviation gain / sqrt(fan), fan "in" or "out". He et al. 2015."""
    return Init("he_normal", gain, fan)


def he_uniform_init(fan: str = "in", gain: float = _RELU_GAIN) -> Init:
    """Uniform with the standard deviation of he_normal_init."""
    return Init("he_uniform", gain, fan)


def xavier_normal_init(gain: float = 1.0) -> Init:
    """Normal of standard deviation gain * sqrt(2 / (in + out)). Glorot and Bengio 2010."""
    return Init("xavier_normal", gain)


def xavier_uniform_init(gain: float = 1.0) -> Init:
    """Uniform with the standard deviation of xavier_normal_init."""
    return Init("xavier_uniform", gain)


def residual_init(init: Init, parts: int) -> Init:
    """`init` times 1 / sqrt(parts): of weights whose results are added to the residual stream."""
    return dataclasses.replace(init, parts=parts)


_NORMAL = Init("normal", 0.02)
_ZEROS = Init("constant", 0.0)


def linear(
    x: Union[Value, Sequence[Value]],
    name: str,
    out: int,
    bias: bool = True,
    init: Init = _NORMAL,
    bias_init: Init = _ZEROS,
) -> Union[Value, List[Value]]:
    """x W^T + b: x [..., in] -> [..., out]; of a list of x, a list, with one weight.
    Parameters: weight [out, in], bias [out]."""
    made = call("linear", x=x, name=name, out=out, bias=bias, init=init, bias_init=bias_init)
    return made[0] if isinstance(x, Value) else made


class Embedding(NamedTuple):
    """What embedding() returns: a row for each id, and the parameter."""

    rows: Value
    table: Value


def embedding(ids: Value, name: str, rows: int, width: int, init: Init = _NORMAL) -> Embedding:
    """ids [...] (i32) -> rows [..., width] of a table, the parameter weight [rows, width]. A head is
    tied to it by ops.matmul(x, table, trans_b=True)."""
    return Embedding(*call("embedding", ids=ids, name=name, rows=rows, width=width, init=init))


def learned_positions(
    x: Value,
    name: str,
    context: int,
    init: Init = _NORMAL,
    first: Optional[Value] = None,
    at: Optional[Value] = None,
    unread: int = 0,
) -> Value:
    """Adds a learned vector for each position to x [b, s, d]. Parameter: weight [context, d].

    first   position of the first, an i32 without dims; None: 0
    at      positions themselves, [b, s] of i32
    unread  so many rows more, before that of position 0, which nothing reads
    """
    return one(
        "learned_positions",
        x=x,
        name=name,
        context=context,
        init=init,
        first=first,
        at=at,
        unread=unread,
    )


def sinusoidal_positions(x: Value, first: Optional[Value] = None, base: float = 10000.0) -> Value:
    """Adds sines and cosines of positions to x [b, s, d], d even. Vaswani et al. 2017."""
    return one("sinusoidal_positions", x=x, first=first, base=base)


def relative_bias(
    name: str,
    heads: int,
    queries: int,
    keys: int,
    distances: str = "both",
    init: Init = _NORMAL,
    first: Optional[Value] = None,
    kinds: int = 32,
    far: int = 128,
) -> Value:
    """A number for each head and kind of distance: [heads, queries, keys], for Visible.bias. T5's.

    distances  "both", or "before": keys behind the query count as at distance 0
    kinds      how many kinds there are; from the distance `far` on all are one
    Parameter: weight [kinds, heads]. Raffel et al. 2019.
    """
    return one(
        "relative_bias",
        name=name,
        heads=heads,
        queries=queries,
        keys=keys,
        distances=distances,
        init=init,
        first=first,
        kinds=kinds,
        far=far,
    )


def log_distance_kinds(queries: int, keys: int, kinds: int, far: int) -> Value:
    """The kind of each distance of a query from a key: [queries, keys] of i32. He et al. 2021."""
    return one("log_distance_kinds", queries=queries, keys=keys, kinds=kinds, far=far)


def alibi_slopes(groups: int, per_group: int) -> Value:
    """How much the scores of each head fall with distance: [groups, per_group]. Press et al. 2022."""
    return one("alibi_slopes", groups=groups, per_group=per_group)


def layer_norm_layer(x: Value, name: str, eps: float = 1e-5, bias: bool = True) -> Value:
    """Layer norm over the last dim. Parameters: weight [d] of ones, bias [d] of zeros."""
    return one("layer_norm_layer", x=x, name=name, eps=eps, bias=bias)


def rms_norm_layer(x: Value, name: str, eps: float = 1e-5, plus_one: bool = False) -> Value:
    """RMS norm over the last dim. Parameter: weight [d] of ones; plus_one: zeros, to which 1 is
    added."""
    return one("rms_norm_layer", x=x, name=name, eps=eps, plus_one=plus_one)


def dropout_layer(x: Value, p: float, step: Optional[Value], name: str) -> Value:
    """Dropout; x itself where p is 0 or step is None, as in evaluation."""
    return one("dropout_layer", x=x, p=p, step=step, name=name)


@dataclasses.dataclass(frozen=True)
class RotaryScaling:
    """How rates of rotary positions are stretched. Each kind reads the numbers named with it, which
    are those of rope_scaling in transformers' config.json.

    kind             "default", "linear", "dynamic", "llama3", "yarn" or "longrope"
    factor           of all but default: by how much samples are longer
    original_length  tokens in pretraining: dynamic, llama3, yarn, longrope
    low_freq_factor, high_freq_factor                        llama3
    beta_fast, beta_slow, truncate, mscale, mscale_all_dim   yarn
    attention_factor                                         yarn, longrope
    short_factor, long_factor                                longrope: a number for each pair
    """

    kind: str = "default"
    factor: float = 1.0
    original_length: int = 0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    mscale: float = 0.0
    mscale_all_dim: float = 0.0
    attention_factor: Optional[float] = None
    short_factor: Sequence[float] = ()
    long_factor: Sequence[float] = ()


@dataclasses.dataclass(frozen=True)
class Rotary:
    """Rotary positions: the first share * width channels of a head turn. A TransformerLayer has them
    with rotary=True."""

    base: float = 10000.0
    share: float = 1.0
    scaling: Optional[RotaryScaling] = None


@dataclasses.dataclass(frozen=True)
class TransformerLayer:
    """One layer; its width is that of its input.

    heads            of attention; kv_heads: of keys and values, 0: as many
    head_width       0: width / heads
    attention_scale  of scores; 0: 1 / sqrt(width of a head)
    attention_cap    above 0: scores become cap * tanh(score / cap)
    window           self-attention sees keys less than so far away; 0: all
    ffn_width        hidden width of the feed-forward part; 0: 4 x width
    feed_forward     "relu", "silu", "gelu_erf", "gelu_tanh", "swiglu", "geglu" or "geglu_erf"
    norm             "layer", "rms" or "rms_plus_one", with norm_eps
    post_norm        norm(x + f(x)); else x + f(norm(x))
    bare             without norm1: attention reads x itself
    norm_out         x + norm(f(norm(x)))
    layer_scale      above 0: what each part adds times a weight for each channel, so much at first
    parallel         x + attention(norm(x)) + feed_forward(norm(x)); one_norm: both have one norm
    bias             of linear layers and layer norms; where it is False, qkv_bias, proj_bias,
                     ffn_bias and norm_bias give these one
    head_norm        self-attention norms each head of queries and keys
    rotary           rotary positions in self-attention; rope says how, if not as Rotary()
    attention_dropout, hidden_dropout, activation_dropout
                     of probabilities, after each part, and before feed-forward's down; there is
                     none without run=Pass(step=tessera.samples_seen())
    init             of weights; attention_init: of queries, keys and values; residual_init: of what
                     is added to the residual stream
    """

    heads: int = 8
    kv_heads: int = 0
    head_width: int = 0
    attention_scale: float = 0.0
    attention_cap: float = 0.0
    window: int = 0
    ffn_width: int = 0
    feed_forward: str = "gelu_tanh"
    norm: str = "layer"
    norm_eps: float = 1e-5
    post_norm: bool = False
    bare: bool = False
    norm_out: bool = False
    layer_scale: float = 0.0
    parallel: bool = False
    one_norm: bool = False
    bias: bool = True
    qkv_bias: bool = False
    proj_bias: bool = False
    ffn_bias: bool = False
    norm_bias: bool = False
    head_norm: bool = False
    rotary: bool = False
    rope: Optional[Rotary] = None
    attention_dropout: float = 0.0
    hidden_dropout: float = 0.0
    activation_dropout: float = 0.0
    init: Init = _NORMAL
    attention_init: Optional[Init] = None
    residual_init: Init = _NORMAL

    def __post_init__(self) -> None:
        if self.rope is not None and not self.rotary:
            raise UsageError(
                f"TransformerLayer: rope is {self.rope}, and rotary is False; give rotary=True"
            )


@dataclasses.dataclass(frozen=True, eq=False)
class DistanceRows:
    """DeBERTa's positions: rows [m, d] of a table, and kinds [s, t] of distances (i32)."""

    rows: Value
    kinds: Value


@dataclasses.dataclass(frozen=True, eq=False)
class Visible:
    """Which keys a query sees.

    causal  those at its own position and before
    mask    bool [b, t] or [b, s, t]: true where a key may be seen
    bias    added to scores: [heads, s, t], as relative_bias makes it
    slopes  of heads [g, r], as alibi_slopes makes them
    """

    causal: bool = False
    mask: Optional[Value] = None
    bias: Optional[Value] = None
    slopes: Optional[Value] = None
    distances: Optional[DistanceRows] = None


@dataclasses.dataclass(frozen=True, eq=False)
class Pass:
    """How a model is run.

    step        makes dropout of different steps differ: tessera.samples_seen(); None: no dropout
    positions   of tokens, [b, s] of i32, where they do not count from 0
    first_seen  of causal self-attention, the first token that each one sees, [b, s] of i32
    mask        [b, s] of i32, 0 at padding, which nothing sees
    position, room, context, wanted  of caches, while text is written
    """

    step: Optional[Value] = None
    position: Optional[Value] = None
    room: int = 0
    context: int = 0
    positions: Optional[Value] = None
    first_seen: Optional[Value] = None
    mask: Optional[Value] = None
    wanted: Optional[Value] = None


@dataclasses.dataclass(frozen=True, eq=False)
class Encoded:
    """What a decoder reads beside its own sequence: an encoder's result [b, t, d].

    kept  above 0: it is read from the caches that keep_encoded wrote, of so many tokens
    """

    values: Optional[Value] = None
    visible: Visible = Visible()
    kept: int = 0


@dataclasses.dataclass(frozen=True)
class TransformerConfig:
    """Stacks of layers: decoder_layer is that of the decoder, where it differs from layer.

    last_norm     a norm after each stack
    stages        of a pipeline, over which layers are divided evenly; 0: by cost
    layer_stages  the chunk of each layer, those of the encoder first, in place of stages
    """

    layer: TransformerLayer = TransformerLayer()
    decoder_layer: Optional[TransformerLayer] = None
    encoder_layers: int = 6
    decoder_layers: int = 6
    last_norm: bool = True
    stages: int = 0
    layer_stages: Sequence[int] = ()


_ALL = Visible()
_PLAIN = Pass()


def norm(x: Value, name: str, layer: TransformerLayer) -> Value:
    """Norm by the layer's kind."""
    return one("norm", x=x, name=name, layer=layer)


def attention_mask(input_mask: Value) -> Value:
    """[b, s], not 0 at tokens -> [b, s, s] of bool: tokens see tokens at their own position and
    before. MindSpore's AttentionMask."""
    return one("attention_mask", input_mask=input_mask)


def self_attention(
    x: Value, layer: TransformerLayer, visible: Visible = _ALL, run: Pass = _PLAIN
) -> Value:
    """x [b, s, d] -> [b, s, d]. Parameters: qkv.weight, whose rows hold for each key-value head its
    query heads, its key and its value; proj.weight; their biases."""
    return one("self_attention", x=x, layer=layer, visible=visible, run=run)


def query_attention(
    queries: Value, x: Value, layer: TransformerLayer, visible: Visible = _ALL, run: Pass = _PLAIN
) -> Value:
    """Causal attention to x whose queries are products of other rows [b, s, d]."""
    return one("query_attention", queries=queries, x=x, layer=layer, visible=visible, run=run)


def cross_attention(
    x: Value, encoded: Encoded, layer: TransformerLayer, run: Pass = _PLAIN
) -> Value:
    """Attention of x [b, s, d] to what an encoder made. Parameters: q, kv, proj."""
    return one("cross_attention", x=x, encoded=encoded, layer=layer, run=run)


def keep_encoded(encoded: Encoded, width: int, layer: TransformerLayer) -> None:
    """Writes the caches from which cross attention of that width reads."""
    call("keep_encoded", encoded=encoded, width=width, layer=layer)


def feed_forward(x: Value, layer: TransformerLayer, run: Pass = _PLAIN) -> Value:
    """down(act(up(x))), or with a gate. Parameters: up, down, gate."""
    return one("feed_forward", x=x, layer=layer, run=run)


def encoder_layer(
    x: Value, layer: TransformerLayer, visible: Visible = _ALL, run: Pass = _PLAIN
) -> Value:
    """A layer of an encoder, or of a decoder alone: x [b, s, d] -> [b, s, d]. Blocks: norm1, attn,
    norm2, mlp. It wants a scope of its own, as "layers.0"."""
    return one("encoder_layer", x=x, layer=layer, visible=visible, run=run)


def query_layer(
    queries: Value, x: Value, layer: TransformerLayer, visible: Visible = _ALL, run: Pass = _PLAIN
) -> Value:
    """A layer whose attention is query_attention. Zeng et al. 2021, PanGu-alpha."""
    return one("query_layer", queries=queries, x=x, layer=layer, visible=visible, run=run)


def decoder_layer(
    x: Value,
    encoded: Encoded,
    layer: TransformerLayer,
    visible: Visible = _ALL,
    run: Pass = _PLAIN,
) -> Value:
    """A layer that also reads an encoder's result. Blocks: norm1, attn, norm_cross, cross, norm2,
    mlp."""
    return one("decoder_layer", x=x, encoded=encoded, layer=layer, visible=visible, run=run)


def transformer_encoder(
    x: Value, config: TransformerConfig, visible: Visible = _ALL, run: Pass = _PLAIN
) -> Value:
    """config.encoder_layers layers and a norm: x [b, s, d] -> [b, s, d]. Blocks:
    encoder.layers.N, encoder.norm."""
    return one("transformer_encoder", x=x, config=config, visible=visible, run=run)


def transformer_decoder(
    x: Value,
    encoded: Encoded,
    config: TransformerConfig,
    visible: Visible = _ALL,
    run: Pass = _PLAIN,
) -> Value:
    """config.decoder_layers layers that read an encoder's result, and a norm. Blocks:
    decoder.layers.N, decoder.norm."""
    return one(
        "transformer_decoder", x=x, encoded=encoded, config=config, visible=visible, run=run
    )


def keep_for_decoder(encoded: Encoded, width: int, config: TransformerConfig) -> None:
    """Writes the caches from which a decoder of that width reads an encoder's result."""
    call("keep_for_decoder", encoded=encoded, width=width, config=config)


def transformer(
    source: Value,
    target: Value,
    config: TransformerConfig,
    of_source: Visible = _ALL,
    of_target: Visible = _ALL,
    run: Pass = _PLAIN,
) -> Value:
    """The decoder's result for target [b, t, d], which reads what the encoder makes of source
    [b, s, d]. Vaswani et al. 2017."""
    return one(
        "transformer",
        source=source,
        target=target,
        config=config,
        of_source=of_source,
        of_target=of_target,
        run=run,
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Mean:
    """A mean over what counts in a whole step, however it is split."""

    sum: Value
    count: Value

    def value(self) -> Value:
        """sum / count; 0 where nothing counts."""
        return mean_value(self.sum, self.count)


def mean_value(sum: Value, count: Value) -> Value:
    """As Mean.value."""
    return one("mean_value", sum=sum, count=count)


def masked_mean(losses: Value, mask: Value) -> Mean:
    """sum(losses * mask) / sum(mask), mask of f32."""
    return Mean(*call("masked_mean", losses=losses, mask=mask))


def mean_of(losses: Value) -> Mean:
    """The mean of all elements."""
    return Mean(*call("mean_of", losses=losses))


def counted_labels(labels: Value) -> Value:
    """1 where a label is not -100, else 0: a mask of f32."""
    return one("counted_labels", labels=labels)


def squared_error(x: Value, y: Value) -> Value:
    """(x - y)^2 of each element."""
    return one("squared_error", x=x, y=y)


def huber(x: Value, y: Value, delta: float = 1.0) -> Value:
    """d^2 / 2 up to delta, else delta (d - delta / 2), of d = |x - y|."""
    return one("huber", x=x, y=y, delta=delta)


def smooth_l1(x: Value, y: Value, beta: float = 1.0) -> Value:
    """huber(x, y, beta) / beta; |x - y| where beta is 0."""
    return one("smooth_l1", x=x, y=y, beta=beta)


def binary_cross_entropy(logits: Value, labels: Value) -> Value:
    """Of each logit, with labels from 0 to 1 of its shape, both f32."""
    return one("binary_cross_entropy", logits=logits, labels=labels)


def smoothed_cross_entropy(logits: Value, labels: Value, smoothing: float) -> Value:
    """Cross-entropies of which the share `smoothing` is spread over all classes: logits [..., v] f32,
    labels [...] i32, 0 at -100."""
    return one("smoothed_cross_entropy", logits=logits, labels=labels, smoothing=smoothing)


def focal(logits: Value, labels: Value, gamma: float = 2.0) -> Value:
    """(1 - p)^gamma times the cross-entropy, p of the label; shapes as above."""
    return one("focal", logits=logits, labels=labels, gamma=gamma)


def mse_loss(x: Value, y: Value) -> Value:
    """mean_of(squared_error(x, y)).value(), as torch's."""
    return mean_of(squared_error(x, y)).value()


def huber_loss(x: Value, y: Value, delta: float = 1.0) -> Value:
    """The same of huber."""
    return mean_of(huber(x, y, delta)).value()


def smooth_l1_loss(x: Value, y: Value, beta: float = 1.0) -> Value:
    """The same of smooth_l1."""
    return mean_of(smooth_l1(x, y, beta)).value()


def binary_cross_entropy_with_logits(logits: Value, labels: Value) -> Value:
    """The same of binary_cross_entropy."""
    return mean_of(binary_cross_entropy(logits, labels)).value()


def cross_entropy_mean(logits: Value, labels: Value, mask: Optional[Value] = None) -> Mean:
    """Mean cross-entropy: logits [..., v] f32, labels [...] i32, -100 where none counts; with a
    mask [...], sum(loss * mask) / sum(mask). Its value() is a loss."""
    return Mean(*call("cross_entropy_mean", logits=logits, labels=labels, mask=mask))


def cross_entropy(
    logits: Value, labels: Value, mask: Optional[Value] = None, label_smoothing: float = 0.0
) -> Value:
    """cross_entropy_mean(logits, labels, mask).value(), or of smoothed_cross_entropy."""
    if label_smoothing == 0:
        return cross_entropy_mean(logits, labels, mask).value()
    counted = counted_labels(labels)
    losses = smoothed_cross_entropy(logits, labels, label_smoothing)
    return masked_mean(losses, counted if mask is None else ops.cast(mask, "f32") * counted).value()


def accuracy(logits: Value, labels: Value) -> Mean:
    """The share of rows whose largest logit is that of the label."""
    return Mean(*call("accuracy", logits=logits, labels=labels))


relu, silu, gelu, softmax = ops.relu, ops.silu, ops.gelu, ops.softmax
