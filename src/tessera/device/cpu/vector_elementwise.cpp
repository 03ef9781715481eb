#include "tessera/device/cpu/vector_families.h"
#include "tessera/device/cpu/vector_program.h"
#include "tessera/ir/builder.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/fused.h"
#include "tessera/ops/reduce.h"

namespace tessera::cpu {

namespace {

class ElementwiseKernel final : public Kernel {
 public:
  ElementwiseKernel(Program program, Pool& pool) : program_(std::move(program)), pool_(&pool) {
    program_.finish(pool.threads());
  }
  std::string_view name() const override { return "hwy:elementwise"; }
  std::int64_t workspace_bytes() const override { return program_.workspace_bytes(); }
  void run(const KernelArgs& args) const override { program_.run(args, *pool_); }

 private:
  Program program_;
  Pool* pool_;
};

bool known(DType d) { return d != DType::BF16 && d != DType::F16; }

/// The value of one op in the program, or -1 where no tile function computes it.
Program::Reg add_op(Program& program, const OpCall& call, const std::vector<Program::Reg>& ins) {
  const OpDef* op = &call.op();
  // What only repeats a value, or names it, needs no step: values have the program's shape already.
  if (op == &kIdentity || op == &kGradient || op == &kBroadcast) return ins[0];
  const DType dtype = call.out(0).dtype;
  if (op != &kAddN) {
    const TileFunction function = tile_function(call);
    return function == nullptr ? -1 : program.apply(function, ins, dtype);
  }
  const TensorType type{dtype, {}, {}};
  const Attrs none;
  const TileFunction sum = tile_function(OpCall(kAdd, {&type, &type}, none, {&type}));
  if (sum == nullptr) return -1;
  Program::Reg total = ins[0];
  for (std::size_t i = 1; i < ins.size(); ++i) total = program.apply(sum, {total, ins[i]}, dtype);
  return total;
}

/// Operand i of the call that the input text(i) of a body stands for.
int operand_of(const Node& input, int num_in) {
  for (int i = 0; i < num_in; ++i) {
    if (std::get<std::string>(input.attrs[0]) == text(i)) return i;
  }
  fail(Fault::Internal, "fused: the body reads '", std::get<std::string>(input.attrs[0]),
       "', which is no operand");
}

bool add_body(Program& program, const Graph& body, const std::vector<Program::Reg>& operands) {
  std::vector<Program::Reg> regs(static_cast<std::size_t>(body.size()), -1);
  for (NodeId id = 0; id < body.size(); ++id) {
    const Node& node = body.node(id);
    Program::Reg& reg = regs[static_cast<std::size_t>(id)];
    if (node.op == &kBatch) {
      reg = operands[static_cast<std::size_t>(operand_of(node, static_cast<int>(operands.size())))];
    } else if (!known(node.type().dtype)) {
      return false;
    } else if (node.op == &kConstant) {
      reg = program.constant(std::get<double>(node.attrs[0]), node.type().dtype);
    } else {
      std::vector<Program::Reg> ins;
      for (const ValueId input : node.inputs)
        ins.push_back(regs[static_cast<std::size_t>(input.node)]);
      reg = add_op(program, body.call(id), ins);
    }
    if (reg < 0) return false;
  }
  for (const Output& output : body.outputs())
    program.result(regs[static_cast<std::size_t>(output.value.node)]);
  return true;
}

}  // namespace

bool is_elementwise(const OpDef& op) { return op.traits.elementwise || &op == &kFused; }

std::unique_ptr<Kernel> make_elementwise(const KernelRequest& request, Pool& pool) {
  const OpCall& call = request.call;
  if (!is_elementwise(call.op())) return nullptr;
  Program program(call.out(0).shape);
  std::vector<Program::Reg> operands;
  for (int i = 0; i < call.num_in(); ++i) {
    if (!known(call.in(i).dtype)) return nullptr;
    operands.push_back(program.operand(i, call.in(i), strides_of(request, i)));
  }
  if (&call.op() == &kFused) {
    if (!add_body(program, call.graph("body"), operands)) return nullptr;
  } else {
    const Program::Reg reg = add_op(program, call, operands);
    if (reg < 0) return nullptr;
    program.result(reg);
  }
  return std::make_unique<ElementwiseKernel>(std::move(program), pool);
}

}  // namespace tessera::cpu
