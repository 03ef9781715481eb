"""Megatron-LM's GPT and BERT, written from their formulas, as classes that families.py takes beside transformers'.

Parameters have Megatron-LM's names and layouts: those of its first versions, or of Megatron-core.
"""
import typing

import torch
import torch.nn.functional as F
import transformers

# By ours, the first versions' and Megatron-core's, where Transformer Engine's layers have the norm before them within.
LAYER = {
    "norm1": ("input_layernorm.", "self_attention.linear_qkv.layer_norm_"),
    "qkv": ("self_attention.query_key_value.", "self_attention.linear_qkv."),
    "proj": ("self_attention.dense.", "self_attention.linear_proj."),
    "norm2": ("post_attention_layernorm.", "mlp.linear_fc1.layer_norm_"),
    "up": ("mlp.dense_h_to_4h.", "mlp.linear_fc1."),
    "down": ("mlp.dense_4h_to_h.", "mlp.linear_fc2."),
}

# Where its arguments lack these.
STANDARD = {"hidden_dropout": 0.1, "attention_dropout": 0.1, "init_method_std": 0.02, "layernorm_epsilon": 1e-5,
            "bias_gelu_fusion": True}


class Config(transformers.PreTrainedConfig):
    attribute_map = {"vocab_size": "padded_vocab_size"}
    use_legacy_models: bool = True
    checkpoint_version: float = 3.0
    num_layers: int = 2
    hidden_size: int = 12
    ffn_hidden_size: int = 18
    num_attention_heads: int = 2
    kv_channels: int | None = None
    num_query_groups: int | None = None
    group_query_attention: bool = False
    max_position_embeddings: int = 17
    padded_vocab_size: int = 29
    layernorm_epsilon: float = 1e-5
    init_method_std: float = 0.02
    hidden_dropout: float = 0.0
    attention_dropout: float = 0.0
    untie_embeddings_and_output_weights: bool = False
    bias_gelu_fusion: bool = True


class GPTConfig(Config):
    model_type = "megatron-lm-gpt"


class LlamaConfig(Config):
    """Of a GPT with these arguments of Megatron-core."""
    model_type = "megatron-lm-llama"
    use_legacy_models: bool = False
    normalization: str = "RMSNorm"
    position_embedding_type: str = "rope"
    rotary_base: float = 10000.0
    swiglu: bool = True
    add_bias_linear: bool = False


class BertConfig(Config):
    model_type = "megatron-lm-bert"
    bert_binary_head: bool = True
    type_vocab_size: typing.ClassVar[int] = 2


