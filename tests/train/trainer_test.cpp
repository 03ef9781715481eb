#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tessera/config/output_folder.h"
#include "tessera/config/recorded.h"
#include "train/tiny_run.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

TEST_F(TrainerTest, AnInterruptedRunIsTheUndisturbedOneBitByBit) {
  RunConfig whole = config("whole");
  whole.eval_every = 4;
  whole.save_every = 5;
  EXPECT_EQ(run(whole).ending, Ending::Finished);

  RunConfig parts = whole;
  parts.output = folder_ + "/parts";
  parts.exit_interval = 5;
  EXPECT_EQ(run(parts).ending, Ending::Interval);
  parts.exit_interval = 0;
  StopAfter stop(9);
  EXPECT_EQ(run(parts, {{&stop}, &stop.stop}).ending, Ending::Stopped);
  // As if killed in step 12, after its metrics and before its checkpoint.
  std::ofstream(parts.output + "/metrics.jsonl", std::ios::app)
      << R"({"kind":"train","step":10,"loss":1})"
      << "\n"
      << R"({"kind":"valid","step":10,"loss":1})"
      << "\n"
      << R"({"kind":"train","st)";
  const TrainResult end = run(parts);
  EXPECT_EQ(end.ending, Ending::Finished);
  EXPECT_EQ(end.summary.steps, 12);
  EXPECT_EQ(digest_of("parts"), digest_of("whole"));
  EXPECT_EQ(losses("parts"), losses("whole"));
  const std::string whole_losses = losses("whole");
  EXPECT_EQ(std::count(whole_losses.begin(), whole_losses.end(), '\n'), 12 + 3);
  EXPECT_EQ(file("parts/metrics.jsonl").find("\"loss\":1}"), std::string::npos);
}

TEST_F(TrainerTest, AValidationThatWasCutShortIsMadeUpFor) {
  RunConfig whole = config("whole");
  whole.eval_every = 4;
  run(whole);
  RunConfig parts = whole;
  parts.output = folder_ + "/parts";
  for (const std::int64_t step : {8, 12}) {
    StopAfter stop(step);
    EXPECT_EQ(run(parts, {{&stop}, &stop.stop}).ending, Ending::Stopped) << step;
    EXPECT_EQ(losses("parts").find(text(R"({"kind":"valid","step":)", step)), std::string::npos);
  }
  EXPECT_EQ(run(parts).ending, Ending::Finished);
  EXPECT_EQ(losses("parts"), losses("whole"));
}

std::vector<std::string> names_in(const std::string& output) {
  std::vector<std::string> out;
  for (const std::string& path : list_checkpoints(output + "/checkpoints"))
    out.push_back(fs::path(path).filename());
  return out;
}

TEST_F(TrainerTest, OlderCheckpointsGoAndTheNewestStays) {
  RunConfig c = config("kept");
  c.save_every = 2;
  c.keep_last = 2;
  run(c);
  EXPECT_EQ(names_in(c.output), (std::vector<std::string>{"step-00000010", "step-00000012"}));
}

/// The one before the newest goes when a step was trained from the newest, so at the end it is
/// there.
TEST_F(TrainerTest, OfOneThatStaysTheOneBeforeGoesAStepLater) {
  struct Watcher : TrainCallback {
    explicit Watcher(std::string path) : output(std::move(path)) {}
    void on_step(const StepRecord&) override { most = std::max(most, names_in(output).size()); }
    void on_sample(std::int64_t step, const std::string&) override {  // after a step is noted
      if (step == 9) later = names_in(output);
    }
    std::string output;
    std::size_t most = 0;
    std::vector<std::string> later;
  };
  RunConfig c = config("one");
  c.save_every = 4;
  c.background_save = false;
  c.keep_last = 1;
  c.sample_every = 1;
  c.sample_tokens = 1;
  Watcher watcher(c.output);
  run(c, {{&watcher}});
  EXPECT_EQ(watcher.most, 2u);
  EXPECT_EQ(watcher.later, std::vector<std::string>{"step-00000008"});
  EXPECT_EQ(names_in(c.output), (std::vector<std::string>{"step-00000008", "step-00000012"}));
}

