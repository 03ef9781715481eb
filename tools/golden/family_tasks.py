"""What the models of families.py read, and what they make of it, by task."""
import math
import types

import torch
import torch.nn.functional as F
import transformers

IGNORED = -100
BATCH, CONTEXT, SOURCE, PROMPT, WRITTEN = 3, 13, 11, 4, 50
CHOOSING, CHOICES = 4, 3  # samples, and choices of each


def task_of(model_class, config):
    suffix, task = next(item for item in TASKS.items() if model_class.__name__.endswith(item[0]))
    is_encoder = config.model_type in transformers.models.auto.modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    if suffix == "ForSequenceClassification" and config.is_encoder_decoder:
        return PAIR_CLASSES
    return CAUSAL_TAGS if suffix == "ForTokenClassification" and not is_encoder else task


def draw(most, generator, *shape):
    return torch.randint(0, most, shape, generator=generator)


def causal_inputs(config, generator):
    labels = draw(config.vocab_size, generator, BATCH, CONTEXT)
    labels[1, -4:] = IGNORED
    return {"ids": draw(config.vocab_size, generator, BATCH, CONTEXT), "labels": labels}


def causal_tag_inputs(config, generator):
    out = causal_inputs(config, generator)
    return out | {"labels": torch.where(out["labels"] < 0, IGNORED, draw(config.num_labels, generator, BATCH, CONTEXT))}


def causal_text(model, generator):
    return written(lambda: (draw(model.config.vocab_size, generator, 1, PROMPT), {}),
                   lambda text, given: model(text).logits)


def written(begin, logits):
    """A text of 50 tokens behind a beginning, each the likeliest, and what it is written from: the first of these for
    which no choice is close. The model is given the whole length from the beginning, on which the rates of some rotary
    positions hang."""
    while True:
        prompt, given = begin()
        text = F.pad(prompt, (0, WRITTEN))
        closest = math.inf
        with torch.no_grad():
            for place in range(prompt.shape[1], text.shape[1]):
                best = logits(text, given)[0, place - 1].topk(2)
                closest = min(closest, (best.values[0] - best.values[1]).item())
                text[0, place] = best.indices[0]
        if closest > 1e-4:
            return {"text": text[0]} | {f"text.{key}": value[0] for key, value in given.items()}


def pair_inputs(config, generator):
    """Of tasks that write a text from another one: sources of several lengths, padded, and targets behind the start."""
    lengths = torch.tensor([[SOURCE], [SOURCE - 4], [SOURCE - 1]])
    source = torch.where(torch.arange(SOURCE) < lengths, no_padding(config, generator, BATCH, SOURCE),
                         config.pad_token_id)
    out = causal_inputs(config, generator)
    out["ids"][:, 0] = config.decoder_start_token_id
    return {"source": source} | out


def no_padding(config, generator, *shape):
    drawn = draw(config.vocab_size - 1, generator, *shape)
    return drawn + (drawn >= config.pad_token_id)


def pair_logits(model, source, ids):
    return model(input_ids=source.long(), attention_mask=source != model.config.pad_token_id,
                 decoder_input_ids=ids.long(), use_cache=False).logits


def pair_text(model, generator):
    return written(lambda: (torch.full((1, 1), model.config.decoder_start_token_id),
                            {"source": no_padding(model.config, generator, 1, SOURCE)}),
                   lambda text, given: pair_logits(model, given["source"], text))


def pair_class_inputs(config, generator):
    """Of encoder-decoders that classify texts: each has one end token, its last."""
    lengths = torch.tensor([[CONTEXT], [CONTEXT - 4], [CONTEXT - 1]])
    places = torch.arange(CONTEXT).expand(BATCH, CONTEXT)
    drawn = 3 + draw(config.vocab_size - 3, generator, BATCH, CONTEXT)
    ids = torch.where(places < lengths - 1, drawn, config.pad_token_id)
    ids[places == lengths - 1] = config.eos_token_id
    return {"ids": ids, "mask": (places < lengths).int(), "last": lengths[:, 0] - 1,
            "labels": draw(config.num_labels, generator, BATCH)}


def encoder_inputs(labels, pairs):
    """Of tasks of encoders: samples of several lengths, with `labels`. Padding is token 1, which is at no other place;
    `pairs`: types are 0, then 1, where the model has them."""
    def draw_inputs(config, generator):
        places = torch.arange(CONTEXT).expand(BATCH, CONTEXT)
        lengths = torch.tensor([[CONTEXT], [CONTEXT - 4], [CONTEXT - 1]])
        mask = (places < lengths).int()
        drawn = 2 + draw(config.vocab_size - 2, generator, BATCH, CONTEXT)
        out = {"ids": torch.where(mask > 0, drawn, 1), "mask": mask}
        if pairs and getattr(config, "type_vocab_size", 1) > 1:
            out["types"] = (places >= draw(CONTEXT, generator, BATCH, 1)).int() * mask
        return out | labels(config, generator, mask)
    return draw_inputs


