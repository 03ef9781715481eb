/// Ops against PyTorch's results and gradients; tests/golden/README.md says what is in the file.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>

#include "ops/harness.h"
#include "repo_file.h"
#include "tessera/ops/attention.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/norm.h"
#include "tessera/ops/softmax.h"

namespace tessera::test {

namespace {

/// A safetensors file, read as far as this test needs: the reader of the project lies above this
/// room.
class Golden {
 public:
  Golden() {
    std::ifstream file(repo_file("tests/golden/ops.safetensors"), std::ios::binary);
    check(file.good(), "tests/golden/ops.safetensors is missing");
    const std::string all((std::istreambuf_iterator<char>(file)), {});
    std::uint64_t size = 0;
    std::memcpy(&size, all.data(), sizeof size);
    header_ = all.substr(8, size);
    data_ = all.substr(8 + size);
  }

  HostTensor get(const std::string& name) const {
    const std::size_t at = header_.find(text('"', name, "\":{"));
    check(at != std::string::npos, "no golden tensor ", name);
    const std::string entry = header_.substr(at, header_.find('}', at) - at);
    const std::string dtype = entry.substr(entry.find("\"dtype\":\"") + 9, 3);
    Shape shape;
    for (const std::int64_t size : numbers(entry, "\"shape\":[")) shape.push_back(size);
    HostTensor out(dtype == "F64" ? DType::F64 : dtype == "I32" ? DType::I32 : DType::Bool, shape);
    const std::size_t start = static_cast<std::size_t>(numbers(entry, "\"data_offsets\":[")[0]);
    std::memcpy(out.bytes().data(), data_.data() + start, out.bytes().size());
    return out;
  }

 private:
  static std::vector<std::int64_t> numbers(const std::string& entry, const std::string& key) {
    const std::size_t from = entry.find(key) + key.size();
    std::vector<std::int64_t> out;
    for (const std::string& word : split(entry.substr(from, entry.find(']', from) - from), ',')) {
      if (!word.empty()) out.push_back(std::stoll(word));
    }
    return out;
  }

