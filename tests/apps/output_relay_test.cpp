#include "tessera/apps/output_relay.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <sstream>
#include <string>

namespace tessera {
namespace {

struct BothEnds {
  int ends[2];
  BothEnds() {
    EXPECT_EQ(pipe(ends), 0);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
  }
  ~BothEnds() {
    close(ends[0]);
    end();
  }
  void end() {
    if (ends[1] >= 0) close(ends[1]);
    ends[1] = -1;
  }
  void say(const std::string& words) {
    ASSERT_EQ(write(ends[1], words.data(), words.size()), static_cast<ssize_t>(words.size()));
  }
};

TEST(OutputRelay, PassesAllOnInPieces) {
  BothEnds pipe;
  std::ostringstream to;
  OutputRelay relay(pipe.ends[0], to, 7);
  EXPECT_FALSE(relay.pass()) << "nothing has come";
  EXPECT_EQ(relay.awaited().fd, pipe.ends[0]);
  std::string said;
  for (int i = 0; i < 3000; ++i) said += "a word ";
  pipe.say(said);
  EXPECT_TRUE(relay.pass());
  EXPECT_TRUE(relay.holds());
  EXPECT_EQ(relay.awaited().fd, 7) << "no more is read before the reader has taken this";
  EXPECT_EQ(relay.awaited().events, POLLOUT);
  EXPECT_TRUE(relay.pass());
  EXPECT_EQ(to.str().size(), 4096u) << "what a pipe that is ready takes without waiting";
  pipe.end();
  while (relay.pass()) {
  }
  EXPECT_EQ(to.str(), said);
  EXPECT_EQ(relay.awaited().fd, -1);
}

/// A child whose output is lost must be able to write on.
TEST(OutputRelay, ReadsOnWhereNothingIsTaken) {
  BothEnds pipe;
  std::ostringstream to;
  to.setstate(std::ios::badbit);
  OutputRelay relay(pipe.ends[0], to, 7);
  for (int i = 0; i < 100; ++i) {
    pipe.say(std::string(4000, 'x'));
    EXPECT_TRUE(relay.pass());
    EXPECT_FALSE(relay.holds());
  }
  EXPECT_EQ(to.str(), "");
}

TEST(OutputRelay, WhatIsGivenUpIsLost) {
  BothEnds pipe;
  std::ostringstream to;
  OutputRelay relay(pipe.ends[0], to, 7);
  pipe.say("words");
  EXPECT_TRUE(relay.pass());
  relay.drop();
  EXPECT_FALSE(relay.holds());
  EXPECT_FALSE(to.good()) << "so that the command fails";
}

}  // namespace
}  // namespace tessera
