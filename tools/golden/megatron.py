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
        rows = (config.num_attention_heads + 2 * self.groups()) * (d // config.num_attention_heads)
        self.table("word", config.padded_vocab_size)
        self.table("position", config.max_position_embeddings)
        for i in range(config.num_layers):
            for part, shape in {"norm1": [d], "qkv": [rows, d], "proj": [d, d], "norm2": [d], "up": [hidden, d],
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
        self.put(name + "bias", shape[0])

    def rows_of(self, kind, ids):
        return F.embedding(ids.long(), self.get_parameter(f"{self.within}embedding.{kind}_embeddings.weight"))

    def both(self, name):
        return self.get_parameter(name + "weight"), self.get_parameter(name + "bias")

    def normed(self, x, name):
        return F.layer_norm(x, x.shape[-1:], *self.both(name), self.config.layernorm_epsilon)

    def attended(self, x, i, seen):
        """Rows of the product are, for each group, its queries, its key and its value."""
        b, s, d = x.shape
        heads, groups = self.config.num_attention_heads, self.groups()
        each = F.linear(x, *self.both(self.of_layer(i, "qkv"))).view(b, s, groups, heads // groups + 2, d // heads)
        q, k, v = each[..., :-2, :], each[..., -2, :], each[..., -1, :]
        scores = torch.einsum("bsgre,btge->bgrst", q, k) / (d // heads) ** 0.5
        shares = scores.masked_fill(~seen[:, None, None], -torch.inf).softmax(-1)
        out = torch.einsum("bgrst,btge->bsgre", shares, v).reshape(b, s, d)
        return F.linear(out, *self.both(self.of_layer(i, "proj")))

    def encoded(self, ids, seen, types=None):
        x = self.rows_of("word", ids) + self.rows_of("position", torch.arange(ids.shape[1]))
        if types is not None:
            x = x + self.rows_of("tokentype", types)
        form = "tanh" if self.config.bias_gelu_fusion else "none"
        for i in range(self.config.num_layers):
            part = lambda name: self.of_layer(i, name)
            x = x + self.attended(self.normed(x, part("norm1")), i, seen)
            hidden = F.gelu(F.linear(self.normed(x, part("norm2")), *self.both(part("up"))), approximate=form)
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


for config in (GPTConfig, BertConfig):
    transformers.AutoConfig.register(config.model_type, config)
