#include <map>
#include <optional>

#include "tessera/base/hash.h"
#include "tessera/device/cpu/in_f32.h"
#include "tessera/device/cpu/vector_families.h"
#include "tessera/device/cpu/vector_program.h"
#include "tessera/ir/builder.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/fused.h"
#include "tessera/ops/random.h"
#include "tessera/ops/reduce.h"
#include "tessera/tensor/host_tensor.h"

namespace tessera::cpu {

namespace {

class ProgramKernel final : public Kernel {
 public:
  ProgramKernel(std::string_view name, Program program, Pool& pool)
      : name_(name), program_(std::move(program)), pool_(&pool) {
    program_.finish(pool.threads());
  }
  std::string_view name() const override { return name_; }
  std::int64_t workspace_bytes() const override { return program_.workspace_bytes(); }
  void run(const KernelArgs& args) const override { program_.run(args, *pool_); }

 private:
  std::string_view name_;
  Program program_;
  Pool* pool_;
};

constexpr std::string_view kElementwise = "hwy:elementwise", kRowwise = "hwy:rows";

/// The value of one op in the program, or -1 where no tile function computes it. Where there is
/// none of its 16 bits, that of f32 is taken.
Program::Reg add_op(Program& program, const OpCall& call, std::vector<Program::Reg> ins) {
  const OpDef* op = &call.op();
  // What only repeats a value, or names it, needs no step: values have the program's shape already.
  if (op == &kIdentity || op == &kWholeBatch || op == &kStopGradient || op == &kGradient ||
      op == &kBroadcast)
    return ins[0];
  const DType dtype = call.out(0).dtype;
  if (op == &kCast && call.in(0).dtype == dtype) return ins[0];
  const TensorType type{dtype, {}, {}};
  const Attrs none;
  const OpCall add(kAdd, {&type, &type}, none, {&type});
  const bool adds = op == &kAddN, rounds_each = adds && is_16_bit(dtype) && ins.size() > 2;
  const TileFunction function = rounds_each ? nullptr : tile_function(adds ? add : call);
  if (function == nullptr && has_16_bit(call)) {
    const CallInF32 wide(call);
    for (Program::Reg& in : ins) in = program.widened(in);
    const Program::Reg out = add_op(program, *wide, std::move(ins));
    return out < 0 ? out : program.narrowed(out, dtype);
  }
  if (function == nullptr) return -1;
  if (!adds) return program.apply(function, ins, dtype);
  Program::Reg total = ins[0];
  for (std::size_t i = 1; i < ins.size(); ++i)
    total = program.apply(function, {total, ins[i]}, dtype);
  return total;
}

/// The values of an op that is handed more than elements; empty where no function computes it, or a
/// result is none that a program has. `tiling` gives its function for a call: one of 16 bits reads
/// and writes what has operand 0's shape in these, and the rest in f32.
template <typename Tilings>
std::vector<Program::Reg> add_rows(Program& program, const OpCall& call, const BodySpace& space,
                                   std::vector<Program::Reg> ins, const Tilings& tiling) {
  const Tiling function = tiling(call);
  if (function.function == nullptr && has_16_bit(call)) {
    const CallInF32 wide(call);
    for (Program::Reg& in : ins) in = program.widened(in);
    std::vector<Program::Reg> out = add_rows(program, *wide, space, std::move(ins), tiling);
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (space.each(call.out(static_cast<int>(i)).shape) == Program::Each::Element)
        out[i] = program.narrowed(out[i], call.out(static_cast<int>(i)).dtype);
    }
    return out;
  }
  if (function.function == nullptr) return {};
  std::vector<Program::Made> outs;
  for (int i = 0; i < call.num_out(); ++i) {
    const std::optional<Program::Each> each = space.each(call.out(i).shape);
    const DType dtype = call.out(i).dtype;
    if (!each || (each == Program::Each::Row && is_16_bit(dtype))) return {};
    outs.push_back({*each, each == Program::Each::Element ? dtype : computed_in(dtype)});
  }
  for (std::size_t i = 0; i < ins.size(); ++i) {
    if (call.in(static_cast<int>(i)).shape != call.in(0).shape) ins[i] = program.widened(ins[i]);
  }
  return program.apply(function, ins, outs);
}

/// Operands of the call as registers, each made where it is first read so.
class Operands {
 public:
  Operands(Program& program, const KernelRequest& request) : program_(program), request_(request) {}

