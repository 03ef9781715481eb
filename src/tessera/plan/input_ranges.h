#pragma once
/// Which numbers a program can take of its batch inputs: labels below the number of classes, ids
/// below the number of rows. Ops read zeros where an index is out of range, so that a loss would be
/// wrong without a word.

#include <map>
#include <string>

#include "tessera/ir/graph.h"
#include "tessera/tensor/batch_inputs.h"

namespace tessera {

using InputRanges = std::map<std::string, InputRange, std::less<>>;

/// Ranges of the batch inputs that are labels of a cross_entropy or ids of a table that is a state,
/// directly or through ops that only move numbers. With several readers the smallest range holds.
/// Values computed from an input are not followed, as their numbers may differ. `graph`: as
/// written, in Form::Global.
InputRanges input_ranges(const Graph& graph);

}  // namespace tessera
