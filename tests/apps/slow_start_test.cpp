#include "tessera/apps/slow_start.h"

#include <gtest/gtest.h>

#include <chrono>
#include <sstream>
#include <streambuf>

namespace tessera {
namespace {

/// Keeps what is written, and lets another thread wait for it.
class Heard : public std::stringbuf {
 public:
  bool by(std::chrono::seconds limit) {
    std::unique_lock lock(mutex_);
    return flushed_.wait_for(lock, limit, [this] { return has_come_; });
  }

 private:
  int sync() override {
    const std::lock_guard lock(mutex_);
    has_come_ = true;
    flushed_.notify_all();
    return 0;
  }
  std::mutex mutex_;
  std::condition_variable flushed_;
  bool has_come_ = false;
};

TEST(SlowStart, SaysItsLineWhereTheRunDoesNotBegin) {
  Heard heard;
  std::ostringstream out;
  std::ostream err(&heard);
  Console console{out, err};
  const SlowStart slow("starting 300 ranks", console, std::chrono::milliseconds(1));
  EXPECT_TRUE(heard.by(std::chrono::seconds(60)));
  EXPECT_EQ(heard.str(), "starting 300 ranks\n");
  EXPECT_EQ(out.str(), "");
}

TEST(SlowStart, SaysNothingOfARunThatBegins) {
  std::ostringstream out, err;
  Console console{out, err};
  {
    SlowStart begins("of one that begins", console, std::chrono::hours(1));
    begins.on_start({});
    const SlowStart ends("of one that ends before", console, std::chrono::hours(1));
  }
  EXPECT_EQ(out.str() + err.str(), "");
}

}  // namespace
}  // namespace tessera
