/// Training on pairs: which pair is in which sample, and runs of the family transformer.

#include <set>

#include "tessera/comm/local.h"
#include "tessera/data/dataset.h"
#include "tessera/models/family.h"
#include "train/tiny_run.h"

namespace tessera {
namespace {

constexpr int kPairs = 100;

class TranslationTest : public TrainerTest {
 protected:
  TranslationTest() {
    std::ofstream text(folder_ + "/pairs.txt");
    for (int i = 0; i < kPairs; ++i) {
      const int number = i % 3 == 0 ? i : i * 37;  // of unequal lengths
      text << "from " << number << "\tto " << number << "\n";
    }
  }

  RunConfig pairs(const std::string& output) const {
    RunConfig out = config(output);
    find_preset("transformer-tiny").apply(out);
    out.model.layers = 1, out.model.dropout = 0.1;
    out.model.context = 10, out.model.source_context = 12;
    out.data = {folder_ + "/pairs.txt"};
    out.steps = 12;
    return out;
  }

  PreparedRun prepared(const RunConfig& config) const {
    Problems problems;
    std::optional<PreparedRun> out = prepare_run(config, problems);
    problems.raise();
    return std::move(*out);
  }

  std::string refused(const RunConfig& config) const {
    try {
      prepared(config);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

/// The samples [first, first + count): ids of the source of each, and how many labels count.
struct DrawnPairs {
  std::vector<std::vector<std::int32_t>> sources;
  std::vector<std::int64_t> labels;
};

DrawnPairs draw_pairs(const Samples& samples, const Task& task, std::int64_t first,
                      std::int64_t count) {
  std::vector<HostTensor> values;
  BatchInputs batch("test");
  for (const TaskInput& input : task.inputs)
    values.emplace_back(input.dtype, Shape{count, input.sample[0]});
  for (std::size_t i = 0; i < values.size(); ++i)
    batch.add(task.inputs[i].name, values[i].type(), values[i].bytes().data());
  samples.fill(first, count, batch);
  batch.require_filled();
  DrawnPairs out;
  for (std::int64_t row = 0; row < count; ++row) {
    const std::int64_t width = task.inputs[0].sample[0], labels = task.inputs[2].sample[0];
    const std::int32_t* const source = values[0].data<std::int32_t>() + row * width;
    out.sources.emplace_back(source, source + width);
    const std::int32_t* const label = values[2].data<std::int32_t>() + row * labels;
    out.labels.push_back(labels - std::count(label, label + labels, kIgnoredLabel));
  }
  return out;
}

TEST_F(TranslationTest, SamplesAreAFunctionOfTheirNumber) {
  const PreparedRun run = prepared(pairs("run"));
  EXPECT_EQ(run.config.model.vocabulary, run.data->vocabulary.size() + 3);
  const Task task = task_of(run.config.model);
  const auto samples = task.train_samples(*run.data, {.seed = 5});
  const std::int64_t n = samples->size();
  ASSERT_GE(n, 88);
  const DrawnPairs first = draw_pairs(*samples, task, 0, n),
                   second = draw_pairs(*samples, task, n, n);
  EXPECT_EQ(std::set(first.sources.begin(), first.sources.end()).size(), first.sources.size())
      << "an epoch has each pair once";
  EXPECT_EQ(std::set(first.sources.begin(), first.sources.end()),
            std::set(second.sources.begin(), second.sources.end()));
  EXPECT_NE(first.sources, second.sources) << "each epoch has an order of its own";
  const DrawnPairs again = draw_pairs(*task.train_samples(*run.data, {.seed = 5}), task, 7, 9);
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(again.sources[i], first.sources[i + 7]);
  EXPECT_NE(draw_pairs(*task.train_samples(*run.data, {.seed = 6}), task, 0, n).sources,
            first.sources);

  const auto valid = task.valid_samples(*run.data, {.seed = 5});
  EXPECT_EQ(n + valid->size(), kPairs) << "each pair trains or validates";
  const DrawnPairs held = draw_pairs(*valid, task, 0, valid->size() + 2);
  EXPECT_EQ(std::set(held.sources.begin(), held.sources.end()).size(),
            static_cast<std::size_t>(valid->size() + 1))
      << "and padding";
  EXPECT_EQ(held.labels.back(), 0) << "behind the end nothing counts";
  EXPECT_EQ(task.valid_samples(*run.data, {.most = 3})->size(), 3);
}

TEST_F(TranslationTest, WhatDoesNotFitIsTold) {
  RunConfig config = pairs("run");
  config.model.source_context = 9;  // "from 999" and its end
  const PreparedRun run = prepared(config);
  ASSERT_EQ(run.notices.size(), 2u);
  EXPECT_NE(run.notices[0].find(" pairs of "), std::string::npos) << run.notices[0];
  EXPECT_NE(run.notices[0].find("in the training part are left out: longer than source-context 9 "
                                "or context 10"),
            std::string::npos)
      << run.notices[0];
}

TEST_F(TranslationTest, WhatCannotTrainIsRefused) {
  RunConfig offsets = pairs("run"), small = pairs("run");
  offsets.sample_order = SampleOrder::RandomOffsets;
  EXPECT_EQ(
      refused(offsets),
      "sample-order random-offsets does not work with pairs; give sample-order shuffled-windows");
  small.model.vocabulary = 20;
  EXPECT_NE(refused(small).find("characters of the data and the 3 special tokens of family "),
            std::string::npos)
      << refused(small);
  RunConfig special = pairs("run");
  special.model.special_tokens = "18,19,21";
  EXPECT_EQ(refused(special),
            "special-tokens is 18,19,21 and the vocabulary 21; give ids below it");
  special.model.special_tokens = "20,18,19";
  EXPECT_EQ(refused(special), "") << "of an open vocabulary the data knows the ids";
  special.model.special_tokens = "18,19,3";
  EXPECT_EQ(refused(special),
            "special-tokens is 18,19,3, but ids below 18 belong to texts (vocabulary characters); "
            "leave special-tokens out, or give ids from "
            "18 on");
  RunConfig text = pairs("run");
  text.data = {folder_ + "/text.txt"};
  EXPECT_NE(refused(text).find(tessera::text("line 1 of '", folder_, "/text.txt' has no tab")),
            std::string::npos)
      << refused(text);
}

/// On one device and on a pipeline: resumed runs go on with the same pairs and the same bits.
TEST_F(TranslationTest, AnInterruptedRunIsTheUndisturbedOneBitByBit) {
  RunConfig whole = pairs("whole");
  whole.eval_every = 4;
  EXPECT_EQ(run(whole).ending, Ending::Finished);
  RunConfig parts = whole;
  parts.output = folder_ + "/parts";
  parts.exit_interval = 5;
  EXPECT_EQ(run(parts).ending, Ending::Interval);
  parts.exit_interval = 0;
  EXPECT_EQ(run(parts).ending, Ending::Finished);
  EXPECT_EQ(digest_of("parts"), digest_of("whole"));
  EXPECT_EQ(losses("parts"), losses("whole"));
  EXPECT_NE(losses("whole").find("\"kind\":\"valid\""), std::string::npos) << losses("whole");
}

class ShownSamples final : public TrainCallback {
 public:
  void on_sample(std::int64_t, const std::string& text) override { texts.push_back(text); }
  void on_notice(const std::string& text) override { notices.push_back(text); }
  std::vector<std::string> texts, notices;
};

/// A source that is held out, and what is written from it; the run's numbers stay what they are,
/// and checkpoints hold no caches.
TEST_F(TranslationTest, SamplesAreShownOnTheWay) {
  RunConfig config = pairs("shown"), silent = pairs("silent");
  config.sample_every = 6;
  ShownSamples shown;
  EXPECT_EQ(run(config, {.callbacks = {&shown}}).ending, Ending::Finished);
  EXPECT_EQ(run(silent).ending, Ending::Finished);
  ASSERT_EQ(shown.texts.size(), 2u);
  for (const std::string& text : shown.texts) {
    EXPECT_TRUE(text.starts_with("from ")) << text;
    EXPECT_NE(text.find(" -> "), std::string::npos) << text;
  }
  EXPECT_EQ(digest_of("shown"), digest_of("silent"));
  const Checkpoint saved = Checkpoint::open(folder_ + "/shown");
  for (const TensorEntry& tensor : saved.tensors())
    EXPECT_NE(tensor.role, Role::Cache) << tensor.name;
}

TEST_F(TranslationTest, EpochsAreCountedInPairs) {
  RunConfig config = pairs("run");
  config.epochs = 2;
  const PreparedRun run = prepared(config);
  const std::int64_t n = task_of(run.config.model).train_samples(*run.data, {})->size();
  EXPECT_EQ(run.config.steps, (2 * n + config.global_batch_size - 1) / config.global_batch_size);
}

}  // namespace
}  // namespace tessera