/// A step with a finite loss ruins the weights, which are saved; all steps after it are skipped.
TEST_F(TrainerTest, ADivergedRunLeavesTheCheckpointBeforeIt) {
  RunConfig c = config("run");
  c.save_every = 1;
  c.keep_last = 1;
  c.optimizer.schedule.kind = ScheduleKind::Constant;
  c.optimizer.schedule.warmup_steps = 0;
  c.exit_interval = 3;
  run(c);
  c.exit_interval = 0;
  RunConfig ruin = c;
  ruin.optimizer.schedule.lr = 1e30;
  ruin.optimizer.clip = 0;
  const auto diverges = [&](const RunConfig& config, const TrainOptions& options = {}) {
    try {
      run(config, options);
      ADD_FAILURE() << "it ended well";
      return std::string();
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::Numerics);
      return std::string(error.what());
    }
  };
  const std::vector<std::string> good_and_ruined = {"step-00000003", "step-00000004"};
  const std::string advice = text(
      "if steps are skipped again, go back to an older checkpoint: "
      "--config ",
      c.output, "/config.toml --resume ", c.output, "/checkpoints/step-00000003");
  const std::string told = diverges(ruin);
  EXPECT_NE(told.find("3 steps in a row, 5 to 7"), told.npos) << told;
  EXPECT_NE(told.find("may have made some too large"), told.npos) << told;
  EXPECT_NE(told.find(advice), told.npos) << told;
  EXPECT_EQ(names_in(c.output), good_and_ruined);
  // The first advice does not help here: nothing is lost by it, nor by a stop on the way.
  EXPECT_NE(diverges(c).find(advice), told.npos);
  EXPECT_EQ(names_in(c.output), good_and_ruined);
  StopAfter stop(6);
  EXPECT_EQ(run(c, {{&stop}, &stop.stop}).ending, Ending::Stopped);
  EXPECT_EQ(names_in(c.output),
            (std::vector<std::string>{"step-00000003", "step-00000004", "step-00000006"}));
  // The second does.
  RunConfig back = c;
  back.resume = c.output + "/checkpoints/step-00000003";
  EXPECT_EQ(run(back).ending, Ending::Finished);
  EXPECT_EQ(names_in(c.output), (std::vector<std::string>{"step-00000011.1", "step-00000012.1"}));
}

/// What the last step that was not skipped left is saved, even if none was asked for.
TEST_F(TrainerTest, WithoutASaveTheStateBeforeSkippedStepsIsSaved) {
  RunConfig c = config("run");
  c.optimizer.schedule.kind = ScheduleKind::Constant;
  c.optimizer.schedule.warmup_steps = 0;
  c.optimizer.schedule.lr = 1e30;
  c.optimizer.clip = 0;
  try {
    run(c);
    ADD_FAILURE() << "it ended well";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("start again: there is no older checkpoint"),
              std::string::npos)
        << error.what();
  }
  EXPECT_EQ(names_in(c.output), std::vector<std::string>{"step-00000004"});
}

TEST_F(TrainerTest, GoesOnFromANamedCheckpointIntoANewFolder) {
  RunConfig first = config("first");
  first.exit_interval = 7;
  run(first);
  RunConfig second = config("second");
  second.resume = first.output;
  run(second);
  run(config("whole"));
  EXPECT_EQ(digest_of("second"), digest_of("whole"));
  EXPECT_EQ(file("second/metrics.jsonl").substr(0, 25), R"({"kind":"train","step":8,)");
}

/// A new folder that a run is to go on from has a checkpoint, even if nothing was left to do.
TEST_F(TrainerTest, WhatGoesOnInANewFolderIsSavedThere) {
  RunConfig first = config("first");
  run(first);
  RunConfig second = config("second");
  second.resume = first.output;
  second.steps = 10;  // and two more are done
  const TrainResult end = run(second);
  EXPECT_EQ(end.summary.steps, 12);
  EXPECT_EQ(digest_of("second"), digest_of("first"));
}

/// Nothing may be written into the folder of another run, and its lock is its own.
TEST_F(TrainerTest, AFolderThatAnotherRunTookIsLeftAlone) {
  struct Taker : TrainCallback {
    explicit Taker(std::string path) : folder(std::move(path)) {}
    void on_step(const StepRecord& record) override {
      if (record.step != 2) return;
      fs::remove_all(folder);
      other.emplace(folder, notices);
    }
    std::string folder;
    std::vector<std::string> notices;
    std::optional<OutputLock> other;
  };
  for (const std::int64_t save_every : {0, 1}) {
    RunConfig c = config(text("run", save_every));
    c.save_every = save_every;
    Taker taker(c.output);
    try {
      run(c, {{&taker}});
      ADD_FAILURE() << "it ended well";
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::Resource);
      EXPECT_NE(std::string(error.what()).find("another run"), std::string::npos) << error.what();
    }
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(c.output))
      names.push_back(entry.path().filename());
    EXPECT_EQ(names, std::vector<std::string>{"lock"}) << join(names);
  }
}

