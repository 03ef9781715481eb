#pragma once
/// Files that show how a program is spread, and what one rank of it does.

#include <functional>
#include <string>
#include <vector>

#include "tessera/plan/compile.h"

namespace tessera {

/// An observer for CompileOptions. Of the program named `program` it writes, numbered in the order
/// in which passes come:
///
///   FOLDER/rank_<rank>/step_parallel_begin_<nnnn>.ir   each op with its strategy
///   FOLDER/rank_<rank>/<nn>_execute_<nnnn>.ir          what the rank runs, with its own shapes and
///                                                      groups (plan/graph_dump.h for both)
///
/// Errors, when it is called: a folder that cannot be made or written to.
decltype(CompileOptions::observe) save_graphs(std::string folder, std::string program, int rank);

}  // namespace tessera
