#include "tessera/ir/builder.h"

#include <utility>

#include "tessera/ir/op_paths.h"
#include "tessera/tensor/type_fits.h"

namespace tessera {

namespace {

TensorType declared(const OpCall& call) {
  return {call.dtype("dtype"), Shape(call.integers("shape")), {}};
}

/// Every dim of an input is a factor of its own: it takes its placement from pins or from its uses.
Factors free_dims(const OpCall& call) { return Factors::parse("-> ...", call.ndims()); }

std::vector<std::int64_t> ints(const Shape& shape) { return {shape.begin(), shape.end()}; }

constexpr OpDef input_op(std::string_view name, std::string_view doc, std::string_view label) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.attrs = {{label, AttrKind::Text}, {"dtype", AttrKind::DType}, kShapeOfResult};
  op.infer = [](const OpCall& c) -> TensorTypes { return {declared(c)}; };
  op.factors = free_dims;
  op.traits.leaf = true;
  return op;
}

std::int32_t checked_stage(int k, std::string_view what) {
  require(k >= 0, "'", what, "' is put on stage ", k, " of a pipeline; stages count from 0");
  return k;
}

}  // namespace

constinit const OpDef kBatch =
    input_op("batch", "An input of the step that changes with every batch.", "name");
constinit const OpDef kState = input_op(
    "state", "An input that outlives the step: a parameter, a moment, a counter, a cache.", "path");
constinit const OpDef kSlot =
    input_op("slot", "A value that an earlier region hands over.", "name");
constinit const OpDef kReceive =
    input_op("receive", "A value that another stage of a pipeline sends.", "name");

constinit const OpDef kConstant = {
    .name = "constant",
    .doc = "A scalar known when the graph is built.",
    .attrs = {{"value", AttrKind::Float}, {"dtype", AttrKind::DType}},
    .infer = [](const OpCall& c) -> TensorTypes {
      return {{c.dtype("dtype"), {}, {}}};
    },
    .factors = free_dims,
    .traits = {.leaf = true},
};

Builder& Value::builder() const {
  check(builder_ != nullptr, "an empty Value is used");
  return *builder_;
}

const TensorType& Value::type() const { return builder().so_far().type(id_); }

Value Value::stage(int k) const {
  const Node& node = builder().node(*this);
  require(!node.op->traits.leaf, "stage ", k, " is set on a ", node.op->name,
          ", which no op computes; set it on a value that its block computes");
  builder().set_stage(*this, checked_stage(k, node.block));
  return *this;
}

void Builder::note(Value value, std::any what) {
  Node& node = edit(value);
  std::string path = op_paths(graph_)[static_cast<std::size_t>(value.id().node)];
  require(!node.op->traits.leaf && !path.empty(), node.op->name,
          " computes nothing forward, so its computation cannot be configured; give an op that "
          "reads it\n    ",
          describing(graph_, value.id().node));
  if (node.name.empty())
    node.name = node.block.empty() ? path : path.substr(std::string_view(node.block).size() + 1);
  notes_.push_back({std::move(path), std::move(what)});
}

Builder::Builder(Form form, Mesh mesh) {
  graph_.form_ = form;
  graph_.mesh_ = std::move(mesh);
}

Value Builder::batch(std::string_view name, TensorType type, Where where) {
  return add(kBatch, {}, {std::string(name), type.dtype, ints(type.shape)},
             outer(std::move(where)));
}

Value Builder::shared_state(std::string_view name, const TensorType& type) {
  const std::string_view behind = std::string_view(mark_.block).substr(mark_.sharer.str().size());
  const std::string path = text(mark_.owner, behind, ".", name);
  const Value there = known_state(path, type, "shares");
  return mark_.again == Again::Reference ? reference_to(path, type) : there;
}

Value Builder::known_state(const std::string& path, const TensorType& type, const char* does) {
  const auto found = std::ranges::find(graph_.states(), path, &State::path);
  require(found != graph_.states().end(), "block '", mark_.block, "' ", does, " state '", path,
          "', which does not exist; declare that block first, with the same names");
  require(graph_.type(found->value) == type, "block '", mark_.block, "' ", does, " state '", path,
          "', which is ", graph_.type(found->value), ", as ", type, "; give both the same sizes");
  return {*this, found->value};
}

Value Builder::reference_to(const std::string& path, const TensorType& type) {
  const std::string own = text(path, ".", kReferenceName);
  const auto find = [&](const std::string& name) {
    return std::ranges::find(graph_.states(), name, &State::path);
  };
  if (const auto known = find(own); known != graph_.states().end()) return {*this, known->value};
  const Init init = find(path)->init;
  return declare(own, type, Role::Reference, init, mark_.where);
}

Value Builder::state(std::string_view name, TensorType type, Role role, Init init, Where where) {
  if (!mark_.owner.empty()) return shared_state(name, type);
  const std::string path = mark_.block.empty() ? std::string(name) : text(mark_.block, ".", name);
  if (mark_.again != Again::Refused && is_of_model(role)) {
    const Value there = known_state(path, type, "reads again");
    return mark_.again == Again::Reference ? reference_to(path, type) : there;
  }
  return declare(path, type, role, init, outer(std::move(where)));
}

Value Builder::declare(const std::string& path, const TensorType& type, Role role, const Init& init,
                       Where where) {
  require(paths_.insert(path).second, "state '", path,
          "' is declared twice; give one of them another name");
  const Value value = add(kState, {}, {path, type.dtype, ints(type.shape)}, std::move(where));
  graph_.states_.push_back({path, value.id(), role, init, {}, {}});
  return value;
}

