/// Datasets::collate: rows that batches make as long as each other.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "tessera/apps/training.h"
#include "tessera/base/text.h"
#include "tessera/nn/layers.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/rapidformer/request.h"
#include "tessera/rapidformer/templates.h"
#include "tessera/tensor/ignored_label.h"
#include "tessera/user_code/own_loop.h"

namespace tessera {

namespace {

using Ids = std::vector<std::int32_t>;

constexpr std::int64_t kLongest = 9;  // of rows

/// Texts of 2 to 9 tokens, of which the last one tells the class. `padded`: rows of that length.
class CollateTexts final : public MapDataset {
 public:
  CollateTexts(std::int64_t size, std::string task, std::int64_t padded = 0)
      : size_(size), task_(std::move(task)), padded_(padded) {}
  std::int64_t size() const override { return size_; }
  Features get(std::int64_t i) const override {
    Ids ids, mask;
    for (std::int64_t k = 0; k < 2 + i * 5 % 8; ++k)
      ids.push_back(static_cast<std::int32_t>(1 + (i * 7 + k * 3) % 19));
    mask.assign(ids.size(), 1);
    Ids labels = ids;
    if (task_ == "seq2seq_lm") labels.resize(1 + (ids.size() - 1) / 2);
    for (std::int32_t& label : labels)
      if (task_ == "token_classification") label %= 2;
    const std::int32_t kind = ids.back() % 2;
    if (padded_ > 0) {
      ids.resize(static_cast<std::size_t>(padded_)), mask.resize(ids.size());
      labels.resize(task_ == "seq2seq_lm" ? 5 : ids.size(), kIgnoredLabel);
    }
    Features out{{"input_ids", ids}};
    if (padded_ > 0) out["attention_mask"] = mask;
    if (task_ == "sequence_classification") {
      out["labels"] = kind;
    } else {
      out["labels"] = labels;
    }
    return out;
  }

 private:
  std::int64_t size_;
  std::string task_;
  std::int64_t padded_;
};

/// Samples that are returned as they are.
class CollateGiven final : public MapDataset {
 public:
  explicit CollateGiven(std::vector<Features> samples) : samples_(std::move(samples)) {}
  std::int64_t size() const override { return std::ssize(samples_); }
  Features get(std::int64_t i) const override { return samples_[static_cast<std::size_t>(i)]; }