  /// Repeated to the program's shape.
  Program::Reg broadcast(int i) {
    return once(i, -1,
                [&] { return program_.operand(i, request_.call.in(i), strides_of(request_, i)); });
  }
  /// As a function reads it that is handed more than elements; -1 where it cannot be.
  Program::Reg as_it_lies(int i, std::optional<Program::Each> each) {
    const DType dtype = request_.call.in(i).dtype;
    if (!each) return -1;
    if (each == Program::Each::Element) return broadcast(i);
    // One row for all: each tile begins with one.
    if (is_16_bit(dtype)) return each == Program::Each::Whole ? broadcast(i) : -1;
    if (!is_dense(request_, i)) return -1;
    return once(i, static_cast<int>(*each), [&] { return program_.pointer(i, dtype, *each); });
  }

 private:
  template <typename Make>
  Program::Reg once(int i, int how, const Make& make) {
    const auto found = regs_.find({i, how});
    return found != regs_.end() ? found->second
                                : regs_.emplace(std::pair(i, how), make()).first->second;
  }

  Program& program_;
  const KernelRequest& request_;
  std::map<std::pair<int, int>, Program::Reg> regs_;
};

/// Turns the body of a fused node into steps of a program. Values have the dtypes of the body, so
/// those of 16 bits are rounded before another op reads them, as they are where each op is a call
/// of its own: fused or not, bits are the same.
class Body {
 public:
  Body(Program& program, const KernelRequest& request)
      : program_(program),
        request_(request),
        body_(request.call.graph("body")),
        space_(space_of_body(body_)),
        operands_(program, request) {
    for (const Node& node : body_.nodes()) made_.emplace_back(node.results.size(), -1);
  }

  /// False where no function computes one of the ops.
  bool add() {
    for (NodeId id = 0; id < body_.size(); ++id) {
      if (body_.node(id).op != &kBatch && !add(id)) return false;
    }
    for (std::size_t i = 0; i < body_.outputs().size(); ++i) {
      const ValueId value = body_.outputs()[i].value;
      const Program::Reg reg = read(value);
      const DType dtype = request_.call.out(static_cast<int>(i)).dtype;
      const bool per_row = space_.each(body_.type(value).shape) == Program::Each::Row;
      if (reg < 0 || (per_row && is_16_bit(dtype))) return false;
      program_.result(reg, dtype);
    }
    return true;
  }

 private:
  Program::Reg& made(ValueId value) {
    return made_[static_cast<std::size_t>(value.node)][static_cast<std::size_t>(value.index)];
  }

  Program::Reg read(ValueId value) {
    const Node& node = body_.node(value.node);
    if (node.op == &kBatch)
      return operands_.broadcast(operand_of_body(node, request_.call.num_in()));
    return made(value);
  }

  /// As a function reads it that is handed more than elements; -1 where it cannot be.
  Program::Reg read_as_it_lies(ValueId value) {
    const Node& node = body_.node(value.node);
    if (node.op != &kBatch) return read(value);
    return operands_.as_it_lies(operand_of_body(node, request_.call.num_in()),
                                space_.each(body_.type(value).shape));
  }

  bool add(NodeId id) {
    const Node& node = body_.node(id);
    std::vector<Program::Reg>& out = made_[static_cast<std::size_t>(id)];
    const DType dtype = node.type().dtype;
    if (node.op == &kConstant) {
      HostTensor value(node.type());  // which rounds
      value.set(0, std::get<double>(node.attrs[0]));
      out[0] = program_.narrowed(program_.constant(value.at(0), computed_in(dtype)), dtype);
      return true;
    }
    const OpCall call = body_.call(id);
    const bool random = is_random(*node.op), rows = row_dims_of(call) > 0;
    std::vector<Program::Reg> ins;
    for (const ValueId input : node.inputs) {
      ins.push_back(random || rows ? read_as_it_lies(input) : read(input));
      if (ins.back() < 0) return false;
    }
    if (random || rows) {
      out = add_rows(program_, call, space_, std::move(ins), [&](const OpCall& own) {
        return random ? random_tiling(own) : row_tiling(own);
      });
      return !out.empty();
    }
    out[0] = add_op(program_, call, std::move(ins));
    return out[0] >= 0;
  }

