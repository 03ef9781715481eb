/// Models that a program calls, beside what transformers computes with the same folders
/// (tests/golden/families, tests/golden/user_scripts.json).

#include "tessera/user_code/called_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "files/test_data.h"
#include "repo_file.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "tessera/files/safetensors.h"
#include "tessera/models/family.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using CallJson = nlohmann::json;

/// But for those that need flags beside their config.json, which a called model refuses (below).
std::vector<std::string> golden_families() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(repo_file("tests/golden/families")))
    if (!fs::exists(entry.path() / "flags.txt")) out.push_back(entry.path().filename().string());
  std::ranges::sort(out);
  return out;
}

CalledModel opened(const std::string& path, std::string_view more = "") {
  Arguments flags = {"--init-from", path, "--threads", "1"};
  for (const std::string& word : split(more, ' '))
    if (!word.empty()) flags.push_back(word);
  return CalledModel(read_model_flags(flags));
}

/// The greatest difference, in parts of the greatest number. `mask`: 0 at tokens whose numbers
/// nobody reads.
double worst_part(const HostTensor& found, const HostTensor& wanted, const HostTensor* mask = {}) {
  EXPECT_EQ(found.shape(), wanted.shape());
  if (found.shape() != wanted.shape()) return 1;
  double worst = 0, most = 0;
  for (std::int64_t i = 0; i < wanted.numel(); ++i) {
    const double is = found.at(i), should = wanted.at(i);
    if (mask != nullptr && mask->at(i * mask->numel() / wanted.numel()) == 0) continue;
    if (std::abs(should) > 1e9 && std::abs(is) > 1e9) continue;  // what is hidden of a softmax
    worst = std::abs(is - should) <= worst ? worst : std::abs(is - should);
    most = std::max(most, std::abs(should));
  }
  return worst / most;
}

