/// Saves of a run: in the background, and where the disk fails.

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <set>
#include <system_error>
#include <thread>

#include "tessera/checkpoint/checkpoint_folder.h"
#include "tessera/train/programs.h"
#include "train/tiny_run.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// Keeps what is told.
struct Listener : TrainCallback {
  void on_step(const StepRecord& record) override { step = record.step; }
  void on_save(std::int64_t at, const std::string&) override { saves.push_back(at); }
  void on_notice(const std::string& notice) override { notices.push_back(notice); }
  std::atomic<std::int64_t> step = 0;
  std::vector<std::int64_t> saves;
  std::vector<std::string> notices;
};

/// The calls of the system, without waiting for the disk.
FileCalls without_flushes() {
  FileCalls calls;
  calls.fsync = [](int) { return 0; };
  return calls;
}

/// In memory where the system has such a folder: these tests make hundreds of runs.
std::string fast_folder() {
  return fs::is_directory("/dev/shm") ? "/dev/shm/" : testing::TempDir();
}

class Saving : public TrainerTest {
 protected:
  Saving() : TrainerTest(fast_folder()) { device_ = make_cpu_device({1, -1}); }

  /// Six steps of few states, a save after every second one.
  RunConfig small(const std::string& output) const {
    RunConfig out = config(output);
    out.model.layers = 1;
    out.optimizer.kind = OptimizerKind::Sgd;
    out.optimizer.momentum = 0;
    out.optimizer.schedule.decay_steps = 100;  // the same with more steps
    out.eval_at_end = false;
    out.steps = 6;
    out.save_every = 2;
    return out;
  }
  std::string checkpoints(const RunConfig& c) const { return c.output + "/checkpoints"; }
  std::vector<std::string> names(const RunConfig& c) const {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(checkpoints(c)))
      out.push_back(entry.path().filename());
    std::sort(out.begin(), out.end());
    return out;
  }
};

/// Paths that lead from the working folder lead on when that is removed.
TEST_F(Saving, OutlivesItsWorkingFolder) {
  struct Leave : TrainCallback {
    explicit Leave(std::string folder) : here(std::move(folder)) {
      fs::create_directory(here);
      fs::current_path(here);
    }
    ~Leave() override { fs::current_path(back); }
    void on_step(const StepRecord&) override { fs::remove_all(here); }
    void on_save(std::int64_t, const std::string& path) override { saves.push_back(path); }
    const fs::path back = fs::current_path();
    std::string here;
    std::vector<std::string> saves;
  };
  RunConfig c = small("run");
  c.output = "../run";
  c.profile = "../profile.json";
  c.profile_steps = 1;
  {
    Leave leave(folder_ + "/here");
    run(c, {{&leave}});
    EXPECT_EQ(leave.saves.back(), "../run/checkpoints/step-00000006") << "told as it was given";
    EXPECT_FALSE(fs::exists(leave.here));
  }
  EXPECT_EQ(Checkpoint::open(folder_ + "/run").record().step, 6);
  EXPECT_NE(file("run/metrics.jsonl").find("\"step\":6"), std::string::npos);
  EXPECT_NE(file("run/summary.json"), "");
  EXPECT_NE(file("profile.json"), "");
  EXPECT_FALSE(fs::exists(folder_ + "/run/lock"));
}

/// The save of step 2 ends only when step 5 is done, and holds the state after step 2.
TEST_F(Saving, TrainingGoesOnMeanwhile) {
  RunConfig c = small("run");
  c.save_every = 4;
  c.steps = 7;
  Listener listener;
  TrainOptions options{{&listener}};
  std::int64_t seen = 0;
  const std::thread::id trainer = std::this_thread::get_id();  // flushes the metrics itself
  std::thread::id writer;
  options.calls = without_flushes();
  options.calls.fsync = [&](int) {
    if (seen == 0 && std::this_thread::get_id() != trainer) {
      for (int i = 0; i < 3000 && listener.step < 6; ++i) std::this_thread::sleep_for(10ms);
      seen = listener.step;
      writer = std::this_thread::get_id();
    }
    return 0;
  };
  run(c, options);
  EXPECT_GE(seen, 6);
  EXPECT_NE(writer, trainer);
  EXPECT_EQ(listener.saves, (std::vector<std::int64_t>{4, 7}));
  RunConfig part = small("part");
  part.steps = 7;
  part.exit_interval = 4;
  run(part);
  EXPECT_EQ(digest(Checkpoint::open(checkpoints(c) + "/step-00000004")), digest_of("part"));
}

