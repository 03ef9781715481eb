/// A train step on any mesh computes what one device computes: all ranks interpreted in f64 with
/// dropout, the padding of shards poisoned, replicas compared to the bit.

#include <gtest/gtest.h>

#include "tessera/passes/add_uses.h"
#include "tessera/passes/bucket.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/preview.h"
#include "tessera/passes/propagate.h"
#include "tessera/passes/recompute.h"
#include "tessera/passes/simplify.h"
#include "train/one_device.h"

namespace tessera {
namespace {

struct StepCase {
  const char* name;
  const char* family;
  ParallelConfig parallel;
};

std::ostream& operator<<(std::ostream& out, const StepCase& c) { return out << c.name; }

/// As OneDevice trains it.
Strategy strategy_of_step(const StepCase& c, Recompute what = Recompute::None) {
  ParallelConfig parallel = c.parallel;
  parallel.recompute = what;
  return strategy_of(parallel, BatchSplit::Cut, tiny(c.family));
}

/// What partition makes of it, as compile does.
Program parts_of(const Graph& graph, const Strategy& strategy) {
  const Graph previewed = preview(simplify(graph), strategy.mesh);
  return partition(propagate(add_uses(recompute(previewed, strategy.recompute)), strategy));
}

class MeshStep : public testing::TestWithParam<StepCase> {};

TEST_P(MeshStep, EqualsOneDevice) {
  const OneDevice one(GetParam().family);
  EXPECT_EQ(one.wrong(fuse(parts_of(one.graph, strategy_of_step(GetParam())))), "");
}

/// In mixed precision, where copies of parameters are states: all but the rounding.
TEST_P(MeshStep, InSixteenBitsEqualsOneDevice) {
  const OneDevice one(GetParam().family, 2, {}, Precision{});
  EXPECT_EQ(one.wrong(fuse(parts_of(one.graph, strategy_of_step(GetParam())))), "");
}

/// In one bucket, in small ones, and layer by layer.
TEST_P(MeshStep, InBucketsEqualsOneDevice) {
  const OneDevice one(GetParam().family);
  const Program program = parts_of(one.graph, strategy_of_step(GetParam()));
  for (const BucketStrategy& buckets :
       {BucketStrategy{1 << 20}, BucketStrategy{3000}, BucketStrategy{0, {{"*layers.*", 1}}}})
    EXPECT_EQ(one.wrong(fuse(bucket(program, buckets))), "") << buckets.bytes;
}

TEST_P(MeshStep, RecomputedEqualsOneDevice) {
  const OneDevice one(GetParam().family);
  for (const Recompute what : {Recompute::Elementwise, Recompute::Selective, Recompute::Full}) {
    const Strategy strategy = strategy_of_step(GetParam(), what);
    EXPECT_EQ(one.wrong(fuse(parts_of(one.graph, strategy))), "") << to_text(what);
  }
}

ParallelConfig data(std::int64_t n, int level = 0) { return parallel_of(n, 1, 1, false, level, 1); }
/// ZeRO in groups of `size`; below `threshold` bytes, and of embeddings, states stay whole.
ParallelConfig grouped(ParallelConfig out, std::int64_t size, std::int64_t threshold = 0) {
  out.shard_size = size;
  out.shard_threshold = threshold;
  if (threshold > 0) out.unsharded = {"embed.*"};
  return out;
}
ParallelConfig tensor(std::int64_t n, bool sequence = false) {
  return parallel_of(1, n, 1, sequence, 0, 1);
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, MeshStep,
    testing::Values(
        StepCase{"One", "gpt2", {}}, StepCase{"Dp2", "gpt2", data(2)},
        StepCase{"Dp3", "gpt2", data(3)}, StepCase{"Dp5Uneven", "gpt2", data(5)},
        StepCase{"Dp8Uneven", "llama", data(8)}, StepCase{"Zero1", "gpt2", data(2, 1)},
        StepCase{"Zero2", "gpt2", data(4, 2)}, StepCase{"Zero3", "gpt2", data(3, 3)},
        StepCase{"Zero1In2Groups", "gpt2", grouped(data(4, 1), 2)},
        StepCase{"Zero2In3GroupsMb2", "llama", grouped(parallel_of(6, 1, 1, false, 2, 2), 2)},
        StepCase{"Zero3In2GroupsUneven", "gpt2", grouped(data(6, 3), 3)},
        StepCase{"Zero3In2GroupsTp2SpMb2", "llama", grouped(parallel_of(4, 2, 1, true, 3, 2), 2)},
        StepCase{"Zero3Of256BytesMb2", "gpt2", grouped(parallel_of(2, 2, 1, false, 3, 2), 0, 256)},
        StepCase{"Zero2In2GroupsOf256Bytes", "bert", grouped(data(4, 2), 2, 256)},
        StepCase{"Tp2", "gpt2", tensor(2)}, StepCase{"Tp4", "gpt2", tensor(4)},
        StepCase{"Tp2Llama", "llama", tensor(2)}, StepCase{"Tp2Sp", "gpt2", tensor(2, true)},
        StepCase{"Tp2SpLlama", "llama", tensor(2, true)},
        StepCase{"Cp2", "gpt2", parallel_of(1, 1, 2, false, 0, 1)},
        StepCase{"Cp2Llama", "llama", parallel_of(1, 1, 2, false, 0, 1)},
        StepCase{"Cp2Tp2Dp2", "gpt2", parallel_of(2, 2, 2, true, 3, 2)},
        StepCase{"Dp2Tp2SpZero1Mb2", "gpt2", parallel_of(2, 2, 1, true, 1, 2)},
        StepCase{"Dp2Tp2Zero2Mb3", "llama", parallel_of(2, 2, 1, false, 2, 3)},
        StepCase{"Dp3Mb4Zero3Uneven", "gpt2", parallel_of(3, 1, 1, false, 3, 4)},
        StepCase{"BertDp3", "bert", data(3)}, StepCase{"BertTp2", "bert", tensor(2)},
        StepCase{"BertTp4Sp", "bert", tensor(4, true)},
        StepCase{"BertCp2", "bert", parallel_of(1, 1, 2, false, 0, 2)},
        StepCase{"BertDp2Tp2SpZero1Mb2", "bert", parallel_of(2, 2, 1, true, 1, 2)},
        StepCase{"BertDp5Mb2Zero2Uneven", "bert", parallel_of(5, 1, 1, false, 2, 2)},
        StepCase{"BertCp2Tp2Dp2Zero3", "bert", parallel_of(2, 2, 2, true, 3, 2)},
        StepCase{"PanguCp2Tp2Dp2Zero3", "pangu", parallel_of(2, 2, 2, true, 3, 1)},
        StepCase{"MixtralDp3", "mixtral", data(3)},
        StepCase{"MixtralEp2", "mixtral", experts(2, data(2))},
        StepCase{"MixtralEp3Zero3", "mixtral", experts(3, data(3, 3))},
        StepCase{"MixtralEp2Dp4Zero2In2GroupsMb2", "mixtral",
                 experts(2, grouped(parallel_of(8, 1, 1, false, 2, 1), 4))},
        StepCase{"MixtralEp2Dp4Zero3Mb3", "mixtral", experts(2, parallel_of(4, 1, 1, false, 3, 3))},
        StepCase{"MixtralEp2Tp2SpZero1Mb2", "mixtral",
                 experts(2, parallel_of(2, 2, 1, true, 1, 2))},
        StepCase{"MixtralEp2Cp2Tp2Zero3", "mixtral", experts(2, parallel_of(2, 2, 2, true, 3, 2))},
        StepCase{"OlmoeEp2Tp2Sp", "olmoe", experts(2, parallel_of(2, 2, 1, true, 1, 1))},
        StepCase{"OlmoeTp4Cp2", "olmoe", parallel_of(1, 4, 2, false, 0, 2)},
        StepCase{"GptOssEp2Tp2Sp", "gpt_oss", experts(2, parallel_of(2, 2, 1, true, 1, 1))},
        StepCase{"GptOssEp3Zero3Mb2", "gpt_oss", experts(3, parallel_of(3, 1, 1, false, 3, 2))},
        StepCase{"GptOssCp2Tp2Dp2", "gpt_oss", parallel_of(2, 2, 2, false, 0, 1)},
        StepCase{"DeepseekV3Ep2Tp2Sp", "deepseek_v3", experts(2, parallel_of(2, 2, 1, true, 1, 1))},
        StepCase{"DeepseekV3Ep3Zero3Mb2", "deepseek_v3",
                 experts(3, parallel_of(3, 1, 1, false, 3, 2))},
        StepCase{"DeepseekV3Cp2Tp2Dp2", "deepseek_v3", parallel_of(2, 2, 2, false, 0, 1)},
        StepCase{"DeepseekV3Cp4Tp2Sp", "deepseek_v3", parallel_of(1, 2, 4, true, 0, 1)},
        StepCase{"DeepseekV3RoutedEp2Cp2Tp2", "deepseek_v3-routed",
                 experts(2, parallel_of(2, 2, 2, false, 1, 2))},
        StepCase{"RoutedDp3", "mixtral-routed", data(3)},
        StepCase{"RoutedEp2Mb2Zero3", "mixtral-routed",
                 experts(2, parallel_of(2, 1, 1, false, 3, 2))},
        StepCase{"RoutedEp4Tp2Sp", "mixtral-routed", experts(4, parallel_of(4, 2, 1, true, 1, 1))},
        StepCase{"RoutedEp2Cp2Tp2Zero1", "mixtral-routed",
                 experts(2, parallel_of(2, 2, 2, false, 1, 2))},
        StepCase{"VitDp3", "vit", data(3)}, StepCase{"VitTp2Sp", "vit", tensor(2, true)},
        StepCase{"VitCp2Tp2Dp2Zero3", "vit", parallel_of(2, 2, 2, true, 3, 2)},
        StepCase{"VitDp5Mb2Zero2Uneven", "vit", parallel_of(5, 1, 1, false, 2, 2)},
        StepCase{"BertMaskedDp2", "bert-masked", data(2)},
        StepCase{"BertMaskedCp2Tp2", "bert-masked", parallel_of(1, 2, 2, true, 0, 1)},
        StepCase{"BertMaskedDp3Mb4Zero3Uneven", "bert-masked", parallel_of(3, 1, 1, false, 3, 4)},
        StepCase{"RobertaDp2Tp2SpZero1Mb2", "roberta", parallel_of(2, 2, 1, true, 1, 2)},
        StepCase{"RobertaCp2Dp2Zero3", "roberta", parallel_of(2, 1, 2, false, 3, 2)},
        StepCase{"AlbertTp4Sp", "albert", tensor(4, true)},
        StepCase{"AlbertDp2Tp2SpZero1Mb2", "albert", parallel_of(2, 2, 1, true, 1, 2)},
        StepCase{"AlbertCp2Tp2Dp2Zero3", "albert", parallel_of(2, 2, 2, true, 3, 2)},
        StepCase{"AlbertMaskedDp3Mb4Zero3Uneven", "albert-masked",
                 parallel_of(3, 1, 1, false, 3, 4)},
        StepCase{"ElectraDp2Tp2SpZero1Mb2", "electra", parallel_of(2, 2, 1, true, 1, 2)},
        StepCase{"ElectraCp2Tp2Dp2Zero3", "electra", parallel_of(2, 2, 2, true, 3, 2)},
        StepCase{"ElectraMaskedTp2", "electra-masked", tensor(2)},
        StepCase{"ElectraMaskedCp2Tp2", "electra-masked", parallel_of(1, 2, 2, true, 0, 1)},
        StepCase{"ElectraMaskedDp3Mb4Zero3Uneven", "electra-masked",
                 parallel_of(3, 1, 1, false, 3, 4)},
        StepCase{"BertTagsDp2Tp2SpZero1Mb2", "bert-tags", parallel_of(2, 2, 1, true, 1, 2)},
        StepCase{"RobertaTagsCp2Tp2Dp2Zero3", "roberta-tags", parallel_of(2, 2, 2, true, 3, 2)},
        StepCase{"AlbertTagsDp3", "albert-tags", data(3)},
        StepCase{"BertSentencesDp2", "bert-sentences", data(2)},
        StepCase{"BertSentencesDp2Zero3Mb2", "bert-sentences", parallel_of(2, 1, 1, false, 3, 2)},
        StepCase{"BertSentencesDp2Tp2SpMb3", "bert-sentences", parallel_of(2, 2, 1, true, 0, 3)},
        StepCase{"BertSentencesCp2Tp2", "bert-sentences", parallel_of(1, 2, 2, true, 0, 2)},
        StepCase{"BertChoicesDp2Tp2SpMb3", "bert-choices", parallel_of(2, 2, 1, true, 0, 3)},
        StepCase{"BertChoicesCp2Dp3Zero3", "bert-choices", parallel_of(3, 1, 2, false, 3, 1)},
        StepCase{"BertChoicesCp2Tp2SpMb6", "bert-choices", parallel_of(1, 2, 2, true, 0, 6)},
        StepCase{"RobertaChoicesCp2Tp2Dp2Zero3", "roberta-choices",
                 parallel_of(2, 2, 2, true, 3, 2)},
        StepCase{"BertSpansDp2Tp2SpZero1Mb2", "bert-spans", parallel_of(2, 2, 1, true, 1, 2)},
        StepCase{"RobertaSpansCp2Tp2Dp2Zero3", "roberta-spans", parallel_of(2, 2, 2, true, 3, 2)},
        StepCase{"AlbertSpansTp2Sp", "albert-spans", tensor(2, true)},
        StepCase{"BertAloneDp2Tp2SpZero1Mb2", "bert-alone", parallel_of(2, 2, 1, true, 1, 2)},
        StepCase{"AlbertAloneCp2Dp2Zero3", "albert-alone", parallel_of(2, 1, 2, false, 3, 2)},
        StepCase{"BertClassesDp3", "bert-classes", data(3)},
        StepCase{"BertClassesDp2Tp2SpZero1Mb2", "bert-classes", parallel_of(2, 2, 1, true, 1, 2)},
        StepCase{"RobertaClassesCp2Tp2Dp2Zero3", "roberta-classes",
                 parallel_of(2, 2, 2, true, 3, 2)},
        StepCase{"AlbertClassesTp2Sp", "albert-classes", tensor(2, true)},
        StepCase{"Gpt2ClassesCp2Dp2Zero3", "gpt2-classes", parallel_of(2, 1, 2, false, 3, 2)},
        StepCase{"LlamaClassesDp2Tp2Sp", "llama-classes", parallel_of(2, 2, 1, true, 0, 1)},
        StepCase{"BertNumbersDp3", "bert-numbers", data(3)},
        StepCase{"BertNumberDp2Tp2SpZero1Mb2", "bert-number", parallel_of(2, 2, 1, true, 1, 2)},
        StepCase{"RobertaNumbersCp2Tp2Dp2Zero3", "roberta-numbers",
                 parallel_of(2, 2, 2, true, 3, 2)},
        StepCase{"LlamaNumberCp2Dp2Zero3", "llama-number", parallel_of(2, 1, 2, false, 3, 2)},
        StepCase{"BertSetsDp2Tp2SpZero1Mb2", "bert-sets", parallel_of(2, 2, 1, true, 1, 2)},
        StepCase{"RobertaSetsDp3", "roberta-sets", data(3)},
        StepCase{"Gpt2SetsCp2Tp2Dp2Zero3", "gpt2-sets", parallel_of(2, 2, 2, true, 3, 2)},
        StepCase{"Gpt2TagsCp2Tp2Dp2Zero3", "gpt2-tags", parallel_of(2, 2, 2, true, 3, 2)},
        StepCase{"LlamaTagsDp2Tp2Sp", "llama-tags", parallel_of(2, 2, 1, true, 0, 1)},
        StepCase{"BartClassesDp2Tp2Sp", "bart-classes", parallel_of(2, 2, 1, true, 0, 1)},
        StepCase{"T5ClassesCp2Tp2Dp2Zero3", "t5-classes", parallel_of(2, 2, 2, true, 3, 2)},
        StepCase{"Gpt2PreferencesDp3", "gpt2-preferences", data(3)},
        StepCase{"Gpt2PreferencesCp2Tp2Dp2Zero3", "gpt2-preferences",
                 parallel_of(2, 2, 2, true, 3, 2)},
        StepCase{"LlamaPreferencesDp2Tp2SpZero1Mb3", "llama-preferences",
                 parallel_of(2, 2, 1, true, 1, 3)},
        StepCase{"LlamaAdaptedDp2Tp2Zero3Mb2", "llama-adapted", parallel_of(2, 2, 1, false, 3, 2)},
        StepCase{"RobertaMaskedCp2Tp2", "roberta-masked", parallel_of(1, 2, 2, true, 0, 1)},
        StepCase{"Dp5Mb2Zero2Uneven", "llama", parallel_of(5, 1, 1, false, 2, 2)},
        StepCase{"EncoderDecoderDp5Uneven", "transformer", data(5)},
        StepCase{"EncoderDecoderTp4", "transformer", tensor(4)},
        StepCase{"EncoderDecoderTp2Sp", "transformer", tensor(2, true)},
        StepCase{"EncoderDecoderPostTp2Sp", "transformer_post", tensor(2, true)},
        StepCase{"EncoderDecoderPostDp2Zero3", "transformer_post", data(2, 3)},
        StepCase{"EncoderDecoderCp2", "transformer", parallel_of(1, 1, 2, false, 0, 1)},
        StepCase{"T5Dp3Uneven", "t5", data(3)}, StepCase{"T5Tp4", "t5", tensor(4)},
        StepCase{"T5ReluTp2SpZero1Mb2", "t5_relu", parallel_of(2, 2, 1, true, 1, 2)},
        StepCase{"T5ReluCp2", "t5_relu", parallel_of(1, 1, 2, false, 0, 1)},
        StepCase{"T5Cp2Tp2Dp2Zero3Mb2", "t5", parallel_of(2, 2, 2, true, 3, 2)},
        StepCase{"BartTp4", "bart", tensor(4)},
        StepCase{"BartCp2Tp2Dp2Zero3Mb2", "bart", parallel_of(2, 2, 2, true, 3, 2)},
        StepCase{"EncoderDecoderDp2Zero1Mb3", "transformer", parallel_of(2, 1, 1, false, 1, 3)},
        StepCase{"EncoderDecoderDp3Zero2Mb2", "transformer", parallel_of(3, 1, 1, false, 2, 2)},
        StepCase{"EncoderDecoderCp2Tp2Dp2Zero3Mb2", "transformer",
                 parallel_of(2, 2, 2, true, 3, 2)}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tessera