def encoder_outputs(names):
    """What a model of an encoder gives by these names. Positions are those of the places, at padding too, for which
    transformers has one alone: it is asked both ways."""
    def outputs(model, given):
        def called(**others):
            if "types" in given:
                others["token_type_ids"] = given["types"].long()
            return model(given["ids"].long(), attention_mask=given["mask"], **others)
        first = 2 if model.base_model_prefix in ("roberta", "mpnet") else 0
        out = called(position_ids=torch.arange(first, first + CONTEXT).expand(given["ids"].shape))
        stock = called()
        for theirs in names:
            beside = (stock[theirs] - out[theirs]).abs()
            if beside.dim() > 1 and beside.shape[1] == CONTEXT:
                beside = beside[given["mask"] > 0]
            assert beside.max() < 1e-5 * out[theirs].abs().max(), (theirs, beside.max())
        return {ours: out[theirs] for theirs, ours in names.items()}
    return outputs


def masked_labels(config, generator, mask):
    chosen = (torch.rand(mask.shape, generator=generator) < 0.4) & (mask > 0)
    return {"labels": torch.where(chosen, draw(config.vocab_size, generator, *mask.shape), IGNORED)}


def pretraining_labels(config, generator, mask):
    return masked_labels(config, generator, mask) | {"next": draw(2, generator, BATCH)}


def class_labels(config, generator, mask):
    return {"labels": draw(config.num_labels, generator, BATCH)}


def tag_labels(config, generator, mask):
    return {"labels": torch.where(mask > 0, draw(config.num_labels, generator, *mask.shape), IGNORED)}


def span_labels(config, generator, mask):
    start, end = draw(CONTEXT - 4, generator, 2, BATCH).sort(0).values
    return {"start": start, "end": end}


def choice_inputs(config, generator):
    """Of encoders that choose: as encoder_inputs of pairs, some in each sample, and which of them is right."""
    places = torch.arange(CONTEXT).expand(CHOOSING, CHOICES, CONTEXT)
    mask = (places < CONTEXT - draw(6, generator, CHOOSING, CHOICES, 1)).int()
    out = {"ids": torch.where(mask > 0, 2 + draw(config.vocab_size - 2, generator, *mask.shape), 1), "mask": mask}
    if getattr(config, "type_vocab_size", 1) > 1:
        out["types"] = (places >= draw(CONTEXT, generator, CHOOSING, CHOICES, 1)).int() * mask
    return out | {"labels": draw(CHOICES, generator, CHOOSING)}


def choice_outputs(model, given):
    types = {"token_type_ids": given["types"].long()} if "types" in given else {}
    return {"logits": model(given["ids"].long(), attention_mask=given["mask"], **types).logits}


def encoder_task(labels, pairs=True, names={"logits": "logits"}):
    return types.SimpleNamespace(inputs=encoder_inputs(labels, pairs), outputs=encoder_outputs(names), text=None)


PAIRS = types.SimpleNamespace(inputs=pair_inputs, text=pair_text,
                              outputs=lambda model, given: {"logits": pair_logits(model, given["source"], given["ids"])})


def picture_inputs(config, generator):
    """Patches of pictures, line by line, each [channels, side, side]."""
    patches = (config.image_size // config.patch_size) ** 2
    drawn = torch.randn(BATCH, patches, config.num_channels * config.patch_size ** 2, generator=generator)
    return {"patches": drawn, "labels": draw(config.num_labels, generator, BATCH)}


def picture_outputs(model, given):
    patch = model.config.patch_size
    pixels = F.fold(given["patches"].transpose(1, 2), model.config.image_size, patch, stride=patch)
    return {"logits": model(pixels.to(model.dtype)).logits}


PICTURES = types.SimpleNamespace(inputs=picture_inputs, outputs=picture_outputs, text=None)

PRETRAINING = encoder_task(pretraining_labels,
                           names={"prediction_logits": "logits", "seq_relationship_logits": "next"})
CAUSAL = types.SimpleNamespace(inputs=causal_inputs, text=causal_text,
                               outputs=lambda model, given: {"logits": model(given["ids"].long()).logits})

PAIR_CLASSES = types.SimpleNamespace(
    inputs=pair_class_inputs, text=None,
    outputs=lambda model, given: {"logits": model(given["ids"].long(), attention_mask=given["mask"]).logits})
CAUSAL_TAGS = types.SimpleNamespace(inputs=causal_tag_inputs, text=None, outputs=CAUSAL.outputs)

# By the end of a class's name: what the task reads, what it makes of it, and a text.
TASKS = {
    "ForConditionalGeneration": PAIRS,
    "MTModel": PAIRS,
    "GPTModel": CAUSAL,
    "ForCausalLM": CAUSAL,
    "ForMaskedLM": encoder_task(masked_labels, pairs=False),
    "ForPreTraining": PRETRAINING,
    "BertModel": PRETRAINING,
    "ForSequenceClassification": encoder_task(class_labels),
    "ForTokenClassification": encoder_task(tag_labels),
    "ForQuestionAnswering": encoder_task(span_labels, names={"start_logits": "start", "end_logits": "end"}),
    "ForMultipleChoice": types.SimpleNamespace(inputs=choice_inputs, outputs=choice_outputs, text=None),
    "ForImageClassification": PICTURES,
    "ForImageClassificationWithTeacher": PICTURES,
}