/// Where the folder is gone and nobody else has taken it, the state is saved all the same.
TEST_F(TrainerTest, AFolderThatIsGoneIsMadeAgainForTheState) {
  struct Remover : TrainCallback {
    void on_step(const StepRecord& record) override {
      if (record.step == 2) {
        EXPECT_TRUE(fs::exists(folder + "/config.toml"));
        fs::remove_all(folder);
      }
      // From the save of step 4 on it is held again.
      held = held || (record.step == 8 && fs::exists(folder + "/lock"));
    }
    std::string folder;
    bool held = false;
  };
  RunConfig c = config("run");
  c.save_every = 4;
  c.background_save = false;
  Remover remover;
  remover.folder = c.output;
  try {
    run(c, {{&remover}});
    ADD_FAILURE() << "its metrics are lost";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Resource);
    EXPECT_NE(std::string(error.what()).find("was removed or replaced"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(Checkpoint::open(c.output).record().step, 12);
  EXPECT_TRUE(remover.held);
  EXPECT_NE(file("run/config.toml"), "") << "with it the run goes on";
  EXPECT_FALSE(fs::exists(c.output + "/lock"));
}

/// What cannot be recorded is refused before the first step, not at the first save.
TEST_F(TrainerTest, ARunThatCannotBeRecordedDoesNotBegin) {
  StopAfter first(1);
  EXPECT_ANY_THROW(run(config("r\xff"), {{&first}}));
  EXPECT_FALSE(first.stop);
}

TEST_F(TrainerTest, ItsConfigurationFileSaysWhatWasToldAndItsCheckpointWhatCameOfIt) {
  run(config("run"));
  const std::string toml = file("run/config.toml");
  for (const char* open : {"lr-decay-steps = 0\n", "micro-batch-size = 0\n", "vocab-size = 0\n"})
    EXPECT_NE(toml.find(open), std::string::npos) << open << toml;
  const RunConfig recorded = recorded_run(Checkpoint::open(folder_ + "/run")).config;
  EXPECT_EQ(recorded.optimizer.schedule.decay_steps, 12);
  EXPECT_EQ(recorded.micro_batch_size, 8);
  EXPECT_GT(recorded.model.vocabulary, 0);
}

TEST_F(TrainerTest, RefusesAnOutputThatAnotherRunWroteMeanwhile) {
  RunConfig c = config("run");
  const auto prepare = [&] {
    Problems problems;
    std::optional<PreparedRun> out = prepare_run(c, problems);
    problems.raise();
    return std::move(*out);
  };
  for (const std::int64_t steps : {6, 9}) {  // into an empty folder, then onto a checkpoint
    c.steps = 12;
    PreparedRun late = prepare();
    c.steps = steps;
    run(c);
    const std::string before = file("run/metrics.jsonl");
    try {
      train(std::move(late), CpuBackend(*device_));
      ADD_FAILURE() << steps;
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::Resource);
      EXPECT_NE(std::string(error.what()).find("while this one was being prepared"),
                std::string::npos)
          << error.what();
    }
    EXPECT_EQ(file("run/metrics.jsonl"), before);
  }
}

TEST_F(TrainerTest, MicroBatchesDoNotChangeTheLosses) {
  RunConfig c = config("8");
  const double whole = *run(c).summary.val_loss;
  for (const std::int64_t micro : {4, 2, 1}) {
    RunConfig cut = config(text(micro));
    cut.micro_batch_size = micro;
    // f32: sums in another order (docs/internals/design.md, the same numbers).
    EXPECT_NEAR(*run(cut).summary.val_loss, whole, 1e-5 * whole) << micro;
  }
}

TEST_F(TrainerTest, SummaryHoldsWhatThePlanPromised) {
  RunConfig c = config("run");
  c.sample_every = 6;
  const Summary s = run(c).summary;
  EXPECT_EQ(s.measured_peak_bytes, s.planned_peak_bytes);
  EXPECT_LE(s.lower_bound_bytes, s.planned_peak_bytes);
  EXPECT_GT(s.peak_rss_bytes, s.planned_peak_bytes);
  EXPECT_GT(s.parameters, 100'000);
  EXPECT_TRUE(std::isfinite(*s.train_loss));
  EXPECT_EQ(file("run/summary.json"), to_json(s));
  EXPECT_FALSE(fs::exists(c.output + "/lock"));
}

TEST_F(TrainerTest, NothingToDoIsSuccess) {
  run(config("run"));
  const std::string before = losses("run");
  const TrainResult again = run(config("run"));
  EXPECT_EQ(again.ending, Ending::Finished);
  EXPECT_EQ(again.summary.steps, 12);
  EXPECT_TRUE(again.summary.train_loss.has_value()) << "told by the metrics";
  EXPECT_FALSE(again.summary.measured_peak_bytes.has_value());
  EXPECT_EQ(losses("run"), before);
}

/// Steps in 16 bits lend the memory of copies to other values; programs between steps read them.
TEST_F(TrainerTest, ProgramsBetweenStepsChangeNoStepIn16Bits) {
  for (const bool fp16 : {false, true}) {
    RunConfig plain = config(fp16 ? "plain16" : "plain");
    plain.bf16 = !fp16, plain.fp16 = fp16;
    RunConfig between = plain;
    between.output = folder_ + (fp16 ? "/between16" : "/between");
    between.eval_every = 1, between.sample_every = 2, between.sample_tokens = 8;
    between.save_every = 3;
    run(plain), run(between);
    EXPECT_EQ(digest_of(fp16 ? "between16" : "between"), digest_of(fp16 ? "plain16" : "plain"));
  }
}

TEST_F(TrainerTest, WithoutAHeldOutPartThereIsNoValidation) {
  RunConfig c = config("run");
  c.held_out = 0;
  c.eval_every = 2;
  EXPECT_FALSE(run(c).summary.val_loss.has_value());
  EXPECT_NE(file("run/summary.json").find("\"val_loss\": null"), std::string::npos);
}

TEST_F(TrainerTest, ThreeBadStepsInARowStopTheRunAndSpoilNothing) {
  RunConfig c = config("run");
  c.optimizer.schedule = {.kind = ScheduleKind::Constant, .lr = 1e30};
  c.optimizer.clip = 0;
  c.save_every = 1;
  try {
    run(c);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Numerics);
  }
  EXPECT_EQ(Checkpoint::open(c.output).record().step, 1) << "they left the state of step 1";
  EXPECT_NE(losses("run").find(R"("step":4,"loss":null)"), std::string::npos) << losses("run");
  EXPECT_NE(file("run/metrics.jsonl").find("\"skipped\":true"), std::string::npos);
}

/// Only a disk is told on the way to that end: another rank that died is what ended the run.
TEST_F(TrainerTest, ADeadPeerIsNotTakenForABadStep) {
  RunConfig c = config("run");
  c.optimizer.schedule = {.kind = ScheduleKind::Constant, .lr = 1e30};
  c.optimizer.clip = 0;
  for (const Fault fault : {Fault::Peer, Fault::Resource}) {
    TrainOptions options;
    options.calls.mkdir = [&](const char* path, mode_t) -> int { fail(fault, "no ", path); };
    try {
      run(c, options);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), fault == Fault::Peer ? Fault::Peer : Fault::Numerics)
          << error.what();
    }
    fs::remove_all(c.output);
  }
}