Value Builder::slot(std::string_view name, Result result) {
  return handed(kSlot, name, std::move(result));
}

Value Builder::receive(std::string_view name, Result result) {
  return handed(kReceive, name, std::move(result));
}

Value Builder::handed(const OpDef& op, std::string_view name, Result result) {
  const Value value = add(op, {}, {std::string(name), result.type.dtype, ints(result.type.shape)});
  edit(value).results[0] = std::move(result);
  return value;
}

Value Builder::constant(double value, DType dtype, Where where) {
  return add(kConstant, {}, {value, dtype}, std::move(where));
}

Where Builder::outer(Where here) const { return mark_.where.line > 0 ? mark_.where : here; }

Value Builder::add(const OpDef& op, const std::vector<Value>& ins, Attrs attrs, Where where) {
  return add_all(op, ins, std::move(attrs), where)[0];
}

std::vector<Value> Builder::add_all(const OpDef& op, const std::vector<Value>& ins, Attrs attrs,
                                    Where where) {
  Node node;
  node.op = &op;
  node.attrs = std::move(attrs);
  node.block = mark_.block;
  node.phase = mark_.phase;
  node.stage = mark_.stage;
  node.recompute = mark_.phase == Phase::Forward ? mark_.recompute : Recompute::None;
  node.where = where.line > 0 ? where : mark_.where;
  check(op.attrs.allow(node.attrs.size()), op.name, " takes ", op.attrs.size(), " attributes, not ",
        node.attrs.size());
  for (std::size_t i = 0; i < node.attrs.size(); ++i) {
    check(node.attrs[i].index() == static_cast<std::size_t>(op.attrs[i].kind), op.name,
          ": attribute '", op.attrs[i].name, "' has the wrong kind");
  }
  OpCall::Types types;
  for (const Value& in : ins) {
    check(&in.builder() == this, op.name, ": an operand belongs to another graph");
    node.inputs.push_back(in.id());
    types.push_back(&in.type());
  }
  try {
    for (TensorType& type : op.infer(OpCall(op, std::move(types), node.attrs))) {
      require(fits(type), op.name, ": the result ", type,
              " has more than 2^62 bytes; make the model or the batch smaller");
      node.results.push_back({std::move(type), {}, {}});
    }
  } catch (const Error& error) {
    graph_.nodes_.push_back(std::move(node));
    throw error.with(describe(graph_, graph_.size() - 1));
  }
  graph_.nodes_.push_back(std::move(node));
  std::vector<Value> out;
  const NodeId id = graph_.size() - 1;
  for (int i = 0; i < static_cast<int>(graph_.node(id).results.size()); ++i)
    out.push_back({*this, {id, i}});
  return out;
}

std::string Builder::random_path(std::string_view name) {
  std::string path = mark_.block.empty() ? std::string(name) : text(mark_.block, ".", name);
  require(random_paths_.insert(path).second, "random op '", path,
          "' is named twice, so both would draw the same numbers; give one of them another name");
  return path;
}

void Builder::next(Value state, Value value) {
  const std::string path(std::get<std::string>(node(state).attrs[0]));
  require(state.type() == value.type(), "state '", path, "' is ", state.type(),
          ", its next value is ", value.type());
  output(Output::Kind::Next, path, value);
}

void Builder::output(Output::Kind kind, std::string_view name, Value value) {
  graph_.outputs_.push_back({kind, std::string(name), value.id()});
}

void Builder::set_placement(Value value, Placement placement) {
  edit(value).results[static_cast<std::size_t>(value.id().index)].placement = std::move(placement);
}

std::vector<Value> Builder::copy(Node node, ValueIds inputs) {
  node.inputs = std::move(inputs);
  graph_.nodes_.push_back(std::move(node));
  std::vector<Value> out;
  const NodeId id = graph_.size() - 1;
  for (int i = 0; i < static_cast<int>(graph_.node(id).results.size()); ++i)
    out.push_back({*this, {id, i}});
  return out;
}

void Builder::add_state(State state) { graph_.states_.push_back(std::move(state)); }

Graph Builder::finish() { return std::exchange(graph_, Graph()); }

Scope::Scope(Builder& builder, std::string_view name, Where where)
    : builder_(builder), outer_(builder.mark()) {
  Mark inner = outer_;
  inner.block = inner.block.empty() ? std::string(name) : text(inner.block, ".", name);
  inner.where = where;
  builder.set_mark(std::move(inner));
}

SecondPass::SecondPass(Builder& builder, Again what)
    : builder_(builder), outer_(builder.mark().again) {
  Mark mark = builder.mark();
  mark.again = what;
  builder.set_mark(std::move(mark));
}

SecondPass::~SecondPass() {
  Mark mark = builder_.mark();
  mark.again = outer_;
  builder_.set_mark(std::move(mark));
}

void Scope::stage(int k) {
  Mark mark = builder_.mark();
  mark.stage = checked_stage(k, mark.block);
  builder_.set_mark(std::move(mark));
}

void Scope::recompute(Recompute what) {
  Mark mark = builder_.mark();
  mark.recompute = what;
  builder_.set_mark(std::move(mark));
}

void Scope::share_states(std::string_view owner) {
  Mark mark = builder_.mark();
  mark.owner = owner;
  mark.sharer = mark.block;
  builder_.set_mark(std::move(mark));
}

Scope::~Scope() { builder_.set_mark(outer_); }

}  // namespace tessera
