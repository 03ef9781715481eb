"""MindSpore's tutorial of distributed Transformers: the network of its model.py on 1 device and on
8, with the same losses. It prints what examples/parallel_transformer.cpp prints.

The network is written as for one device. How it is spread is said when it is compiled.
"""

import numpy

import tessera
from tessera import nn

BATCH, SOURCE, TARGET, VOCABULARY, WIDTH = 16, 10, 8, 21, 32
STEPS = 40


# [network]
def embedding_layer(ids, name, positions):
    """Word and position, as EmbeddingLayer of the tutorial."""
    with tessera.scope(name):
        words = nn.embedding(ids, "token", VOCABULARY, WIDTH).rows
        return nn.learned_positions(words, "position", positions)


def net(source, target, labels, mask):
    config = nn.TransformerConfig(
        layer=nn.TransformerLayer(heads=8, ffn_width=WIDTH),
        encoder_layers=2,
        decoder_layers=2,
        layer_stages=[0, 0, 1, 1],
    )
    x = nn.transformer(
        embedding_layer(source, "embed", SOURCE),
        embedding_layer(target, "embed_target", TARGET),
        config,
        of_target=nn.Visible(mask=nn.attention_mask(mask)),
    )
    logits = nn.linear(x, "head", VOCABULARY, bias=False)
    return nn.cross_entropy(logits, labels, mask)
# [end]


def draw(random):
    """Targets that repeat what stands in the source, of unequal lengths."""
    source = (random._bit_generator.random_raw(BATCH * SOURCE) % 4).astype(numpy.int32)
    source = source.reshape(BATCH, SOURCE)
    labels = source[:, :TARGET].copy()
    target = numpy.full((BATCH, TARGET), VOCABULARY - 1, dtype=numpy.int32)
    target[:, 1:] = labels[:, :-1]
    lengths = 3 + numpy.arange(BATCH) % (TARGET - 2)
    mask = (numpy.arange(TARGET) < lengths[:, None]).astype(numpy.int32)
    return dict(source=source, target=target, labels=labels, mask=mask)


def train(**how):
    """The loss of each step."""
    optimizer = tessera.AdamWeightDecay(lr=3e-3, groups=tessera.decay_groups(0.1))  # none for norms
    batch = {"source": ((BATCH, SOURCE), "i32")}
    batch.update({name: ((BATCH, TARGET), "i32") for name in ("target", "labels", "mask")})
    random = numpy.random.RandomState(1)
    names = dict(family="transformer")  # by which model_parallel cuts parameters
    with tessera.compile(net, batch, optimizer=optimizer, threads=1, **names, **how) as step:
        return [step(**draw(random)) for _ in range(STEPS)]


def main():
    one = train()
    print(f"dp 1 mp 1 pp 1: loss {one[0]:.4f} -> {one[-1]:.4f}")
    assert one[-1] < 0.8 * one[0]
    # [configs]
    configs = [
        tessera.TransformerOpParallelConfig(data_parallel=1, model_parallel=8),
        tessera.TransformerOpParallelConfig(
            data_parallel=2, model_parallel=4, optimizer_shard=True, vocab_emb_dp=False
        ),
        tessera.TransformerOpParallelConfig(
            data_parallel=2, model_parallel=2, pipeline_stage=2, micro_batch_num=4
        ),
    ]
    # [end]
    for config in configs:
        other = train(parallel_config=config)
        furthest = max(abs(a - b) / a for a, b in zip(one[:10], other[:10]))
        print(
            f"dp {config.data_parallel} mp {config.model_parallel} pp {config.pipeline_stage}: "
            f"loss {other[0]:.4f} -> {other[-1]:.4f}, "
            f"first ten losses differ by {furthest:.1e}"
        )
        assert furthest < 1e-5


if __name__ == "__main__":
    main()
