/// A train step cut into micro-batches computes what the whole step computes: interpreted in f64,
/// with dropout.

#include <gtest/gtest.h>

#include "tessera/passes/add_uses.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/preview.h"
#include "tessera/passes/propagate.h"
#include "tessera/passes/simplify.h"
#include "train/one_device.h"

namespace tessera {
namespace {

struct MicroCase {
  const char* family;
  std::int64_t microbatches;
  bool fused;
};

class Microbatch : public testing::TestWithParam<MicroCase> {};

TEST_P(Microbatch, EqualsTheWholeStep) {
  const OneDevice one(GetParam().family);
  const Strategy strategy = one_device(GetParam().microbatches);
  const Graph graph = preview(simplify(one.graph), strategy.mesh);
  Program program = partition(propagate(add_uses(graph), strategy));
  if (GetParam().fused) program = fuse(std::move(program));
  EXPECT_EQ(one.wrong(program), "");
}

INSTANTIATE_TEST_SUITE_P(
    Cuts, Microbatch,
    testing::Values(MicroCase{"gpt2", 1, false}, MicroCase{"gpt2", 1, true},
                    MicroCase{"gpt2", 2, false}, MicroCase{"gpt2", 3, true},
                    MicroCase{"gpt2", 12, true}, MicroCase{"llama", 1, true},
                    MicroCase{"llama", 4, false}, MicroCase{"llama", 6, true},
                    MicroCase{"bert", 3, true}, MicroCase{"bert", 12, true},
                    MicroCase{"roberta", 4, true}, MicroCase{"albert", 3, true},
                    MicroCase{"bert-sentences", 1, true}, MicroCase{"bert-sentences", 3, false},
                    MicroCase{"bert-sentences", 4, true}, MicroCase{"bert-choices", 3, true},
                    MicroCase{"deberta-v2-choices", 4, false}),
    [](const auto& info) {
      std::string family = info.param.family;
      std::erase(family, '-');
      return family + std::to_string(info.param.microbatches) + (info.param.fused ? "Fused" : "");
    });

}  // namespace
}  // namespace tessera