/// A save that is due while one is under way waits for it: none is lost.
TEST_F(Saving, OneAtATime) {
  RunConfig c = small("run");
  c.save_every = 1;
  c.keep_last = 0;
  std::atomic<int> under_way = 0, most = 0;
  TrainOptions options;
  const FileCalls real = options.calls = without_flushes();
  options.calls.mkdir = [&](const char* path, mode_t mode) {
    if (std::string_view(path).find("/.tmp-") != std::string_view::npos)
      most = std::max<int>(most, ++under_way);
    return real.mkdir(path, mode);
  };
  options.calls.rename = [&](const char* from, const char* to) {
    std::this_thread::sleep_for(20ms);
    --under_way;
    return real.rename(from, to);
  };
  run(c, options);
  EXPECT_EQ(most, 1);
  EXPECT_EQ(list_checkpoints(checkpoints(c)).size(), 6u);
}

TEST_F(Saving, WithoutACopyTrainingWaits) {
  RunConfig c = small("run");
  c.background_save = false;
  std::set<std::thread::id> threads;
  TrainOptions options;
  options.calls.fsync = [&](int) {
    threads.insert(std::this_thread::get_id());
    return 0;
  };
  const Summary waited = run(c, options).summary;
  EXPECT_EQ(threads, std::set{std::this_thread::get_id()});
  EXPECT_EQ(waited.save_copy_bytes, 0);
  EXPECT_EQ(list_checkpoints(checkpoints(c)).size(), 3u);

  const Summary copied = run(small("other")).summary;
  EXPECT_EQ(digest_of("other"), digest_of("run"));
  std::int64_t state_bytes = 0;
  const Checkpoint checkpoint = Checkpoint::open(c.output);
  for (const TensorEntry& entry : checkpoint.tensors()) state_bytes += entry.type.bytes();
  EXPECT_EQ(copied.save_copy_bytes, state_bytes);
}

TEST_F(Saving, ARequestToStopWaitsForBothSaves) {
  RunConfig c = small("run");
  c.steps = 100;
  StopAfter stop(3);
  TrainOptions options{{&stop}, &stop.stop};
  options.calls.fsync = [&](int) {
    std::this_thread::sleep_for(5ms);
    return 0;
  };
  EXPECT_EQ(run(c, options).ending, Ending::Stopped);
  EXPECT_EQ(names(c), (std::vector<std::string>{"step-00000002", "step-00000003"}));
  EXPECT_EQ(verify_checkpoints(c.output), std::vector<std::string>{});
}

// ---- failures of the disk

enum class Failure { None, NoSpace, BadDisk, Half, HalfThenNoSpace };

int error_of(Failure failure) { return failure == Failure::BadDisk ? EIO : ENOSPC; }

