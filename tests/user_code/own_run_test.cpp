/// What a template's functions become: an ordinary configuration.

#include "tessera/user_code/own_run.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <stdexcept>

#include "tessera/data/dataset.h"
#include "tessera/models/family.h"

namespace tessera {

namespace {

/// Sample i has the number i.
class Numbers final : public MapDataset {
 public:
  explicit Numbers(std::int64_t size) : size_(size) {}
  std::int64_t size() const override { return size_; }
  Features get(std::int64_t i) const override {
    return {{"input_ids", std::vector<std::int32_t>(12, static_cast<std::int32_t>(i))},
            {"labels", static_cast<std::int32_t>(i)}};
  }

 private:
  std::int64_t size_;
};

/// Sample i is what a function says.
class Made final : public MapDataset {
 public:
  Made(std::int64_t size, std::function<Features(std::int64_t)> get)
      : size_(size), get_(std::move(get)) {}
  std::int64_t size() const override { return size_; }
  Features get(std::int64_t i) const override { return get_(i); }

 private:
  std::int64_t size_;
  std::function<Features(std::int64_t)> get_;
};

/// Samples of one row of `length` zeros.
std::shared_ptr<const MapDataset> rows_of(std::size_t length, std::int64_t size = 4) {
  return std::make_shared<Made>(size, [=](std::int64_t) -> Features {
    return {{"row", std::vector<float>(length)}};
  });
}

/// What is wrong with the data.
template <typename Act>
std::string data_error_of(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Data);
    return error.what();
  }
  return "none";
}

OwnFunctions functions_of(const Datasets& data, const Provided& provided) {
  OwnFunctions out;
  out.datasets = [data] { return data; };
  out.provide = [provided] { return provided; };
  out.forward = [](const Batch& batch, const Model& model) { return model(batch); };
  return out;
}

/// `marks`: batch.is_sample.
std::vector<std::int32_t> labels_of(const Samples& samples, std::int64_t first, std::int64_t count,
                                    std::vector<float>* marks = nullptr) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count * 12)),
      labels(static_cast<std::size_t>(count));
  std::vector<float> is_sample(static_cast<std::size_t>(count));
  BatchInputs inputs("test");
  inputs.add(kIsSample, {DType::F32, {count}, {}},
             std::as_writable_bytes(std::span(is_sample)).data());
  inputs.add("input_ids", {DType::I32, {count, 12}, {}},
             std::as_writable_bytes(std::span(ids)).data());
  inputs.add("labels", {DType::I32, {count}, {}}, std::as_writable_bytes(std::span(labels)).data());
  inputs.begin();
  samples.fill(first, count, inputs);
  inputs.require_filled();
  if (marks != nullptr) *marks = is_sample;
  return labels;
}

}  // namespace

TEST(OwnRun, TakesThePlaceOfEveryFamilysTask) {
  RunConfig config;
  config.defaulted = {"context"};
  const Datasets data{std::make_shared<Numbers>(5), nullptr};
  const OwnRun run(config, functions_of(data, {ModelChoice("bert")}));
  EXPECT_EQ(run.config().model.family.name(), "bert");
  EXPECT_NE(&*run.config().model.family, &find_model("bert"));
  EXPECT_EQ(run.config().model.context, 12) << "as long as the rows of ids";
  EXPECT_EQ(run.config().held_out, 0) << "there is nothing to validate on";
  for (const ModelFamily* family : model_families()) {
    const ModelFamily& own = find_model(family->name, run.config().families);
    EXPECT_TRUE(own.replaces);
    EXPECT_EQ(own.tasks.size(), family->tasks.size());
  }
  RunConfig complete_config = run.config();
  complete_config.model.vocabulary = 8;
  complete(complete_config);
  const Task task = task_of(complete_config.model);
  EXPECT_EQ(task.data, DataKind::Program);
  ASSERT_EQ(task.inputs.size(), 3u);
  EXPECT_EQ(task.inputs[0].name, "input_ids");
  EXPECT_EQ(task.inputs[0].sample, Shape({12}));
  EXPECT_TRUE(task.inputs[1].ignorable);
  EXPECT_EQ(task.inputs[2].name, kIsSample);
}

