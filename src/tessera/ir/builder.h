#pragma once
/// Builds graphs. Models and passes add nodes; the finished graph does not change.

#include <any>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "tessera/ir/graph.h"

namespace tessera {

class Builder;

/// A value of a graph under construction, without numbers: `softmax(x, -1)`, `x + y` are values.
class Value {
 public:
  Value() = default;
  Value(Builder& builder, ValueId id) : builder_(&builder), id_(id) {}

  bool valid() const { return builder_ != nullptr; }
  ValueId id() const { return id_; }
  Builder& builder() const;
  const TensorType& type() const;
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }
  int ndim() const { return type().ndim(); }

  /// In a pipeline, puts the op that computes this value, and with it the block that the op is in,
  /// on chunk `k`, counted from the input on; only where a stage has one chunk is that stage k.
  /// Without a pipeline it is ignored. Returns the value: `x = feed_forward(x, ...).stage(1)`.
  /// Errors:  k below 0; a value that no op computes.
  Value stage(int k) const;

 private:
  Builder* builder_ = nullptr;
  ValueId id_;
};

/// What is read of a parameter that is declared once more.
enum class Again : std::uint8_t {
  Refused,    // an error
  Same,       // itself
  Reference,  // what it was when training began: a state of Role::Reference
};

/// The marks of new nodes.
struct Mark {
  Name block;
  Phase phase = Phase::Forward;
  std::int32_t stage = -1;
  Where where;
  Recompute recompute = Recompute::None;
  Name owner = {}, sharer = {};  // states of block `sharer` are those of block `owner`
  Again again = Again::Refused;
};

class Builder {
 public:
  explicit Builder(Form form = Form::Global, Mesh mesh = {});
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  // Inputs.
  Value batch(std::string_view name, TensorType type, Where where = Where::here());
  /// A state under the current block: path = block + "." + name; or, where a scope shares the
  /// states of another block, the one that is there; or what a SecondPass says. Errors: a path
  /// twice; of a shared one: it is not there, or of another type.
  Value state(std::string_view name, TensorType type, Role role, Init init,
              Where where = Where::here());
  Value slot(std::string_view name, Result result);
  Value receive(std::string_view name, Result result);
  /// A scalar.
  Value constant(double value, DType dtype = DType::F32, Where where = {});

  // Nodes. `attrs` are in the order in which the op declares them.
  Value add(const OpDef& op, const std::vector<Value>& ins, Attrs attrs = {}, Where where = {});
  std::vector<Value> add_all(const OpDef& op, const std::vector<Value>& ins, Attrs attrs = {},
                             Where where = {});

  // Outputs.
  void next(Value state, Value value);
  void output(Output::Kind kind, std::string_view name, Value value);

  /// The key path of a random op: the current block and `name`. Errors: it is taken, as two ops
  /// would draw the same numbers.
  std::string random_path(std::string_view name);

  // Marks of the node that made a value.
  void set_name(Value value, std::string_view name) { edit(value).name = name; }
  void set_cotangent(Value value, Cotangent cotangent) { edit(value).cotangent = cotangent; }
  void set_like(Value value, NodeId like) { edit(value).like = like; }
  void set_stage(Value value, std::int32_t stage) { edit(value).stage = stage; }
  void set_recompute(Value value, Recompute what) { edit(value).recompute = what; }
  void set_placement(Value value, Placement placement);

  /// The marks of the nodes that follow; a Scope sets them while it lives.
  const Mark& mark() const { return mark_; }
  void set_mark(Mark mark) { mark_ = std::move(mark); }
  /// The place of the layer that is being written, where there is one; else `here`.
  Where outer(Where here) const;

  const Node& node(Value value) const { return graph_.node(value.id().node); }
  const Graph& so_far() const { return graph_; }

  /// A remark on the op that made the value, which a room above reads (shard/shard.h). The op gets
  /// a name if it has none. Errors: a value that no op computes.
  struct Note {
    std::string op;  // its path (ir/op_paths.h)
    std::any what;
  };
  void note(Value value, std::any what);
  const std::vector<Note>& notes() const { return notes_; }

  // For passes: nodes and states carried over from another graph.
  /// A copy of `node` (with its marks and result types) on other inputs; ids in cotangent, like,
  /// remat_of are kept as given.
  std::vector<Value> copy(Node node, ValueIds inputs);
  void add_state(State state);

  /// The graph; the builder is empty afterwards.
  Graph finish();

 private:
  Value handed(const OpDef& op, std::string_view name, Result result);
  Value shared_state(std::string_view name, const TensorType& type);
  Value known_state(const std::string& path, const TensorType& type, const char* does);
  Value reference_to(const std::string& path, const TensorType& type);
  Value declare(const std::string& path, const TensorType& type, Role role, const Init& init,
                Where where);
  Node& edit(Value value) { return graph_.nodes_[static_cast<std::size_t>(value.id().node)]; }
  Graph graph_;
  Mark mark_;
  std::vector<Note> notes_;
  std::unordered_set<std::string> paths_, random_paths_;  // of states and random ops declared here
};

/// An operand, with the place in the source where it was handed to an op: that of the layer around
/// it, where there is one. Functions that cannot take a Where, as operators, take this.
struct At : Value {
  At(Value value, Where here = Where::here())  // NOLINT: a value is an operand
      : Value(value), where(value.builder().outer(std::move(here))) {}
  Where where;
};

/// While it lives, new nodes belong to the block `name` inside the current one.
class Scope {
 public:
  Scope(Builder& builder, std::string_view name, Where where = Where::here());
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  /// The same as Value::stage for all that follows in this scope.
  void stage(int k);
  /// What follows in this scope is not kept for backward, but computed again there. Only what is
  /// read inside its block (ir/blocks.h) can be; what other blocks read is kept all the same.
  void recompute(Recompute what = Recompute::Full);
  /// States that are declared in this scope are those which the block of path `owner` has under the
  /// same names, and which are there already: layers that share their weights.
  void share_states(std::string_view owner);

 private:
  Builder& builder_;
  Mark outer_;
};

/// While it lives, a model that has been written may be written again, in the same blocks, on other
/// inputs or with the weights that it began with. Errors: a parameter that was not there before.
class SecondPass {
 public:
  SecondPass(Builder& builder, Again what);
  ~SecondPass();
  SecondPass(const SecondPass&) = delete;
  SecondPass& operator=(const SecondPass&) = delete;

 private:
  Builder& builder_;
  Again outer_;
};

// Leaf ops: inputs as nodes.
extern const OpDef kBatch, kState, kSlot, kReceive, kConstant;

}  // namespace tessera