 private:
  std::vector<Features> samples_;
};

struct CollateRun {
  std::vector<double> losses;
  double held_out = 0;
  std::vector<float> predictions;
};

AskedTraining asked_of(const std::string& flags) {
  return read_rapidformer_flags(
      split("--num-layers 1 --hidden-size 16 --num-attention-heads 2 --vocab-size 20 --dropout 0 "
            "--lr 0.01 --threads 1 " +
                flags,
            ' '),
      FlagsOf::Program);
}

OwnFunctions functions_on(const Datasets& data, const char* family) {
  OwnFunctions out;
  out.datasets = [data] { return data; };
  out.provide = [family]() -> Provided { return {ModelChoice(find_model(family))}; };
  out.forward = [](const Batch& batch, const Model& model) { return model.with_logits(batch); };
  out.shuffled = true;
  return out;
}

/// Four steps, and what is predicted then of seven held-out samples.
CollateRun trained_on(const Datasets& data, const char* family, const std::string& flags) {
  std::ostringstream said;
  Console console{said, said};
  OwnLoop loop(asked_of("--epochs 2 --global-batch-size 8 " + flags), console,
               functions_on(data, family));
  CollateRun out;
  for (std::int64_t epoch = 1; epoch <= 2; ++epoch)
    for (const SampleBatch& batch : loop.train_batches(epoch))
      out.losses.push_back(loop.backward(batch).loss);
  const EvalPrediction eval = loop.gather();
  out.held_out = eval.loss;
  const HostTensor& logits = eval.predictions.at("logits");
  out.predictions.assign(logits.data<float>(), logits.data<float>() + logits.numel());
  return out;
}

Datasets texts_of(const std::string& task, std::int64_t padded = 0) {
  return {std::make_shared<CollateTexts>(16, task, padded),
          std::make_shared<CollateTexts>(7, task, padded), nullptr,
          padded > 0 ? Collate() : Collate(pad_to_longest)};
}

template <typename Act>
std::string collate_refusal(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST(Collate, PadToLongestFillsUpAndMasks) {
  const std::vector<Features> padded = pad_to_longest(
      {{{"input_ids", Ids{1, 2, 3}}, {"labels", Ids{4, 5, 6}}, {"row", std::vector<float>{1}}},
       {{"input_ids", Ids{7}}, {"labels", Ids{8}}, {"row", std::vector<float>{2, 3}}}});
  const std::vector<Features> wanted = {{{"input_ids", Ids{1, 2, 3}},
                                         {"attention_mask", Ids{1, 1, 1}},
                                         {"labels", Ids{4, 5, 6}},
                                         {"row", std::vector<float>{1, 0}}},
                                        {{"input_ids", Ids{7, 0, 0}},
                                         {"attention_mask", Ids{1, 0, 0}},
                                         {"labels", Ids{8, kIgnoredLabel, kIgnoredLabel}},
                                         {"row", std::vector<float>{2, 3}}}};
  EXPECT_EQ(padded, wanted);
  const std::vector<Features> masked =
      pad_to_longest({{{"input_ids", Ids{1, 2}}, {"mask", Ids{0, 1}}, {"label", 1}},
                      {{"input_ids", Ids{1, 2, 3}}, {"mask", Ids{1, 1, 1}}, {"label", 0}}});
  EXPECT_EQ(masked[0],
            (Features{{"input_ids", Ids{1, 2, 0}}, {"mask", Ids{0, 1, 0}}, {"label", 1}}));
  EXPECT_EQ(collate_refusal([] {
              pad_to_longest({{{"a", Ids{1}}}, {{"a", Ids{}}}});
            }),
            "sample 1 of the 2 to pad: feature 'a' is a row of 0 i32; give it numbers, or leave "
            "the sample out of the dataset");
  EXPECT_EQ(collate_refusal([] {
              pad_to_longest({{{"input_ids", Ids{1, 2}}, {"attention_mask", Ids{1}}}});
            }),
            "a sample has 2 input_ids, and its attention_mask is a row of 1 i32; give as many");
}

/// Rows that a collate makes as long as the longest of their batch are those that get() pads to the
/// context, on any mesh.
TEST(Collate, TheBitsOfRowsThatGetPads) {
  struct Case {
    const char *family, *task;
  };
  const Case kCases[] = {{"roberta", "sequence_classification"},
                         {"roberta", "token_classification"},
                         {"gpt2", "causal_lm"},
                         {"t5", "seq2seq_lm"}};
  const char* const kMeshes[] = {"--micro-batch-size 8", "--micro-batch-size 2",
                                 "--devices 2 --micro-batch-size 1",
                                 "--devices 4 --micro-batch-size 1",
                                 "--devices 4 --micro-batch-size 2 --tensor-model-parallel-size 2"};
  for (const Case& c : kCases) {
    std::optional<CollateRun> first;
    for (const char* const mesh : kMeshes) {
      SCOPED_TRACE(text(c.family, " ", c.task, " ", mesh));
      const std::string flags = text("--task ", c.task, " ", mesh);
      const CollateRun collated = trained_on(texts_of(c.task), c.family, flags),
                       padded = trained_on(texts_of(c.task, kLongest), c.family, flags);
      ASSERT_EQ(collated.losses.size(), 4u);
      EXPECT_EQ(collated.losses, padded.losses);
      EXPECT_EQ(collated.held_out, padded.held_out);
      EXPECT_EQ(collated.predictions, padded.predictions);
      if (!first) first = collated;
      for (std::size_t i = 0; i < 4; ++i)
        EXPECT_NEAR(collated.losses[i] / first->losses[i], 1, 1e-5) << i;
      EXPECT_NEAR(collated.held_out / first->held_out, 1, 1e-5);
    }
  }
}

/// A flag says a longer context, to which all that a collate returns is filled up, however long it
/// is.
TEST(Collate, RowsAreFilledUpToTheContext) {
  const std::string task = "sequence_classification",
                    flags = "--task sequence_classification --seq-length 12";
  const CollateRun wanted = trained_on(texts_of(task, 12), "roberta", flags);
  Datasets data = texts_of(task);
  EXPECT_EQ(trained_on(data, "roberta", flags).losses, wanted.losses);
  data.collate = [](std::vector<Features> samples) {  // to a multiple of 4
    samples = pad_to_longest(std::move(samples));
    for (Features& sample : samples)
      for (const char* const name : {"input_ids", "attention_mask"}) {
        Ids& row = std::get<Ids>(sample.at(name));
        row.resize((row.size() + 3) / 4 * 4);
      }
    return samples;
  };
  const CollateRun fours = trained_on(data, "roberta", flags);
  EXPECT_EQ(fours.losses, wanted.losses);
  EXPECT_EQ(fours.predictions, wanted.predictions);
}

namespace {

/// Samples with `ids` of number 3, and what is wrong with training on them.
std::string collate_refusal_of(const Collate& collate, Features third, const std::string& flags,
                               const char* family = "roberta", Features others = {}) {
  if (others.empty()) others = {{"input_ids", Ids{1, 2}}, {"labels", 1}};
  std::vector<Features> samples(8, others);
  samples[3] = std::move(third);
  return collate_refusal([&] {
    trained_on({std::make_shared<CollateGiven>(samples),
                std::make_shared<CollateGiven>(std::vector<Features>(4, others)), nullptr, collate},
               family, flags);
  });
}

}  // namespace

TEST(Collate, WhatIsWrongIsTold) {
  const std::string classes = "--task sequence_classification --seq-length 4";
  const Features third{{"input_ids", Ids{1, 2, 3}}, {"labels", 0}};
  const auto as_is = [](std::vector<Features> samples) { return samples; };
  const auto starts = [](const std::string& said, const std::string& wanted) {
    EXPECT_TRUE(said.starts_with(wanted)) << said;
    return said;
  };
  EXPECT_EQ(collate_refusal_of(pad_to_longest, third, classes), "none");
  starts(collate_refusal_of(pad_to_longest, {{"input_ids", Ids(6, 1)}, {"labels", 0}}, classes),
         "sample 3 of the dataset: feature 'input_ids' has 6 numbers, and rows of a batch have "
         "4; cut it in get(), or give --seq-length 6 or more");
  // Without a mask the model reads what fills up; where rows are as long as the context, nothing
  // does.
  const std::string sums = "--task seq2seq_lm --source-context 4 --seq-length 4";
  const Features summed{{"input_ids", Ids{1, 2}}, {"labels", Ids{1}}};
  const std::string unmasked = collate_refusal_of(as_is, summed, sums, "t5", summed);
  EXPECT_NE(unmasked.find(" of the dataset is shorter than the context, and the model would read "
                          "what fills it up; give samples an attention_mask, or all the same "
                          "length"),
            std::string::npos)
      << unmasked;
  EXPECT_EQ(collate_refusal_of(pad_to_longest, summed, sums, "t5", summed), "none");
  EXPECT_EQ(collate_refusal_of(as_is, summed, "--task seq2seq_lm", "t5", summed), "none");
  starts(collate_refusal_of(pad_to_longest, {{"input_ids", Ids(5, 1)}, {"labels", Ids{1}}}, sums,
                            "t5", summed),
         "sample 3 of the dataset: feature 'input_ids' has 5 numbers, and rows of a batch have "
         "4; cut it in get(), or give --source-context 5 or more");
  // A causal model does not, and labels tell its loss.
  const std::string causal = "--task causal_lm --seq-length 4";
  const Features labelled{{"input_ids", Ids{1, 2}}, {"labels", Ids{1, 2}}};
  EXPECT_EQ(collate_refusal_of(as_is, labelled, causal, "gpt2", labelled), "none");
  for (const std::size_t others : {2u, 3u})  // the longest rows of the batch may agree
    starts(collate_refusal_of(pad_to_longest, {{"input_ids", Ids{1, 2}}, {"labels", Ids{1, 2, 3}}},
                              causal, "gpt2",
                              {{"input_ids", Ids(others, 1)}, {"labels", Ids(others, 1)}}),
           "sample 3 of the dataset: feature 'labels' has 3 numbers, and 'input_ids' 2; give as "
           "many");
  const auto named = [&](const Collate& collate, const std::string& wanted) {
    const std::string said = starts(collate_refusal_of(collate, third, classes), wanted);
    EXPECT_NE(said.find("\n    in Datasets::collate of sample"), std::string::npos) << said;
  };
  named(
      [](std::vector<Features> samples) {
        samples.pop_back();
        return samples;
      },
      "it was given 1 samples and returned 0; return one for each");
  named(
      [](std::vector<Features> samples) {
        if (samples.size() > 1) samples.pop_back();
        return samples;
      },
      "it was given 8 samples and returned 7; return one for each");
  named(as_is, "sample 3: feature 'input_ids' is a row of 3 i32, but in sample ");
  starts(collate_refusal_of(pad_to_longest, {{"input_ids", Ids{}}, {"labels", 0}}, classes),
         "sample ");
  named([](std::vector<Features>) -> std::vector<Features> { throw std::out_of_range("no row"); },
        "no row (std::out_of_range)");
  named(
      [](std::vector<Features> samples) {
        samples = pad_to_longest(std::move(samples));
        if (samples.size() > 1) samples[0].erase("attention_mask");
        return samples;
      },
      "sample ");
  named(
      [](std::vector<Features> samples) {
        for (Features& sample : samples) sample["input_ids"] = Ids{};
        return samples;
      },
      "sample 0: feature 'input_ids' is a row of 0 i32; give it numbers, or leave the sample out");
}

/// What no model of the library knows is of one length in all batches.
TEST(Collate, RowsOfOwnLayersHaveOneLength) {
  const auto refusal = [](std::size_t third) {
    std::vector<Features> samples(8, {{"row", std::vector<float>{1, 2}}});
    samples[3] = {{"row", std::vector<float>(third)}};
    std::ostringstream said;
    Console console{said, said};
    OwnFunctions functions;
    functions.datasets = [&]() -> Datasets {
      return {std::make_shared<CollateGiven>(samples), nullptr, nullptr, pad_to_longest};
    };
    functions.provide = []() -> Provided { return {ModelChoice::own_layers()}; };
    functions.forward = [](const Batch& batch, const Model&) -> ModelOutput {
      const Value line = linear(batch["row"], "line", 1);
      return masked_mean(reshape(line * line, {8}), batch.is_sample());
    };
    return collate_refusal([&] {
      OwnLoop loop(
          read_rapidformer_flags(
              split("--epochs 1 --lr 0.1 --threads 1 --global-batch-size 8 --micro-batch-size 8",
                    ' '),
              FlagsOf::Program),
          console, std::move(functions));
      loop.backward({0, 8});
    });
  };
  EXPECT_EQ(refusal(1), "none");
  const std::string said = refusal(3);
  EXPECT_NE(said.find(" of the dataset: feature 'row' has 3 numbers, and the first sample that "
                      "trains 2; the model does not know how long it is"),
            std::string::npos)
      << said;
}

namespace {

/// What docs/guides/cpp-script.md shows.
class CollateFinetuner : public Finetuner {
 public:
  CollateFinetuner(RapidformerEngine& engine, const Datasets& data)
      : Finetuner(engine), train_(data.train), valid_(data.valid), test_(data.test) {}
  // [collate]
  Datasets train_valid_test_datasets_provider() override {
    return {train_, valid_, test_, pad_to_longest};
  }
  // [end]
  ModelOutput run_forward_step(const Batch& batch, const Model& model) override {
    return model(batch);
  }
  NamedMeans run_compute_metrics(const EvalPrediction& eval) override {
    return accuracy_and_f1(eval.argmax("logits"), eval.labels("labels"));
  }

 protected:
  std::shared_ptr<const MapDataset> train_, valid_, test_;
};

class PaddedFinetuner final : public CollateFinetuner {
 public:
  using CollateFinetuner::CollateFinetuner;
  Datasets train_valid_test_datasets_provider() override { return {train_, valid_, test_}; }
};

/// What it prints of losses and scores.
template <typename Template>
std::vector<std::string> printed_by(const Datasets& data, const std::string& flags) {
  std::vector<std::string> words = split(
      "program --task sequence_classification --family roberta --num-layers 1 --hidden-size 16 "
      "--num-attention-heads 2 --vocab-size 20 --lr 0.01 --threads 1 --global-batch-size 8 "
      "--log-interval 1 --lr-decay-style constant " +
          flags,
      ' ');
  std::vector<char*> values;
  for (std::string& word : words) values.push_back(word.data());
  testing::internal::CaptureStdout();
  int code = 0;
  {
    RapidformerEngine engine(static_cast<int>(values.size()), values.data());
    code = Template(engine, data).train();
  }
  const std::string out = testing::internal::GetCapturedStdout();
  EXPECT_EQ(code, 0) << out;
  std::vector<std::string> lines;
  for (const std::string& line : split(out, '\n')) {
    const std::size_t loss = line.find("loss");
    if (loss == std::string::npos) continue;
    const std::size_t at = line.find(" | ", loss);
    lines.push_back(line.substr(loss, at == std::string::npos ? at : at - loss));
  }
  return lines;
}

}  // namespace

/// Trained, validated, tested, and resumed in between: what rows that get() pads give. The longest
/// row is one to test.
TEST(Collate, TemplatesTrainTestAndGoOn) {
  const std::string task = "sequence_classification", folder = testing::TempDir() + "collate-";
  const auto remove = [&] {
    for (const char* const name : {"whole", "padded", "parts"})
      std::filesystem::remove_all(folder + name);
  };
  remove();
  const auto data = [&](std::int64_t padded) {
    Datasets out = texts_of(task, padded);
    Ids ids(12, 3), mask(12, 1);
    Features longest{{"input_ids", ids}, {"labels", 1}}, other{{"input_ids", ids}, {"labels", 0}};
    if (padded > 0) longest["attention_mask"] = other["attention_mask"] = mask;
    out.test = std::make_shared<CollateGiven>(std::vector<Features>{longest, other, longest});
    return out;
  };
  const std::vector<std::string> whole =
      printed_by<CollateFinetuner>(data(0), "--epochs 4 --save " + folder + "whole");
  ASSERT_GE(whole.size(), 8u);
  EXPECT_EQ(whole, printed_by<PaddedFinetuner>(data(12), "--epochs 4 --save " + folder + "padded"));
  EXPECT_NE(whole.back().find("accuracy 0."), std::string::npos) << whole.back();
  printed_by<CollateFinetuner>(data(0), "--epochs 2 --save " + folder + "parts");
  const std::vector<std::string> resumed = printed_by<CollateFinetuner>(
      data(0), "--epochs 4 --save " + folder + "parts --load " + folder + "parts");
  EXPECT_EQ(resumed.back(), whole.back());
  remove();
}

}  // namespace tessera