/// The calls of all saves of a run, of which one fails. They come from two threads, but one at a
/// time; those of the metrics are left out.
struct FailingCalls {
  FailingCalls(int fail_at, Failure failure) : at(fail_at), how(failure) {
    const FileCalls real = without_flushes();
    calls.open = [=, this](const char* path, int flags, mode_t mode) {
      const bool is_metrics = std::string_view(path).ends_with("metrics.jsonl");
      if (!is_metrics && fails("open", path)) return -1;
      const int file = real.open(path, flags, mode);
      if (is_metrics) metrics = file;
      return file;
    };
    calls.write = [=, this](int file, const void* bytes, std::size_t size) -> ssize_t {
      if (file == metrics) return real.write(file, bytes, size);
      const int index = static_cast<int>(log.size());
      if (index == at && (how == Failure::Half || how == Failure::HalfThenNoSpace) && size > 1) {
        log.push_back("write, half of it");
        return real.write(file, bytes, size / 2);
      }
      return fails("write", "") ? -1 : real.write(file, bytes, size);
    };
    calls.fsync = [=, this](int file) { return fails("fsync", "") ? -1 : real.fsync(file); };
    calls.close = [=, this](int file) {  // closes even where it reports a failure
      if (file == metrics) return real.close(file);
      const bool bad = fails("close", "");
      const int error = errno, closed = real.close(file);
      errno = error;
      return bad ? -1 : closed;
    };
    calls.mkdir = [=, this](const char* path, mode_t mode) {
      return fails("mkdir", path) ? -1 : real.mkdir(path, mode);
    };
    calls.rename = [=, this](const char* from, const char* to) {
      return fails("rename", to) ? -1 : real.rename(from, to);
    };
    calls.remove = [=, this](const char* path) {
      return fails("remove", path) ? -1 : real.remove(path);
    };
  }
  bool fails(const std::string& call, const char* path) {
    const int index = static_cast<int>(log.size());
    log.push_back(text(call, " ", fs::path(path).filename().string()));
    const bool now = how == Failure::HalfThenNoSpace ? index == at + 1 && call == "write"
                     : how == Failure::Half          ? false
                                                     : index == at;
    if (now) errno = error_of(how);
    return now;
  }

  int at;
  Failure how;
  std::atomic<int> metrics = -1;
  std::vector<std::string> log;
  FileCalls calls;
};

/// Every call of every save of a run fails once, in each way. On the way, the run goes on and ends
/// in the undisturbed state; at the end, it stops and says why, and going on ends there too. What
/// was committed always loads.
TEST_F(Saving, EachCallOfARunFailsOnce) {
  RunConfig c = small("whole");
  c.steps = 4;
  c.keep_last = 1;
  FailingCalls good(-1, Failure::None);
  run(c, {{}, nullptr, good.calls});
  const std::string end = digest_of("whole");
  RunConfig part = c;
  part.output = folder_ + "/part";
  part.exit_interval = 2;
  run(part, {{}, nullptr, without_flushes()});
  const std::string half_way = digest_of("part");
  RunConfig longer = c;
  longer.steps = 5;
  run(longer, {{}, nullptr, without_flushes()});
  const std::string beyond = digest_of("whole");

  const int total = static_cast<int>(good.log.size());
  const auto second = std::find_if(good.log.begin() + 5, good.log.end(), [](const auto& line) {
    return line.starts_with("mkdir .tmp-step-00000004");
  });
  ASSERT_NE(second, good.log.end());
  // Its metrics are flushed first.
  const int first_save = static_cast<int>(second - good.log.begin()) - 1;
  ASSERT_GE(first_save, 25) << "the first save lacks calls";
  int noticed = 0, refused = 0, shortened = 0;
  for (int at = 0; at < total; ++at) {
    const std::string& call = good.log[static_cast<std::size_t>(at)];
    for (const Failure how :
         {Failure::NoSpace, Failure::BadDisk, Failure::Half, Failure::HalfThenNoSpace}) {
      const bool halved = how == Failure::Half || how == Failure::HalfThenNoSpace;
      if (halved && !call.starts_with("write")) continue;
      SCOPED_TRACE(text("call ", at, ", ", call, ", failure ", static_cast<int>(how)));
      c.output = folder_ + "/run";
      fs::remove_all(c.output);
      FailingCalls failing(at, how);
      Listener listener;
      std::string error;
      try {
        EXPECT_EQ(run(c, {{&listener}, nullptr, failing.calls}).ending, Ending::Finished);
      } catch (const Error& e) {
        EXPECT_EQ(e.fault(), Fault::Resource);
        error = e.what();
      }
      ASSERT_GT(failing.log.size(), static_cast<std::size_t>(at));
      const std::string told = text(join(listener.notices, "\n"), error);
      if (how == Failure::Half) {
        ++shortened;
        EXPECT_EQ(told, "");
      } else {
        EXPECT_NE(told.find(std::generic_category().message(error_of(how))), told.npos) << told;
        EXPECT_NE(told.find(folder_), told.npos) << told;
        EXPECT_EQ(listener.notices.size() + (error.empty() ? 0 : 1), 1u) << told;
      }
      const auto latest = latest_checkpoint(checkpoints(c));
      ASSERT_TRUE(latest.has_value());
      const Checkpoint checkpoint = Checkpoint::open(*latest);
      EXPECT_EQ(digest(checkpoint), checkpoint.record().step == 4 ? end : half_way);
      if (at < first_save || error.empty()) {
        EXPECT_EQ(error, "");
        EXPECT_EQ(checkpoint.record().step, 4);
        ++noticed;
      } else {
        EXPECT_TRUE(error.starts_with("step 4 is not saved: cannot ")) << error;
        EXPECT_NE(error.find("the last checkpoint is '" + checkpoints(c) + "/step-00000002'"),
                  error.npos)
            << error;
        ++refused;
      }
      if (names(c) == std::vector<std::string>{"step-00000002", "step-00000004"}) continue;
      // Going on is the undisturbed run, and leaves the newest and, until a step was trained from
      // that, the one before it.
      longer.output = c.output;
      run(longer, {{}, nullptr, without_flushes()});
      EXPECT_EQ(digest_of("run"), beyond);
      EXPECT_EQ(names(c), (std::vector<std::string>{"step-00000004", "step-00000005"}));
    }
  }
  EXPECT_GE(noticed, 60);
  EXPECT_GE(refused, 60);
  EXPECT_GE(shortened, 20);
}

