/// --keep-best: the link names the checkpoint with the lowest validation loss, and that checkpoint
/// stays, whatever interrupts the run.

#include <cerrno>

#include "files/test_data.h"
#include "tessera/train/best_checkpoint.h"
#include "train/tiny_run.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class BestTest : public TrainerTest {
 protected:
  /// Losses fall while the learning rate is this one.
  RunConfig good(const std::string& output) const {
    RunConfig out = config(output);
    out.model.layers = 1;
    out.keep_best = true;
    out.eval_every = 2;
    out.eval_at_end = false;
    out.keep_last = 1;
    out.allow_changes = true;
    out.optimizer.schedule.kind = ScheduleKind::Constant;
    return out;
  }
  /// And rise with this one.
  RunConfig bad(const std::string& output) const {
    RunConfig out = good(output);
    out.optimizer.schedule.lr = 0.5;
    out.optimizer.schedule.warmup_steps = 0;
    return out;
  }
  std::string checkpoints(const std::string& output) const {
    return folder_ + "/" + output + "/checkpoints";
  }
  std::string linked(const std::string& output) const {
    std::error_code missing;
    const fs::path link = checkpoints(output) + "/best";
    return fs::exists(link, missing) ? fs::read_symlink(link, missing).string() : "";
  }
  void link(const std::string& output, const std::string& name) const {
    fs::remove(checkpoints(output) + "/best");
    fs::create_directory_symlink(name, checkpoints(output) + "/best");
  }
};

/// Which of the checkpoints that are there the run keeps, and which the link names then.
TEST(BestCheckpoint, IsOnTheWayOfTheRun) {
  const struct {
    const char *name, *from;
    std::map<std::int64_t, double> losses;
    const char *link, *best;
    int notices;
    const char* left = "";
  } cases[] = {
      {"the linked one",
       "step-00000006.1",
       {{2, 3}, {4, 1}, {6, 2}},
       "step-00000004",
       "step-00000004",
       0},
      {"another one",
       "step-00000006.1",
       {{2, 3}, {4, 2}, {6, 1}},
       "step-00000004",
       "step-00000006.1",
       1},
      {"of two that are equal the first",
       "step-00000006.1",
       {{2, 3}, {4, 1}, {6, 1}},
       "step-00000004",
       "step-00000004",
       0},
      {"one that was never saved is none",
       "step-00000006.1",
       {{2, 3}, {4, 2}, {5, 1}},
       "step-00000004",
       "step-00000004",
       0},
      {"one of a branch that was left",
       "step-00000006.1",
       {{2, 1}, {6, 2}},
       "step-00000006",
       "step-00000002",
       1},
      {"one that was left behind, and all between them",
       "step-00000008",
       {{2, 2}, {4, 1}, {6, 1}, {8, 3}},
       "step-00000004",
       "step-00000002",
       1,
       "step-00000002 step-00000006\n"},
      {"some were left behind twice, and something is damaged",
       "step-00000006.1",
       {{2, 2}, {4, 1}, {6, 3}},
       "",
       "step-00000002",
       1,
       "step-00000004 step-00000008\nx y\nstep-00000002 step-00000008\nstep-00000001"},
      {"one that the run went back behind",
       "step-00000004",
       {{2, 2}, {4, 1}},
       "step-00000008",
       "step-00000004",
       1},
      {"no loss is known: it stays", "step-00000004", {}, "step-00000008", "step-00000008", 0},
      {"no link", "step-00000006.1", {{2, 3}, {4, 1}, {6, 2}}, "", "step-00000004", 1},
      {"a link to nothing", "step-00000006.1", {}, "step-00000099", "", 0},
      {"another folder's run", "", {{2, 1}}, "", "", 0},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const TestFolder folder;
    for (const char* name :
         {"step-00000002", "step-00000004", "step-00000006", "step-00000008", "step-00000006.1"})
      fs::create_directory(folder / name);
    const std::string link = folder / "best";
    if (*c.link != 0) fs::create_directory_symlink(c.link, link);
    KeptMetrics metrics;
    metrics.valid_losses = c.losses;
    std::vector<std::string> notices;
    BestCheckpoint best(folder.path(), metrics, c.from, c.left, notices);
    EXPECT_EQ(best.name(), c.best);
    EXPECT_EQ(static_cast<int>(notices.size()), c.notices) << join(notices);
    if (*c.best != 0) {
      EXPECT_EQ(fs::read_symlink(link).string(), c.best);
    }
    best.validated(10, 1e30);
    EXPECT_EQ(best.wants(10), *c.best == 0 || c.losses.empty());
  }
}