TEST(OwnRun, CountsTheClassesOfLabels) {
  RunConfig config;
  config.defaulted = {"classes"};
  config.model.task = kSequenceClassification;
  const Datasets data{std::make_shared<Numbers>(5), nullptr};
  const OwnRun run(config, functions_of(data, {ModelChoice("bert")}));
  EXPECT_EQ(run.config().model.classes, 5);
}

TEST(OwnRun, DatasetsOfOtherSamplesHaveOtherDigests) {
  const auto digest = [](std::int64_t train, std::int64_t valid) {
    return Datasets{std::make_shared<Numbers>(train), std::make_shared<Numbers>(valid)}.digest();
  };
  EXPECT_EQ(digest(7, 3), digest(7, 3));
  EXPECT_NE(digest(7, 3), digest(8, 3));
  EXPECT_NE(digest(7, 3), digest(7, 4));
}

TEST(MapSamples, EachSampleOnceInAnEpoch) {
  const auto samples = map_samples(std::make_shared<Numbers>(7), {.seed = 3, .shuffled = true});
  const std::vector<std::int32_t> drawn = labels_of(*samples, 0, 14);
  const std::vector<std::int32_t> first(drawn.begin(), drawn.begin() + 7),
      second(drawn.begin() + 7, drawn.end());
  EXPECT_EQ(std::set<std::int32_t>(first.begin(), first.end()).size(), 7u);
  EXPECT_EQ(std::set<std::int32_t>(second.begin(), second.end()).size(), 7u);
  EXPECT_NE(first, second);
  EXPECT_EQ(labels_of(*samples, 5, 4),
            std::vector<std::int32_t>(drawn.begin() + 5, drawn.begin() + 9));
}

TEST(MapSamples, InOrderAndNothingBehindTheHeldOutOnes) {
  const auto in_order = map_samples(std::make_shared<Numbers>(3), {});
  EXPECT_EQ(labels_of(*in_order, 0, 5), (std::vector<std::int32_t>{0, 1, 2, 0, 1}));
  const auto held_out = map_samples(std::make_shared<Numbers>(3), {.held_out = true});
  std::vector<float> marks;
  EXPECT_EQ(labels_of(*held_out, 0, 5, &marks),
            (std::vector<std::int32_t>{0, 1, 2, kIgnoredLabel, kIgnoredLabel}));
  EXPECT_EQ(marks, (std::vector<float>{1, 1, 1, 0, 0}));
  const auto some = map_samples(std::make_shared<Numbers>(3), {.held_out = true, .most = 2});
  EXPECT_EQ(some->size(), 2);
}

/// A dataset that is asked for many samples at once may give too few.
TEST(MapSamples, AsManySamplesAsWereAskedFor) {
  class Short final : public MapDataset {
   public:
    std::int64_t size() const override { return 8; }
    Features get(std::int64_t) const override {
      return {{"input_ids", std::vector<std::int32_t>(12)}, {"labels", 0}};
    }
    std::vector<Features> get_all(std::span<const std::int64_t> numbers) const override {
      return std::vector<Features>(numbers.size() - 1, get(0));
    }
  };
  const auto samples = map_samples(std::make_shared<Short>(), {});
  EXPECT_EQ(data_error_of([&] { labels_of(*samples, 4, 3); }),
            "the dataset was asked for 3 samples, from number 4 on, and gave 2; give all of them");
}

