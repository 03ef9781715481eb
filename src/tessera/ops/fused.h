#pragma once
/// Several elementwise ops run as one: what lies between them is never written to memory.

#include <memory>
#include <vector>

#include "tessera/ir/builder.h"

namespace tessera {

/// `body` applied to `ins`. Operand i is its batch input text(i); its Metric outputs, in order, are
/// the results. The body holds elementwise ops and constants only; its results have one shape, to
/// which its inputs broadcast. Errors: operands whose types are not those of the body's inputs.
std::vector<Value> fused(const std::vector<Value>& ins, std::shared_ptr<const Graph> body,
                         Where where = {});

/// True of ops that a body may hold, beside constants.
bool may_be_fused(const OpDef& op);

extern const OpDef kFused;

}  // namespace tessera
