#include "tessera/models/expert_parallel.h"

#include <algorithm>

#include "tessera/base/divisors.h"
#include "tessera/base/text.h"
#include "tessera/models/layer.h"

namespace tessera {

void find_expert_problems(const ParallelConfig& c, const ModelConfig& model,
                          FieldProblems& problems) {
  if (c.experts < 1)
    return problems.add({"expert-model-parallel-size"}, text("expert-model-parallel-size is ",
                                                             c.experts, "; it must be at least 1"));
  if (c.experts == 1) return;
  if (!has_experts(model))
    return problems.add({"expert-model-parallel-size", "family", "num-experts"},
                        text("expert-model-parallel-size ", c.experts, " shares experts out, and ",
                             "the model of family ", model.family, " has none; give 1"));
  if (c.experts > model.experts.experts)
    return problems.add({"expert-model-parallel-size", "num-experts"},
                        text("expert-model-parallel-size ", c.experts, " is more than the ",
                             model.experts.experts, " experts of a layer; lower it"));
  const std::int64_t share = c.pipeline * c.tensor * c.context * c.repeat;
  if (share < 1 || c.devices % share != 0) return;  // told as such
  const std::int64_t ranks = c.shard_size > 0 ? c.shard_size : c.data();
  if (ranks % c.experts != 0)
    problems.add({"expert-model-parallel-size", "devices", "tensor-model-parallel-size",
                  "context-parallel-size", "pipeline-model-parallel-size", "optimizer-shard-size"},
                 text("expert-model-parallel-size ", c.experts, " does not divide the ", ranks,
                      " data parallel devices", c.shard_size > 0 ? " of optimizer-shard-size" : "",
                      "; it can be ", divisors(ranks)));
}

}  // namespace tessera