TEST_F(Saving, ThreeFailuresInARowEndTheRun) {
  RunConfig c = small("run");
  run(c, {{}, nullptr, without_flushes()});
  const std::string before = digest_of("run");
  c.steps = 100;
  c.save_every = 1;
  for (const auto& [failures, step] : {std::pair{3, 9}, std::pair{2, 100}}) {
    int left = failures;
    Listener listener;
    TrainOptions options{{&listener}};
    options.calls = without_flushes();
    options.calls.mkdir = [&, real = options.calls](const char* path, mode_t mode) {
      if (left-- <= 0) return real.mkdir(path, mode);
      errno = EDQUOT;
      return -1;
    };
    std::string error;
    try {
      run(c, options);
    } catch (const Error& e) {
      EXPECT_EQ(e.fault(), Fault::Resource);
      error = e.what();
    }
    EXPECT_GE(listener.step, step);
    EXPECT_LE(listener.step, step + 1) << "the third was heard of after a step more";
    ASSERT_EQ(listener.notices.size(), 2u) << join(listener.notices, "\n");
    EXPECT_TRUE(
        listener.notices[0].starts_with("step 7 is not saved: cannot save a checkpoint: "
                                        "could not make the folder '" +
                                        checkpoints(c) + "/.tmp-step-00000007-"))
        << listener.notices[0];
    EXPECT_TRUE(
        listener.notices[0].ends_with("free some space; training continues, and the next save will "
                                      "be tried when due (failure 1 of 3 before the run ends)"))
        << listener.notices[0];
    if (failures == 3) {
      EXPECT_TRUE(error.starts_with("step 9 is not saved: ")) << error;
      EXPECT_TRUE(error.ends_with(text(
          "; it is failure 3 in a row; the last checkpoint is '", checkpoints(c),
          "/step-00000006'; then resume with --config ", c.output, "/config.toml --resume auto")))
          << error;
      EXPECT_EQ(digest_of("run"), before);
    } else {
      EXPECT_EQ(error, "");
    }
  }
}

