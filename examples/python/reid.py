"""A classifier with ever more classes, as for finding persons again (ReID): Z = (X x W) x V. Its
plan turns from data parallel to model parallel. It prints what examples/reid.cpp prints.

Nobody says which: search_mode dynamic_programming finds it, from what the machine's links and
memory take.
"""

import os
import tempfile

import numpy

import tessera


def classifier(inputs, features, classes):
    normal = tessera.nn.normal_init(0.02)

    def net(x, labels):
        w = tessera.parameter("w", (inputs, features), normal)
        v = tessera.parameter("v", (features, classes), normal)
        return tessera.nn.cross_entropy((x @ w) @ v, labels)

    return net


SGD = tessera.Sgd(lr=0.5, momentum=0, weight_decay=0, clip=0)


def searched(devices, machine):
    if devices == 1:
        return {}
    return dict(
        devices=devices,
        machine=machine,
        parallel_mode="auto_parallel",
        search_mode="dynamic_programming",
    )


LEVEL = """
[links.{name}]
bandwidth = "{links} GB/s"
latency = "{latency} us"
units = {units}
sharing = 1
"""
FLOATS = """
[device.{name}]
peak = "{peak} GFLOP/s"
half_m = 0
half_n = 0
half_k = 0
attention = 1.0
others = 1.0
"""
REST = """
[device]
memory = "64 GiB"
memory_bandwidth = "{memory} GB/s"
kernel_start = "0 us"
other_arithmetic = "{arithmetic} GFLOP/s"
overlap = false
sharing = 1

[host]
memory = "64 GiB"
bandwidth = "10 GB/s"
latency = "5 us"
"""


def machine_file(folder, links, latency, arithmetic, memory):
    """Links and memory in GB/s, the time until a first byte comes in us, arithmetic in GFLOP/s."""
    text = f'name = "links-{links}"\nkernels = "cpu"\n'
    for name, units in [("core", 8), ("socket", 1), ("host", 1), ("rack", 1)]:
        text += LEVEL.format(name=name, links=links, latency=latency, units=units)
    for name, peak in [("f32", arithmetic), ("bf16", 100), ("f16", 100)]:
        text += FLOATS.format(name=name, peak=peak)
    path = os.path.join(folder, f"{links}-{latency}.toml")
    with open(path, "w") as file:
        file.write(text + REST.format(memory=memory, arithmetic=arithmetic))
    return path


def turn(folder, links):
    """From where on the classes are cut, among powers of four, on 8 devices."""
    machine = machine_file(folder, links, 5, 10000, 1000)
    print(f"with links of {links} GB/s")
    first = None
    for power in range(3, 11):
        classes = 4**power
        found = tessera.place(
            classifier(2048, 2048, classes),
            {"x": (256, 2048), "labels": ((256,), "i32")},
            optimizer=SGD,
            **searched(8, machine),
        )
        cut = cuts_classes(found["pins"])
        first = first or (classes if cut else None)
        how = "model parallel" if cut else "data parallel "
        print(f"  {classes:7} classes: {how}, {found['search']['step_seconds']:.6f} s a step")
    return first


def cuts_classes(pins):
    """How V lies: whole on each device, or cut along its classes."""
    return not pins["v"].endswith(",-]")


def run(devices, machine):
    """The losses of a few steps, and how V lies."""
    pictures, inputs, features, classes = 16, 12, 8, 64
    n = numpy.arange(1, pictures * inputs + 1)
    x = ((n * 7 % 13 - 6).astype(numpy.float32) / numpy.float32(6)).reshape(pictures, inputs)
    labels = (numpy.arange(n[-1] + 1, n[-1] + 1 + pictures) * 5 % classes).astype(numpy.int32)
    batch = {"x": x, "labels": labels}  # shapes like these
    net, how = classifier(inputs, features, classes), searched(devices, machine)
    cut = devices > 1 and cuts_classes(tessera.place(net, batch, optimizer=SGD, **how)["pins"])
    with tessera.compile(net, batch, optimizer=SGD, threads=1, **how) as step:
        return [step(x=x, labels=labels) for _ in range(5)], cut


def main():
    with tempfile.TemporaryDirectory() as folder:
        # Links a twentieth as fast as memory, and links two hundred times slower.
        fast, slow = turn(folder, 50), turn(folder, 5)
        assert fast > 64 and slow > 64

        # Both plans on four devices, and one device.
        one, _ = run(1, None)
        for machine in [
            machine_file(folder, 1000, 0, 0.1, 0.1),
            machine_file(folder, 0.01, 10, 100, 100),
        ]:
            four, cut = run(4, machine)
            numbers = "".join(f" {loss:.6f}" for loss in four)
            print(f"{'model' if cut else 'data'} parallel on 4 devices:{numbers}")
            assert numpy.abs(numpy.subtract(four, one)).max() < 1e-5


if __name__ == "__main__":
    main()
