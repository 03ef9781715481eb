/// Several texts at a time: each is what it is alone, on meshes and pipelines too.

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "tessera/comm/local.h"
#include "tessera/models/family.h"
#include "tessera/models/parallel.h"
#include "tessera/train/generate.h"
#include "tessera/train/programs.h"
#include "train/tiny_step.h"

namespace tessera {
namespace {

ModelConfig generating_model(const std::string& family) {
  ModelConfig model = tiny(family, 4);
  model.context = 9;
  model.init_std = 0.4;  // so that texts are unlike each other, and some end early
  if (model.family == "t5") model.init_std = 2;  // of that family it is a factor
  return model;
}

/// The first two are the tab and the new line that pairs have between them.
Vocabulary sixteen_letters() { return Vocabulary::characters("\t\nabcdghklmnopqr"); }

/// Texts from random weights, by a model of so many rows.
std::vector<Tokens> generated(const std::string& family, const std::vector<std::string>& texts,
                              const GenerateOptions& options, std::int64_t rows,
                              const ParallelConfig& parallel = {}) {
  const ModelConfig model = generating_model(family);
  const Task task = task_of(model);
  const Strategy strategy = strategy_of(parallel, BatchSplit::Whole, model);
  const Vocabulary vocabulary = sixteen_letters();
  std::vector<Beginning> beginnings;
  for (const std::string& text : texts)
    beginnings.push_back(beginning_of(*task.text, vocabulary, vocabulary.encode(text)));
  std::vector<Tokens> out;
  const auto rank = [&](Communicator* world) {
    const auto device = make_cpu_device({1, -1});
    CompileOptions compiling;
    compiling.rank = world == nullptr ? 0 : world->rank();
    std::vector<ProgramSource> sources = writing_programs(*task.text, rows, strategy);
    sources.push_back({kInitProgram, initialise(train_step(task, {}, 1)), strategy});
    RankGroup group(compile(std::move(sources), *device, compiling), *device, world);
    if (compiling.rank > 0) return group.follow();
    group.run(kInitProgram);
    TextModel writer(group, *task.text);
    out = generate(writer, vocabulary, beginnings, options);
    group.stop();
  };
  if (parallel.devices == 1) {
    rank(nullptr);
  } else {
    run_ranks(static_cast<int>(parallel.devices), [&](Communicator& world) { rank(&world); });
  }
  return out;
}

const std::vector<std::string> kSources = {"abc", "p", "nomad", "kkk"};

GenerateOptions greedy() { return {.tokens = 20, .temperature = 0}; }

TEST(GenerateRows, EachTextIsWhatItIsAlone) {
  GenerateOptions warm = greedy(), beams = greedy();
  warm.temperature = 1.5;
  beams.beams = 3;
  for (const char* family : {"transformer", "transformer_post", "t5", "bart"}) {
    for (const GenerateOptions& options : {greedy(), warm, beams}) {
      SCOPED_TRACE(text(family, " ", options.temperature, " ", options.beams));
      // One row is left over, and repeats the last text.
      const std::vector<Tokens> together = generated(family, kSources, options, options.beams * 5);
      ASSERT_EQ(together.size(), kSources.size());
      for (std::size_t i = 0; i < kSources.size(); ++i) {
        GenerateOptions alone = options;
        alone.first = static_cast<std::int64_t>(i);
        EXPECT_EQ(generated(family, {kSources[i]}, alone, options.beams)[0], together[i]) << i;
        EXPECT_LE(together[i].size(), 9u) << "the context is the most";
        for (const std::int32_t token : together[i]) {
          EXPECT_LT(token, 16) << "never a special one";
          EXPECT_GE(token, 2) << "never what stands between texts";
        }
      }
      EXPECT_GT(std::set<Tokens>(together.begin(), together.end()).size(), 1u)
          << "the source decides";
    }
  }
}

TEST(GenerateRows, PromptsGoOnTogether) {
  const std::vector<std::string> prompts = {"ab", "po", "ll"};
  const std::vector<Tokens> together = generated("gpt2", prompts, greedy(), 3);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    EXPECT_EQ(together[i].size(), 20u) << "beyond the context, which nothing ends";
    EXPECT_EQ(generated("gpt2", {prompts[i]}, greedy(), 1)[0], together[i]);
  }
  EXPECT_THROW(generated("gpt2", {"ab", "c"}, greedy(), 2), Error) << "of unequal lengths";
  EXPECT_THROW(generated("gpt2", prompts, greedy(), 2), Error) << "more than rows";
}

TEST(GenerateRows, AreTheSameOnMeshesAndPipelines) {
  GenerateOptions beams = greedy();
  beams.beams = 2;
  for (const char* family : {"transformer", "transformer_post", "t5", "bart"}) {
    for (const GenerateOptions& options : {greedy(), beams}) {
      const std::int64_t rows = 4 * options.beams;
      const std::vector<Tokens> one = generated(family, kSources, options, rows);
      for (const ParallelConfig& parallel :
           {ParallelConfig{.devices = 2, .tensor = 2}, ParallelConfig{.devices = 2, .pipeline = 2},
            ParallelConfig{.devices = 4, .pipeline = 2, .tensor = 2},
            ParallelConfig{.devices = 2, .shard_parameters = true},
            ParallelConfig{.devices = 4, .pipeline = 4}}) {
        SCOPED_TRACE(text(family, " beams ", options.beams, " devices ", parallel.devices, " tp ",
                          parallel.tensor, " pp ", parallel.pipeline));
        EXPECT_EQ(generated(family, kSources, options, rows, parallel), one);
      }
    }
  }
}

}  // namespace
}  // namespace tessera