/// A third failure that is heard of when training has ended: the last save is still to come.
TEST_F(Saving, AFailureThatIsHeardOfAtTheEndIsToldSo) {
  RunConfig c = small("run");
  c.steps = 4;
  c.save_every = 1;
  c.eval_at_end = true;
  struct UntilValidated : Listener {
    void on_valid(std::int64_t, double, const NamedMeans&) override { validated = true; }
    std::atomic<bool> validated = false;
  } listener;
  TrainOptions options{{&listener}};
  const FileCalls real = options.calls = without_flushes();
  std::atomic<int> files = 0;
  options.calls.open = [&, real](const char* path, int flags, mode_t mode) {
    if (!std::string_view(path).ends_with(".safetensors") || ++files > 3)
      return real.open(path, flags, mode);
    for (int i = 0; files == 3 && i < 3000 && !listener.validated; ++i)
      std::this_thread::sleep_for(10ms);
    errno = ENOSPC;
    return -1;
  };
  EXPECT_EQ(run(c, options).ending, Ending::Finished);
  ASSERT_EQ(listener.notices.size(), 3u) << join(listener.notices, "\n");
  EXPECT_TRUE(listener.notices[2].starts_with("step 3 is not saved: ")) << listener.notices[2];
  EXPECT_TRUE(
      listener.notices[2].ends_with("; training has finished, and its final state is saved next"))
      << listener.notices[2];
  EXPECT_EQ(listener.saves, std::vector<std::int64_t>{4});
}

/// However many failed: the state that is asked for is tried, and no notice says that training goes
/// on. A request to stop comes during the save that fails; a validation after the last step waits
/// for the save of what was the best.
TEST_F(Saving, AFailureThatIsHeardOfAfterTheLastStepDoesNotEndTheRun) {
  for (const bool stopped : {false, true}) {
    for (const int failures : {1, 3}) {
      SCOPED_TRACE(text(stopped, " ", failures));
      RunConfig c = small(text("run", stopped, failures));
      c.save_every = 1;
      c.background_save = !stopped;
      c.keep_best = !stopped;
      c.eval_every = stopped ? 0 : 1;
      c.steps = stopped ? 100 : failures + 1;
      Listener listener;
      std::atomic<bool> stop = false;
      TrainOptions options{{&listener}, &stop};
      const FileCalls real = options.calls = without_flushes();
      std::atomic<int> files = 0;
      options.calls.open = [&, real](const char* path, int flags, mode_t mode) {
        if (!std::string_view(path).ends_with(".safetensors") || ++files > failures)
          return real.open(path, flags, mode);
        if (files == failures) {
          stop = stopped;
          for (int i = 0; !stopped && i < 3000 && listener.step <= failures; ++i)
            std::this_thread::sleep_for(10ms);
        }
        errno = ENOSPC;
        return -1;
      };
      EXPECT_EQ(run(c, options).ending, stopped ? Ending::Stopped : Ending::Finished);
      ASSERT_EQ(static_cast<int>(listener.notices.size()), failures) << join(listener.notices);
      EXPECT_TRUE(listener.notices.back().ends_with(
          "; training has finished, and its final state is saved next"))
          << listener.notices.back();
      EXPECT_EQ(listener.saves, std::vector<std::int64_t>{stopped ? failures : failures + 1});
    }
  }
}

// ---- metrics on a full disk

/// The disk takes no line of metrics while `full` says so; a line may be cut in the middle.
TrainOptions with_metrics(Listener& listener, const std::function<bool()>& full) {
  TrainOptions options{{&listener}};
  const FileCalls real = without_flushes();
  options.calls = real;
  auto metrics = std::make_shared<std::atomic<int>>(-1);
  options.calls.open = [=](const char* path, int flags, mode_t mode) {
    const int file = real.open(path, flags, mode);
    if (std::string_view(path).ends_with("metrics.jsonl")) *metrics = file;
    return file;
  };
  options.calls.write = [=](int file, const void* bytes, std::size_t size) -> ssize_t {
    if (file != *metrics || !full()) return real.write(file, bytes, size);
    if (size > 30) return real.write(file, bytes, 30);
    errno = ENOSPC;
    return -1;
  };
  return options;
}

