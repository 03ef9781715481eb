#pragma once
/// The frame of a module: its head, its main function and the others.

#include <set>

#include "tessera/hlo/emitter.h"
#include "tessera/hlo/modules.h"

namespace tessera::hlo {

/// A module that is being written. Arguments are added first, results last.
class ModuleText {
 public:
  ModuleText(std::string name, const Mesh& mesh, const EmitOptions& options);

  Emitter& emitter() { return emitter_; }
  Code& code() { return code_; }
  /// The value of a new argument.
  Value argument(Port port);
  void result(Port port, const Value& value);
  /// The argument keeps its buffer, though its next value is a result.
  void keep(Port::Kind kind, const std::string& name) { kept_.emplace(kind, name); }
  /// The module. A state donates its buffer to its next value, a sum of micro-batches to the next.
  Module finish();

 private:
  std::string main_text() const;

  Module module_;
  EmitOptions options_;
  Functions functions_;
  Code code_;
  Emitter emitter_;
  Values values_;  // of the results
  std::set<std::pair<Port::Kind, std::string>> kept_;
};

/// The port of a leaf, by its op.
Port port_of_leaf(const Node& leaf);
/// The port of an output: Accumulate is a Sum.
Port port_of_output(const Graph& graph, const Output& output);

}  // namespace tessera::hlo