class Model(transformers.PreTrainedModel):
    """Tables, layers and the last norm."""
    stack = "encoder"

    def __init__(self, config):
        super().__init__(config)
        self.core = not config.use_legacy_models
        self.within = "" if self.core else "language_model."
        self.block = self.within + (self.stack if self.core else "encoder")
        d, hidden = config.hidden_size, config.ffn_hidden_size
        self.rotary = isinstance(config, LlamaConfig)
        self.width = config.kv_channels or d // config.num_attention_heads
        inner = config.num_attention_heads * self.width
        self.table("word", config.padded_vocab_size)
        if not self.rotary:
            self.table("position", config.max_position_embeddings)
        for i in range(config.num_layers):
            for part, shape in {"norm1": [d], "qkv": [inner + 2 * self.groups() * self.width, d], "proj": [d, inner],
                                "norm2": [d], "up": [2 * hidden if self.rotary else hidden, d],
                                "down": [d, hidden]}.items():
                self.affine(self.of_layer(i, part), shape)
        self.affine(f"{self.block}.final_layernorm.", [d])

    def groups(self):
        config = self.config
        return config.num_query_groups if config.group_query_attention else config.num_attention_heads

    def of_layer(self, i, part):
        return f"{self.block}.layers.{i}.{LAYER[part][self.core]}"

    def put(self, name, *shape):
        """A parameter with dots in its name."""
        *path, last = name.split(".")
        module = self
        for each in path:
            if not hasattr(module, each):
                module.add_module(each, torch.nn.Module())
            module = getattr(module, each)
        module.register_parameter(last, torch.nn.Parameter(torch.zeros(*shape)))

    def table(self, kind, rows):
        self.put(f"{self.within}embedding.{kind}_embeddings.weight", rows, self.config.hidden_size)

    def affine(self, name, shape):
        self.put(name + "weight", *shape)
        if not self.rotary:
            self.put(name + "bias", shape[0])

    def rows_of(self, kind, ids):
        return F.embedding(ids.long(), self.get_parameter(f"{self.within}embedding.{kind}_embeddings.weight"))

    def both(self, name):
        return self.get_parameter(name + "weight"), None if self.rotary else self.get_parameter(name + "bias")

    def normed(self, x, name):
        if self.rotary:
            return x * (x.pow(2).mean(-1, keepdim=True) + self.config.layernorm_epsilon).rsqrt() * self.both(name)[0]
        return F.layer_norm(x, x.shape[-1:], *self.both(name), self.config.layernorm_epsilon)

    def attended(self, x, i, seen):
        """Rows of the product are, for each group, its queries, its key and its value."""
        b, s, _ = x.shape
        heads, groups = self.config.num_attention_heads, self.groups()
        each = F.linear(x, *self.both(self.of_layer(i, "qkv"))).view(b, s, groups, heads // groups + 2, self.width)
        q, k, v = each[..., :-2, :], each[..., -2, :], each[..., -1, :]
        if self.rotary:
            q, k = self.turned(q), self.turned(k)
        scores = torch.einsum("bsgre,btge->bgrst", q, k) / self.width ** 0.5
        shares = scores.masked_fill(~seen[:, None, None], -torch.inf).softmax(-1)
        out = torch.einsum("bgrst,btge->bsgre", shares, v).reshape(b, s, -1)
        return F.linear(out, *self.both(self.of_layer(i, "proj")))

    def turned(self, x):
        """Channel i of a head with channel i + half of it, by position / base^(i / half)."""
        half = self.width // 2
        rates = self.config.rotary_base ** -(torch.arange(half, dtype=torch.float64) / half)
        angles = torch.outer(torch.arange(x.shape[1], dtype=torch.float64), rates)
        angles = angles.to(x.dtype).view(1, x.shape[1], *[1] * (x.dim() - 3), half)
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)

    def hidden(self, x, part, form):
        up = F.linear(x, *self.both(part("up")))
        if self.rotary:
            gate, up = up.chunk(2, -1)
            return F.silu(gate) * up
        return F.gelu(up, approximate=form)

    def encoded(self, ids, seen, types=None):
        x = self.rows_of("word", ids)
        if not self.rotary:
            x = x + self.rows_of("position", torch.arange(ids.shape[1]))
        if types is not None:
            x = x + self.rows_of("tokentype", types)
        form = "tanh" if self.config.bias_gelu_fusion else "none"
        for i in range(self.config.num_layers):
            part = lambda name: self.of_layer(i, name)
            x = x + self.attended(self.normed(x, part("norm1")), i, seen)
            hidden = self.hidden(self.normed(x, part("norm2")), part, form)
            x = x + F.linear(hidden, *self.both(part("down")))
        return self.normed(x, f"{self.block}.final_layernorm.")


class GPTModel(Model):
    config_class = GPTConfig
    stack = "decoder"

    def __init__(self, config):
        super().__init__(config)
        self.head = f"{self.within}embedding.word_embeddings.weight"
        if config.untie_embeddings_and_output_weights:
            self.head = f"{self.within}output_layer.weight"
            self.put(self.head, config.padded_vocab_size, config.hidden_size)
        self.post_init()

    def forward(self, ids):
        s = ids.shape[1]
        x = self.encoded(ids, torch.ones(s, s, dtype=bool).tril()[None])
        return transformers.modeling_outputs.CausalLMOutput(logits=F.linear(x, self.get_parameter(self.head)))


class BertModel(Model):
    config_class = BertConfig

    def __init__(self, config):
        super().__init__(config)
        d = config.hidden_size
        self.head_norm = "lm_head.layer_norm." if self.core else "lm_head.layernorm."
        self.head_bias = "output_layer.bias" if self.core else "lm_head.bias"
        self.table("tokentype", 2)
        self.affine(self.within + "pooler.dense.", [d, d])
        self.affine("lm_head.dense.", [d, d])
        self.affine(self.head_norm, [d])
        self.put(self.head_bias, config.padded_vocab_size)
        self.affine("binary_head.", [2, d])
        self.post_init()

    def forward(self, ids, attention_mask, token_type_ids, position_ids=None):
        x = self.encoded(ids, (attention_mask > 0)[:, None], token_type_ids)
        rows = self.normed(F.gelu(F.linear(x, *self.both("lm_head.dense."))), self.head_norm)
        table = self.get_parameter(f"{self.within}embedding.word_embeddings.weight")
        pooled = torch.tanh(F.linear(x[:, 0], *self.both(self.within + "pooler.dense.")))
        return {"prediction_logits": F.linear(rows, table, self.get_parameter(self.head_bias)),
                "seq_relationship_logits": F.linear(pooled, *self.both("binary_head."))}


for config in (GPTConfig, LlamaConfig, BertConfig):
    transformers.AutoConfig.register(config.model_type, config)