TEST_F(Saving, LinesOfMetricsWaitForRoom) {
  RunConfig c = small("whole");
  c.save_every = 0;
  c.steps = 12;
  run(c, {{}, nullptr, without_flushes()});
  c.output = folder_ + "/run";
  Listener listener;
  // on_step follows the line of its step
  run(c, with_metrics(listener, [&] { return listener.step >= 3 && listener.step < 7; }));
  EXPECT_EQ(losses("run"), losses("whole"));
  ASSERT_EQ(listener.notices.size(), 1u) << join(listener.notices, "\n");
  EXPECT_EQ(listener.notices[0],
            text("cannot write '", c.output,
                 "/metrics.jsonl': No space left on device; free some space, or check the disk; "
                 "training continues, and its lines are kept in memory until they can be written"));
}

/// A checkpoint whose metrics are lost would leave a hole in what a resumed run shows.
TEST_F(Saving, WithoutItsMetricsAStepIsNotSaved) {
  RunConfig c = small("run");
  Listener listener;
  std::string error;
  try {
    run(c, with_metrics(listener, [&] { return listener.step >= 3; }));
  } catch (const Error& e) {
    EXPECT_EQ(e.fault(), Fault::Resource);
    error = e.what();
  }
  EXPECT_TRUE(error.starts_with("step 6 is not saved: cannot write '")) << error;
  EXPECT_EQ(names(c), std::vector<std::string>{"step-00000002"});
  run(c, {{}, nullptr, without_flushes()});
  run(small("whole"), {{}, nullptr, without_flushes()});
  EXPECT_EQ(losses("run"), losses("whole"));
  EXPECT_EQ(digest_of("run"), digest_of("whole"));
}

/// The state is on disk; its metrics alone are not.
TEST_F(Saving, MetricsThatAreLateAreNotTakenForTheState) {
  RunConfig c = small("run");
  run(c, {{}, nullptr, without_flushes()});
  c.eval_at_end = true;
  Listener listener;
  std::string error;
  try {
    run(c, with_metrics(listener, [] { return true; }));
  } catch (const Error& e) {
    EXPECT_EQ(e.fault(), Fault::Resource);
    error = e.what();
  }
  EXPECT_TRUE(error.starts_with("step 6 is saved, but not its metrics: cannot write '")) << error;
  EXPECT_TRUE(error.ends_with(text("; the last checkpoint is '", checkpoints(c),
                                   "/step-00000006'; then resume with --config ", c.output,
                                   "/config.toml --resume auto")))
      << error;
}

/// A power cut after a save must not take lines that belong to its steps.
TEST_F(Saving, MetricsAreOnDiskBeforeTheirCheckpoint) {
  RunConfig c = small("run");
  TrainOptions options{{}, nullptr, without_flushes()};
  const FileCalls real = options.calls;
  std::atomic<int> metrics = -1;
  std::atomic<bool> on_disk = true, named = false;
  int commits = 0;
  options.calls.open = [&, real](const char* path, int flags, mode_t mode) {
    const int file = real.open(path, flags, mode);
    if (std::string_view(path).ends_with("metrics.jsonl")) metrics = file;
    if (fs::path(path) == fs::absolute(c.output)) named = true;  // opened to be flushed
    return file;
  };
  options.calls.write = [&, real](int file, const void* bytes, std::size_t size) {
    if (file == metrics) on_disk = false;
    return real.write(file, bytes, size);
  };
  options.calls.fsync = [&, real](int file) {
    if (file == metrics) on_disk = true;
    return real.fsync(file);
  };
  options.calls.rename = [&, real](const char* from, const char* to) {
    if (fs::path(to).filename().string().starts_with("step-")) {
      ++commits;
      EXPECT_TRUE(named && on_disk) << to;
    }
    return real.rename(from, to);
  };
  c.background_save = false;  // no step follows before the commit
  run(c, options);
  EXPECT_GE(commits, 2);
}

}  // namespace
}  // namespace tessera
