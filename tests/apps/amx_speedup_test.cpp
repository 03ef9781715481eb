/// What is measured of f32 products is kept, once per machine and program.

#include "tessera/apps/amx_speedup.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tessera/corpora/packages.h"
#include "tessera/files/file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class KeptSpeedup : public ::testing::Test {
 protected:
  /// Of a machine on which this is measured.
  AmxSpeedup ask(double measured, const std::string& key = "this machine\nthis program") {
    return kept_amx_speedup(folder_, key, [&] {
      ++measured_;
      return measured;
    });
  }
  /// The one file that is kept.
  fs::path kept() const {
    std::vector<fs::path> all;
    for (const auto& entry : fs::directory_iterator(folder_ + "/f32-products"))
      all.push_back(entry.path());
    EXPECT_EQ(all.size(), 1u);
    return all.front();
  }

  const TemporaryFolder parent_ = TemporaryFolder::beside(::testing::TempDir() + "amx-speedup");
  std::string folder_ = parent_.path() + "/not there yet";
  int measured_ = 0;
};

TEST_F(KeptSpeedup, IsMeasuredOnce) {
  EXPECT_DOUBLE_EQ(ask(1.39).times, 1.39);
  EXPECT_DOUBLE_EQ(ask(0.5).times, 1.39);
  EXPECT_EQ(ask(0.5).trouble, "");
  EXPECT_EQ(measured_, 1);
  EXPECT_EQ(read_file(kept().string()), "this machine\nthis program\n1.390\n");
}

TEST_F(KeptSpeedup, IsOfOneMachineAndProgram) {
  ask(1.39);
  EXPECT_DOUBLE_EQ(ask(0.5, "this machine\nanother program").times, 0.5);
  EXPECT_DOUBLE_EQ(ask(0.7, "another machine\nthis program").times, 0.7);
  EXPECT_DOUBLE_EQ(ask(2).times, 1.39);
  EXPECT_EQ(measured_, 3);
}

TEST_F(KeptSpeedup, IsMeasuredAgainWhereItsFileIsDamaged) {
  ask(1.39);
  const std::string path = kept().string(), whole = read_file(path);
  for (const std::string& damaged :
       {std::string(), whole.substr(0, whole.size() - 1), whole.substr(0, whole.size() / 2),
        whole + "1\n", std::string("this machine\nanother program\n1.390\n"),
        std::string("this machine\nthis program\nnan\n"),
        std::string("this machine\nthis program\n-1\n"), std::string(1000, '\0')}) {
    SCOPED_TRACE(damaged.substr(0, 60));
    std::ofstream(path, std::ios::binary) << damaged;
    const int before = measured_;
    EXPECT_DOUBLE_EQ(ask(0.5).times, 0.5);
    EXPECT_DOUBLE_EQ(ask(0.7).times, 0.5);
    EXPECT_EQ(measured_, before + 1);
    EXPECT_EQ(kept().string(), path);
  }
}

/// A file where the folder should be stands for all that cannot be written, for root too.
TEST_F(KeptSpeedup, NeedsNoFolder) {
  const std::string file = parent_.path() + "/file";
  std::ofstream(file) << "mine";
  for (const std::string& folder : {file, std::string()}) {
    folder_ = folder;
    const AmxSpeedup measured = ask(1.39);
    EXPECT_DOUBLE_EQ(measured.times, 1.39);
    EXPECT_NE(measured.trouble, "");
    EXPECT_NE(to_text(measured).find("measured at each start, because "), std::string::npos);
  }
  EXPECT_EQ(read_file(file), "mine");
}

TEST_F(KeptSpeedup, IsTheSameForAllWhoMeasureAtOneTime) {
  constexpr int kAtOnce = 8;
  std::vector<double> found(kAtOnce);
  std::vector<std::thread> threads;
  for (int i = 0; i < kAtOnce; ++i)
    threads.emplace_back([&, i] {
      found[static_cast<std::size_t>(i)] =
          kept_amx_speedup(folder_, "this machine", [&] { return 1 + i; }).times;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found, std::vector<double>(kAtOnce, found.front()));
  kept();  // nothing else is left over
}

TEST_F(KeptSpeedup, IsTold) {
  EXPECT_EQ(to_text(AmxSpeedup{1.3912, ""}), "AMX measured 1.39 times as fast as multiply-adds");
}

}  // namespace
}  // namespace tessera
