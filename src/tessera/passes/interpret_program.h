#pragma once
/// Runs a program on all ranks of its mesh in lock-step, with reference kernels: what a plan must
/// compute, without device, threads and `comm`.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tessera/ops/interpret_ranks.h"
#include "tessera/passes/program.h"

namespace tessera {

/// One node whose exchange is left out (interpret_ranks.h).
struct Deleted {
  int region = -1;  // of the program
  NodeId node = -1;
  bool compare_replicas = false;
};

/// Outputs by name, whole: metrics as they are, next values of states as "next <path>". `inputs`
/// are whole. Errors: replicas that differ in a bit; but where something is deleted, and replicas
/// are not to be compared, the first rank's count, as they do for who reads a step's results; a
/// next value with something other than zeros in its padding.
std::map<std::string, HostTensor> interpret_program(const Program& program, const Bindings& inputs,
                                                    const Interpretation& how = {},
                                                    const Deleted& deleted = {});
/// The same for all stages of a pipeline. Errors: Broken besides: stages that wait for each other;
/// metrics of which two stages have different bits.
/// `observe` is called after each node, with each of its results by rank.
using RanksObserver =
    std::function<void(const Graph& region, NodeId id, const std::vector<HostTensor>& by_rank)>;
std::map<std::string, HostTensor> interpret_stages(const std::vector<Program>& stages,
                                                   const Bindings& inputs,
                                                   const Interpretation& how = {},
                                                   const RanksObserver& observe = {});

}  // namespace tessera
