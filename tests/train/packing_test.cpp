/// Runs on rows of tables: documents that are packed, and samples of like length in buckets.

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tessera/base/text.h"
#include "tessera/comm/local.h"
#include "tessera/models/family.h"
#include "tessera/sources/sample_choices.h"
#include "tessera/train/programs.h"
#include "tessera/train/rank_group.h"
#include "tessera/train/step.h"
#include "train/tiny_run.h"

namespace tessera {
namespace {

class RowRun : public TrainerTest {
 protected:
  RowRun() {
    std::ofstream rows(folder_ + "/rows.csv");
    rows << "source,text\n";
    for (int i = 0; i < 60; ++i) {
      std::string text;
      for (int k = 0; k < 1 + i * i % 7; ++k) text += std::to_string(i * 7919 % 1000) + " ";
      rows << text.substr(0, text.size() / 2 + 1) << ',' << text << '\n';
    }
  }

  RunConfig on_rows(const std::string& output, const char* preset = "gpt2-tiny") const {
    RunConfig out = config(output);
    find_preset(preset).apply(out);
    out.model.layers = 1;
    out.model.width = 32;
    out.model.dropout = 0;
    out.data = {folder_ + "/rows.csv"};
    out.text_column = "text";
    out.model.context = 32;
    out.steps = 12;
    return out;
  }
  RunConfig on_pairs(const std::string& output) const {
    RunConfig out = on_rows(output, "transformer-tiny");
    out.text_column = "source";
    out.target_column = "text";
    out.bucket_lengths = "8,16";
    return out;
  }

  static PreparedRun prepared(const RunConfig& config) {
    Problems problems;
    std::optional<PreparedRun> out = prepare_run(config, problems);
    problems.raise();
    return std::move(*out);
  }

  /// The programs of a run, with the first value of every state.
  std::unique_ptr<RankGroup> group_of(const RunConfig& config) {
    auto out = std::make_unique<RankGroup>(
        compile_programs(RunSetup(config), {.train = true, .evaluate = true, .texts = 0}, *device_)
            .plan,
        *device_);
    out->run(kInitProgram);
    return out;
  }

  void run_on_two_ranks(RunConfig config) {
    config.parallel.devices = 2;
    PreparedRun run = prepared(config);
    const RunConfig complete = run.config;
    run_ranks(2, [&](Communicator& world) {
      const auto device = make_cpu_device({1, -1});
      if (world.rank() > 0) return follow(complete, CpuBackend(*device), world);
      TrainOptions options;
      options.world = &world;
      train(std::move(run), CpuBackend(*device), options);
    });
  }