TEST(MapSamples, FeaturesAreLeftOut) {
  const auto rows = std::make_shared<Made>(4, [](std::int64_t i) -> Features {
    Features out{{"input_ids", std::vector<std::int32_t>(12)},
                 {"labels", static_cast<std::int32_t>(i)}};
    if (i == 0) out["idx"] = 1;  // of the first alone: nobody looks
    return out;
  });
  const auto samples = map_samples(rows, {.left_out = {"idx"}, .notice = "idx is left out"});
  EXPECT_EQ(labels_of(*samples, 0, 4), (std::vector<std::int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(samples->notice(), "idx is left out");
}

/// Nobody reads through a stream before it is trained on.
TEST(OwnRun, AStreamIsReadOnce) {
  class Counted final : public MapDataset {
   public:
    std::int64_t size() const override { return 100; }
    bool in_order() const override { return true; }
    Features get(std::int64_t i) const override {
      EXPECT_EQ(i, 0);
      return {{"input_ids", std::vector<std::int32_t>(12)}, {"labels", 0}};
    }
  };
  RunConfig config;
  config.defaulted = {"classes"};
  config.model.task = kSequenceClassification;
  const OwnRun run(config,
                   functions_of({std::make_shared<Counted>(), nullptr}, {ModelChoice("bert")}));
  EXPECT_FALSE(run.config().program_data.empty());
}

TEST(OwnRun, WhatIsWrongWithDatasetsIsTold) {
  const auto bad = [](std::string features) {
    return std::make_shared<Made>(4, [=](std::int64_t) -> Features {
      if (features == "throws") throw std::out_of_range("no such row");
      if (features == "more") return {{"row", std::vector<float>(4)}, {"more", 1.0F}};
      if (features == "integers") return {{"row", std::vector<std::int32_t>(4)}};
      return {};
    });
  };
  const auto must_not_be_read = std::make_shared<Made>(0, [](std::int64_t i) -> Features {
    ADD_FAILURE() << "get(" << i << ") of an empty dataset";
    return {};
  });
  struct Case {
    const char* name;
    Datasets data;
    const char* said;
  };
  const Case kCases[] = {
      {"nothing to train on",
       {must_not_be_read, nullptr},
       "the dataset to train on has no samples: its size() is 0; give it samples"},
      {"nothing to validate on",
       {rows_of(4), must_not_be_read},
       "the dataset to validate on has no samples: its size() is 0; give it samples"},
      {"longer rows to validate on",
       {rows_of(4), rows_of(5)},
       "sample 0 of the dataset to validate on: feature 'row' is a row of 5 f32, but in the "
       "dataset to train on it is a row of 4 f32; pad or cut it in get()"},
      {"other numbers", {rows_of(4), bad("integers")}, "is a row of 4 i32, but in the "},
      {"other features",
       {rows_of(4), bad("more")},
       "sample 0 of the dataset to validate on has the features more, row, but the dataset to "
       "train on has row; get() must return the same features for all samples"},
      {"no features", {bad("none"), nullptr}, "sample 0 of the dataset to train on has no feat"},
      {"no numbers", {rows_of(0), nullptr}, "feature 'row' is a row of 0 f32; give it numbers"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const std::string said = data_error_of(
        [&] { OwnRun(RunConfig(), functions_of(c.data, {ModelChoice::own_layers()})); });
    EXPECT_NE(said.find(c.said), std::string::npos) << said;
  }
  try {
    OwnRun(RunConfig(), functions_of({bad("throws"), nullptr}, {ModelChoice::own_layers()}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("no such row (std::out_of_range)\n    in tessera::"),
              std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find("Made::get(0)"), std::string::npos) << error.what();
  }
}

TEST(MapSamples, RefusesWhatDoesNotFit) {
  const auto fill = [](const std::shared_ptr<const MapDataset>& dataset, std::int64_t width) {
    std::vector<float> room(static_cast<std::size_t>(4 * width)), is_sample(4);
    BatchInputs inputs("test");
    inputs.add(kIsSample, {DType::F32, {4}, {}},
               std::as_writable_bytes(std::span(is_sample)).data());
    inputs.add("row", {DType::F32, {4, width}, {}}, std::as_writable_bytes(std::span(room)).data());
    inputs.begin();
    map_samples(dataset, {})->fill(0, 4, inputs);
  };
  const auto with_third = [](const Features& third) {
    return std::make_shared<Made>(4, [=](std::int64_t i) -> Features {
      return i == 2 ? third : Features{{"row", std::vector<float>(3)}};
    });
  };
  EXPECT_EQ(data_error_of([&] { fill(rows_of(3), 3); }), "none");
  EXPECT_EQ(data_error_of([&] { fill(rows_of(5), 3); }),
            "feature 'row' of the dataset's first sample is a row of 5 f32, and a batch has room "
            "for 12 numbers of 4 samples; get(0) must return the same each time");
  EXPECT_EQ(data_error_of([&] {
              fill(with_third({{"row", std::vector<float>(4)}}), 3);
            }),
            "sample 2 of the dataset: feature 'row' is a row of 4 f32, but in the first one it is "
            "a row of 3 f32; pad or cut it in get()");
  EXPECT_EQ(data_error_of([&] { fill(with_third({}), 3); }),
            "sample 2 of the dataset has the features none, but the first one has row; get() must "
            "return the same features for all samples");
}

TEST(MapSamples, RefusesNumbersThatTheModelLacks) {
  const auto samples = [](std::int64_t ids, std::int64_t classes) {
    return map_samples(std::make_shared<Numbers>(7),
                       {.known = {{"input_ids", DType::I32, {12}, ids},
                                  {"labels", DType::I32, {}, classes, /*ignorable=*/true}}});
  };
  EXPECT_EQ(data_error_of([&] { labels_of(*samples(7, 7), 0, 7); }), "none");
  EXPECT_EQ(data_error_of([&] { labels_of(*samples(5, 7), 0, 7); }),
            "sample 5 of the dataset: feature 'input_ids' has 5 at 0, and the model takes numbers "
            "from 0 to 4; correct the sample, or make the model larger by --vocab-size or "
            "--classes");
  EXPECT_EQ(data_error_of([&] { labels_of(*samples(7, 6), 0, 7); }),
            "sample 6 of the dataset: feature 'labels' has 6 at 0, and the model takes numbers "
            "from 0 to 5, and -100 for none; correct the sample, or make the model larger by "
            "--vocab-size or --classes");
}

TEST(OwnRun, SamplesHaveTheNumbersThatTheModelTakes) {
  RunConfig config;
  config.defaulted = {"context"};
  config.model.task = kSequenceClassification;
  config.model.classes = 4;
  const Datasets data{std::make_shared<Numbers>(7), nullptr};
  const OwnRun run(config, functions_of(data, {ModelChoice("bert")}));
  RunConfig complete_config = run.config();
  complete_config.model.vocabulary = 6;
  complete(complete_config);
  const Task task = task_of(complete_config.model);
  EXPECT_EQ(task.inputs[0].values, 6);
  EXPECT_EQ(task.inputs[1].values, 4);
  const Dataset none = program_dataset(Vocabulary::ids(6), "");
  const auto refusal = [&](std::int64_t first) {
    return data_error_of([&] { labels_of(*task.train_samples(none, {}), first, 1); });
  };
  EXPECT_EQ(refusal(3), "none");
  EXPECT_NE(refusal(4).find("feature 'labels' has 4 at 0"), std::string::npos) << refusal(4);
  EXPECT_NE(refusal(6).find("feature 'input_ids' has 6 at 0"), std::string::npos) << refusal(6);
}

TEST(EvalPrediction, AccuracyAndF1) {
  const NamedMeans scores = accuracy_and_f1({1, 1, 0, 0, 1}, {1, 0, 0, 1, 1});
  EXPECT_DOUBLE_EQ(scores[0].second, 0.6);
  EXPECT_DOUBLE_EQ(scores[1].second, 2.0 / 3);  // precision and recall are 2 / 3
}

}  // namespace tessera
