#include "ops/harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <random>

#include "tessera/base/hash.h"

namespace tessera::test {

namespace {

TensorType widened(TensorType type) {
  if (type.dtype == DType::F32) type.dtype = DType::F64;
  return type;
}

}  // namespace

HostTensor filled(const Operand& operand, std::uint64_t seed) {
  HostTensor out(widened(operand.type));
  std::mt19937_64 rng(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> unit;
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    switch (operand.fill) {
      case Operand::Fill::Normal: out.set(i, normal(rng)); break;
      case Operand::Fill::Positive: out.set(i, 0.5 + 1.5 * unit(rng)); break;
      case Operand::Fill::Ids:
        out.set(i, operand.low + std::floor(unit(rng) * (operand.high - operand.low)));
        break;
      case Operand::Fill::Bits: out.set(i, unit(rng) < 0.5); break;
      case Operand::Fill::Exactly: out.set(i, operand.low); break;
      case Operand::Fill::Made: break;
    }
  }
  return out;
}

Tensors operands(const Case& c) {
  Tensors out;
  for (const Operand& operand : c.ins) {
    const std::uint64_t seed = hash64(title(c), out.size());
    out.push_back(operand.fill == Operand::Fill::Made ? operand.make(out) : filled(operand, seed));
    check(out.back().type() == widened(operand.type), title(c), ": operand ", out.size() - 1,
          " was made a ", out.back().type(), ", not ", operand.type);
  }
  return out;
}

namespace {

bool takes(const Case& c, const Tensors& ins) {
  OpCall::Types types;
  for (const HostTensor& in : ins) types.push_back(&in.type());
  try {
    (void)c.op->infer(OpCall(*c.op, types, c.attrs));
  } catch (const Error&) {
    return false;
  }
  return true;
}

}  // namespace

Tensors operands_in(const Case& c, DType dtype) {
  Tensors all = operands(c);
  std::vector<std::size_t> floats;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (c.ins[i].type.dtype != DType::F32) continue;
    floats.push_back(i);
    all[i] = all[i].cast(DType::F32);
  }
  Tensors best = all;
  int most = 0;
  for (std::uint32_t chosen = 1; chosen < 1u << floats.size(); ++chosen) {
    if (std::popcount(chosen) <= most) continue;
    Tensors tried = all;
    for (std::size_t i = 0; i < floats.size(); ++i) {
      if ((chosen >> i & 1) != 0) tried[floats[i]] = all[floats[i]].cast(dtype);
    }
    if (takes(c, tried)) best = std::move(tried), most = std::popcount(chosen);
  }
  return best;
}

Use use(Builder& builder, const Case& c) {
  Use out;
  for (const Operand& operand : c.ins)
    out.ins.push_back(builder.batch(text("in", out.ins.size()), operand.type));
  out.outs = builder.add_all(*c.op, out.ins, c.attrs);
  return out;
}

namespace {

bool contains(const std::vector<int>& list, int i) {
  return std::find(list.begin(), list.end(), i) != list.end();
}

}  // namespace

bool is_variable(const Case& c, int operand) {
  return is_float(c.ins[static_cast<std::size_t>(operand)].type.dtype) &&
         !contains(c.constants, operand);
}

bool flows(const Case& c, int result, DType dtype) {
  return is_float(dtype) && (c.cotangents.empty() || contains(c.cotangents, result));
}

bool is_differentiable(const Case& c) {
  if (c.op->grad == nullptr) return false;
  Builder builder;
  const Use used = use(builder, c);
  bool variable = false, flowing = false;
  for (int i = 0; i < static_cast<int>(used.ins.size()); ++i)
    variable = variable || is_variable(c, i);
  for (int j = 0; j < static_cast<int>(used.outs.size()); ++j)
    flowing = flowing || flows(c, j, used.outs[static_cast<std::size_t>(j)].dtype());
  return variable && flowing;
}

Derivative differentiate(const Case& c, const std::vector<bool>& wanted) {
  Builder builder;
  const Use used = use(builder, c);
  Derivative out;
  out.forward = used.outs[0].id().node;
  std::vector<Value> douts(used.outs.size()), dins(used.ins.size());
  for (std::size_t j = 0; j < douts.size(); ++j) {
    if (flows(c, static_cast<int>(j), used.outs[j].dtype()))
      douts[j] = builder.batch(text("dout", j), used.outs[j].type());
    out.douts.push_back(douts[j].id());
  }
  const Graph forward = builder.so_far();  // the call refers into it while the builder grows
  const OpCall op_call = forward.call(out.forward);
  const auto wants = std::make_unique<bool[]>(wanted.size());
  std::copy(wanted.begin(), wanted.end(), wants.get());
  GradCall call(op_call, used.ins, used.outs, douts, dins, {wants.get(), wanted.size()});
  c.op->grad(call);
  for (std::size_t i = 0; i < dins.size(); ++i) {
    out.ins.push_back(used.ins[i].id());
    const bool is_there = dins[i].valid() && wanted[i];
    out.dins.push_back(is_there ? dins[i].id() : ValueId{});
    if (!is_there) continue;
    EXPECT_EQ(to_text(dins[i].type()), to_text(used.ins[i].type()))
        << "the gradient of operand " << i;
    builder.output(Output::Kind::Metric, text("din", i), dins[i]);
  }
  out.graph = builder.finish();
  return out;
}

Derivative differentiate(const Case& c) {
  std::vector<bool> wanted;
  for (int i = 0; i < static_cast<int>(c.ins.size()); ++i) wanted.push_back(is_variable(c, i));
  return differentiate(c, wanted);
}

Bindings bind(const Tensors& ins) {
  Bindings out;
  for (std::size_t i = 0; i < ins.size(); ++i) out.batch.emplace(text("in", i), ins[i]);
  return out;
}

Tensors run(const Graph& graph, const Bindings& inputs, Coordinates at) {
  Interpretation how;
  how.f64 = true;
  how.at = std::move(at);
  return interpret(graph, inputs, how);
}

Tensors results(const Case& c, const Tensors& ins) {
  Builder builder;
  const Use used = use(builder, c);
  for (std::size_t i = 0; i < used.outs.size(); ++i) {
    builder.output(Output::Kind::Metric, text("out", i), used.outs[i]);
  }
  return run(builder.finish(), bind(ins));
}

bool is_near(double got, double want, double absolute, double relative) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (std::isinf(want) || std::isinf(got)) return got == want;
  return std::abs(got - want) <= absolute + relative * std::abs(want);
}

void expect_near(const HostTensor& got, const HostTensor& want, double absolute, double relative,
                 const std::string& what) {
  ASSERT_EQ(to_text(got.type()), to_text(want.type())) << what;
  int wrong = 0;
  for (std::int64_t i = 0; i < want.numel() && wrong < 3; ++i) {
    if (is_near(got.at(i), want.at(i), absolute, relative)) continue;
    ++wrong;
    ADD_FAILURE() << what << ": element " << i << " is " << got.at(i) << ", not " << want.at(i);
  }
}

}  // namespace tessera::test
