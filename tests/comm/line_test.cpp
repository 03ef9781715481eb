/// What comes between two ranks that meet is believed only as it was said.

#include "tessera/comm/process/tcp/line.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string>

namespace tessera::process {
namespace {

using std::chrono::steady_clock;
using namespace std::chrono_literals;

/// Two lines whose bytes go through the hands of the test.
class TappedLines {
 public:
  Line caller, listener;

  TappedLines() {
    const Secret key("of one connection");
    caller = Line(one_end(at_caller_), key, Line::Side::Caller);
    listener = Line(one_end(at_listener_), key, Line::Side::Listener);
  }
  /// What the listener writes for it.
  std::string said(const std::string& reason) {
    const Moment until = steady_clock::now() + 5s;
    EXPECT_TRUE(listener.say(Word::Refusal, reason, until));
    std::string out(sizeof(Word) + reason.size() + sizeof(Proof), 0);
    EXPECT_TRUE(receive_all(at_listener_, out.data(), out.size(), until));
    return out;
  }
  /// What the caller hears of these bytes: the reason, or an errno.
  std::string heard(const std::string& bytes) { return heard_by(caller, at_caller_, bytes); }
  std::string heard_back(const std::string& bytes) {
    return heard_by(listener, at_listener_, bytes);
  }

 private:
  static Socket one_end(Socket& other) {
    std::array<int, 2> files = {};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, files.data()), 0);
    other = Socket(files[1]);
    return Socket(files[0]);
  }
  static std::string heard_by(Line& line, const Socket& from, const std::string& bytes) {
    EXPECT_TRUE(send_all(from, bytes.data(), bytes.size(), steady_clock::now() + 5s));
    Word word;
    std::string rest;
    if (line.hear(word, rest, steady_clock::now() + 100ms)) return rest;
    const int number = errno;
    EXPECT_EQ(word.kind, Word::Table) << "nobody acts on it";
    EXPECT_EQ(rest, "");
    return number == EBADMSG ? "changed" : error_text(number);
  }

  Socket at_caller_, at_listener_;
};

TEST(Line, WordsThatWereChangedOnTheirWayAreNotBelieved) {
  EXPECT_EQ(TappedLines().heard(TappedLines().said("no room")), "no room") << "one key, one place";
  for (std::size_t i = 0; i < sizeof(Word) + 7 + sizeof(Proof); ++i) {
    TappedLines lines;
    std::string bytes = lines.said("no room");
    bytes[i] ^= 1;
    EXPECT_NE(lines.heard(bytes), "no room") << "byte " << i;
  }
  struct Case {
    const char* name;
    std::string (*heard)(TappedLines&);
    const char* what;
  };
  const Case cases[] = {
      {"in order",
       [](TappedLines& l) {
         const std::string one = l.heard(l.said("one"));
         return one + l.heard(l.said("two"));
       },
       "onetwo"},
      {"one twice",
       [](TappedLines& l) {
         const std::string one = l.said("one"), first = l.heard(one);
         return first + " " + l.heard(one);
       },
       "one changed"},
      {"one left out",
       [](TappedLines& l) {
         l.said("one");
         return l.heard(l.said("two"));
       },
       "changed"},
      {"sent back to who said it", [](TappedLines& l) { return l.heard_back(l.said("one")); },
       "changed"},
      {"without a hash",
       [](TappedLines& l) {
         const Word word = word_of(Word::Go, Fault::Peer, false);
         return l.heard({reinterpret_cast<const char*>(&word), sizeof(word)});
       },
       "changed"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    TappedLines lines;
    EXPECT_EQ(c.heard(lines), c.what);
  }
}

}  // namespace
}  // namespace tessera::process
