"""Optimizers, with the numbers of src/tessera/nn/optimizer.h."""

from __future__ import annotations

import dataclasses
from typing import Optional, Sequence


@dataclasses.dataclass(frozen=True)
class ParameterGroup:
    """Parameters whose paths match one of `paths` ('*' is any text), and what is other for them.

    weight_decay  None: the optimizer's
    lr_scale      times the learning rate
    optional      False: that no parameter matches is an error
    """

    paths: Sequence[str]
    weight_decay: Optional[float] = None
    lr_scale: float = 1.0
    optional: bool = False


@dataclasses.dataclass(frozen=True)
class _Optimizer:
    """
    lr            the highest learning rate
    schedule      "constant", "linear" or "cosine": from lr to min_lr at step decay_steps, which must
                  be given with these two, after warmup_steps from 0
    weight_decay  of parameters with two or more dims; groups say it for others
    clip          largest norm of all gradients together; 0: gradients are not clipped
    groups        ParameterGroups; of several that match the last one holds
    """

    lr: float = 1e-3
    weight_decay: float = 0.01
    clip: float = 1.0
    schedule: str = "constant"
    min_lr: float = 0.0
    warmup_steps: int = 0
    decay_steps: int = 0
    groups: Sequence[ParameterGroup] = ()

    kind = ""

    def asked(self) -> dict:
        return {"kind": self.kind, **{f.name: getattr(self, f.name) for f in dataclasses.fields(self)}}


def _like(kind: str, what: str):
    def make(cls: type) -> type:
        cls.__doc__ = f"{what}\n{_Optimizer.__doc__}"
        setattr(cls, "kind", kind)
        return dataclasses.dataclass(frozen=True)(cls)

    return make


@_like("adamw", "Adam with decoupled weight decay.")
class AdamW(_Optimizer):
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8


@_like("adam", "Adam, whose weight decay is a part of the gradient.")
class Adam(AdamW):
    pass


@_like("adam-weight-decay", "MindSpore's AdamWeightDecay: AdamW without correction of bias.")
class AdamWeightDecay(AdamW):
    eps: float = 1e-6
    weight_decay: float = 0.0


@_like("sgd", "Stochastic gradient descent with momentum.")
class Sgd(_Optimizer):
    momentum: float = 0.9
    nesterov: bool = False


@_like("lamb", "LAMB: each parameter's step is as large as the parameter.")
class Lamb(AdamW):
    min_trust_ratio: float = 0.0
    max_trust_ratio: float = 0.0


def decay_groups(decay: float = 0.1) -> list:
    """`decay` for all parameters, whatever their dims, but none for norms and biases."""
    return [
        ParameterGroup(["*"], weight_decay=decay),
        ParameterGroup(["*norm*", "*bias*"], weight_decay=0.0, optional=True),
    ]
