#pragma once
/// The ops that models are written with. What passes and optimizers add to a graph beside them has
/// headers of its own.

#include "tessera/ops/attention.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/norm.h"
#include "tessera/ops/random.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/rotary.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/ops/softmax.h"
