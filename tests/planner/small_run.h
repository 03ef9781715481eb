#pragma once
/// Runs of small models that planners are asked about.

#include <cstdint>

#include "tessera/config/config.h"
#include "tessera/machines/find_machine.h"

namespace tessera {

struct SmallRun {
  std::int64_t layers, heads, width, context, vocabulary, batch;
  const char* machine = "";  // empty: the one that a run has where nobody names one
  bool bf16 = false;
  std::int64_t experts = 0;  // of a layer, of which a token chooses two
};

inline RunConfig small_run(const SmallRun& c) {
  RunConfig out;
  out.model.layers = c.layers;
  out.model.heads = c.heads;
  out.model.width = c.width;
  out.model.context = c.context;
  out.model.vocabulary = c.vocabulary;
  if (c.experts > 0) {
    out.model.family = "mixtral";
    out.model.experts = {.experts = c.experts, .chosen = 2};
  }
  out.global_batch_size = c.batch;
  out.bf16 = c.bf16;
  out.held_out = 0;
  out.threads = 1;
  out.machine = c.machine;
  complete(out);
  if (!out.machine.empty()) out.parallel.machine = find_machine(out.machine);
  return out;
}

}  // namespace tessera
