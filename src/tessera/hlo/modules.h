#pragma once
/// The room `hlo`: programs as StableHLO modules, the text that XLA's plugins compile.
/// For: saying in StableHLO what a program computes on all ranks of a stage, and what its modules
/// read, write and take over.
/// Not for: plugins and buffers (pjrt), or deciding anything about the program (passes).
/// Rejected: a module for each rank, as each would be compiled. All ranks run one, as replicas, and
/// what differs is looked up by the replica's number. The partitioner of XLA: ours has decided, and
/// collectives are written as they are. Building modules through MLIR's libraries, which are larger
/// than all of this program.
///
/// From programs to modules.

#include <optional>
#include <string>
#include <vector>

#include "tessera/hlo/options.h"
#include "tessera/passes/program.h"

namespace tessera::hlo {

/// A value that enters or leaves a module.
struct Port {
  enum class Kind : std::uint8_t {
    State,       // a state, by its path; its next value
    Batch,       // an input of the step, with the rows of all micro-batches
    Metric,      // read by the host behind the step
    Slot,        // from one module to a later one of the same stage
    Message,     // from one stage to another
    Sum,         // of micro-batches so far, by the name of its slot
    Operand,     // of a node on its own: "in0"; its results are "out0"
    Microbatch,  // which one runs: an i64 scalar
  } kind = Kind::State;
  std::string name;
  Result result;  // the type that each rank stores, the whole shape and its placement
  /// Of a Sum: what it begins with is this monoid's identity.
  Monoid monoid = Monoid::Sum;
  /// Of a Slot or Message: each micro-batch has its own.
  bool each_microbatch = false;
  int from = -1, to = -1;  // stages, of a Message
};
/// "state layers.0.weight", "metric loss"
std::string to_text(const Port& port);

struct Module {
  /// The argument's buffer becomes the result's.
  struct Donation {
    int argument = 0, result = 0;
    friend bool operator==(const Donation&, const Donation&) = default;
  };
  std::string name, text;
  Mesh mesh;  // of its ranks, which are its replicas, and axes of time
  std::vector<Port> arguments, results;
  std::vector<Donation> donations;

  std::int64_t replicas() const { return mesh.ranks(); }
  /// Where that argument or result is; -1: there is none.
  int argument(Port::Kind kind, std::string_view name) const;
  int result(Port::Kind kind, std::string_view name) const;
};

/// A program without a pipeline as one module: Begin, the loop over micro-batches, Update. States
/// that it reads are arguments, and those that have a next value donate their buffers to it.
/// Errors:  Usage: an op, dtype or size that has no form in StableHLO; the message names op, types
///          and block. Broken: the program exchanges messages with other stages.
Module whole_module(const std::string& name, const Program& program,
                    const EmitOptions& options = {});

/// A module of one stage: a region, or of Begin and Update what has one level (levels.h). `chunk`:
/// of the stage, as in Region.
struct Piece {
  RegionKind region = RegionKind::Forward;
  int chunk = 0, level = 0;
  Module module;
};
/// The programs of all stages of a pipeline as modules, by stage, in an order in which they could
/// run. A region of the loop runs once for each micro-batch, in the order of the stage's actions;
/// its sums are handed from one to the next, and what they begin with is a piece of Begin's. Between
/// levels of a region values go as slots.
///
/// Next values of states count behind the step. A state donates its buffer where no later piece of
/// its stage reads it.
/// Errors: as whole_module.
std::vector<std::vector<Piece>> staged_modules(const std::string& name,
                                               const std::vector<Program>& stages,
                                               const EmitOptions& options = {});

/// One node alone: its operands are arguments, its results the results. `microbatch`: which one it
/// runs in.
Module node_module(const Graph& graph, NodeId id, const EmitOptions& options = {},
                   std::int64_t microbatch = 0);

}  // namespace tessera::hlo