  std::vector<double> train_losses(const std::string& output) const {
    std::istringstream lines(file(output + "/metrics.jsonl"));
    std::vector<double> out;
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json json = nlohmann::json::parse(line);
      if (json.at("kind") == "train") out.push_back(json.at("loss"));
    }
    return out;
  }
};

/// The loss summed over one sample, and of how many tokens.
struct SampleLoss {
  double sum = 0, count = 0;
  std::vector<std::int32_t> ids, labels, first_seen;
};

SampleLoss loss_of_sample(RankGroup& group, const Task& task, const Samples& samples,
                          std::int64_t i) {
  SampleLoss out;
  const auto copy = [](std::span<const std::int32_t> values) {
    return std::vector<std::int32_t>(values.begin(), values.end());
  };
  group.run(kEvaluateProgram, [&](BatchInputs& inputs) {
    samples.fill(i, 1, inputs);
    out.ids = copy(inputs.fill<std::int32_t>("ids"));
    out.labels = copy(inputs.fill<std::int32_t>("labels"));
    if (task.inputs.back().name == "first_seen")
      out.first_seen = copy(inputs.fill<std::int32_t>("first_seen"));
  });
  out.sum = group.engine().scalar(kEvaluateProgram, sum_metric(task.means[0]));
  out.count = group.engine().scalar(kEvaluateProgram, count_metric(task.means[0]));
  return out;
}

/// What a packed sample loses is what its documents lose when each is alone in a sample.
TEST_F(RowRun, PackedDocumentsLoseWhatTheyLoseAlone) {
  for (const char* const preset : {"gpt2-tiny", "llama-tiny"}) {
    SCOPED_TRACE(preset);
    RunConfig alone = on_rows("alone", preset), packed = on_rows("packed", preset);
    for (RunConfig* const config : {&alone, &packed}) config->global_batch_size = 1;
    alone.packing = "none";
    packed.packing = "bfd";
    const PreparedRun one = prepared(alone), several = prepared(packed);
    const Task task_alone = task_of(one.config.model), task = task_of(several.config.model);
    const auto group_alone = group_of(one.config), group = group_of(several.config);
    const auto documents = task_alone.train_samples(*one.data, sample_choices(one.config));
    const auto packs = task.train_samples(*several.data, sample_choices(several.config));
    ASSERT_LT(packs->size(), documents->size());

    using Key = std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>>;
    std::map<Key, double> known;
    for (std::int64_t i = 0; i < documents->size(); ++i) {
      SampleLoss loss = loss_of_sample(*group_alone, task_alone, *documents, i);
      const auto n = static_cast<std::size_t>(loss.count);
      loss.ids.resize(n), loss.labels.resize(n);
      known[{loss.ids, loss.labels}] = loss.sum;
    }
    std::size_t shared = 0;
    for (std::int64_t i = 0; i < packs->size(); ++i) {
      const SampleLoss loss = loss_of_sample(*group, task, *packs, i);
      double sum = 0, count = 0;
      int there = 0;
      for (std::size_t begin = 0, end = 0; begin < loss.ids.size(); begin = end) {
        while (end < loss.ids.size() && loss.first_seen[end] == loss.first_seen[begin]) ++end;
        const auto part = [&](const std::vector<std::int32_t>& all) {
          return std::vector<std::int32_t>(all.begin() + static_cast<std::ptrdiff_t>(begin),
                                           all.begin() + static_cast<std::ptrdiff_t>(end));
        };
        if (loss.labels[begin] == kIgnoredLabel) continue;
        const auto found = known.find({part(loss.ids), part(loss.labels)});
        ASSERT_NE(found, known.end());
        sum += found->second;
        count += static_cast<double>(end - begin);
        ++there;
      }
      EXPECT_EQ(loss.count, count);
      EXPECT_NEAR(loss.sum, sum, 1e-5 * sum) << "sums of f32 in another order";
      shared += there > 1;
    }
    EXPECT_GT(shared, 3u) << "several documents in a sample";
  }
}

TEST_F(RowRun, PackedRunsGoOnWithTheSameBits) {
  RunConfig whole = on_rows("whole"), parts = on_rows("parts");
  for (RunConfig* const config : {&whole, &parts}) config->packing = "bfd";
  run(whole);
  parts.exit_interval = 5;
  run(parts);
  parts.exit_interval = 0;
  run(parts);
  EXPECT_EQ(losses("parts"), losses("whole"));
  EXPECT_EQ(digest_of("parts/checkpoints/step-00000012"),
            digest_of("whole/checkpoints/step-00000012"));
  // The weights of such a run begin another one, on a text.
  RunConfig text = config("text");
  text.model = whole.model;
  text.model.vocabulary = 0;
  text.init_from = whole.output;
  text.resume = "none";
  std::ofstream(folder_ + "/digits.txt") << file("rows.csv").substr(12);
  text.data = {folder_ + "/digits.txt"};
  text.held_out = 0;
  text.defaulted = {"reset-position-ids", "reset-attention-mask"};
  Problems problems;
  prepare_run(text, problems);
  for (const Error& problem : problems.list())
    EXPECT_EQ(std::string(problem.what()).find("reset"), std::string::npos) << problem.what();
}

/// A step on a bucket is the step on the same samples as wide as the context, but for rounding.
TEST_F(RowRun, BucketsChangeNothingButThePadding) {
  RunConfig documents = on_rows("documents");
  documents.packing = "none";
  documents.bucket_lengths = "8,16";
  for (const RunConfig& config : {on_pairs("pairs"), documents}) {
    SCOPED_TRACE(config.model.family.name());
    const PreparedRun run = prepared(config);
    const Task task = task_of(run.config.model);
    const auto samples = task.train_samples(*run.data, sample_choices(run.config));
    const auto narrow = group_of(run.config), wide = group_of(run.config);
    std::map<std::int64_t, std::string> program_of;
    const RunSetup setup(run.config);
    for (const TrainProgram& program : setup.trains)
      program_of[program.bucket_length] = program.name;
    std::set<std::int64_t> lengths;
    for (std::int64_t step = 0; step < 10; ++step) {
      const std::int64_t first = step * run.config.global_batch_size,
                         length = samples->bucket_length(first);
      lengths.insert(length);
      const auto loss = [&](RankGroup& group, const std::string& program) {
        group.run(program, [&](BatchInputs& inputs) {
          samples->fill(first, run.config.global_batch_size, inputs);
        });
        return group.engine().scalar(program, "loss");
      };
      const double expected = loss(*wide, kTrainProgram);
      EXPECT_NEAR(loss(*narrow, program_of.at(length)), expected, 1e-5 * expected)
          << "step " << step << ", bucket " << length;
    }
    EXPECT_EQ(lengths, (std::set<std::int64_t>{0, 8, 16}));
  }
}

TEST_F(RowRun, BucketsGoOnWithTheSameBitsAndOnAMesh) {
  const RunConfig whole = on_pairs("whole");
  RunConfig parts = on_pairs("parts");
  run(whole);
  parts.exit_interval = 5;
  run(parts);
  parts.exit_interval = 0;
  run(parts);
  EXPECT_EQ(losses("parts"), losses("whole"));
  EXPECT_EQ(digest_of("parts/checkpoints/step-00000012"),
            digest_of("whole/checkpoints/step-00000012"));
  for (const bool tensor : {false, true}) {
    RunConfig two = on_pairs(tensor ? "tensor" : "data");
    if (tensor) two.parallel.tensor = 2;
    run_on_two_ranks(two);
    const std::vector<double> a = train_losses("whole"),
                              b = train_losses(tensor ? "tensor" : "data");
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5 * a[i]) << i;
  }
}