/// Other kernels round otherwise: the run goes on, and says so.
TEST_F(TrainerTest, AResumedRunSaysWhereItsKernelsDiffer) {
  RunConfig c = config("kernels");
  c.choices = machine_choices();
  c.steps = 2;
  const TrainResult first = run(c);
  EXPECT_EQ(first.summary.isa, to_text(c.choices->isa));
  EXPECT_EQ(first.summary.f32_products, to_text(c.choices->f32_products));
  const auto notices = [&] {
    Problems problems;
    const std::optional<PreparedRun> prepared = prepare_run(c, problems);
    EXPECT_TRUE(problems.empty());
    return prepared ? join(prepared->notices) : std::string();
  };
  EXPECT_EQ(notices().find("kernels"), std::string::npos) << notices();
  c.choices = CpuChoices{Isa::Baseline, !c.choices->pack_weights};
  c.graph_optimization = false;
  const std::string what = notices();
  for (const std::string& told :
       {text("resuming with other kernels: max-isa is ", first.summary.isa,
             " there and baseline here"),
        text("resuming with other kernels: pack-weights is ",
             c.choices->pack_weights ? "no" : "yes"),
        std::string("resuming with other kernels: graph-optimization is true there and false here"),
        std::string("will not match an uninterrupted one bit by bit")})
    EXPECT_NE(what.find(told), std::string::npos) << told << " in " << what;
}

