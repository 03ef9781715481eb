#pragma once
/// The room `ir`: graphs, their builder, text form and verifier, and what an op is.
/// For: a training step, update included, as one value that passes turn into another.
/// Not for: which ops there are (ops), or what is done with a graph (passes, plan).
/// Rejected: eager execution, control flow in a step, and shapes that change from step to step: the
/// compiler sees everything and can place, overlap and plan all of it. A list of communications
/// beside the graph: `reshard` nodes are in it, so its text shows all that will be sent.
///
/// The graph: an immutable SSA list of nodes with static shapes. A training step is one graph.

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/name.h"
#include "tessera/base/shared.h"
#include "tessera/base/small_vector.h"
#include "tessera/ir/op_def.h"
#include "tessera/ir/recompute.h"
#include "tessera/tensor/sharding.h"

namespace tessera {

using NodeId = std::int32_t;

/// Result `index` of node `node`.
struct ValueId {
  NodeId node = -1;
  std::int32_t index = 0;
  bool valid() const { return node >= 0; }
  friend auto operator<=>(const ValueId&, const ValueId&) = default;
};

/// "%12" or "%12.1"
std::string to_text(ValueId id);

using ValueIds = SmallVector<ValueId, 4>;

/// The line of source code that made a node; errors and dumps show it.
struct Where {
  const char* file = "";  // "nn/gpt.cpp": below src/tessera/, or with its folder
  int line = 0;
  std::shared_ptr<const std::string> owner =
      {};  // owns `file` if it was read from text and is no literal
  static Where here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {short_name(file), line};
  }
  static Where read(std::string file, int line);
  friend bool operator==(const Where& a, const Where& b);

 private:
  static const char* short_name(const char* file);
};

enum class Phase : std::uint8_t { Forward, Backward, Update };

/// How far a graph has been compiled, and what it therefore promises; `verify` checks it.
enum class Form : std::uint8_t {
  Global,  // whole tensors, no placements
  Placed,  // whole tensors, every value has a placement
  Local,   // the shapes of one rank's shards; values keep their placement and the whole shape
};

/// One result of a node.
struct Result {
  TensorType type;
  Shared<Placement> placement;  // Placed, Local
  Shape logical;                // Local: the shape of the whole tensor
  friend bool operator==(const Result&, const Result&) = default;
};

/// Says that a backward value is the gradient of the loss with respect to value `of`, or (if not
/// `final`) one of several contributions to it, which are summed.
struct Cotangent {
  ValueId of;
  bool final = true;
  friend bool operator==(const Cotangent&, const Cotangent&) = default;
};

struct Node {
  const OpDef* op = nullptr;
  ValueIds inputs;
  Attrs attrs;
  std::vector<Result> results;  // addresses are stable while the graph grows

  Name block;  // path of the part of the model it belongs to: "layers.7.attn"; may be empty
  Phase phase = Phase::Forward;
  Recompute recompute = Recompute::None;  // forward nodes: what backward is to do about them;
                                          // recomputed copies: what they were made for
  std::int32_t stage = -1;                // -1: not placed on a pipeline stage
  Where where;
  Name name;                           // for strategies that refer to it: "residual"; mostly empty
  std::optional<Cotangent> cotangent;  // backward nodes
  NodeId like = -1;      // gradients of products and lookups: the forward node whose sharding they
                         // follow
  NodeId remat_of = -1;  // of a recomputed copy: the original

  const TensorType& type(int result = 0) const {
    return results[static_cast<std::size_t>(result)].type;
  }
  friend bool operator==(const Node& a, const Node& b);
};

/// The first value of a state: a pure function of (seed, path).
struct Init {
  enum class Kind : std::uint8_t {
    Constant,
    Normal,           // of mean 0
    Uniform,          // in [-value, value)
    TruncatedNormal,  // drawn again beyond two standard deviations
  } kind = Kind::Constant;
  double value =
      0;  // the constant, the standard deviation (before what is beyond is cut), the bound
  friend bool operator==(const Init&, const Init&) = default;
};

