/// Runs on several ranks, as threads: the same losses on any mesh, the same bits on the same one.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <mutex>
#include <thread>
#include <tuple>

#include "tessera/base/text.h"
#include "tessera/bench/verify.h"
#include "tessera/comm/local.h"
#include "train/tiny_run.h"

namespace tessera {
namespace {

struct MeshCase {
  const char* name;
  ParallelConfig parallel;
  std::int64_t micro_batch_size = 0;
  int zero = 0;
};

/// Data parallel 1 to 8 and 3, tensor parallel 2, 4 and 8, sequence and context parallel, every
/// level of sharded states, micro-batches, pipelines with every schedule, mixtures.
const MeshCase kMeshes[] = {
    {"dp 2", {.devices = 2}},
    {"dp 3, uneven", {.devices = 3}},
    {"dp 4", {.devices = 4}},
    {"dp 5, uneven", {.devices = 5}},
    {"dp 8", {.devices = 8}},
    {"tp 2", {.devices = 2, .tensor = 2}},
    {"tp 4", {.devices = 4, .tensor = 4}},
    {"tp 8", {.devices = 8, .tensor = 8}},
    {"tp 2, sequence", {.devices = 2, .tensor = 2, .sequence = true}},
    {"cp 2", {.devices = 2, .context = 2}},
    {"dp 2, tp 2, cp 2", {.devices = 8, .tensor = 2, .context = 2}},
    {"zero 1", {.devices = 4}, 0, 1},
    {"zero 2", {.devices = 4}, 1, 2},
    {"zero 3", {.devices = 4}, 0, 3},
    {"zero 3, uneven, micro-batches", {.devices = 2}, 2, 3},
    {"zero 1, tp 2, sequence", {.devices = 8, .tensor = 2, .sequence = true}, 0, 1},
    {"zero 2, tp 2, micro-batches", {.devices = 4, .tensor = 2}, 2, 2},
    {"zero 3, tp 2, cp 2, sequence",
     {.devices = 8, .tensor = 2, .context = 2, .sequence = true},
     0,
     3},
    {"pp 2", {.devices = 2, .pipeline = 2}, 1},
    {"pp 2, one micro-batch", {.devices = 2, .pipeline = 2}},
    {"pp 4, gpipe", {.devices = 4, .pipeline = 4, .schedule = "gpipe"}, 2},
    {"pp 2, interleaved, tp 2",
     {.devices = 4, .pipeline = 2, .virtual_stages = 2, .schedule = "interleaved", .tensor = 2},
     2},
    {"pp 3, zb-h1", {.devices = 3, .pipeline = 3, .schedule = "zb-h1"}, 1},
    {"pp 2, zb-v, cp 2", {.devices = 4, .pipeline = 2, .schedule = "zb-v", .context = 2}, 1},
    {"pp 2, zero 1", {.devices = 4, .pipeline = 2}, 1, 1},
    {"pp 2, zero 2, tp 2, sequence",
     {.devices = 8, .pipeline = 2, .tensor = 2, .sequence = true},
     1,
     2},
    {"pp 2, zb-v, zero 3", {.devices = 4, .pipeline = 2, .schedule = "zb-v"}, 1, 3},
};

RunConfig on_mesh(RunConfig config, const MeshCase& mesh) {
  config.parallel = mesh.parallel;
  config.micro_batch_size = mesh.micro_batch_size;
  config.zero1 = mesh.zero == 1, config.zero2 = mesh.zero == 2, config.zero3 = mesh.zero == 3;
  return config;
}

class RanksTest : public TrainerTest {
 protected:
  /// As the command does it.
  TrainResult run_ranked(const RunConfig& config, const TrainOptions& options = {},
                         const TrainOptions& others = {}, const LocalOptions& local = {}) {
    Problems problems;
    std::optional<PreparedRun> prepared = prepare_run(config, problems);
    problems.raise();
    const RunConfig complete = prepared->config;
    TrainResult out;
    run_ranks(
        static_cast<int>(complete.parallel.devices),
        [&](Communicator& world) {
          const auto device = make_cpu_device({1, -1});
          if (world.rank() > 0) return follow(complete, CpuBackend(*device), world, others);
          TrainOptions mine = options;
          mine.world = &world;
          out = train(std::move(*prepared), CpuBackend(*device), mine);
        },
        local);
    return out;
  }
};

std::vector<StepTrace> trace(RunConfig config, std::int64_t steps) {
  config.model.vocabulary = 61;
  complete(config);
  std::vector<StepTrace> out;
  if (config.parallel.devices == 1)
    return trace_steps(config, steps, CpuBackend(*make_cpu_device({1, -1})), nullptr);
  run_ranks(static_cast<int>(config.parallel.devices), [&](Communicator& world) {
    auto mine = trace_steps(config, steps, CpuBackend(*make_cpu_device({1, -1})), &world);
    if (world.rank() == 0) out = std::move(mine);
  });
  return out;
}

TEST(Ranks, LossesOfTenStepsAreThoseOfOneDevice) {
  const std::pair<const char*, std::int64_t> presets[] = {{"gpt2-tiny", 0},
                                                          {"llama-tiny", 0},
                                                          {"transformer-tiny", 0},
                                                          {"bert-tiny", 0},
                                                          {"bert-tiny", 5}};
  for (const auto& [preset, masked_positions] : presets) {
    RunConfig config;
    find_preset(preset).apply(config);
    config.model.masked_positions = masked_positions;
    config.model.layers = 2;
    config.model.dropout = 0.1;
    config.model.heads = config.model.kv_heads = 8;
    config.global_batch_size = 8;
    const std::vector<StepTrace> one = trace(config, 10);
    for (const MeshCase& mesh : kMeshes) {
      SCOPED_TRACE(text(preset, " on ", mesh.name));
      const std::vector<StepTrace> many = trace(on_mesh(config, mesh), 10);
      ASSERT_EQ(many.size(), one.size());
      for (std::size_t i = 0; i < one.size(); ++i)
        EXPECT_NEAR(many[i].loss, one[i].loss, 1e-5 * one[i].loss) << "step " << i + 1;
      const VerifyReport report = compare_traces({one[0]}, {many[0]});
      EXPECT_TRUE(report.ok()) << to_text(report);
    }
  }
}

double norm_of(const HostTensor& tensor) {
  double out = 0;
  for (std::int64_t i = 0; i < tensor.numel(); ++i) out += tensor.at(i) * tensor.at(i);
  return std::sqrt(out);
}

TEST(Ranks, VerifySeesAWrongNumber) {
  RunConfig config;
  find_preset("gpt2-tiny").apply(config);
  config.model.layers = 1;
  const std::vector<StepTrace> one = trace(config, 2);
  EXPECT_TRUE(compare_traces(one, one).ok());
  for (const auto& [path, gradient] : one[0].gradients) {
    std::vector<StepTrace> other = one;
    HostTensor& wrong = other[1].gradients.at(path) = one[1].gradients.at(path).clone();
    for (std::int64_t i = 0; i < wrong.numel(); ++i) wrong.set(i, wrong.at(i) * 1.001);
    const VerifyReport report = compare_traces(one, other);
    EXPECT_FALSE(report.ok()) << path;
    EXPECT_EQ(report.worst().name, "gradient " + path);
    EXPECT_EQ(report.worst().step, 2);
    // Of a small gradient, beside a hundredth of the global norm.
    const double size = norm_of(one[1].gradients.at(path)), least = 1e-2 * one[1].grad_norm;
    EXPECT_NEAR(report.worst().error, 1e-3 * size / std::max(size, least), 1e-5) << path;
  }
}

/// A gradient that is 0 by construction is rounding alone, which a mesh rounds otherwise.
TEST(Ranks, VerifyTakesNoRoundingOfZeroForAnError) {
  const auto step = [](float zero, float large) {
    StepTrace out{
        .loss = 1, .grad_norm = 1, .lr = 1e-3, .means = {}, .gradients = {}, .parameters = {}};
    const auto tensor = [](float value) {
      HostTensor made(TensorType{DType::F32, {1}, {}});
      made.set(0, value);
      return made;
    };
    out.gradients.emplace("zero", tensor(zero));
    out.gradients.emplace("large", tensor(large));
    return out;
  };
  const auto ok = [&](float zero, float large) {
    std::vector<StepTrace> one, mesh;
    one.push_back(step(3e-9F, 1));
    mesh.push_back(step(zero, large));
    return compare_traces(one, mesh).ok();
  };
  EXPECT_TRUE(ok(-2e-8F, 1));
  EXPECT_FALSE(ok(2e-6F, 1)) << "a rank's share of terms that add up to 0 is no rounding";
  EXPECT_FALSE(ok(std::nanf(""), 1));
  EXPECT_FALSE(ok(3e-9F, 1.001F));
}

/// Adam makes steps of a gradient that is rounding; what differs then stays when the gradient grows.
TEST(Ranks, VerifyRemembersWhatRoundingHasCarriedApart) {
  const auto step = [](float gradient, float parameter) {
    StepTrace out{
        .loss = 1, .grad_norm = 1, .lr = 1e-3, .means = {}, .gradients = {}, .parameters = {}};
    for (auto& [tensors, value] :
         {std::pair(&out.gradients, gradient), {&out.parameters, parameter}}) {
      HostTensor made(TensorType{DType::F32, {1}, {}});
      made.set(0, value);
      tensors->emplace("w", std::move(made));
    }
    return out;
  };
  struct Row {
    const char* what;
    float one, mesh, apart;  // gradients of the first step; parameters of the second
    bool ok;
  } rows[] = {
      {"rounding at the first step", 3e-9F, -2e-9F, 1e-3F, true},
      {"farther than two steps go", 3e-9F, -2e-9F, 5e-3F, false},
      {"the same rounding", 3e-9F, 3e-9F, 1e-3F, false},
      {"a row that no token of the batch has", 0, 0, 1e-3F, false},
      {"never rounding", 0.5F, 0.5F, 1e-3F, false},
  };
  for (const Row& row : rows) {
    std::vector<StepTrace> one, mesh;
    one.push_back(step(row.one, 1));
    one.push_back(step(0.5F, 1));
    mesh.push_back(step(row.mesh, 1));
    mesh.push_back(step(0.5F, 1 + row.apart));
    EXPECT_EQ(compare_traces(one, mesh).ok(), row.ok) << row.what;
  }
}

/// A bias that moves the scores of all positions alike changes no softmax over them.
TEST(Ranks, VerifyTakesQuestionsForTheSameOnMeshes) {
  RunConfig config;
  find_preset("bert-tiny").apply(config);
  config.model.task = "question_answering";
  config.model.layers = 1;
  config.model.dropout = 0;
  config.global_batch_size = 8;
  const std::vector<StepTrace> one = trace(config, 2);
  for (const MeshCase& mesh : kMeshes) {
    if (mesh.parallel.pipeline > 1 || mesh.parallel.devices > 2) continue;
    SCOPED_TRACE(mesh.name);
    const VerifyReport report = compare_traces(one, trace(on_mesh(config, mesh), 2));
    EXPECT_TRUE(report.ok()) << to_text(report);
  }
}

TEST_F(RanksTest, InitialWeightsAreTheSameBitsOnAnyMesh) {
  RunConfig config = this->config("one");
  config.model.heads = config.model.kv_heads = 8;
  config.global_batch_size = 8;
  config.steps = 0;
  run(config);
  for (const MeshCase& mesh : kMeshes) {
    RunConfig ranked = on_mesh(config, mesh);
    ranked.output = folder_ + "/" + text(&mesh - kMeshes);
    run_ranked(ranked);
    EXPECT_EQ(digest_of(text(&mesh - kMeshes)), digest_of("one")) << mesh.name;
  }
}

/// Ranks that are processes each have a log of their own.
TEST_F(RanksTest, TheOthersHearOfEveryStepWhereTheyAreTold) {
  struct Steps : TrainCallback {
    void on_step(const StepRecord& record) override {
      const std::scoped_lock lock(mutex);
      heard.emplace_back(record.step, record.loss, record.place.step);
    }
    std::mutex mutex;
    std::vector<std::tuple<std::int64_t, double, std::int64_t>> heard;
  };
  RunConfig three = on_mesh(config("three"), {"", {.devices = 3}, 0, 0});
  for (const bool told : {true, false}) {
    Steps leads, follow;
    TrainOptions options{{&leads}};
    options.tells_ranks = told;
    three.output = folder_ + (told ? "/told" : "/not told");
    run_ranked(three, options, {{&follow}});
    EXPECT_EQ(std::ssize(leads.heard), three.steps);
    EXPECT_EQ(std::get<2>(leads.heard.front()), 1);
    std::vector<std::tuple<std::int64_t, double, std::int64_t>> twice;
    for (const auto& step : leads.heard) twice.insert(twice.end(), told ? 2 : 0, step);
    std::ranges::sort(follow.heard);
    EXPECT_EQ(follow.heard, twice);
  }
}

TEST_F(RanksTest, AnInterruptedRunIsTheUndisturbedOneBitByBit) {
  for (const MeshCase& mesh :
       {MeshCase{"mesh", {.devices = 4, .tensor = 2}, 0, 2},
        MeshCase{"pipeline", {.devices = 4, .pipeline = 2, .schedule = "zb-h1"}, 1, 1}}) {
    SCOPED_TRACE(mesh.name);
    RunConfig whole = on_mesh(config(text("whole ", mesh.name)), mesh);
    whole.eval_every = 4;
    whole.save_every = 5;
    EXPECT_EQ(run_ranked(whole).ending, Ending::Finished);
    RunConfig parts = whole;
    const std::string name = text("parts ", mesh.name);
    parts.output = folder_ + "/" + name;
    parts.exit_interval = 5;
    EXPECT_EQ(run_ranked(parts).ending, Ending::Interval);
    parts.exit_interval = 0;
    EXPECT_EQ(run_ranked(parts).ending, Ending::Finished);
    EXPECT_EQ(digest_of(name), digest_of(text("whole ", mesh.name)));
    EXPECT_EQ(losses(name), losses(text("whole ", mesh.name)));
  }
}

TEST_F(RanksTest, ACheckpointOfOneMeshGoesOnOnAnother) {
  RunConfig begin = on_mesh(config("begin"), {"", {.devices = 4, .tensor = 2}, 0, 1});
  begin.exit_interval = 6;
  run_ranked(begin);
  const TrainResult one = [&] {
    RunConfig whole = config("whole");
    return run(whole);
  }();
  for (const MeshCase& mesh :
       {MeshCase{"zero", {.devices = 3}, 0, 3},
        MeshCase{"tp", {.devices = 4, .tensor = 4, .sequence = true}}, MeshCase{"one", {}},
        MeshCase{"pp", {.devices = 4, .pipeline = 2}, 2, 2},
        MeshCase{"zbv", {.devices = 2, .pipeline = 2, .schedule = "zb-v"}, 2}}) {
    RunConfig rest = on_mesh(begin, mesh);
    rest.output = folder_ + "/" + mesh.name;
    rest.exit_interval = 0;
    rest.resume = begin.output;
    const TrainResult end = run_ranked(rest);
    ASSERT_EQ(end.summary.steps, 12) << mesh.name;
    EXPECT_NEAR(*end.summary.train_loss, *one.summary.train_loss, 2e-5) << mesh.name;
    EXPECT_NEAR(*end.summary.val_loss, *one.summary.val_loss, 2e-5) << mesh.name;
  }
}

/// The state of a step that was saved while training went on is that of a run that ended there.
TEST_F(RanksTest, SavesOnTheWayAreOfTheirStep) {
  RunConfig run = on_mesh(config("run"), {"", {.devices = 4, .tensor = 2}, 0, 3});
  run.save_every = 3;
  run.keep_last = 0;
  run_ranked(run);
  for (const std::int64_t step : {3, 6, 9, 12}) {
    RunConfig part = run;
    part.output = folder_ + "/" + text(step);
    part.save_every = 0;
    part.exit_interval = step;
    run_ranked(part);
    const std::string path =
        run.output + "/checkpoints/step-000000" + (step < 10 ? "0" : "") + text(step);
    EXPECT_EQ(digest(Checkpoint::open(path)), digest_of(text(step)));
    EXPECT_EQ(verify_checkpoints(path), std::vector<std::string>{});
  }
}

struct Notices : TrainCallback {
  void on_notice(const std::string& notice) override { all.push_back(notice); }
  void on_save(std::int64_t step, const std::string&) override { saves.push_back(step); }
  std::vector<std::string> all;
  std::vector<std::int64_t> saves;
};

/// One rank's disk is full for one save: none of it counts, a notice says which rank, and the next
/// save is a new try.
TEST_F(RanksTest, AShareThatIsNotWrittenFailsTheSave) {
  for (const bool background : {true, false}) {
    SCOPED_TRACE(background);
    RunConfig run = on_mesh(config(background ? "run" : "waited"), {"", {.devices = 2}, 0, 1});
    run.save_every = 4;
    run.background_save = background;
    FileCalls calls;
    std::atomic<int> files = 0;
    calls.open = [&](const char* path, int flags, mode_t mode) {
      if (std::string_view(path).ends_with(".safetensors") && ++files == 1) {
        errno = ENOSPC;
        return -1;
      }
      return ::open(path, flags, mode);
    };
    Notices notices;
    EXPECT_EQ(run_ranked(run, {{&notices}}, {.calls = calls}).ending, Ending::Finished);
    ASSERT_EQ(notices.all.size(), 1u) << join(notices.all, "\n");
    EXPECT_TRUE(notices.all[0].starts_with(
        "step 4 is not saved: rank 1: cannot save a checkpoint: could not create '"))
        << notices.all[0];
    EXPECT_NE(notices.all[0].find("No space left on device"), std::string::npos);
    EXPECT_EQ(notices.saves, (std::vector<std::int64_t>{8, 12}));
    EXPECT_EQ(list_checkpoints(run.output + "/checkpoints").size(), 2u);
  }
}

/// Refused before the first step, and nothing is left that looks like a run.
TEST_F(RanksTest, ARankThatDoesNotSeeTheFolderIsNamed) {
  const RunConfig run = on_mesh(config("run"), {"", {.devices = 3}});
  const struct {
    const char* name;
    int flag;
    const char* message;
  } cases[] = {{"it is not there", O_RDONLY, "it does not see '"},
               {"it may not write", O_WRONLY, "could not create '"}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    FileCalls calls;
    calls.open = [&](const char* path, int flags, mode_t mode) {
      if ((flags & O_ACCMODE) == c.flag) {
        errno = ENOENT;
        return -1;
      }
      return ::open(path, flags, mode);
    };
    try {
      run_ranked(run, {}, {.calls = calls});
      FAIL() << "it went on";
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_EQ(error.fault(), Fault::Resource);
      EXPECT_NE(message.find("rank 1 of 3, on host "), std::string::npos) << message;
      EXPECT_NE(message.find("does not share the folder '" + run.output + "/checkpoints'"),
                std::string::npos)
          << message;
      EXPECT_NE(message.find(c.message), std::string::npos) << message;
    }
    EXPECT_FALSE(std::filesystem::exists(run.output + "/checkpoints"));
    EXPECT_FALSE(std::filesystem::exists(run.output + "/metrics.jsonl"));
  }
}

/// A rank computes on a core of its own. Its saves go on beside it, on all cores.
TEST_F(RanksTest, SavesKeepOffTheCoreThatComputes) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "there is one core";
  RunConfig c = on_mesh(config("run"), {"", {.devices = 2}, 0, 1});
  c.save_every = 4;
  std::array<FileCalls, 2> calls;
  std::array<std::atomic<int>, 2> cores = {0, 0};  // of the threads that save, the most
  for (std::size_t rank = 0; rank < 2; ++rank) {
    calls[rank].fsync = [&, rank](int file) {
      cpu_set_t mine;
      if (sched_getaffinity(0, sizeof mine, &mine) == 0)
        cores[rank] = std::max<int>(cores[rank], CPU_COUNT(&mine));
      return ::fsync(file);
    };
  }
  Problems problems;
  std::optional<PreparedRun> prepared = prepare_run(c, problems);
  problems.raise();
  const RunConfig complete = prepared->config;
  run_ranks(2, [&](Communicator& world) {
    const auto device = make_cpu_device({.threads = 1, .first_core = world.rank()});
    if (world.rank() > 0) return follow(complete, CpuBackend(*device), world, {.calls = calls[1]});
    train(std::move(*prepared), CpuBackend(*device), {{}, nullptr, calls[0], &world});
  });
  for (const auto& count : cores) EXPECT_EQ(count, CPU_COUNT(&all));
}

/// The other ranks wait while rank 0 is busy with a slow disk, and see that it is alive.
TEST_F(RanksTest, ASlowDiskOfTheLeaderIsNoDeath) {
  constexpr std::chrono::milliseconds kDeadline(3000);
  for (const std::string slow : {"metrics.jsonl", "/.tmp-step-"}) {
    SCOPED_TRACE(slow);
    RunConfig c = on_mesh(config(slow[0] == 'm' ? "metrics" : "folder"), {"", {.devices = 2}});
    c.save_every = 4;
    c.steps = 6;
    TrainOptions options;
    int metrics = -1, waits = 0;
    const auto wait = [&] {
      if (waits++ == 0) std::this_thread::sleep_for(2 * kDeadline);
    };
    options.calls.open = [&](const char* path, int flags, mode_t mode) {
      const int file = ::open(path, flags, mode);
      if (std::string_view(path).ends_with("metrics.jsonl")) metrics = file;
      return file;
    };
    options.calls.fsync = [&](int file) {
      if (slow[0] == 'm' && file == metrics) wait();
      return ::fsync(file);
    };
    options.calls.mkdir = [&](const char* path, mode_t mode) {
      if (std::string_view(path).find(slow) != std::string_view::npos) wait();
      return ::mkdir(path, mode);
    };
    EXPECT_EQ(run_ranked(c, options, {}, {kDeadline, {}}).ending, Ending::Finished);
    EXPECT_GT(waits, 0);
  }
}

struct ThrowAt : TrainCallback {
  void on_step(const StepRecord& record) override {
    if (record.step == 3) fail(Fault::Data, "the third step displeases");
  }
};

TEST_F(RanksTest, AFailureOfTheLeaderEndsAllAndIsTheOneThatIsTold) {
  ThrowAt callback;
  TrainOptions options;
  options.callbacks = {&callback};
  try {
    run_ranked(on_mesh(config("fails"), {"", {.devices = 3}}), options);
    FAIL() << "it went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Data);
    EXPECT_NE(std::string(error.what()).find("the third step displeases"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("rank 0"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tessera
