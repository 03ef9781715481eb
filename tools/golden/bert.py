"""Tiny BERTs in Tessera's parameter names and packing, and the same in Hugging Face transformers: BERT, RoBERTa, ALBERT;
each with the heads of its pretraining, and with a classifier of samples.

`golden` is everything in a file of theirs. The weights' names are linked to transformers' as in models.py.
"""
import math

import torch
import torch.nn.functional as F
from transformers import (AlbertConfig, AlbertForPreTraining, AlbertForSequenceClassification, BertConfig,
                          BertForPreTraining, BertForSequenceClassification, RobertaConfig, RobertaForMaskedLM,
                          RobertaForSequenceClassification)

import models
from models import BATCH, CONTEXT, HEAD_DIM, HEADS, LAYERS, VOCAB, WIDTH

STEPS, IGNORE, FFN, CLASSES = 10, -100, 128, 3
USED = (16, 11, 16, 7)  # positions of each sample that are not padding
COMMON = dict(vocab_size=VOCAB, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
              intermediate_size=FFN, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, tie_word_embeddings=True)


class Bert:
    name, seed, model_class, second = "bert", 14, BertForPreTraining, "nsp"
    eps, gelu, embedding, types, unread, pad = 1e-12, "none", WIDTH, 2, 0, 0
    sets = LAYERS  # of layers' weights
    layer, qkv = "encoder.layer.{}.", "attention.self."
    in_layer = {"attn.proj": "attention.output.dense", "norm1": "attention.output.LayerNorm",
                "mlp.up": "intermediate.dense", "mlp.down": "output.dense", "norm2": "output.LayerNorm"}
    heads = {"mlm.dense": "cls.predictions.transform.dense", "mlm.norm": "cls.predictions.transform.LayerNorm",
             "pooler": "bert.pooler.dense", "nsp": "cls.seq_relationship"}
    decoder_bias = "cls.predictions.bias"

    def config(self):
        return BertConfig(**COMMON, hidden_act="gelu", max_position_embeddings=CONTEXT, type_vocab_size=2,
                          layer_norm_eps=self.eps, pad_token_id=None)

    def linear_links(self):
        """(our name, theirs, out, in) of every linear layer but q, k and v, and of the norms, whose `in` is None."""
        sizes = {"attn.proj": (WIDTH, WIDTH), "norm1": (WIDTH, None), "mlp.up": (FFN, WIDTH), "mlp.down": (WIDTH, FFN),
                 "norm2": (WIDTH, None), "mlm.dense": (self.embedding, WIDTH), "mlm.norm": (self.embedding, None),
                 "pooler": (WIDTH, WIDTH), self.second: (2, WIDTH), "embed.project": (WIDTH, self.embedding),
                 "classifier": (CLASSES, WIDTH), "classifier.dense": (WIDTH, WIDTH),
                 "classifier.out_proj": (CLASSES, WIDTH), "qa_outputs": (2, WIDTH)}
        yield "embed.norm", f"{self.name}.embeddings.LayerNorm", self.embedding, None
        for i in range(self.sets):
            for ours, theirs in self.in_layer.items():
                yield f"layers.{i}.{ours}", f"{self.name}.{self.layer.format(i)}{theirs}", *sizes[ours]
        for ours, theirs in self.heads.items():
            yield ours, theirs, *sizes[ours]

    def shapes(self):
        out = {"embed.token.weight": (VOCAB, self.embedding), "embed.type.weight": (self.types, self.embedding),
               "embed.position.weight": (self.unread + CONTEXT, self.embedding)}
        if self.decoder_bias:
            out["mlm.bias"] = (VOCAB,)
        for i in range(self.sets):
            out[f"layers.{i}.attn.qkv.weight"] = (3 * WIDTH, WIDTH)
            out[f"layers.{i}.attn.qkv.bias"] = (3 * WIDTH,)
        for ours, _, rows, columns in self.linear_links():
            out[ours + ".weight"] = (rows,) if columns is None else (rows, columns)
            out[ours + ".bias"] = (rows,)
        return out

    def links(self, model):
        """(our name, their parameters, pack, unpack) as in models.py."""
        of = dict(model.named_parameters())
        same = (lambda a: a, lambda a: [a])
        for ours, theirs in (("token", "word"), ("type", "token_type"), ("position", "position")):
            yield f"embed.{ours}.weight", [of[f"{self.name}.embeddings.{theirs}_embeddings.weight"]], *same
        if self.decoder_bias:
            yield "mlm.bias", [of[self.decoder_bias]], *same
        for i in range(self.sets):
            at = f"{self.name}.{self.layer.format(i)}{self.qkv}"
            for kind in ("weight", "bias"):
                parts = [of[f"{at}{role}.{kind}"] for role in ("query", "key", "value")]
                yield f"layers.{i}.attn.qkv.{kind}", parts, models.pack_qkv, lambda a: models.unpack_qkv(a, HEADS)
        for ours, theirs, _, _ in self.linear_links():
            for kind in ("weight", "bias"):
                yield f"{ours}.{kind}", [of[f"{theirs}.{kind}"]], *same

    def hf_model(self, dtype):
        config = self.config()
        config._attn_implementation = "sdpa"
        return self.model_class(config).to(dtype).train()

    def draw_batches(self, count, generator):
        """Random inputs: samples of unequal length, with unequal numbers of labels; one sample has no `next`."""
        shape = (count, BATCH, CONTEXT)
        used = torch.tensor(USED)[None, :, None]
        mask = (torch.arange(CONTEXT) < used).expand(shape).int()
        ids = torch.randint(0, VOCAB, shape, generator=generator) * mask
        types = (torch.arange(CONTEXT) >= used // 2).expand(shape).int() * mask
        labels = torch.randint(0, VOCAB, shape, generator=generator)
        labels[(torch.rand(shape, generator=generator) > 0.3) | (mask == 0)] = IGNORE
        labels[:, 0, 1] = 5  # there is one
        next_ = torch.randint(0, 2, shape[:2], generator=generator)
        next_[:, 2] = IGNORE
        return {"ids": ids.int(), "types": types, "mask": mask, "labels": labels.int(), "next": next_.int()}

    def forward(self, model, batch):
        out = model(batch["ids"].long(), attention_mask=batch["mask"], token_type_ids=batch["types"].long(),
                    labels=batch["labels"].long(), next_sentence_label=batch["next"].long())
        return {"logits": out.prediction_logits, "next_logits": out.seq_relationship_logits, "loss": out.loss}

    stock = forward  # as users call it: the same at all tokens but padding

    def counted(self, batch):
        """Rows of the logits that both ways must agree on."""
        return batch["mask"] == 1

    def plain(self, p, batch):
        """The logits by the packed layout alone, without transformers."""
        def linear(name, x):
            return F.linear(x, p[name + ".weight"], p[name + ".bias"])

        def norm(name, x):
            return F.layer_norm(x, x.shape[-1:], p[name + ".weight"], p[name + ".bias"], self.eps)

        def gelu(x):
            return F.gelu(x, approximate=self.gelu)

        types = batch["types"] if "types" in batch else torch.zeros_like(batch["ids"])
        x = p["embed.token.weight"][batch["ids"]] + p["embed.type.weight"][types]
        x = norm("embed.norm", x + p["embed.position.weight"][self.unread:])
        if "embed.project.weight" in p:
            x = linear("embed.project", x)
        hidden = (batch["mask"] == 0)[:, None, None, :]
        for i in range(LAYERS):
            at = f"layers.{i % self.sets}."
            q, k, v = linear(at + "attn.qkv", x).view(BATCH, CONTEXT, HEADS, 3, HEAD_DIM).unbind(3)
            scores = torch.einsum("bthe,bshe->bhts", q, k) / math.sqrt(HEAD_DIM)
            weights = scores.masked_fill(hidden, -math.inf).softmax(-1)
            y = linear(at + "attn.proj", torch.einsum("bhts,bshe->bthe", weights, v).flatten(2))
            x = norm(at + "norm1", x + y)
            x = norm(at + "norm2", x + linear(at + "mlp.down", gelu(linear(at + "mlp.up", x))))
        return self.plain_heads(p, x, linear, norm, gelu)

    def plain_heads(self, p, x, linear, norm, gelu):
        rows = norm("mlm.norm", gelu(linear("mlm.dense", x)))
        out = {"logits": rows @ p["embed.token.weight"].t() + p["mlm.bias"]}
        if "pooler.weight" in p:
            out["next_logits"] = linear(self.second, torch.tanh(linear("pooler", x[:, 0])))
        return out


class Roberta(Bert):
    name, seed, model_class = "roberta", 16, RobertaForMaskedLM
    eps, types, unread, pad = 1e-5, 1, 2, 1
    heads = {"mlm.dense": "lm_head.dense", "mlm.norm": "lm_head.layer_norm"}
    decoder_bias = "lm_head.bias"

    def config(self):
        return RobertaConfig(**COMMON, hidden_act="gelu", max_position_embeddings=self.unread + CONTEXT,
                             type_vocab_size=1, layer_norm_eps=self.eps, pad_token_id=self.pad)

    def draw_batches(self, count, generator):
        """No token is that of padding: positions count the tokens that are none."""
        out = super().draw_batches(count, generator)
        ids, mask = out["ids"], out["mask"]
        ids = torch.where(ids == self.pad, self.pad + 1, ids)
        return {"ids": torch.where(mask == 0, self.pad, ids).int(), "mask": mask, "labels": out["labels"]}

    def forward(self, model, batch):
        """At padding, too, positions are those of the place; transformers has one position for all padding there."""
        places = torch.arange(self.unread, self.unread + CONTEXT).expand(batch["ids"].shape)
        return self.stock(model, batch, position_ids=places)

    def stock(self, model, batch, **others):
        out = model(batch["ids"].long(), attention_mask=batch["mask"], labels=batch["labels"].long(), **others)
        return {"logits": out.logits, "loss": out.loss}


class Albert(Bert):
    name, seed, model_class, second = "albert", 17, AlbertForPreTraining, "sop"
    gelu, embedding, sets = "tanh", 20, 1
    layer, qkv = "encoder.albert_layer_groups.0.albert_layers.{}.", "attention."
    in_layer = {"attn.proj": "attention.dense", "norm1": "attention.LayerNorm", "mlp.up": "ffn",
                "mlp.down": "ffn_output", "norm2": "full_layer_layer_norm"}
    heads = {"embed.project": "albert.encoder.embedding_hidden_mapping_in", "mlm.dense": "predictions.dense",
             "mlm.norm": "predictions.LayerNorm", "pooler": "albert.pooler", "sop": "sop_classifier.classifier"}
    decoder_bias = "predictions.bias"

    def config(self):
        return AlbertConfig(**COMMON, embedding_size=self.embedding, num_hidden_groups=1, inner_group_num=1,
                            hidden_act="gelu_new", max_position_embeddings=CONTEXT, type_vocab_size=2,
                            layer_norm_eps=self.eps, classifier_dropout_prob=0.0, pad_token_id=None)

    def forward(self, model, batch):
        out = model(batch["ids"].long(), attention_mask=batch["mask"], token_type_ids=batch["types"].long(),
                    labels=batch["labels"].long(), sentence_order_label=batch["next"].long())
        return {"logits": out.prediction_logits, "next_logits": out.sop_logits, "loss": out.loss}

    stock = forward


class Classifier:
    """Classes of samples: labels [batch], one of them ignored."""
    decoder_bias = None

    def config(self):
        config = super().config()
        config.num_labels = CLASSES
        return config

    def draw_batches(self, count, generator):
        out = super().draw_batches(count, generator)
        out.pop("next", None)
        labels = torch.randint(0, CLASSES, (count, BATCH), generator=generator)
        labels[:, 2] = IGNORE
        return out | {"labels": labels.int()}

    def forward(self, model, batch):
        types = {"token_type_ids": batch["types"].long()} if "types" in batch else {}
        out = model(batch["ids"].long(), attention_mask=batch["mask"], labels=batch["labels"].long(), **types)
        return {"logits": out.logits, "loss": out.loss}

    stock = forward

    def counted(self, batch):
        return slice(None)

    def plain_heads(self, p, x, linear, norm, gelu):
        if "pooler.weight" in p:
            return {"logits": linear("classifier", torch.tanh(linear("pooler", x[:, 0])))}
        return {"logits": linear("classifier.out_proj", torch.tanh(linear("classifier.dense", x[:, 0])))}


class BertClassifier(Classifier, Bert):
    seed, model_class = 19, BertForSequenceClassification
    heads = {"pooler": "bert.pooler.dense", "classifier": "classifier"}


class RobertaClassifier(Classifier, Roberta):
    seed, model_class = 20, RobertaForSequenceClassification
    heads = {"classifier.dense": "classifier.dense", "classifier.out_proj": "classifier.out_proj"}


class AlbertClassifier(Classifier, Albert):
    seed, model_class = 21, AlbertForSequenceClassification
    heads = {"embed.project": "albert.encoder.embedding_hidden_mapping_in", "pooler": "albert.pooler",
             "classifier": "classifier"}


VARIANTS = {"bert": Bert(), "roberta": Roberta(), "albert": Albert(), "bert_classes": BertClassifier(),
            "roberta_classes": RobertaClassifier(), "albert_classes": AlbertClassifier()}


def golden(variant, train):
    """`train(model, of_step, packed)` are the ten steps that make_golden.py takes with every model."""
    generator = torch.Generator().manual_seed(variant.seed)
    params = models.draw(variant.shapes(), generator)
    batch = {name: value[0] for name, value in variant.draw_batches(1, generator).items()}
    steps = variant.draw_batches(STEPS, generator)

    def run(dtype):
        model = variant.hf_model(dtype)
        models.load(model, {name: value.to(dtype) for name, value in params.items()}, variant.links)
        out = variant.forward(model, batch)
        stock, seen = variant.stock(model, batch), variant.counted(batch)
        near = 1e-12 if dtype == torch.float64 else 1e-5
        assert (stock["logits"] - out["logits"])[seen].abs().max() < near and (stock["loss"] - out["loss"]).abs() < near
        out["loss"].backward()
        result = {name: value.detach() for name, value in out.items()}
        grads = models.packed(model, variant.links, lambda a: a.grad)
        result |= {"grad." + name: value for name, value in grads.items()}
        of_step = (lambda step: variant.forward(model, {name: value[step] for name, value in steps.items()})["loss"])
        return result | train(model, of_step, lambda: models.packed(model, variant.links))

    exact, single = run(torch.float64), run(torch.float32)
    for name, value in variant.plain({name: value.double() for name, value in params.items()}, batch).items():
        assert (exact[name] - value).abs().max() < 1e-12, f"the packed layout does not give transformers' {name}"
        assert (exact[name] - single[name]).abs().max() < 1e-5
    out = batch | {"step_" + name: value for name, value in steps.items()}
    out |= {"param." + name: value for name, value in params.items()}
    return exact, single, out | {name: value.float() for name, value in exact.items()}
