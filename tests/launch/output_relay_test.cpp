#include "tessera/launch/output_relay.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
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

/// Moves on what can be moved without waiting.
void pass_all(OutputRelay& relay) {
  for (pollfd file; file = relay.awaited(), poll(&file, 1, 0) > 0 && relay.pass();) {
  }
}

std::string read_all(int file) {
  std::string out(1 << 20, '\0');
  std::size_t size = 0;
  for (ssize_t got; (got = ::read(file, out.data() + size, out.size() - size)) > 0;)
    size += static_cast<std::size_t>(got);
  return out.substr(0, size);
}

TEST(OutputRelay, PassesAllOnInPieces) {
  BothEnds pipe, reader;
  std::ostringstream to;
  OutputRelay relay(pipe.ends[0], to, reader.ends[1]);
  EXPECT_FALSE(relay.pass()) << "nothing has come";
  EXPECT_EQ(relay.awaited().fd, pipe.ends[0]);
  std::string said;
  for (int i = 0; i < 3000; ++i) said += "a word ";
  pipe.say(said);
  EXPECT_TRUE(relay.pass());
  EXPECT_TRUE(relay.holds());
  EXPECT_NE(relay.awaited().fd, pipe.ends[0]) << "no more is read before the reader has taken this";
  EXPECT_EQ(relay.awaited().events, POLLOUT);
  EXPECT_TRUE(relay.pass());
  std::string read = read_all(reader.ends[0]);
  EXPECT_EQ(read.size(), 4096u) << "what a pipe that is ready takes without waiting";
  pipe.end();
  while (relay.pass()) {
  }
  relay.add(" and one more");
  while (relay.pass()) {
  }
  read += read_all(reader.ends[0]);
  EXPECT_EQ(read, said + " and one more");
  EXPECT_EQ(relay.awaited().fd, -1);
  EXPECT_TRUE(to.good());
}

TEST(OutputRelay, PassesOnWhatItsFilterLeaves) {
  BothEnds pipe, reader;
  std::ostringstream to;
  OutputRelay relay(pipe.ends[0], to, reader.ends[1], [](std::string_view bytes) {
    return bytes == "own" ? std::string() : std::string(bytes);
  });
  for (const char* said : {"own", "a rank's"}) {
    pipe.say(said);
    pass_all(relay);
  }
  EXPECT_EQ(read_all(reader.ends[0]), "a rank's");
}

/// The reader's end is full: whether or not it would make a writer wait.
TEST(OutputRelay, NeverWaitsForAPipe) {
  for (const int flags : {0, O_NONBLOCK}) {
    BothEnds pipe, reader;
    fcntl(reader.ends[1], F_SETFL, flags);
    std::ostringstream to;
    OutputRelay relay(pipe.ends[0], to, reader.ends[1]);
    std::size_t read = 0;
    alarm(20);
    for (int i = 0; i < 20; ++i) {
      pipe.say(std::string(50000, 'x'));
      pass_all(relay);
      if (!relay.holds()) continue;  // it has room still
      for (std::size_t more; (more = read_all(reader.ends[0]).size()) > 0;) {
        read += more;
        pass_all(relay);
      }
    }
    alarm(0);
    read += read_all(reader.ends[0]).size();
    EXPECT_EQ(read, 20u * 50000u);
    EXPECT_TRUE(to.good());
    EXPECT_EQ(fcntl(reader.ends[1], F_GETFL) & O_NONBLOCK, flags) << "others share it";
  }
}

/// A terminal is ready as soon as it takes one byte.
TEST(OutputRelay, NeverWaitsForATerminal) {
  for (const int flags : {0, O_NONBLOCK}) {
    const int master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    ASSERT_GE(master, 0);
    ASSERT_EQ(grantpt(master), 0);
    ASSERT_EQ(unlockpt(master), 0);
    const int terminal = open(ptsname(master), O_RDWR | O_NOCTTY | flags);
    ASSERT_GE(terminal, 0);
    BothEnds pipe;
    std::ostringstream to;
    OutputRelay relay(pipe.ends[0], to, terminal);
    std::size_t read = 0;
    alarm(20);
    for (int i = 0; i < 20; ++i) {
      // So that the terminal has room for less than is written at a time, before it has none.
      if (!relay.holds()) pipe.say(std::string(i == 0 ? 1001 : 20000, 'x'));
      pass_all(relay);
    }
    EXPECT_TRUE(relay.holds()) << "nobody reads";
    pipe.end();
    std::size_t more = 0;
    do {
      more = read_all(master).size();
      read += more;
      pass_all(relay);
    } while (more > 0 || relay.holds());
    alarm(0);
    EXPECT_EQ(read % 20000, 1001u) << "some was lost";
    EXPECT_TRUE(to.good());
    EXPECT_EQ(fcntl(terminal, F_GETFL) & O_NONBLOCK, flags) << "others share it";
    close(terminal);
    close(master);
  }
}

/// A child whose output is lost must be able to write on.
TEST(OutputRelay, ReadsOnWhereNothingIsTaken) {
  BothEnds pipe;
  std::ostringstream to;
  const int unwritable = open("/dev/null", O_RDONLY);
  OutputRelay relay(pipe.ends[0], to, unwritable);
  for (int i = 0; i < 100; ++i) {
    pipe.say(std::string(4000, 'x'));
    EXPECT_TRUE(relay.pass());
    EXPECT_EQ(relay.holds(), i == 0);
    relay.pass();
    EXPECT_FALSE(to.good()) << "so that the command fails";
  }
  close(unwritable);
}

TEST(OutputRelay, WhatIsGivenUpIsLost) {
  BothEnds pipe, reader;
  std::ostringstream to;
  OutputRelay relay(pipe.ends[0], to, reader.ends[1]);
  pipe.say("words");
  EXPECT_TRUE(relay.pass());
  relay.drop();
  EXPECT_FALSE(relay.holds());
  EXPECT_FALSE(to.good()) << "so that the command fails";
  EXPECT_EQ(read_all(reader.ends[0]), "");
}

}  // namespace
}  // namespace tessera
