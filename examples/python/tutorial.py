"""Learns which points lie inside a circle: on one device, in four micro-batches, and on two devices
with data and with tensor parallelism. It prints what examples/tutorial.cpp prints.
"""

import numpy

import tessera

POINTS = 64  # samples per step
STEPS = 400


# [model]
def model(points):
    """Points [batch, 2] -> logits [batch, 2]: scores of "outside" and "inside"."""
    hidden = tessera.nn.linear(points, "first", 24, init=tessera.nn.normal_init(0.7))
    return tessera.nn.linear(
        tessera.ops.gelu(hidden), "second", 2, init=tessera.nn.normal_init(0.2)
    )


def training_step(points, labels):
    losses = tessera.ops.cross_entropy(model(points), labels).loss
    return tessera.ops.sum(losses) / POINTS
# [end]


def draw(random):
    """Points of the square from -1 to 1; label 1 inside of a circle."""
    words = random._bit_generator.random_raw(2 * POINTS).astype(numpy.float32)
    points = (words / numpy.float32(2**32) * numpy.float32(2) - numpy.float32(1)).reshape(-1, 2)
    x, y = points[:, 0], points[:, 1]
    return points, (x * x + y * y < numpy.float32(0.6)).astype(numpy.int32)


# [train]
def train(**how):
    """Losses of each step, and accuracy on points that it was not trained on."""
    step = tessera.compile(
        training_step,
        batch={"points": (POINTS, 2), "labels": ((POINTS,), "i32")},
        optimizer=tessera.AdamW(
            lr=3e-2, schedule="cosine", min_lr=1e-3, warmup_steps=10, decay_steps=STEPS
        ),
        programs={"predict": (model, {"points": (POINTS, 2)})},
        threads=1,
        **how,
    )
    with step:
        random = numpy.random.RandomState(1)
        losses = []
        for _ in range(STEPS):
            points, labels = draw(random)
            losses.append(step(points=points, labels=labels))
        points, labels = draw(random)
        logits = step.run("predict", points=points)
        return losses, ((logits[:, 1] > logits[:, 0]) == (labels == 1)).mean()
# [end]


def main():
    one, accuracy = train()
    print(f"one device: loss {one[0]:.4f} -> {one[-1]:.4f}, accuracy {100 * accuracy:.0f} %")
    assert one[-1] < 0.2 and accuracy > 0.9
    tensor_parallel = {"first.weight": "[tp,-]", "first.bias": "[tp]", "second.weight": "[-,tp]"}
    for name, how in [
        ("mb=4@time", dict(micro_batch_size=POINTS // 4)),
        ("dp=2", dict(devices=2)),
        ("tp=2", dict(mesh={"tp": 2}, pins=tensor_parallel)),
    ]:
        other, _ = train(**how)
        furthest = max(abs(a - b) / a for a, b in zip(one[:10], other[:10]))
        print(
            f"{name:<15} loss {other[0]:.4f} -> {other[-1]:.4f}, "
            f"first ten losses differ by {furthest:.1e}"
        )
        assert furthest < 1e-5


if __name__ == "__main__":
    main()
