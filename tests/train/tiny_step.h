#pragma once
/// Tiny training steps with random inputs, for tests that run one graph in several ways.

#include <cmath>

#include "tessera/ops/interpret.h"
#include "tessera/train/step.h"

namespace tessera {

inline ModelConfig tiny(const std::string& family) {
  ModelConfig c;
  c.family = family;
  c.layers = 2;
  c.heads = 4;
  c.kv_heads = family == "llama" ? 2 : 0;
  c.width = 16;
  c.ffn_width = 24;
  c.context = 8;
  c.vocabulary = 19;
  c.dropout = 0.2;
  return c;
}

inline Bindings random_inputs(const Graph& graph) {
  Bindings in;
  std::uint64_t n = 1;
  const auto next = [&n] {
    return static_cast<double>((n = n * 6364136223846793005u + 1442695040888963407u) >> 40) *
           0x1p-24;
  };
  for (const State& state : graph.states()) {
    HostTensor value(graph.type(state.value));
    const bool parameter = state.role == Role::Parameter;
    for (std::int64_t i = 0; i < value.numel() && parameter; ++i) value.set(i, next() - 0.5);
    in.states.emplace(state.path, value);
  }
  HostTensor ids(DType::I32, {12, 8}), labels(DType::I32, {12, 8});
  for (std::int64_t i = 0; i < 96; ++i) {
    ids.set(i, std::floor(next() * 19));
    labels.set(i, next() < 0.2 ? -100 : std::floor(next() * 19));
  }
  in.batch = {{"ids", ids}, {"labels", labels}};
  return in;
}

}  // namespace tessera
