#pragma once
/// The room `plan`: graphs to a plan: calls in order, an address for every tensor, and what it will
/// cost.
/// For: deciding everything before the first step.
/// Not for: one pass (passes), or running it (runtime).
/// Rejected: an allocator while a step runs. All memory is planned in one pool for each memory, so
/// a run cannot run out of it in the middle, a step allocates nothing, and `tessera plan` can tell
/// the bytes.
///
/// From graphs to a plan. compile.cpp names every pass of the compiler, in order, on one page.

#include <functional>
#include <string>
#include <vector>

#include "tessera/ir/strategy.h"
#include "tessera/passes/ring_attention.h"
#include "tessera/passes/strips.h"
#include "tessera/plan/plan.h"
#include "tessera/tensor/machine.h"

namespace tessera {

/// One program of the plan: what it computes, and how it is distributed.
struct ProgramSource {
  std::string name;  // "train", "evaluate", ...
  Graph graph;       // Form::Global
  Strategy strategy;
};

/// A graph that a pass leaves: of the whole step, or of one region ("forward").
struct PassGraph {
  std::string region;
  const Graph* graph = nullptr;
  int stage = -1;  // of a pipeline, whose region it is; -1: of all stages
};

/// Graph optimisation: what is done for speed and memory alone. Results are the same without it,
/// but for rounding.
struct Optimizations {
  bool simplify = true;        // useless and repeated nodes go, constants are folded
  bool dispatch = true;        // of rows of experts, ranks send each other those that are read
  bool strips = true;          // of wide values, as logits are, only some rows are there at a time
  bool advance = true;         // sums of squares of gradients, where these are in the caches
  bool fuse = true;            // several ops are one pass over memory
  bool pack = true;            // weights in the order that products read, where the device wants it
  bool shares_buffers = true;  // views lie in their operand, and ops work in place
  bool vendor_kernels = true;  // as Plan::vendor_kernels

  static Optimizations all(bool on) { return {on, on, on, on, on, on, on, on}; }
};

class PassCheck;

struct CompileOptions {
  std::uint64_t seed = 1;  // of random ops
  bool tf32 = false;       // as Plan::tf32
  Optimizations optimize;
  StripLimits strips;        // which values are computed in strips
  RingLimits rings;          // which rings of keys and values are balanced
  bool overlap = true;       // collectives run while kernels do
  bool verified = true;      // graphs after every pass: a fifth of the time of short models
  bool exact_layout = true;  // as of plan_memory(); false: faster, perhaps more bytes
  Machine machine = {};      // what collectives cost, by the levels of the mesh's axes
  int rank = 0;  // of the world: all stages of the strategies' pipeline, which is the same in all
  /// Free bytes on both sides of every buffer, which the executor fills and checks after every
  /// call: a multiple of kAlignment, for tests.
  std::int64_t guard_bytes = 0;
  /// States that no program writes, one for all ranks of a process that have the same part of
  /// them: Place::Section::Base. Empty: none.
  std::function<bool(const State&)> base = {};
  /// Keeps what each program computes, before the passes that are for kernels: ProgramPlan::local.
  bool keeps_local = false;
  /// Called after each pass with its program, its name and the graphs it leaves (one, or one per
  /// region).
  std::function<void(const std::string& program, const std::string& pass,
                     const std::vector<PassGraph>&, double seconds)>
      observe;
  /// Compares the numbers before and after each pass (pass_check.h); null: nobody does. Of a
  /// pipeline all stages must be compiled.
  PassCheck* check = nullptr;
  /// Called with each graph that a pass leaves, before it is verified and checked, and may change
  /// it: tests plant wrong passes here.
  std::function<void(const std::string& pass, Graph&)> plant;
};

/// With a pipeline: what one rank of one stage runs. The blocks are cut as it suits the program
/// that computes most; the others, which share its states, follow. Errors: programs on meshes whose
/// ranks differ, or on unlike pipelines; Broken where the stages would wait for each other. As the
/// passes'; each is completed by the line "in pass <name> of program <name>".
Plan compile(std::vector<ProgramSource> sources, Device& device,
             const CompileOptions& options = {});

/// The plans of the first ranks of all stages, in order; the other ranks of a stage have plans of
/// the same sizes and times. `options.rank` is of no meaning.
std::vector<Plan> compile_stages(std::vector<ProgramSource> sources, Device& device,
                                 const CompileOptions& options = {});

}  // namespace tessera
