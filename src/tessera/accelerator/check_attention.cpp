#include "tessera/accelerator/check_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/hlo/modules.h"
#include "tessera/ir/builder.h"
#include "tessera/ops/attention.h"
#include "tessera/pjrt/buffer.h"
#include "tessera/pjrt/executable.h"
#include "tessera/tensor/host_tensor.h"

namespace tessera {

namespace {

using Tensors = std::vector<HostTensor>;

constexpr std::int64_t kTokens = 128, kKeyHeads = 2, kQueriesOfHead = 2, kWidth = 64;
/// Rounding to bf16 alone is 0.4 % of a number, of some numbers behind each other.
constexpr double kRight = 0.03;

/// The same numbers on every machine, between -1 and 1.
HostTensor numbers(const Shape& shape, std::uint32_t seed) {
  HostTensor out(DType::BF16, shape);
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    seed = seed * 1664525U + 1013904223U;
    out.set(i, static_cast<double>(seed >> 8U) / static_cast<double>(1U << 23U) - 1);
  }
  return out;
}

Tensors results(const pjrt::Client& client, const OpDef& op, bool causal, const Tensors& ins,
                const WriteNode& write) {
  Builder builder;
  std::vector<Value> values;
  for (const HostTensor& in : ins)
    values.push_back(builder.batch(text("in", values.size()), in.type()));
  const double scale = 1 / std::sqrt(static_cast<double>(kWidth));
  const NodeId node =
      builder.add_all(op, values, {causal, scale, 0.0, false, std::string()})[0].id().node;
  const hlo::Module module = write(builder.finish(), node);
  const pjrt::Device& device = client.local_devices()[0];
  const pjrt::Executable program = pjrt::compile(
      client, module.text,
      {.device_assignment = {{device.id}}, .flags = pjrt::flags_for(client.plugin())});
  std::vector<pjrt::Buffer> held;
  for (const HostTensor& in : ins)
    held.push_back(pjrt::to_device(client, in.bytes(), in.dtype(), in.shape(), device));
  pjrt::Arguments arguments(1);
  for (const pjrt::Buffer& buffer : held) arguments[0].push_back(&buffer);
  const pjrt::Results got = program.execute(arguments);
  Tensors out;
  for (std::size_t i = 0; i < got[0].size(); ++i) {
    out.emplace_back(module.results[i].result.type);
    got[0][i].read(out.back().bytes());
  }
  return out;
}

/// The worst of all; infinite where a number is none, or all that is right are 0, as of a device
/// that computes nothing.
double distance(const Tensors& got, const Tensors& want) {
  double out = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    double largest = 0, apart = 0;
    for (std::int64_t k = 0; k < want[i].numel(); ++k) {
      const double off = std::abs(got[i].at(k) - want[i].at(k));
      if (!std::isfinite(off)) return std::numeric_limits<double>::infinity();
      apart = std::max(apart, off);
      largest = std::max(largest, std::abs(want[i].at(k)));
    }
    if (largest == 0) return std::numeric_limits<double>::infinity();
    out = std::max(out, apart / largest);
  }
  return out;
}

}  // namespace

double attention_distance(const pjrt::Client& client, const WriteNode& write) {
  const WriteNode plain = [](const Graph& graph, NodeId id) { return hlo::node_module(graph, id); };
  const Shape rows = {1, kTokens, kKeyHeads, kQueriesOfHead, kWidth},
              keys = {1, kTokens, kKeyHeads, kWidth};
  const HostTensor q = numbers(rows, 1), k = numbers(keys, 2), v = numbers(keys, 3),
                   dy = numbers(rows, 4);
  double out = 0;
  for (const bool causal : {true, false}) {
    const auto compare = [&](const OpDef& op, const Tensors& ins) {
      Tensors want = results(client, op, causal, ins, plain);
      out = std::max(out, distance(results(client, op, causal, ins, write), want));
      return want;
    };
    const Tensors forward = compare(kAttention, {q, k, v});
    compare(kAttentionGrad, {dy, q, k, v, forward[0], forward[1]});
  }
  return out;
}

void require_attention(const pjrt::Client& client, const hlo::EmitOptions& options) {
  const auto kernels = [&](const Graph& graph, NodeId id) {
    return hlo::node_module(graph, id, options);
  };
  double apart = 0;
  try {
    apart = attention_distance(client, kernels);
  } catch (const Error& error) {
    throw error.with(
        "in attention by its vendor's kernels; --no-graph-optimization leaves them out");
  }
  if (apart <= kRight) return;
  fail(Fault::Resource, client.plugin().file(), ": attention by kernels of ",
       client.local_devices()[0].kind, "'s vendor lies ", apart,
       " away from attention, relative to the largest number, and rounding explains ", kRight,
       "; --no-graph-optimization computes it by other ops");
}

}  // namespace tessera
