"""A network of two linear layers, trained on one device and then on two: the same program prints
the same losses, and they are those of examples/two_layers.cpp.

It learns the product of two numbers.
"""

import numpy

import tessera

ROWS = 64  # samples per step
STEPS = 200


def net(x, y):
    hidden = tessera.ops.relu(
        tessera.nn.linear(x, "first", 32, init=tessera.nn.normal_init(1))
    )
    error = tessera.nn.linear(hidden, "second", 1, init=tessera.nn.normal_init(0.2)) - y
    return tessera.ops.mean(error * error)


def uniform(random, count):
    """Numbers from -1 to 1, as std::uniform_real_distribution<float> draws them."""
    words = random._bit_generator.random_raw(count).astype(numpy.float32)
    share = numpy.minimum(words / numpy.float32(2**32), numpy.nextafter(numpy.float32(1), numpy.float32(0)))
    return share * numpy.float32(2) - numpy.float32(1)


def train(**how):
    """The loss of each step."""
    optimizer = tessera.AdamW(lr=0.02)
    batch = {"x": (ROWS, 2), "y": (ROWS, 1)}
    random = numpy.random.RandomState(1)
    losses = []
    with tessera.compile(net, batch, optimizer=optimizer, threads=1, **how) as step:
        for _ in range(STEPS):
            x = uniform(random, ROWS * 2).reshape(ROWS, 2)
            losses.append(step(x=x, y=x[:, :1] * x[:, 1:]))
    return losses


def main():
    on_one, on_two = train(), train(devices=2)
    for i in range(0, STEPS, 20):
        print(f"step {i:3}: loss {on_one[i]:.6f}, on two devices {on_two[i]:.6f}")
    furthest = max(abs(a - b) / a for a, b in zip(on_one[:10], on_two[:10]))
    print(f"the first ten losses differ by {furthest:.1e} at most")
    assert on_one[-1] < on_one[0] / 10 and furthest < 1e-5


if __name__ == "__main__":
    main()
