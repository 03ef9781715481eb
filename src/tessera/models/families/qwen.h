#pragma once
/// What Qwen's versions have alike.

#include "tessera/models/rotary_lm.h"

namespace tessera {

inline constexpr auto kQwenReads = joined(kDecoderReads, kRopeReads, kSwiGluReads, kWindowReads);

inline void publish_qwen(ModelConfig& config) {
  publish_rotary(config);
  config.rope_base = 1e6;
  config.norm_eps = 1e-6;
}

constexpr ModelFamily qwen_family(ModelFamily with) {
  if (with.reads.empty()) with.reads = kQwenReads;
  if (with.tasks.empty()) with.tasks = kRotaryTasks;
  with.publish = publish_qwen;
  with.complete = complete_rotary;
  with.find_problems = find_rotary_problems;
  return with;
}

}  // namespace tessera