/// Where nothing is told, f32 products are made as before, whatever is measured today. (The device
/// here is none of these choices: what counts is what is recorded.)
TEST_F(TrainerTest, AResumedRunMakesF32ProductsAsBefore) {
  constexpr CpuChoices kByAmx = {Isa::Amx, false, F32Products::Amx}, kByFma = {Isa::Amx, false};
  const struct {
    const char* why;
    CpuChoices recorded, here;
    const char *told, *taken, *notice;
  } cases[] = {
      {"by AMX", kByAmx, kByFma, "auto", "amx", ""},
      {"by multiply-adds", kByFma, kByAmx, "auto", "fma", ""},
      {"told otherwise", kByAmx, kByFma, "fma", "fma",
       "resuming with other kernels: f32-products is amx there and fma here"},
      {"on a machine without AMX",
       kByAmx,
       {Isa::Avx2, false},
       "auto",
       "fma",
       "f32-products is amx there and fma here"},
  };
  int number = 0;
  for (const auto& c : cases) {
    SCOPED_TRACE(c.why);
    RunConfig config = this->config(text("products", number++));
    config.steps = 1;
    config.choices = c.recorded;
    run(config);
    config.choices = c.here;
    config.f32_products = c.told;
    config.resume = "auto";
    Problems problems;
    const std::optional<PreparedRun> prepared = prepare_run(config, problems);
    ASSERT_TRUE(prepared);
    EXPECT_EQ(prepared->config.f32_products, c.taken);
    EXPECT_EQ(to_text(prepared->config.choices->f32_products), c.taken);
    const std::string notices = join(prepared->notices);
    EXPECT_NE(notices.find(c.notice), std::string::npos) << notices;
    EXPECT_EQ(notices.find("f32-products") != std::string::npos, *c.notice != '\0') << notices;
  }
}

/// A model and its vocabulary come from a checkpoint, which may be wrong: ids that the model lacks
/// would be read as zeros.
TEST_F(TrainerTest, AVocabularyWiderThanItsModelIsRefused) {
  RunConfig c = config("first");
  c.steps = 1;
  c.eval_at_end = false;
  run(c);
  const Checkpoint good = Checkpoint::open(folder_ + "/first");
  CheckpointRecord record = good.record();
  const std::string other = file("text.txt") + "z";
  std::ofstream(folder_ + "/other.txt") << other;
  record.texts["vocabulary"] = Vocabulary::characters(other).to_json();
  std::vector<std::vector<std::byte>> bytes;
  std::vector<CheckpointTensor> tensors;
  for (const TensorEntry& entry : good.tensors()) {
    bytes.emplace_back(static_cast<std::size_t>(entry.type.bytes()));
    good.read(entry.name, bytes.back());
  }
  std::size_t at = 0;
  for (const TensorEntry& entry : good.tensors())
    tensors.push_back({entry.name, entry.type, entry.role, bytes[at++]});
  std::filesystem::create_directories(folder_ + "/wrong");
  save_checkpoint(folder_ + "/wrong", record, tensors);

  RunConfig rest = config("rest");
  rest.resume = folder_ + "/wrong";
  rest.data = {folder_ + "/other.txt"};
  rest.allow_changes = true;
  rest.steps = 2;
  try {
    run(rest);
    FAIL() << "it ran";
  } catch (const Error& error) {
    const std::string what = error.what();
    EXPECT_EQ(error.fault(), Fault::Checkpoint) << what;
    const auto size = static_cast<std::int64_t>(recorded_run(good).vocabulary.size());
    EXPECT_NE(what.find(text("its vocabulary has ", size + 1, " tokens but its model ", size)),
              what.npos)
        << what;
  }
}

}  // namespace
}  // namespace tessera
