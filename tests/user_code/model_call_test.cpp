/// model(batch) of a program's own data beside transformers' model(**batch):
/// tests/golden/user_scripts.json (tools/golden/user_scripts.py).

#include "tessera/user_code/model_call.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "repo_file.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/reduce.h"
#include "tessera/rapidformer/request.h"
#include "tessera/tensor/ignored_label.h"
#include "tessera/user_code/own_loop.h"

namespace tessera {

namespace {

using GoldenJson = nlohmann::json;
using OwnForward = std::function<ModelOutput(const Batch& batch, const Model& model)>;

const GoldenJson& golden_batches() {
  static const GoldenJson all =
      GoldenJson::parse(read_file(repo_file("tests/golden/user_scripts.json")));
  return all;
}

/// The samples of a batch: {"input_ids": [[...], ...]}.
class GoldenSamples final : public MapDataset {
 public:
  explicit GoldenSamples(GoldenJson features) : features_(std::move(features)) {}
  std::int64_t size() const override {
    return static_cast<std::int64_t>(features_.begin().value().size());
  }
  Features get(std::int64_t i) const override {
    Features out;
    for (const auto& [name, rows] : features_.items()) {
      const GoldenJson& row = rows[static_cast<std::size_t>(i)];
      if (row.is_array()) {
        out[name] = row.get<std::vector<std::int32_t>>();
      } else {
        out[name] = row.get<std::int32_t>();
      }
    }
    return out;
  }

 private:
  GoldenJson features_;
};

ModelOutput call_model(const Batch& batch, const Model& model) { return model(batch); }

/// The loss over all samples of the case before training, as a validation takes it.
double loss_of_batch(const GoldenJson& c, const std::string& flags = "",
                     const OwnForward& forward = call_model, const Collate& collate = nullptr) {
  std::ostringstream said;
  Console console{said, said};
  const std::string folder = repo_file(text("tests/golden/hub/", c["folder"].get<std::string>()));
  const AskedTraining asked = read_rapidformer_flags(
      split(text("--epochs 1 --lr 0.1 --threads 1 --global-batch-size 4 --task ",
                 c["task"].get<std::string>(), flags.empty() ? "" : " ", flags),
            ' '),
      FlagsOf::Program);
  const auto samples = std::make_shared<GoldenSamples>(c["features"]);
  OwnFunctions functions;
  functions.datasets = [&]() -> Datasets { return {samples, samples, nullptr, collate}; };
  functions.provide = [&]() -> Provided { return {ModelChoice::from_pretrained(folder)}; };
  functions.forward = forward;
  return OwnLoop(asked, console, std::move(functions)).gather().loss;
}

template <typename Act>
std::string refusal_of(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

GoldenJson golden_case(std::string_view folder, std::string_view name) {
  for (const GoldenJson& c : golden_batches())
    if (c["folder"] == folder && c["name"] == name) return c;
  ADD_FAILURE() << "no case " << folder << " " << name;
  return {};
}

// Losses of f32 beside those of f64: sums of some hundred terms, of 24 bits each.
constexpr double kLossTolerance = 2e-5;

}  // namespace

TEST(ModelCall, LossesAreThoseOfTransformers) {
  ASSERT_GE(golden_batches().size(), 30u);
  for (const GoldenJson& c : golden_batches()) {
    SCOPED_TRACE(text(c["folder"].get<std::string>(), ": ", c["name"].get<std::string>()));
    const double loss = c["loss"];
    EXPECT_NEAR(loss_of_batch(c) / loss, 1, kLossTolerance);
  }
}

/// Rows without their padding, which transformers was given: a collate makes it again, and masks.
TEST(ModelCall, CollatedRowsHaveTheLossesOfTransformers) {
  for (const auto& [folder, name] :
       {std::pair("bert_masked", "types"), std::pair("roberta", "no types"),
        std::pair("gpt2", "padded on the right"), std::pair("t5", "a mask")}) {
    SCOPED_TRACE(text(folder, " ", name));
    GoldenJson c = golden_case(folder, name);
    const GoldenJson masks = c["features"]["attention_mask"];
    std::size_t cut = 0;
    for (auto& [feature, rows] : c["features"].items()) {
      for (std::size_t i = 0; i < rows.size(); ++i) {
        std::size_t length = rows[i].size();
        const bool masked = length == masks[i].size();
        while (masked ? masks[i][length - 1] == 0 : rows[i][length - 1] == kIgnoredLabel) --length;
        cut += rows[i].size() - length;
        while (rows[i].size() > length) rows[i].erase(length);
      }
    }
    c["features"].erase("attention_mask");
    EXPECT_GT(cut, 0u);
    const double loss = c["loss"];
    EXPECT_NEAR(loss_of_batch(c, "", call_model, pad_to_longest) / loss, 1, kLossTolerance);
  }
}

/// Labels are moved by one token, which may lie on another device.
TEST(ModelCall, LossesDoNotDependOnTheMesh) {
  for (const auto& [folder, name] :
       {std::pair("gpt2", "padded on the left"), std::pair("t5", "a mask")}) {
    const GoldenJson c = golden_case(folder, name);
    const double loss = c["loss"];
    for (const char* mesh : {"--devices 2 --tensor-model-parallel-size 2 --sequence-parallel",
                             "--devices 2 --micro-batch-size 1",
                             "--devices 2 --pipeline-model-parallel-size 2 --micro-batch-size 2"}) {
      SCOPED_TRACE(text(folder, " ", mesh));
      EXPECT_NEAR(loss_of_batch(c, mesh) / loss, 1, kLossTolerance);
    }
  }
}

/// The likeliest tokens of the logits are as wrong as the loss says: it is the mean of
/// -log softmax(logits) at the labels.
TEST(ModelCall, LogitsAreThoseOfTheLoss) {
  const GoldenJson c = golden_case("gpt2", "labels are the ids");
  std::ostringstream said;
  Console console{said, said};
  const AskedTraining asked = read_rapidformer_flags(
      split("--epochs 1 --lr 0.1 --threads 1 --global-batch-size 2 --task causal_lm", ' '),
      FlagsOf::Program);
  const auto samples = std::make_shared<GoldenSamples>(c["features"]);
  OwnFunctions functions;
  functions.datasets = [&]() -> Datasets { return {samples, samples}; };
  functions.provide = [&]() -> Provided {
    return {ModelChoice::from_pretrained(repo_file("tests/golden/hub/gpt2"))};
  };
  functions.forward = [](const Batch& batch, const Model& model) {
    return model.with_logits(batch);
  };
  const EvalPrediction found = OwnLoop(asked, console, std::move(functions)).gather();
  const HostTensor& logits = found.predictions.at("logits");
  const std::int64_t rows = samples->size(), length = logits.shape()[1], v = logits.shape()[2];
  EXPECT_EQ(logits.shape()[0], rows);
  double loss = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i + 1 < length; ++i) {
      const std::int64_t at = (row * length + i) * v;
      double sum = 0;
      for (std::int64_t k = 0; k < v; ++k) sum += std::exp(logits.at(at + k));
      const auto label =
          c["features"]["labels"][static_cast<std::size_t>(row)][static_cast<std::size_t>(i + 1)]
              .get<std::int64_t>();
      loss += std::log(sum) - logits.at(at + label);
    }
  }
  EXPECT_NEAR(loss / static_cast<double>(rows * (length - 1)) / c["loss"].get<double>(), 1, 1e-5);
}