/// The state that a kill leaves between the commit of a save and the next look at it.
TEST_F(BestTest, ACommitWhoseLinkWasNotMadeIsTheBest) {
  RunConfig c = good("run");
  c.keep_last = 2;
  c.exit_interval = 6;
  run(c);
  ASSERT_EQ(linked("run"), "step-00000006") << losses("run");
  link("run", "step-00000004");
  run(bad("run"));
  EXPECT_EQ(linked("run"), "step-00000006") << losses("run");
  EXPECT_EQ(Checkpoint::open(checkpoints("run") + "/step-00000006").record().step, 6);
  EXPECT_EQ(list_checkpoints(checkpoints("run")).size(), 2u);
}

/// However the checkpoint is spelled that a run goes on from, its loss is known: a worse one later
/// does not cost it.
TEST_F(BestTest, ALinkOrASlashNamesACheckpointOfTheRun) {
  for (const char* spelled : {"best", "step-00000006/", "../checkpoints/./step-00000006"}) {
    SCOPED_TRACE(spelled);
    RunConfig c = good("run");
    c.exit_interval = 6;
    run(c);
    ASSERT_EQ(linked("run"), "step-00000006") << losses("run");
    c = bad("run");
    c.resume = checkpoints("run") + "/" + spelled;
    run(c);
    EXPECT_EQ(linked("run"), "step-00000006") << losses("run");
    const std::string best = fs::canonical(checkpoints("run")) / "step-00000006";
    EXPECT_EQ(Checkpoint::open(checkpoints("run") + "/best/").path(), best);
    fs::remove_all(folder_ + "/run");
  }
}

/// The metrics know the loss of step 6 on the way that the run took; its checkpoint is of the
/// other.
TEST_F(BestTest, IsNoneThatTheRunLeftBehind) {
  RunConfig c = good("run");
  c.keep_last = 0;
  c.exit_interval = 8;
  run(c);
  ASSERT_EQ(list_checkpoints(checkpoints("run")).size(), 4u) << losses("run");
  c.resume = checkpoints("run") + "/step-00000004";
  c.keep_best = false;
  c.exit_interval = 3;
  run(c);
  c = bad("run");
  c.keep_last = 0;
  c.exit_interval = 2;
  run(c);
  EXPECT_EQ(linked("run"), "step-00000004") << losses("run");
  for (const char* name : {"step-00000007.1", "step-00000009.1"}) {
    const auto texts = Checkpoint::open(checkpoints("run") + "/" + name).record().texts;
    EXPECT_EQ(texts.at(kRecordedLeft), "step-00000004 step-00000008\n") << name;
  }
}

/// What the metrics call the best was never saved: the best of those that were stays.
TEST_F(BestTest, ABestThatWasNotSavedDoesNotCostTheOneBefore) {
  for (const bool cut : {false, true}) {
    const std::string name = cut ? "cut" : "whole";
    RunConfig c = good(name);
    c.exit_interval = 5;
    TrainOptions options;
    options.calls.mkdir = [real = options.calls.mkdir](const char* path, mode_t mode) {
      if (std::string_view(path).find(".tmp-step-00000004") == std::string_view::npos)
        return real(path, mode);
      errno = ENOSPC;
      return -1;
    };
    run(c, options);
    ASSERT_EQ(linked(name), "step-00000002") << losses(name);
    if (cut) fs::remove(checkpoints(name) + "/best");  // and nobody says which it is
    run(bad(name));
    EXPECT_EQ(linked(name), "step-00000002") << losses(name);
    EXPECT_EQ(Checkpoint::open(checkpoints(name) + "/step-00000002").record().step, 2);
  }
}

/// The state that a run in a new folder begins with is the best: it is saved there.
TEST_F(BestTest, OfAnotherFolderIsSavedInTheNewOne) {
  RunConfig first = good("first");
  first.exit_interval = 6;
  run(first);
  RunConfig second = bad("second");
  second.resume = first.output;
  run(second);
  EXPECT_EQ(linked("second"), "step-00000006") << losses("second");
  EXPECT_EQ(digest_of("first"), digest(Checkpoint::open(checkpoints("second") + "/step-00000006")));
}

}  // namespace
}  // namespace tessera