/// Programs of buckets have unequal numbers of calls: a profile is of one of them.
TEST_F(RowRun, ProfilesAreOfTheLastBucket) {
  RunConfig config = on_rows("profiled");
  config.packing = "none";
  config.bucket_lengths = "8,16";
  config.profile = folder_ + "/profile.json";
  config.profile_steps = 2;
  config.steps = 30;
  run(config);
  const nlohmann::json profile = nlohmann::json::parse(file("profile.json"));
  EXPECT_EQ(profile.at("profile").at("steps"), 2);
  std::size_t calls = 0;
  for (const nlohmann::json& event : profile.at("traceEvents"))
    calls += event.value("cat", "") == "kernel";
  const auto group = group_of(prepared(on_rows("like")).config);
  EXPECT_EQ(calls, 2 * group->engine().calls_of_run(kTrainProgram));
}

TEST_F(RowRun, AnEpochHasEverySampleOnce) {
  RunConfig config = on_pairs("epoch");
  config.epochs = 2;
  const PreparedRun run = prepared(config);
  const auto samples =
      task_of(run.config.model).train_samples(*run.data, sample_choices(run.config));
  EXPECT_EQ(run.config.steps * config.global_batch_size, 2 * samples->size());
  EXPECT_NE(samples->notice().find("buckets of up to 8, 16, 32 tokens have"), std::string::npos)
      << samples->notice();
}

TEST_F(RowRun, BucketsAreRefusedWhereTheyDoNothing) {
  const auto says = [&](const auto& change) {
    RunConfig config = on_rows("refused");
    config.bucket_lengths = "8,16";
    change(config);
    Problems problems;
    prepare_run(config, problems);
    std::string out;
    for (const Error& problem : problems.list()) out += text(problem.what(), "\n");
    return out;
  };
  EXPECT_NE(says([](RunConfig&) {}).find("bucket-lengths 8,16 does nothing here"),
            std::string::npos);
  EXPECT_EQ(says([](RunConfig& c) { c.packing = "none"; }), "");
  const std::string above = says([](RunConfig& c) { c.bucket_lengths = "8,64"; });
  EXPECT_NE(above.find("no sample is longer than 32"), std::string::npos) << above;
  EXPECT_EQ(above.find("no sample is longer", above.find("no sample is longer") + 1),
            std::string::npos)
      << "told once";
  EXPECT_NE(says([](RunConfig& c) {
              c.packing = "none";
              c.sample_order = SampleOrder::RandomOffsets;
            }).find("sample-order random-offsets needs joined documents"),
            std::string::npos);
  EXPECT_NE(says([](RunConfig& c) {
              c.bucket_lengths = "";
              c.packing = "bfd";
              c.model = published("bert");
              c.model.vocabulary = 0;
            }).find("packing bfd keeps the documents of a sample apart, which family bert cannot"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera
