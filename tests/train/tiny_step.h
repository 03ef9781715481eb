#pragma once
/// Tiny training steps with random inputs, for tests that run one graph in several ways.

#include <cmath>

#include "tessera/models/family.h"
#include "tessera/ops/interpret.h"
#include "tessera/train/step.h"

namespace tessera {

/// Where there is a decoder too, it has half of the layers. transformer_post: all that the family
/// has a choice of is the other way.
inline ModelConfig tiny(const std::string& family, std::int64_t layers = 2) {
  ModelConfig c;
  c.family = family.substr(0, family.find('_'));
  c.layers = layers;
  c.heads = 4;
  c.kv_heads = family == "llama" ? 2 : 0;
  c.width = 16;
  c.ffn_width = 24;
  c.context = 8;
  c.vocabulary = 19;
  c.dropout = 0.2;
  if (c.family == "transformer") {
    c.layers = layers / 2, c.decoder_layers = layers - layers / 2;
    c.source_context = 6;
    c.post_norm = c.shared_embedding = c.sinusoidal = family != c.family;
    c.tied_head = family == c.family;
  }
  return c;
}

/// Of a step of the task on 12 samples: parameters, and batches in which some labels do not count.
inline Bindings random_inputs(const Graph& graph, const Task& task) {
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
  for (const TaskInput& input : task.inputs) {
    HostTensor& values = in.batch[input.name] = HostTensor(input.dtype, {12, input.sample[0]});
    for (std::int64_t i = 0; i < values.numel(); ++i) {
      const double value = std::floor(next() * static_cast<double>(input.values));
      values.set(i, input.ignorable && next() < 0.2 ? kIgnoredLabel : value);
    }
  }
  return in;
}

}  // namespace tessera
