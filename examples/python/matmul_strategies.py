"""One product of matrices on two devices, four ways: what MindSpore's `MatMul().shard(...)` does.
It prints what examples/matmul_strategies.cpp prints.

A strategy says into how many parts each dim of each operand is split: ((2,1),(1,1)) gives each of
two devices one row of the first matrix and all of the second. The compiler inserts the collectives
that follow from it.
"""

import numpy

import tessera

A = numpy.array([[1, 2], [3, 4]], dtype=numpy.float32)
B = numpy.array([[5, 6], [7, 8]], dtype=numpy.float32)

VARIANTS = [
    (None, ""),
    (((2, 1), (1, 1)), "all_gather"),  # rows of a
    (((1, 1), (1, 2)), "all_gather"),  # columns of b
    (((1, 2), (2, 1)), "all_reduce"),  # what is summed
]


def run(strategy):
    """The product, and the collectives until every device has all of it."""

    def product(a, b):
        c = a @ b
        return {"c": tessera.shard(c, strategy) if strategy else c}

    how = dict(devices=2, parallel_mode="auto_parallel", dataset_strategy="full_batch", threads=1)
    with tessera.compile(product, {"a": (2, 2), "b": (2, 2)}, **how) as step:
        sends = step.plan["programs"]["step"]["sends"]
        return step(a=A, b=B)["c"], "".join(send["kind"] for send in sends)


def main():
    for strategy, expected in VARIANTS:
        code = "matmul(a, b)"
        if strategy:
            (a, b), (c, d) = strategy
            code = f"shard({code}, {{{{{a}, {b}}}, {{{c}, {d}}}}})"
        c, collectives = run(strategy)
        numbers = "[[%g, %g], [%g, %g]]" % tuple(c.ravel())
        print(f"{code:<38} {collectives or 'nothing':<10} {numbers}")
        assert collectives == expected and (c == A @ B).all()


if __name__ == "__main__":
    main()