/// A batch that the program makes is a program's too.
TEST(ModelCall, ABatchOfItsOwnIsCalledTheSameWay) {
  const GoldenJson c = golden_case("gpt2", "labels are the ids");
  const auto forward = [](const Batch& batch, const Model& model) {
    return model(Batch({{"ids", batch["input_ids"]}, {"labels", batch["labels"]}}));
  };
  const double loss = c["loss"];
  EXPECT_NEAR(loss_of_batch(c, "", forward) / loss, 1, kLossTolerance);
}

TEST(ModelCall, WhatIsNotReadIsRefused) {
  struct Case {
    const char *folder, *name, *feature;
  };
  const Case kCases[] = {
      {"gpt2", "labels are the ids", "token_type_ids"},  // transformers adds rows of the table
      {"gpt2", "labels are the ids", "position_ids"},
      {"llama", "labels are the ids", "position_ids"},
      {"bert_masked", "types", "position_ids"},
      {"bert_masked", "types", "next_sentence_label"},
      {"roberta", "types", "weights"},
      {"t5", "a mask", "decoder_attention_mask"},
      {"bart", "a mask", "decoder_attention_mask"},
      {"bart", "a mask", "token_type_ids"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(text(c.folder, " ", c.feature));
    GoldenJson with = golden_case(c.folder, c.name);
    with["features"][c.feature] = with["features"]["labels"];
    for (GoldenJson& row : with["features"][c.feature])
      for (GoldenJson& number : row) number = 0;
    const std::string said = refusal_of([&] { loss_of_batch(with); });
    EXPECT_TRUE(
        said.starts_with(text("model(batch): the batch has '", c.feature, "', and family ")))
        << said;
    EXPECT_NE(said.find(text("remove it from get(), or compute with batch[\"", c.feature, "\"]")),
              std::string::npos)
        << said;
    const auto reads = [&](const Batch& batch, const Model& model) -> ModelOutput {
      const Value all = sum_all(cast(batch[c.feature], DType::F32));
      const Loss loss = model(batch).loss;
      return masked_mean(broadcast_to(loss.value() + all * 0.0, {4}), batch.is_sample());
    };
    EXPECT_EQ(refusal_of([&] { loss_of_batch(with, "", reads); }), "none");
  }
}

TEST(ModelCall, NumbersThatTheModelLacksAreRefused) {
  struct Case {
    const char *folder, *name, *feature;
    int number;
  };
  const Case kCases[] = {
      {"gpt2", "labels are the ids", "labels", 61},
      {"gpt2", "labels are the ids", "labels", -1},
      {"gpt2", "labels are the ids", "input_ids", -1},
      {"gpt2", "holes", "attention_mask", 2},
      {"roberta", "types", "token_type_ids", 1},
      {"bert_masked", "types", "token_type_ids", 2},
      {"t5", "a mask", "labels", 61},
      {"bart", "what is written", "decoder_input_ids", 61},
      {"t5", "a mask", "input_ids", -100},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(text(c.folder, " ", c.feature, " ", c.number));
    GoldenJson with = golden_case(c.folder, c.name);
    with["features"][c.feature][2][1] = c.number;
    const std::string said = refusal_of([&] { loss_of_batch(with); });
    EXPECT_TRUE(said.starts_with(text("sample 2 of the dataset: feature '", c.feature, "' has ",
                                      c.number, " at 1, and the model takes numbers from 0 to ")))
        << said;
  }
}

}  // namespace tessera
