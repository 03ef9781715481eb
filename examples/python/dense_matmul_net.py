"""From data parallel to model parallel in one network: Z = (X x W) x V on four devices, as
examples/dense_matmul_net.cpp has it.

    class DenseMatMulNet(nn.Cell):                        # the same in MindSpore
        def __init__(self):
            self.matmul1 = ops.MatMul().shard(((4, 1), (1, 1)))
            self.matmul2 = ops.MatMul().shard(((1, 1), (1, 4)))
        def construct(self, x, w, v):
            y = self.matmul1(x, w)
            z = self.matmul2(y, v)
            return z

The first product is split by rows of X, the second by columns of V. The compiler inserts one
all_gather of Y between them.
"""

import numpy

import tessera

BATCH = {"x": (8, 6), "w": (6, 5), "v": (5, 4)}


def dense_matmul_net(x, w, v):
    y = tessera.shard(x @ w, ((4, 1), (1, 1)))
    return tessera.shard(y @ v, ((1, 1), (1, 4)))


def run(**how):
    """Z, and what a device does with the others."""
    n, arrays = 0, {}
    for name, shape in BATCH.items():  # small whole numbers, so that sums are exact in any order
        count = int(numpy.prod(shape))
        numbers = (numpy.arange(n + 1, n + 1 + count) * 3 % 7 - 3).astype(numpy.float32)
        arrays[name] = numbers.reshape(shape)
        n += count
    with tessera.compile(dense_matmul_net, BATCH, threads=1, **how) as step:
        return step(**arrays), step.plan["programs"]["step"]["sends"]


def main():
    one, _ = run()
    splits = ((4, 1), (1, 1), (1, 4))
    four, sends = run(devices=4, parallel_mode="semi_auto_parallel", dataset_strategy=splits)
    moves = [f"{send['kind']} to [{','.join(map(str, send['shape']))}]" for send in sends]
    print("\n".join(moves))
    furthest = abs(one - four).max()
    print(f"furthest from one device: {furthest:g}")
    # Y between the products; and Z, which is split by columns, to be read as a whole.
    assert moves == ["all_gather to [8,5]", "all_gather to [8,4]"] and furthest == 0


if __name__ == "__main__":
    main()