  /// Where the elements lie in the whole tensor says an operand or result of the body's shape.
  Tiling random_tiling(const OpCall& call) const {
    const std::uint64_t key = random_key(request_.seed, call.string("key"));
    for (int i = 0; i < request_.call.num_out(); ++i) {
      if (request_.call.out(i).shape == space_.shape)
        return dropout_tiling(call, key, out_shard(request_, i));
    }
    for (int i = 0; i < request_.call.num_in(); ++i) {
      if (request_.call.in(i).shape == space_.shape)
        return dropout_tiling(call, key, in_shard(request_, i));
    }
    return {};
  }

  Program& program_;
  const KernelRequest& request_;
  const Graph& body_;
  BodySpace space_;
  Operands operands_;
  std::vector<std::vector<Program::Reg>> made_;  // by node and result
};

/// False for a shard of a node whose body is of the whole tensor; the reference loops know those.
bool is_body_of(const OpCall& call) {
  const Graph& body = call.graph("body");
  for (const Node& node : body.nodes()) {
    if (node.op == &kBatch &&
        node.type().shape != call.in(operand_of_body(node, call.num_in())).shape)
      return false;
  }
  for (int i = 0; i < call.num_out(); ++i) {
    if (body.type(body.outputs()[static_cast<std::size_t>(i)].value).shape != call.out(i).shape)
      return false;
  }
  return true;
}

/// True where there is a tile function for each row: what the statistics of rows without elements
/// are, the reference loops say.
bool has_rows(const BodySpace& space) {
  for (int i = 0; i < space.row_dims; ++i) {
    if (space.shape.back(i) == 0) return false;
  }
  return space.row_dims > 0;
}

}  // namespace

bool is_elementwise(const OpDef& op) { return op.traits.elementwise || &op == &kFused; }

std::unique_ptr<Kernel> make_elementwise(const KernelRequest& request, Pool& pool) {
  const OpCall& call = request.call;
  if (!is_elementwise(call.op())) return nullptr;
  if (&call.op() == &kFused) {
    if (!is_body_of(call)) return nullptr;
    const BodySpace space = space_of_body(call.graph("body"));
    if (space.row_dims > 0 && !has_rows(space)) return nullptr;
    Program program(space.shape, space.row_dims);
    if (!Body(program, request).add()) return nullptr;
    return std::make_unique<ProgramKernel>(space.row_dims > 0 ? kRowwise : kElementwise,
                                           std::move(program), pool);
  }
  Program program(call.out(0).shape);
  Operands operands(program, request);
  std::vector<Program::Reg> ins;
  for (int i = 0; i < call.num_in(); ++i) ins.push_back(operands.broadcast(i));
  const Program::Reg reg = add_op(program, call, std::move(ins));
  if (reg < 0) return nullptr;
  program.result(reg, call.out(0).dtype);
  return std::make_unique<ProgramKernel>(kElementwise, std::move(program), pool);
}

/// A program of one step: fused with others it computes the same bits.
std::unique_ptr<Kernel> make_rows(const KernelRequest& request, Pool& pool) {
  const OpCall& call = request.call;
  const BodySpace space{call.in(0).shape, row_dims_of(call)};
  if (!has_rows(space)) return nullptr;
  Program program(space.shape, space.row_dims);
  Operands operands(program, request);
  std::vector<Program::Reg> ins;
  for (int i = 0; i < call.num_in(); ++i) {
    ins.push_back(operands.as_it_lies(i, space.each(call.in(i).shape)));
    if (ins.back() < 0) return nullptr;
  }
  const std::vector<Program::Reg> results =
      add_rows(program, call, space, std::move(ins), row_tiling);
  if (results.empty()) return nullptr;
  for (int i = 0; i < call.num_out(); ++i)
    program.result(results[static_cast<std::size_t>(i)], call.out(i).dtype);
  return std::make_unique<ProgramKernel>(kRowwise, std::move(program), pool);
}

std::unique_ptr<Kernel> make_dropout(const KernelRequest& request, Pool& pool) {
  const OpCall& call = request.call;
  Program program(call.out(0).shape);
  Operands operands(program, request);
  const Program::Reg x = operands.broadcast(0), step = operands.as_it_lies(1, Program::Each::Whole);
  const BodySpace space{call.out(0).shape, 0};
  const std::vector<Program::Reg> y = add_rows(
      program, call, space, {x, step},
      [&](const OpCall& own) { return dropout_tiling(own, request.key, out_shard(request, 0)); });
  if (y.empty()) return nullptr;
  program.result(y[0], call.out(0).dtype);
  return std::make_unique<ProgramKernel>("hwy:dropout", std::move(program), pool);
}

}  // namespace tessera::cpu
