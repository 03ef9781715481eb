"""MindSpore's quick start of distributed training: one hidden layer on 8 devices, a strategy for one
product, and the compiler finds the rest. Its losses are those of examples/quickstart.
"""

import numpy

import tessera

DEVICES, ROWS = 8, 2  # rows of a device
IN, HIDDEN, OUT = 32, 16, 16


def net(input, label):
    normal = tessera.nn.normal_init(0.01)
    w = tessera.parameter("w", (IN, HIDDEN), normal)
    w2 = tessera.parameter("w2", (HIDDEN, OUT), normal)
    # The rows of the input are cut in two and its columns in four, and so are w's rows. What the
    # relu and the second product do follows from that.
    hidden = tessera.shard(input @ w, ((2, DEVICES // 2), (DEVICES // 2, 1)))
    error = tessera.ops.relu(hidden) @ w2 - label
    return tessera.ops.mean(error * error)


def main():
    rows = ROWS * DEVICES
    step = tessera.compile(
        net,
        {"input": (rows, IN), "label": (rows, OUT)},
        optimizer=tessera.Sgd(lr=0.2, momentum=0.1, weight_decay=0, clip=0),
        devices=DEVICES,
        parallel_mode="auto_parallel",
        search_mode="sharding_propagation",
        dataset_strategy="data_parallel",
        threads=1,
    )
    numpy.random.seed(1)
    draw = numpy.random.rand
    given = [draw(ROWS, size).astype(numpy.float32) for size in (IN, OUT)]
    input, label = (numpy.tile(each, (DEVICES, 1)) for each in given)  # all devices feed the same
    losses = []
    with step:
        for epoch in range(5):
            for i in range(4):
                losses.append(step(input=input, label=label))
                print(f"epoch: {epoch + 1} step: {i + 1}, loss is {losses[-1]:.15g}")
    assert losses[-1] < losses[0]


if __name__ == "__main__":
    main()