/// What a state is for. A cache holds what earlier runs computed of the current sequence, such as
/// the keys and values of attention while text is generated. A copy is a parameter, whose path its
/// own extends, in the 16 bits that forward and backward read. A scale is what the loss is
/// multiplied by, or counts when that changes. A rate is a learning rate in place of the schedule's.
/// Reference: what a parameter was when training began; nothing updates it. A buffer is a number of
/// the model that has no gradient: steps say what follows it.
enum class Role : std::uint8_t {
  Parameter,
  Moment,
  Counter,
  Cache,
  Copy,
  Scale,
  Rate,
  Reference,
  Buffer
};

/// True where checkpoints hold states of this role: a cache is of no use to a later process, and a
/// copy is made again.
constexpr bool is_saved(Role role) { return role != Role::Cache && role != Role::Copy; }
/// True of the numbers that a model consists of.
constexpr bool is_of_model(Role role) { return role == Role::Parameter || role == Role::Buffer; }
/// True of what a run begins with as its Init says where a checkpoint has none of it.
constexpr bool is_setting(Role role) { return role == Role::Scale || role == Role::Rate; }

/// A tensor that lives from step to step and has one next value.
struct State {
  std::string path;
  ValueId value;
  Role role = Role::Parameter;
  Init init;
  Shared<Placement> home, use;  // as stored and updated; as forward and backward read it (ZeRO)
  friend bool operator==(const State&, const State&) = default;
};

/// Extends the path of a parameter to that of its reference.
inline constexpr const char* kReferenceName = "reference";

/// The path of the parameter that a moment, a copy or a reference belongs to, which its own extends
/// by one name; of other states their own.
std::string_view parameter_path(const State& state);

class Graph;
/// Paths of the parameters that have a copy: of these, only the update reads the numbers
/// themselves.
std::set<std::string> copied_parameters(const Graph& graph);

/// A value that the graph hands out under a name.
struct Output {
  enum class Kind : std::uint8_t {
    Next,        // the next value of state `name`
    Metric,      // read by the caller after a step: loss, grad_norm
    Slot,        // read by a later region of the step
    Accumulate,  // one term of a sum over micro-batches, which a later region reads as slot `name`
    Send,        // received by another stage of a pipeline, as message `name`
  } kind = Kind::Metric;
  std::string name;
  ValueId value;
  friend bool operator==(const Output&, const Output&) = default;
};

class Graph {
 public:
  Graph() = default;

  Form form() const { return form_; }
  const Mesh& mesh() const { return mesh_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const Node& node(NodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  NodeId size() const { return static_cast<NodeId>(nodes_.size()); }
  const TensorType& type(ValueId v) const { return node(v.node).type(v.index); }
  const Result& result(ValueId v) const {
    return node(v.node).results[static_cast<std::size_t>(v.index)];
  }
  const std::vector<State>& states() const { return states_; }
  const State* find_state(std::string_view path) const;
  const std::vector<Output>& outputs() const { return outputs_; }
  /// The output of that kind and name; an invalid id if there is none.
  ValueId output(Output::Kind kind, std::string_view name) const;

  /// The node as its op sees it. Valid as long as the graph.
  OpCall call(NodeId id) const;
  Factors factors(NodeId id) const;

  friend bool operator==(const Graph&, const Graph&) = default;

 private:
  friend class Builder;
  Form form_ = Form::Global;
  Mesh mesh_;
  std::vector<Node> nodes_;
  std::vector<State> states_;
  std::vector<Output> outputs_;
};

/// A call over result types that live elsewhere, with sizes of factors filled in and checked.
Factors factors_of(const OpCall& call);

/// For messages: "node %12 = matmul(%10, %11), layers.3.mlp.up, written at nn/gpt.cpp:88".
std::string describe(const Graph& graph, NodeId id);
/// The same, computed only if a check fails.
inline auto describing(const Graph& graph, NodeId id) {
  return [&graph, id] { return describe(graph, id); };
}

}  // namespace tessera
