"""The tiny BERTs of bert.py for other tasks: a class for each token, the ends of an answer, masked tokens alone."""
import torch
from transformers import (AlbertForMaskedLM, AlbertForQuestionAnswering, AlbertForTokenClassification, BertForMaskedLM,
                          BertForQuestionAnswering, BertForTokenClassification, RobertaForQuestionAnswering,
                          RobertaForTokenClassification)

from bert import CLASSES, IGNORE, Albert, Bert, Roberta
from models import BATCH, CONTEXT, WIDTH

PROJECT = {"embed.project": "albert.encoder.embedding_hidden_mapping_in"}


class Head:
    """A head on every token, which `head` names. Positions are those of the place at padding, too."""
    decoder_bias = None

    def config(self):
        config = super().config()
        config.num_labels = self.rows
        return config

    def linear_links(self):
        for link in super().linear_links():
            yield (*link[:2], self.rows, WIDTH) if link[0] == self.head else link

    def labels(self, batch):
        return {"labels": batch["labels"].long()}

    def called(self, model, batch, **others):
        if "types" in batch:
            others["token_type_ids"] = batch["types"].long()
        out = model(batch["ids"].long(), attention_mask=batch["mask"], **self.labels(batch), **others)
        return self.results(out)

    def results(self, out):
        return {"logits": out.logits, "loss": out.loss}

    def forward(self, model, batch):
        places = torch.arange(self.unread, self.unread + CONTEXT).expand(batch["ids"].shape)
        return self.called(model, batch, position_ids=places)

    stock = called


class Tags(Head):
    """Classes of tokens: labels [batch, context], most of which are ignored."""
    head, rows = "classifier", CLASSES

    def draw_batches(self, count, generator):
        out = super().draw_batches(count, generator)
        out.pop("next", None)
        drawn = torch.randint(0, CLASSES, out["labels"].shape, generator=generator).int()
        return out | {"labels": torch.where(out["labels"] == IGNORE, IGNORE, drawn).int()}

    def plain_heads(self, p, x, linear, norm, gelu):
        return {"logits": linear("classifier", x)}


class Spans(Head):
    """Ends of answers: start and end [batch], positions."""
    head, rows = "qa_outputs", 2

    def draw_batches(self, count, generator):
        out = super().draw_batches(count, generator)
        out.pop("next", None), out.pop("labels")
        start, end = torch.randint(0, CONTEXT, (2, count, BATCH), generator=generator).sort(0).values.int()
        return out | {"start": start, "end": end}

    def labels(self, batch):
        return {"start_positions": batch["start"].long(), "end_positions": batch["end"].long()}

    def results(self, out):
        both = {"start_logits": out.start_logits, "end_logits": out.end_logits}
        return both | {"logits": torch.stack([*both.values()], -1), "loss": out.loss}

    def plain_heads(self, p, x, linear, norm, gelu):
        start, end = linear("qa_outputs", x).unbind(-1)
        return {"start_logits": start, "end_logits": end}


class Masked(Head):
    """Masked tokens of samples of one part: all types are 0."""
    head, rows = None, 2

    def draw_batches(self, count, generator):
        out = super().draw_batches(count, generator)
        return {name: out[name] for name in ("ids", "mask", "labels")}


class BertTags(Tags, Bert):
    seed, model_class, heads = 22, BertForTokenClassification, {"classifier": "classifier"}


class RobertaTags(Tags, Roberta):
    seed, model_class, heads = 23, RobertaForTokenClassification, {"classifier": "classifier"}


class AlbertTags(Tags, Albert):
    seed, model_class, heads = 24, AlbertForTokenClassification, PROJECT | {"classifier": "classifier"}


class BertSpans(Spans, Bert):
    seed, model_class, heads = 25, BertForQuestionAnswering, {"qa_outputs": "qa_outputs"}


class RobertaSpans(Spans, Roberta):
    """The loss counts logits at padding, which transformers gives one position unless it is told others."""
    seed, model_class, heads = 26, RobertaForQuestionAnswering, {"qa_outputs": "qa_outputs"}
    stock = Spans.forward

    def hf_model(self, dtype):
        """The rows of padding learn as any others; transformers keeps gradients from them."""
        model = super().hf_model(dtype)
        for table in (model.roberta.embeddings.word_embeddings, model.roberta.embeddings.position_embeddings):
            table.padding_idx = None
        return model


class AlbertSpans(Spans, Albert):
    seed, model_class, heads = 27, AlbertForQuestionAnswering, PROJECT | {"qa_outputs": "qa_outputs"}


class BertMasked(Masked, Bert):
    seed, model_class, decoder_bias = 28, BertForMaskedLM, Bert.decoder_bias
    heads = {name: Bert.heads[name] for name in ("mlm.dense", "mlm.norm")}


class AlbertMasked(Masked, Albert):
    seed, model_class, decoder_bias = 29, AlbertForMaskedLM, Albert.decoder_bias
    heads = {name: Albert.heads[name] for name in ("embed.project", "mlm.dense", "mlm.norm")}


VARIANTS = {"bert_tags": BertTags(), "roberta_tags": RobertaTags(), "albert_tags": AlbertTags(), "bert_spans": BertSpans(),
            "roberta_spans": RobertaSpans(), "albert_spans": AlbertSpans(), "bert_masked": BertMasked(), "albert_masked": AlbertMasked()}