template <typename Act>
std::string refused(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

class CalledFamilies : public testing::TestWithParam<std::string> {
 protected:
  std::string folder() const { return repo_file(text("tests/golden/families/", GetParam())); }
  SafetensorsFile file_{folder() + "/golden.safetensors"};

  NamedTensors inputs(bool labels) const {
    NamedTensors out;
    for (const StoredTensor& stored : file_.tensors()) {
      if (!stored.name.starts_with("in.")) continue;
      const std::string name = stored.name.substr(3);
      const bool label = name == "labels" || name == "start" || name == "end" || name == "next";
      if (label && !labels) continue;
      out.emplace(name, file_.load(stored.name));
    }
    return out;
  }
  /// Those that the file has, by the names of a call.
  std::map<std::string, HostTensor> wanted() const {
    std::map<std::string, HostTensor> out;
    for (const auto& [theirs, ours] :
         {std::pair("logits", file_.find("in.next") == nullptr ? "logits" : "prediction_logits"),
          {"next", "seq_relationship_logits"},
          {"start", "start_logits"},
          {"end", "end_logits"}})
      if (file_.find(theirs) != nullptr) out.emplace(ours, file_.load(theirs));
    return out;
  }
};

/// In f32, where the reference is in f64.
constexpr double kCallTolerance = 2e-5;

TEST_P(CalledFamilies, LogitsAreThoseOfTransformers) {
  CalledModel model = opened(folder());
  NamedTensors given = inputs(false);
  const bool seq2seq = has_head(model.config().model, TaskHead::Seq2SeqLm);
  if (seq2seq) given = inputs(true);
  const NamedTensors found = model.call(given);
  const auto mask = given.find("mask");
  EXPECT_FALSE(wanted().empty());
  for (const auto& [name, value] : wanted()) {
    ASSERT_TRUE(found.contains(name)) << name;
    const bool of_tokens = value.shape().ndim() > 1 && mask != given.end() && !seq2seq &&
                           value.shape()[1] == mask->second.shape()[1];
    EXPECT_LT(worst_part(found.at(name), value, of_tokens ? &mask->second : nullptr),
              kCallTolerance)
        << name;
  }
  EXPECT_EQ(found.contains("loss"), seq2seq);
  if (seq2seq) {
    EXPECT_NEAR(found.at("loss").at(0) / file_.load("loss").at(0), 1, 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(All, CalledFamilies, testing::ValuesIn(golden_families()),
                         [](const auto& param) { return param.param; });

TEST(CalledModel, WeightsOfAnotherModelAreRefused) {
  const std::string said = refused([] {
    opened(repo_file("tests/golden/families/bert_residual"), "--residual-attention true");
  });
  EXPECT_NE(said.find("residual-attention is false there and true here"), said.npos) << said;
}

HostTensor whole_numbers(const CallJson& rows) {
  const bool deep = rows[0].is_array();
  Shape shape{static_cast<std::int64_t>(rows.size())};
  if (deep) shape.push_back(static_cast<std::int64_t>(rows[0].size()));
  HostTensor out(DType::I32, shape);
  std::int64_t at = 0;
  for (const CallJson& row : rows) {
    if (!deep) out.set(at++, row.get<std::int32_t>());
    for (std::size_t i = 0; deep && i < row.size(); ++i) out.set(at++, row[i].get<std::int32_t>());
  }
  return out;
}

TEST(CalledModel, LossesAreThoseOfTransformers) {
  const CallJson cases = CallJson::parse(read_file(repo_file("tests/golden/user_scripts.json")));
  for (const CallJson& c : cases) {
    const std::string folder = c["folder"];
    SCOPED_TRACE(text(folder, ": ", c["name"].get<std::string>()));
    CalledModel model = opened(repo_file(text("tests/golden/hub/", folder)),
                               text("--task ", c["task"].get<std::string>()));
    NamedTensors given;
    for (const auto& [name, rows] : c["features"].items()) given.emplace(name, whole_numbers(rows));
    EXPECT_NEAR(model.call(given).at("loss").at(0) / c["loss"].get<double>(), 1, kCallTolerance);
  }
}

HostTensor counted_ids(std::int64_t rows, std::int64_t length, std::int64_t values) {
  HostTensor out(DType::I32, {rows, length});
  for (std::int64_t i = 0; i < out.numel(); ++i) out.set(i, static_cast<double>(i * 7 % values));
  return out;
}

/// Every row alone, and all of them on several devices, are what all are on one.
TEST(CalledModel, NeitherTheBatchNorTheMeshCounts) {
  for (const char* const folder : {"gpt2", "llama", "bert_classes", "t5"}) {
    SCOPED_TRACE(folder);
    const std::string path = repo_file(text("tests/golden/hub/", folder));
    CalledModel one = opened(path);
    const std::int64_t length = 9, v = one.config().model.vocabulary;
    NamedTensors all{{"input_ids", counted_ids(5, length, v)}};
    if (one.config().model.family.name() == std::string("t5"))
      all.emplace("decoder_input_ids", counted_ids(5, 6, v));
    const HostTensor wanted = one.call(all).at("logits");
    for (const char* const mesh : {"--devices 2", "--devices 2 --tensor-model-parallel-size 2",
                                   "--devices 2 --pipeline-model-parallel-size 2",
                                   "--devices 4 --tensor-model-parallel-size 2"}) {
      SCOPED_TRACE(mesh);
      EXPECT_LT(worst_part(opened(path, mesh).call(all).at("logits"), wanted), kCallTolerance);
    }
    const std::int64_t in_row = wanted.numel() / 5;
    for (std::int64_t row = 0; row < 5; ++row) {
      NamedTensors some;
      for (const auto& [name, ids] : all) {
        HostTensor its(DType::I32, {1, ids.shape()[1]});
        for (std::int64_t i = 0; i < its.numel(); ++i) its.set(i, ids.at(row * its.numel() + i));
        some.emplace(name, its);
      }
      const HostTensor found = one.call(some).at("logits");
      ASSERT_EQ(found.numel(), in_row);
      for (std::int64_t i = 0; i < in_row; ++i)
        EXPECT_NEAR(found.at(i), wanted.at(row * in_row + i), 1e-4) << row << " " << i;
    }
  }
}

TEST(CalledModel, WhatDoesNotFitIsRefused) {
  CalledModel model = opened(repo_file("tests/golden/hub/gpt2"));
  const std::int64_t v = model.config().model.vocabulary,
                     most = model.config().model.most_positions();
  const auto says = [&](const NamedTensors& given) { return refused([&] { model.call(given); }); };
  const HostTensor ids = counted_ids(2, 4, v);
  EXPECT_EQ(says({}), "the call has no tensors; the model reads input_ids, labels, attention_mask");
  EXPECT_EQ(says({{"inputs", ids}}),
            "the call has inputs, and family gpt2 with task causal_lm reads input_ids, labels, "
            "attention_mask; leave it out");
  EXPECT_EQ(says({{"input_ids", ids}, {"ids", ids}}),
            "the call has ids and input_ids, which are the same; give one");
  EXPECT_EQ(says({{"labels", ids}}),
            "the call has no input_ids, which family gpt2 with task causal_lm reads");
  EXPECT_EQ(says({{"input_ids", ids}, {"labels", counted_ids(3, 4, v)}}),
            "labels has 3 rows, and input_ids has 2; give as many");
  EXPECT_EQ(says({{"input_ids", ids}, {"attention_mask", counted_ids(2, 5, 1)}}),
            "attention_mask has 5 tokens in a row, and input_ids has 4; give as many");
  EXPECT_EQ(says({{"input_ids", HostTensor(DType::F32, {2, 4})}}),
            "input_ids is f32[2,4], and the model reads whole numbers; convert it");
  EXPECT_EQ(says({{"input_ids", HostTensor(DType::I32, {4})}}),
            "input_ids is i32[4], and the model reads [batch, length]");
  EXPECT_EQ(says({{"input_ids", HostTensor(DType::I32, {0, 4})}}),
            "input_ids is i32[0,4], without any rows");
  HostTensor wide = ids.clone();
  wide.set(5, static_cast<double>(v));
  EXPECT_EQ(says({{"input_ids", wide}}), text("input_ids has ", v,
                                              " in row 1, place 1; it must be "
                                              "from 0 to ",
                                              v - 1));
  EXPECT_EQ(says({{"input_ids", counted_ids(1, most + 1, v)}}),
            text("input_ids has ", most + 1, " tokens in a row, and the model sees at most ", most,
                 "; cut it"));
  EXPECT_EQ(says({{"input_ids", ids}}), "none") << "it goes on";
  CalledModel t5 = opened(repo_file("tests/golden/hub/t5"));
  EXPECT_EQ(refused([&] {
              t5.call({{"input_ids", ids}});
            }),
            "the call has no decoder_input_ids and no labels, so nothing says what is written; "
            "give one, or call generate()");
}

/// What transformers wrote comes back, name by name, as numbers and as a folder.
TEST(CalledModel, ParametersAreThoseOfTheFolder) {
  for (const char* const folder : {"gpt2", "bert_classes", "t5", "vit"}) {
    SCOPED_TRACE(folder);
    const std::string path = repo_file(text("tests/golden/hub/", folder));
    CalledModel model = opened(path, "--devices 2 --tensor-model-parallel-size 2");
    const TestFolder scratch;
    EXPECT_TRUE(model.save_pretrained(scratch / "saved", {}).empty());
    const SafetensorsFile theirs(path + "/model.safetensors"),
        saved(scratch / "saved/model.safetensors");
    const NamedTensors named = model.parameters(/*names_of_hub=*/true);
    EXPECT_EQ(named.size(), saved.tensors().size());
    for (const auto& [name, value] : named) {
      ASSERT_NE(theirs.find(name), nullptr) << name;
      const HostTensor wanted = theirs.load(name), written = saved.load(name);
      EXPECT_TRUE(std::ranges::equal(value.bytes(), wanted.bytes())) << name;
      EXPECT_TRUE(std::ranges::equal(value.bytes(), written.bytes())) << name;
    }
    std::int64_t ours = 0, all = 0;
    for (const auto& [name, value] : model.parameters(false)) ours += value.numel();
    for (const auto& [name, value] : named) all += value.numel();
    EXPECT_EQ(ours, all);
  }
}

TEST(CalledModel, FewTokensAreEnough) {
  for (const char* const folder : {"bert", "gpt2", "t5", "bert_classes", "albert"}) {
    SCOPED_TRACE(folder);
    CalledModel model = opened(repo_file(text("tests/golden/hub/", folder)));
    EXPECT_FALSE(model.parameters(false).empty());
    NamedTensors given{{"input_ids", counted_ids(1, 1, 20)}};
    if (has_head(model.config().model, TaskHead::Seq2SeqLm))
      given.emplace("decoder_input_ids", counted_ids(1, 1, 20));
    for (const auto& [name, value] : model.call(given)) {
      EXPECT_EQ(value.shape()[0], 1) << name;
      for (std::int64_t i = 0; i < value.numel(); ++i) EXPECT_TRUE(std::isfinite(value.at(i)));
    }
  }
}

/// transformers counts OPT's positions by the mask: what is hidden in front moves no token.
TEST(CalledModel, HiddenTokensInFrontHaveNoPlace) {
  CalledModel model = opened(repo_file("tests/golden/families/opt"));
  const std::int64_t v = model.config().model.vocabulary;
  const HostTensor ids = counted_ids(1, 5, v);
  const HostTensor wanted = model.call({{"input_ids", ids}}).at("logits");
  HostTensor padded(DType::I32, {1, 8}), mask(DType::I32, {1, 8});
  for (std::int64_t i = 0; i < 5; ++i) padded.set(3 + i, ids.at(i)), mask.set(3 + i, 1);
  const HostTensor found =
      model.call({{"input_ids", padded}, {"attention_mask", mask}}).at("logits");
  for (std::int64_t i = 0; i < 5 * v; ++i) EXPECT_NEAR(found.at(3 * v + i), wanted.at(i), 1e-5);
}

TEST(CalledModel, AHeadOfAnotherTaskIsNew) {
  CalledModel model = opened(repo_file("tests/golden/hub/bert_masked"),
                             "--task sequence_classification --classes 3");
  const NamedTensors given{{"input_ids", counted_ids(2, 4, 20)}};
  EXPECT_EQ(model.call(given).at("logits").shape(), (Shape{2, 3}));
  EXPECT_FALSE(model.notices().empty());
  EXPECT_EQ(refused([] {
              opened(repo_file("tests/golden/hub/bert_masked"), "--task sequence_classification");
            }),
            "classes is 0, and nothing says how many task sequence_classification tells apart; "
            "give classes");
}

/// Without weights it is new: the same numbers from the same seed.
TEST(CalledModel, ANewModelIsOfItsSeed) {
  const NamedTensors given{{"input_ids", counted_ids(2, 4, 20)}};
  const auto logits = [&](const char* seed) {
    return CalledModel(read_model_flags({"--preset", "gpt2-tiny", "--vocab-size", "20", "--threads",
                                         "1", "--seed", seed}))
        .call(given)
        .at("logits");
  };
  EXPECT_EQ(worst_part(logits("1"), logits("1")), 0);
  EXPECT_GT(worst_part(logits("2"), logits("1")), 0.1);
  EXPECT_EQ(refused([] {
              CalledModel(read_model_flags({"--preset", "gpt2-tiny"}));
            }),
            "vocab-size is missing: a new model has no tokenizer that says it; give vocab-size");
}

}  // namespace
}  // namespace tessera