  std::string header_, data_;
};

struct Row {
  const char* name;
  const OpDef* op;
  Attrs attrs;
  std::vector<int> ins;  // operand i is the file's input ins[i]
  double f32;            // absolute and relative tolerance of the f32 kernel, with its reason
  int constant = -1;     // an operand without a gradient
  bool varies(std::size_t i, DType dtype) const {
    return is_float(dtype) && static_cast<int>(i) != constant;
  }
};

const double kScale = 1 / std::sqrt(6.0);  // of attention: head_dim is 6

std::vector<Row> rows() {
  const Attrs causal = {true, kScale, 0.0, false, std::string()},
              all = {false, kScale, 0.0, false, std::string()};
  const Attrs padded = {true, kScale, 0.0, true, std::string()},
              padded_all = {false, kScale, 0.0, true, std::string()};
  const auto with_window = [](const Attrs& attrs, std::int64_t window, double cap = 0,
                              bool slopes = false) {
    return attrs.with(5, window).with(6, cap).with(7, slopes);
  };
  const Attrs rope = {rotary_rates({}, 8, 0).rates, 1.0, false}, eps = {1e-5},
              ignored = {std::int64_t{-100}};
  const double few = 1e-5;  // some dozen roundings of 2^-24, of numbers of some units
  return {
      {"layer_norm", &kLayerNorm, eps, {0, 1, 2}, few},
      {"layer_norm_offset",
       &kLayerNorm,
       eps,
       {0, 1, 2},
       2e-3},  // the mean of numbers near 1000 is off by 6e-5
      {"layer_norm_small", &kLayerNorm, eps, {0, 1, 2}, 1e-4},  // rstd is near 300
      {"rms_norm", &kRmsNorm, eps, {0, 1}, few},
      {"rms_norm_small", &kRmsNorm, eps, {0, 1}, 1e-4},
      {"gelu_erf", &kGelu, {false}, {0}, few},
      {"gelu_tanh", &kGelu, {true}, {0}, few},
      {"silu", &kSilu, {}, {0}, few},
      {"softmax", &kSoftmax, {std::int64_t{2}}, {0}, few},
      {"softmax_middle", &kSoftmax, {std::int64_t{1}}, {0}, few},
      {"cross_entropy",
       &kCrossEntropy,
       ignored,
       {0, 1},
       2e-4},  // logsumexp near 1000 is off by 6e-5
      {"attention", &kAttention, causal, {0, 1, 2}, few},
      {"attention_long", &kAttention, causal, {0, 1, 2}, 1e-4},  // large scores
      {"attention_padded", &kAttention, padded, {0, 1, 2, 3}, few},
      {"attention_padded_not_causal", &kAttention, padded_all, {0, 1, 2, 3}, few},
      {"attention_cross", &kAttention, all, {0, 1, 2}, few},
      {"attention_window", &kAttention, with_window(causal, 20), {0, 1, 2}, few},
      {"attention_window_both_sides", &kAttention, with_window(all, 3), {0, 1, 2}, few},
      {"attention_window_padded", &kAttention, with_window(padded, 4), {0, 1, 2, 3}, few},
      {"attention_cap", &kAttention, with_window(causal, 0, 5), {0, 1, 2}, 1e-4},  // large scores
      {"attention_slopes", &kAttention, with_window(causal, 0, 0, true), {0, 1, 2, 3}, few, 3},
      {"attention_window_cap_slopes",
       &kAttention,
       with_window(all, 8, 2, true),
       {0, 1, 2, 3},
       few,
       3},
      {"rope", &kRope, rope, {0, 1}, few},
      {"rope_far",
       &kRope,
       rope,
       {0, 1},
       2e-2},  // angles: 100,000 * 2^-24, times numbers of some units
      {"embedding", &kGather, {std::int64_t{0}}, {1, 0}, 1e-6},
  };
}

HostTensor reshaped(const HostTensor& x, const Shape& shape) {
  HostTensor out(x.dtype(), shape);
  check(out.numel() == x.numel(), "reshaped");
  for (std::int64_t i = 0; i < x.numel(); ++i) out.set(i, x.at(i));
  return out;
}

/// The file's heads are one dim; the op's query heads are grouped by key head.
HostTensor as_operand(const Row& row, int operand, const HostTensor& x, const HostTensor& keys) {
  if (row.op != &kAttention || operand != 0) return x;
  const Shape& s = x.shape();
  const std::int64_t groups = keys.shape()[2];
  return reshaped(x, {s[0], s[1], groups, s[2] / groups, s[3]});
}

/// Result 0, then the gradients of all real operands, when result 0 has cotangent `dout`.
Tensors results_and_gradients(const Row& row, const Tensors& ins, const HostTensor& dout,
                              bool f64) {
  Builder builder;
  Bindings inputs;
  std::vector<Value> operands;
  for (const HostTensor& in : ins) {
    const std::string name = text("in", operands.size());
    operands.push_back(builder.batch(name, in.type()));
    inputs.batch.emplace(name, in);
  }
  const std::vector<Value> outs = builder.add_all(*row.op, operands, row.attrs);
  std::vector<Value> douts(outs.size()), dins(operands.size());
  douts[0] = builder.batch("dout", outs[0].type());
  inputs.batch.emplace("dout", dout);
  const auto wants = std::make_unique<bool[]>(ins.size());
  for (std::size_t i = 0; i < ins.size(); ++i) wants[i] = row.varies(i, ins[i].dtype());
  const Graph forward = builder.so_far();  // the call refers into it while the builder grows
  const OpCall call = forward.call(outs[0].id().node);
  GradCall grad(call, operands, outs, douts, dins, {wants.get(), ins.size()});
  row.op->grad(grad);
  builder.output(Output::Kind::Metric, "out", outs[0]);
  for (std::size_t i = 0; i < ins.size(); ++i) {
    if (wants[i]) builder.output(Output::Kind::Metric, text("din", i), dins[i]);
  }
  Interpretation how;
  how.f64 = f64;
  return interpret(builder.finish(), inputs, how);
}

Tensors narrowed(const Tensors& tensors) {
  Tensors out;
  for (const HostTensor& x : tensors)
    out.push_back(x.dtype() == DType::F64 ? x.cast(DType::F32) : x);
  return out;
}

}  // namespace

TEST(Golden, ResultsAndGradients) {
  const Golden golden;
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.name);
    Tensors ins;
    HostTensor keys;
    if (row.op == &kAttention) keys = golden.get(text(row.name, ".in.1"));
    for (std::size_t i = 0; i < row.ins.size(); ++i) {
      const HostTensor in = golden.get(text(row.name, ".in.", row.ins[i]));
      ins.push_back(as_operand(row, static_cast<int>(i), in, keys));
    }
    Tensors want = {as_operand(row, 0, golden.get(text(row.name, ".out.0")), keys)};
    for (std::size_t i = 0; i < ins.size(); ++i) {
      if (!row.varies(i, ins[i].dtype())) continue;
      want.push_back(reshaped(golden.get(text(row.name, ".din.", row.ins[i])), ins[i].shape()));
    }
    const HostTensor dout = reshaped(golden.get(text(row.name, ".dout.0")), want[0].shape());
    const Tensors wide = results_and_gradients(row, ins, dout, true);
    const Tensors narrow = results_and_gradients(row, narrowed(ins), dout.cast(DType::F32), false);
    for (std::size_t i = 0; i < want.size(); ++i) {
      const std::string what = i == 0 ? "the result" : text("gradient ", i - 1);
      expect_near(wide[i], want[i], 1e-12, 1e-12, what);
      expect_near(narrow[i].cast(DType::F64), want[i], row.f32, row.f32, what + " in f32");
    }
  }
}

TEST(Golden, LogsumexpOfTheLoss) {
  const Golden golden;
  const Tensors have = [&] {
    Interpretation how;
    how.f64 = true;
    const std::string name = "cross_entropy_with_logsumexp";
    return evaluate(kCrossEntropy, {golden.get(name + ".in.0"), golden.get(name + ".in.1")},
                    {std::int64_t{-100}}, how);
  }();
  expect_near(have[0], golden.get("cross_entropy_with_logsumexp.out.0"), 1e-12, 1e-12, "loss");
  expect_near(have[1], golden.get("cross_entropy_with_logsumexp.out.1"), 1e-12, 1e-12, "logsumexp");
}

}  // namespace tessera::test
