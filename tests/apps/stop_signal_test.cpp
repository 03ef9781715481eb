/// Requests to stop, before there is anything to save and after.

#include "tessera/launch/stop_signal.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <thread>

#include "apps/command_test.h"

namespace tessera {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};

/// As in a terminal, also where a script or nohup started these tests.
void ignore_nothing() {
  for (const int signal : kSignals) ::signal(signal, SIG_DFL);
}

TEST(StopSignal, BeforeTheFirstStepItEndsTheProcessAtOnce) {
  for (const int signal : kSignals) {
    EXPECT_EXIT(
        {
          ignore_nothing();
          catch_stop_signals();
          const NothingToSave nothing;
          raise(signal);
        },
        testing::ExitedWithCode(kExitStopped), "before the first step; nothing was saved");
  }
}

/// The lock of the run's folder goes too: where the system has no locks, it would keep the next run
/// out. That of another run stays.
TEST(StopSignal, BeforeTheFirstStepNoLockIsLeft) {
  const Folder folder;
  const std::string lock = folder / "lock";
  for (const bool replaced : {false, true}) {
    folder.write("lock", "ours");
    EXPECT_EXIT(
        {
          catch_stop_signals();
          NothingToSave nothing;
          nothing.removes(lock);
          if (replaced) {
            folder.write("other", "another run's");
            std::filesystem::rename(folder / "other", lock);
          }
          raise(SIGTERM);
        },
        testing::ExitedWithCode(kExitStopped), "");
    EXPECT_EQ(std::filesystem::exists(lock), replaced);
  }
}

TEST(StopSignal, TheFileOfUnfinishedTextsGoes) {
  const Folder folder;
  const std::string file = folder / "out.txt.partial-1-0";
  for (const int signal : kSignals) {
    folder.write("out.txt.partial-1-0", "a text\n");
    EXPECT_EXIT(
        {
          ignore_nothing();
          const UnfinishedTexts texts(file);
          raise(signal);
        },
        testing::ExitedWithCode(128 + signal), "the texts written so far are discarded");
    EXPECT_FALSE(std::filesystem::exists(file));
  }
}

/// The run says which file that is as soon as there is one.
TEST(StopSignal, ARunThatIsStoppedWhileItCompilesLeavesNoLock) {
  const Folder folder;
  folder.write("text.txt", some_text());
  EXPECT_EXIT(
      {
        std::thread stopper([&] {
          const auto size = [lock = folder / "run/lock"] {  // one that is empty is not taken yet
            std::error_code none;
            const std::uintmax_t bytes = std::filesystem::file_size(lock, none);
            return none ? 0 : bytes;
          };
          while (size() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
          // Before it compiles it measures the device, for half a second.
          std::this_thread::sleep_for(std::chrono::milliseconds(300));
          kill(getpid(), SIGTERM);
        });
        stopper.detach();  // the process ends without it
        run(
            words(folder.expand("train --preset gpt2-small --context 32 --data @/text.txt "
                                "--steps 1000 --output @/run")));
      },
      testing::ExitedWithCode(kExitStopped), "before the first step");
  EXPECT_TRUE(std::filesystem::exists(folder / "run"));
  EXPECT_FALSE(std::filesystem::exists(folder / "run/lock"));
}

TEST(StopSignal, LaterTheFirstAsksAndTheSecondEnds) {
  for (const int signal : kSignals) {
    EXPECT_EXIT(
        {
          ignore_nothing();
          const std::atomic<bool>& stop = catch_stop_signals();
          { const NothingToSave nothing; }
          raise(signal);
          if (!stop) _exit(1);
          std::this_thread::sleep_for(std::chrono::milliseconds(1050));
          raise(signal);
        },
        testing::ExitedWithCode(128 + signal), "");
  }
}

/// `timeout` sends its signal to the process and to its group; Ctrl-C reaches a script, which
/// passes it on, and what it started.
TEST(StopSignal, OneRequestMayBeToldTwice) {
  EXPECT_EXIT(
      {
        ignore_nothing();
        const std::atomic<bool>& stop = catch_stop_signals();
        for (const int signal : {SIGINT, SIGTERM, SIGTERM}) raise(signal);
        _exit(stop ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

/// nohup ignores SIGHUP for the program that it starts, and a script SIGINT where it ends in &.
TEST(StopSignal, WhatIsIgnoredStaysIgnored) {
  for (const int signal : kSignals) {
    EXPECT_EXIT(
        {
          ::signal(signal, SIG_IGN);
          const std::atomic<bool>& stop = catch_stop_signals();
          raise(signal);
          _exit(stop ? 1 : 0);
        },
        testing::ExitedWithCode(0), "");
  }
}

}  // namespace
}  // namespace tessera
