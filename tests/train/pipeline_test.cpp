/// A train step on a pipeline computes what one device computes: all ranks of all stages
/// interpreted in f64 with dropout, in the order of the schedule.

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <random>

#include "tessera/base/index.h"
#include "tessera/ir/verify.h"
#include "tessera/passes/add_uses.h"
#include "tessera/passes/bucket.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/place_chunks.h"
#include "tessera/passes/preview.h"
#include "tessera/passes/propagate.h"
#include "tessera/passes/simplify.h"
#include "tessera/plan/compile.h"
#include "train/one_device.h"
#include "train/played_plans.h"

namespace tessera {
namespace {

constexpr std::int64_t kLayers = 6;

struct PipelineCase {
  const char* name;
  const char* family;
  const char* schedule;
  int stages, chunks;
  ParallelConfig parallel;  // of one stage
};

std::ostream& operator<<(std::ostream& out, const PipelineCase& c) { return out << c.name; }

Pipeline pipeline_of(const PipelineCase& c) {
  return Pipeline(make_schedule(c.schedule, {c.stages, c.chunks, c.parallel.micro_batches}));
}

Strategy strategy_of_case(const PipelineCase& c, const std::vector<ChunkPin>& pins) {
  Strategy out = strategy_of(c.parallel, BatchSplit::Cut, tiny(c.family, kLayers));
  out.pipeline = {c.stages, c.chunks, c.schedule, pins};
  return out;
}

std::vector<Program> stages_of(const Graph& graph, const PipelineCase& c,
                               const std::vector<ChunkPin>& pins = {},
                               const BucketStrategy& buckets = {}) {
  const Strategy strategy = strategy_of_case(c, pins);
  const Graph simple = simplify(graph);
  const Graph chunks = place_chunks(simple, cut_into_chunks(simple, strategy.pipeline));
  const Graph placed = propagate(add_uses(preview(chunks, strategy.mesh)), strategy);
  const Pipeline pipeline = pipeline_of(c);
  std::vector<Program> out;
  for (int stage = 0; stage < c.stages; ++stage) {
    out.push_back(fuse(bucket(partition(placed, pipeline, stage), buckets)));
    for (const Region& region : out.back().regions) verify(region.graph);
  }
  return out;
}

/// What plans of all stages wait for for ever, on devices.
std::string plans_stuck(const Graph& graph, const PipelineCase& c,
                        const std::vector<ChunkPin>& pins = {},
                        const BucketStrategy& buckets = {}) {
  Strategy strategy = strategy_of_case(c, pins);
  strategy.buckets = buckets;
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  std::vector<Plan> plans;
  for (int stage = 0; stage < c.stages; ++stage) {
    CompileOptions options;
    options.rank = static_cast<int>(stage * c.parallel.devices);
    plans.push_back(compile({{"train", graph, strategy}}, *device, options));
  }
  return PlayedPlans(plans, "train").stuck();
}

class PipelineStep : public testing::TestWithParam<PipelineCase> {};

TEST_P(PipelineStep, EqualsOneDevice) {
  const OneDevice one(GetParam().family, kLayers);
  EXPECT_EQ(one.wrong(stages_of(one.graph, GetParam())), "");
}

/// In mixed precision: copies of parameters, a loss scale, and sums of gradients in 16 bits.
TEST_P(PipelineStep, InSixteenBitsEqualsOneDevice) {
  OptimizerConfig optimizer;
  optimizer.loss_scale.on = true;
  const OneDevice one(GetParam().family, kLayers, optimizer,
                      Precision{.compute = DType::F16, .sums = DType::F16});
  EXPECT_EQ(one.wrong(stages_of(one.graph, GetParam())), "");
  EXPECT_EQ(plans_stuck(one.graph, GetParam()), "");
}

TEST_P(PipelineStep, InBucketsEqualsOneDevice) {
  const OneDevice one(GetParam().family, kLayers);
  for (const std::int64_t bytes : {1 << 20, 3000})
    EXPECT_EQ(one.wrong(stages_of(one.graph, GetParam(), {}, {bytes})), "") << bytes;
  EXPECT_EQ(plans_stuck(one.graph, GetParam(), {}, {1 << 20}), "");
}

TEST_P(PipelineStep, PlansNeverWaitForEachOther) {
  const OneDevice one(GetParam().family, kLayers);
  EXPECT_EQ(plans_stuck(one.graph, GetParam()), "");
}

/// Rings are as deep as the schedule holds results, no deeper, and none can do with less.
TEST_P(PipelineStep, RingsAreAsDeepAsNeeded) {
  if (std::string_view(GetParam().family) == "gpt_oss")
    GTEST_SKIP() << "what is compared with a cap may be any micro-batch's, as none is near it";
  const OneDevice one(GetParam().family, kLayers);
  const Pipeline pipeline = pipeline_of(GetParam());
  std::vector<Program> stages = stages_of(one.graph, GetParam());
  int shallower = 0;
  for (Program& program : stages) {
    for (const Region& region : program.regions) {
      if (region.kind != RegionKind::Forward) continue;
      std::int64_t deepest = 0;  // an embedding alone leaves nothing to its backward
      for (const Output& output : region.graph.outputs()) {
        if (output.kind == Output::Kind::Slot)
          deepest = std::max(deepest, program.rings.at(output.name));
      }
      const std::int64_t alive =
          pipeline.alive(region.chunk, RegionKind::Forward, pipeline.schedule().last());
      EXPECT_TRUE(deepest == alive || deepest == 0) << deepest << ", not " << alive;
    }
    int n = 0;
    for (auto& [slot, depth] : program.rings) {
      if (depth == 1 || ++n % 11 != 1) continue;
      --depth;
      EXPECT_NE(one.wrong(stages), "") << slot << " with a ring of " << depth;
      ++depth;
      ++shallower;
    }
  }
  const bool holds = pipeline.in_flight(0) > GetParam().chunks;
  EXPECT_TRUE(shallower > 0 || !holds);
}

ParallelConfig cut(std::int64_t micro_batches, std::int64_t dp = 1, std::int64_t tp = 1,
                   int level = 0, std::int64_t cp = 1, bool sequence = false) {
  return parallel_of(dp, tp, cp, sequence, level, micro_batches);
}

INSTANTIATE_TEST_SUITE_P(
    Pipelines, PipelineStep,
    testing::Values(
        PipelineCase{"Gpipe2", "gpt2", "gpipe", 2, 1, cut(4)},
        PipelineCase{"One2", "gpt2", "1f1b", 2, 1, cut(4)},
        PipelineCase{"One2Mb1", "gpt2", "1f1b", 2, 1, cut(1)},
        PipelineCase{"One3Mb2", "llama", "1f1b", 3, 1, cut(2)},
        PipelineCase{"One4Mb12", "gpt2", "1f1b", 4, 1, cut(12)},
        PipelineCase{"Interleaved2", "gpt2", "interleaved", 2, 2, cut(4)},
        PipelineCase{"Interleaved3x3Mb6", "llama", "interleaved", 3, 3, cut(6)},
        PipelineCase{"ZbH1", "gpt2", "zb-h1", 3, 1, cut(4)},
        PipelineCase{"ZbV", "gpt2", "zb-v", 2, 2, cut(4)},
        PipelineCase{"ZbV4", "llama", "zb-v", 4, 2, cut(6)},
        PipelineCase{"Interleaved1", "gpt2", "interleaved", 1, 2, cut(2)},
        PipelineCase{"ZbV1", "gpt2", "zb-v", 1, 2, cut(1)},
        PipelineCase{"Dp2", "gpt2", "1f1b", 2, 1, cut(3, 2)},
        PipelineCase{"Tp2", "gpt2", "1f1b", 2, 1, cut(4, 1, 2)},
        PipelineCase{"Tp2Sp", "llama", "zb-h1", 2, 1, cut(4, 1, 2, 0, 1, true)},
        PipelineCase{"Cp2", "gpt2", "interleaved", 2, 2, cut(4, 1, 1, 0, 2)},
        PipelineCase{"Zero1", "gpt2", "1f1b", 3, 1, cut(4, 2, 1, 1)},
        PipelineCase{"Zero2", "llama", "gpipe", 2, 1, cut(3, 2, 1, 2)},
        PipelineCase{"Zero3", "gpt2", "zb-v", 2, 2, cut(4, 2, 1, 3)},
        PipelineCase{"PreferencesOne3Dp2Zero1", "gpt2-preferences", "1f1b", 3, 1, cut(3, 2, 1, 1)},
        PipelineCase{"PreferencesZbVTp2", "llama-preferences", "zb-v", 2, 2, cut(4, 1, 2)},
        PipelineCase{"AdaptedInterleaved2Zero3", "llama-adapted", "interleaved", 2, 2,
                     cut(2, 2, 1, 3)},
        PipelineCase{"BertGpipe2", "bert", "gpipe", 2, 1, cut(4)},
        PipelineCase{"PanguOne2Tp2", "pangu", "1f1b", 2, 1, cut(4, 1, 2)},
        PipelineCase{"MixtralOne2Ep2", "mixtral", "1f1b", 2, 1, experts(2, cut(3, 2))},
        PipelineCase{"MixtralZbVEp2Zero3", "mixtral", "zb-v", 2, 2, experts(2, cut(3, 2, 1, 3))},
        PipelineCase{"MixtralInterleaved2Ep2Tp2", "mixtral", "interleaved", 2, 2,
                     experts(2, cut(2, 2, 2))},
        PipelineCase{"GptOssOne2Ep2", "gpt_oss", "1f1b", 2, 1, experts(2, cut(3, 2))},
        PipelineCase{"DeepseekV3One2Ep2Tp2", "deepseek_v3", "1f1b", 2, 1, experts(2, cut(2, 2, 2))},
        PipelineCase{"RoutedOne2Ep2", "mixtral-routed", "1f1b", 2, 1, experts(2, cut(2, 2))},
        PipelineCase{"RoutedInterleaved2Tp2", "mixtral-routed", "interleaved", 2, 2, cut(2, 1, 2)},
        PipelineCase{"VitOne2Tp2", "vit", "1f1b", 2, 1, cut(4, 1, 2)},
        PipelineCase{"BertOne4Dp2", "bert", "1f1b", 4, 1, cut(3, 2)},
        PipelineCase{"BertZbH1Tp2Sp", "bert", "zb-h1", 3, 1, cut(4, 1, 2, 0, 1, true)},
        PipelineCase{"BertMaskedInterleaved2Cp2", "bert-masked", "interleaved", 2, 2,
                     cut(4, 1, 1, 0, 2)},
        PipelineCase{"BertMaskedZbV4Zero3", "bert-masked", "zb-v", 4, 2, cut(6, 2, 1, 3)},
        PipelineCase{"RobertaOne4Dp2", "roberta", "1f1b", 4, 1, cut(3, 2)},
        PipelineCase{"BertTagsOne4Dp2", "bert-tags", "1f1b", 4, 1, cut(3, 2)},
        PipelineCase{"BertSentencesOne2Dp2", "bert-sentences", "1f1b", 2, 1, cut(3, 2)},
        PipelineCase{"BertSentencesZbV2", "bert-sentences", "zb-v", 2, 2, cut(4)},
        PipelineCase{"BertSentencesInterleaved2Zero3", "bert-sentences", "interleaved", 2, 2,
                     cut(2, 2, 1, 3)},
        PipelineCase{"BertChoicesOne4Dp2", "bert-choices", "1f1b", 4, 1, cut(3, 2)},
        PipelineCase{"BertChoicesZbV2Cp2", "bert-choices", "zb-v", 2, 2, cut(4, 1, 1, 0, 2)},
        PipelineCase{"BertSpansZbH1", "bert-spans", "zb-h1", 2, 1, cut(4)},
        PipelineCase{"BertAloneGpipe2", "bert-alone", "gpipe", 2, 1, cut(4)},
        PipelineCase{"BertClassesOne4Dp2", "bert-classes", "1f1b", 4, 1, cut(3, 2)},
        PipelineCase{"Gpt2ClassesZbH1", "gpt2-classes", "zb-h1", 2, 1, cut(4)},
        PipelineCase{"AlbertGpipe2", "albert", "gpipe", 2, 1, cut(4)},
        PipelineCase{"AlbertOne4Dp2", "albert", "1f1b", 4, 1, cut(3, 2)},
        PipelineCase{"AlbertZbH1Tp2Sp", "albert", "zb-h1", 3, 1, cut(4, 1, 2, 0, 1, true)},
        PipelineCase{"AlbertMaskedZbV2Zero3", "albert-masked", "zb-v", 2, 2, cut(4, 2, 1, 3)},
        PipelineCase{"RobertaMaskedZbV2Tp2Sp", "roberta-masked", "zb-v", 2, 2,
                     cut(4, 1, 2, 0, 1, true)},
        PipelineCase{"Dp3Tp2Zero2Uneven", "gpt2", "zb-h1", 2, 1, cut(2, 3, 2, 2)},
        PipelineCase{"EncoderDecoder2", "transformer", "1f1b", 2, 1, cut(4)},
        PipelineCase{"EncoderDecoder4", "transformer", "1f1b", 4, 1, cut(6)},
        PipelineCase{"EncoderDecoder4Gpipe", "transformer", "gpipe", 4, 1, cut(3)},
        PipelineCase{"EncoderDecoder4Tp2Sp", "transformer", "zb-h1", 4, 1,
                     cut(6, 1, 2, 0, 1, true)},
        PipelineCase{"EncoderDecoder2Interleaved3", "transformer", "interleaved", 2, 3,
                     cut(4, 2, 1, 1)},
        PipelineCase{"EncoderDecoder4Interleaved", "transformer", "interleaved", 4, 2, cut(4)},
        PipelineCase{"EncoderDecoder2ZbV", "transformer", "zb-v", 2, 2, cut(4, 2, 1, 3)},
        PipelineCase{"EncoderDecoder4ZbV", "transformer", "zb-v", 4, 2, cut(6)},
        PipelineCase{"EncoderDecoderPost4", "transformer_post", "1f1b", 4, 1, cut(6)},
        PipelineCase{"EncoderDecoderPost4ZbV", "transformer_post", "zb-v", 4, 2, cut(4, 2, 1, 3)},
        PipelineCase{"T5One4", "t5", "1f1b", 4, 1, cut(6)},
        PipelineCase{"T5ReluZbV2Zero3", "t5_relu", "zb-v", 2, 2, cut(4, 2, 1, 3)},
        PipelineCase{"T5Interleaved4Tp2Sp", "t5", "interleaved", 4, 2, cut(4, 1, 2, 0, 1, true)},
        PipelineCase{"T5ReluZbH1Cp2", "t5_relu", "zb-h1", 3, 1, cut(3, 1, 1, 0, 2)},
        PipelineCase{"ElectraOne4", "electra", "1f1b", 4, 1, cut(6)},
        PipelineCase{"ElectraInterleaved4Tp2Sp", "electra", "interleaved", 4, 2,
                     cut(4, 1, 2, 0, 1, true)},
        PipelineCase{"ElectraMaskedZbV2Zero3", "electra-masked", "zb-v", 2, 2, cut(4, 2, 1, 3)},
        PipelineCase{"ElectraMaskedZbH1Cp2", "electra-masked", "zb-h1", 3, 1, cut(3, 1, 1, 0, 2)},
        PipelineCase{"BartOne4", "bart", "1f1b", 4, 1, cut(6)},
        PipelineCase{"BartZbV2Zero3", "bart", "zb-v", 2, 2, cut(4, 2, 1, 3)},
        PipelineCase{"EncoderDecoder3Cp2Zero2", "transformer", "1f1b", 3, 1, cut(3, 2, 1, 2, 2)}),
    [](const auto& info) { return std::string(info.param.name); });

constexpr std::array<const char*, 9> kFamilies = {"gpt2",        "llama",       "bert",
                                                  "bert-masked", "transformer", "transformer_post",
                                                  "t5",          "t5_relu",     "bart"};

/// Any schedule, mesh and cut into chunks.
PipelineCase random_case(std::uint64_t seed, std::vector<ChunkPin>& pins) {
  std::mt19937 random(static_cast<std::uint32_t>(seed));
  const auto below = [&](std::size_t n) { return static_cast<std::int64_t>(random() % n); };
  const ScheduleDef& schedule = find_schedule(schedule_names()[at(below(schedule_names().size()))]);
  PipelineCase out{"", kFamilies[at(below(kFamilies.size()))], schedule.name.data(), 1, 1, {}};
  out.stages = static_cast<int>(1 + below(4));
  out.chunks = schedule.least_chunks;
  constexpr std::array<std::int64_t, 5> kMicrobatches = {1, 2, 3, 4, 6};
  const std::int64_t dp = 1 + below(3), tp = 1 + below(2);
  out.parallel = cut(kMicrobatches[at(below(5))], dp, tp, static_cast<int>(below(4)), 1 + below(2),
                     tp > 1 && below(2) == 0);
  // A block somewhere by hand, so that others have to make room.
  if (below(2) == 0) {
    // One unit before the layers and three behind them, and two between encoder and decoder: each
    // chunk needs one.
    const bool both = tiny(out.family).decoder_layers > 0;
    const std::int64_t layer = below(kLayers), chunks = out.stages * out.chunks;
    const std::int64_t unit = layer + (both && layer >= kLayers / 2 ? 3 : 1);
    const std::int64_t first = std::max(std::int64_t{0}, chunks - (both ? 12 : 10) + unit);
    const std::int64_t last = std::min(chunks - 1, unit);
    pins.push_back({layer_blocks(tiny(out.family, kLayers))[at(layer)],
                    static_cast<int>(first + below(at(last - first + 1)))});
  }
  return out;
}

/// TESSERA_PIPELINES=1500: that many.
TEST(RandomPipelines, EqualOneDevice) {
  std::map<std::string_view, OneDevice> ones;
  for (const char* family : kFamilies) ones.try_emplace(family, family, kLayers);
  const char* const asked = std::getenv("TESSERA_PIPELINES");
  const std::uint64_t count = asked == nullptr ? 24 : std::strtoull(asked, nullptr, 10);
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    std::vector<ChunkPin> pins;
    const PipelineCase c = random_case(seed, pins);
    const OneDevice& one = ones.at(c.family);
    EXPECT_EQ(one.wrong(stages_of(one.graph, c, pins)) + plans_stuck(one.graph, c, pins), "")
        << text("seed ", seed, ": ", c.family, " ", c.schedule, " p=", c.stages, " v=", c.chunks,
                " mesh ", strategy_of(c.parallel).mesh);
  }
}

}  // namespace
}  // namespace tessera
