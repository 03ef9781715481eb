#pragma once
/// Ops that do what a neighbour would do in a pass over memory of its own. For fuse.cpp.

#include "tessera/passes/program.h"

namespace tessera {

/// A scatter_add whose result is only added to a value adds onto that value: no table of zeros, and
/// no sum of two tables, as a tied embedding has. Sums are made in another order.
///
/// In, out: Form::Global or Form::Local.
Graph add_onto(const Graph& graph);

/// An update whose new parameter is rounded to 16 bits by a cast makes that copy as one more result
/// (kCopyDType), where both are in one memory: the parameter is in a register then.
///
/// A copy that is made early takes its place back early. Before, gradients may lie there that were
/// computed after the loop had read the copy for the last time; those that Update has not read yet
/// would need other places, and the step more memory (never wrong numbers: the plan of memory knows
/// when a copy is made). So a copy stays a cast where a later update is of a parameter whose copy
/// was read later.
///
/// In, out: regions in Form::Local.
Program copy_beside(Program program);

}  // namespace tessera
