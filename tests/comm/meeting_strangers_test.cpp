/// What is no rank, or not of this run, while ranks meet: in place of rank 0, between ranks, at
/// ports.

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/meet_all.h"
#include "tessera/comm/process/tcp/callers.h"
#include "tessera/comm/process/tcp/introduce.h"
#include "tessera/comm/process/tcp/meeting_leader.h"
#include "tessera/comm/process/tcp/meeting_words.h"

namespace tessera::process {
namespace {

/// A program that has the port of rank 0 at 127.0.0.1, and does `deed` with each that comes.
class Stranger {
 public:
  explicit Stranger(const std::function<void(Socket)>& deed)
      : listener_(listen_here()), thread_([this, deed] {
          while (!over_) {
            if (!await_socket(listener_, false, steady_clock::now() + 10ms)) continue;
            Socket caller = accept_next(listener_);
            if (caller.open()) deed(std::move(caller));
          }
        }) {}
  ~Stranger() {
    over_ = true;
    thread_.join();
  }
  int port() const { return local_end(listener_).port(); }

 private:
  const Socket listener_;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

void say_something_else(const Socket& caller) {
  const std::string words(200, 'x');
  send_all(caller, words.data(), words.size(), steady_clock::now() + 1s);
  await_socket(caller, false, steady_clock::now() + 200ms);
}

void close_at_once(const Socket&) {}

void say_go_away(const Socket& caller) {
  say(caller, Word::Refusal, "go away", steady_clock::now() + 1s, Fault::Usage, true);
}

/// As another user's rank 0.
void prove_nothing(const Socket& caller) {
  Opening opening;
  receive_all(caller, &opening, sizeof(opening), steady_clock::now() + 1s);
  const std::string rest(sizeof(Response), '?');
  say(caller, Word::Answer, rest, steady_clock::now() + 1s);
  await_socket(caller, false, steady_clock::now() + 1s);
}

/// Keeps what comes, and says nothing.
class Silence {
 public:
  void operator()(Socket caller) const { kept_->push_back(std::move(caller)); }

 private:
  std::shared_ptr<std::vector<Socket>> kept_ = std::make_shared<std::vector<Socket>>();
};

TEST(Meeting, WhatListensInPlaceOfRankZeroIsNamed) {
  struct Case {
    const char* name;
    std::function<void(Socket)> deed;
    const char* words;
  };
  const Case cases[] = {
      {"another program", say_something_else,
       " is not a rank of Tessera (it says something else); give a port that nothing else uses"},
      {"a proxy of what is not there yet", close_at_once,
       " closes every connection; start rank 0 there, or give the address"},
      {"of another run", say_go_away, " refuses this rank: go away"},
      {"of another user", prove_nothing, " does not know the secret of this run: "},
      {"what waits for words of its own", Silence(),
       " says nothing: it is not rank 0, or hangs; give a port that nothing else uses"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const Stranger program(c.deed);
    const auto run = [&](std::chrono::milliseconds limit) {
      return meet_all({place(1, 2, program.port())}, limit);
    };
    const std::string at = text(program.port(), " (PORT): what listens at 127.0.0.1:");
    const auto ends = ends_within(run, text(at, program.port(), c.words));
    EXPECT_TRUE(has(ends[0], "rank 1 of 2 has waited ")) << ends[0];
  }
}

TEST(Meeting, WhatHasGoneFromThePlaceOfRankZeroIsNotNamed) {
  const auto run = [](std::chrono::milliseconds limit) {
    std::atomic<bool> met = false;
    auto program = std::make_unique<Stranger>([&](const Socket& caller) {
      say_go_away(caller);
      met = true;
    });
    return meet_all({place(1, 2, program->port())}, limit, [&] {
      comes([&] { return met.load(); }, limit);
      program.reset();
    });
  };
  ends_within(run, ": Connection refused; start rank 0 there");
}

/// Rank 0's name has two addresses, and a program that waits for words listens at the first.
TEST(Meeting, AStrangerThatSaysNothingLeavesTimeForTheNextAddress) {
  std::string why;
  const auto run = [&](std::chrono::milliseconds limit) {
    const Stranger program{Silence()};
    Rendezvous first = place(0, 2, program.port()), other = place(1, 2, program.port());
    first.address = "127.0.0.2";
    other.address = "both.test";
    return meet_all({first, other}, limit);
  };
  for (const std::string& end : ends_within(run, "met")) EXPECT_EQ(end, "met");
}

/// Whoever has the port before rank 0 does, and whatever it says, ends no rank.
TEST(Meeting, RanksWaitForRankZeroWhoeverListensInItsPlace) {
  const std::function<void(Socket)> strangers[] = {say_something_else, close_at_once, say_go_away,
                                                   prove_nothing};
  for (const auto& deed : strangers) {
    std::atomic<bool> met = false;
    auto stranger = std::make_unique<Stranger>([&](Socket caller) {
      deed(std::move(caller));
      met = true;
    });
    const int port = stranger->port();
    std::string first;
    std::thread late;
    const auto ends = meet_all({place(1, 2, port)}, 20s, [&] {
      EXPECT_TRUE(comes([&] { return met.load(); }));
      stranger.reset();
      late = std::thread([&] { first = meet_all({place(0, 2, port)}).front(); });
    });
    late.join();
    EXPECT_EQ(ends.front(), "met");
    EXPECT_EQ(first, "met");
  }
}

/// Passes on what both sides say, until one has closed.
void relay(const Socket& caller, const Socket& other) {
  const Moment until = steady_clock::now() + 20s;
  std::array<pollfd, 2> files = {{{caller.file(), POLLIN, 0}, {other.file(), POLLIN, 0}}};
  while (steady_clock::now() < until) {
    poll(files.data(), files.size(), 10);
    for (const bool second : {false, true}) {
      if (files[second].revents == 0) continue;
      std::string part(1 << 16, 0);
      const ssize_t got = recv(files[second].fd, part.data(), part.size(), 0);
      if (got <= 0) return;
      part.resize(static_cast<std::size_t>(got));
      send_all(second ? caller : other, part.data(), part.size(), until);
    }
  }
}

/// Rank 0 is at ::1, and a program of another user, which knows no secret, has the same port at
/// 127.0.0.1, where ranks that are told "localhost" come first.
TEST(Meeting, AProgramAtAnotherAddressOfRankZeroCannotPassWordsOn) {
  std::string why;
  const Endpoint six = addresses_of("::1", 0, why).front();
  const Socket free_there = listen_at(six);
  if (!free_there.open()) GTEST_SKIP() << "no IPv6 here";
  std::atomic<int> relayed = 0;
  int port = 0;
  const Stranger program([&](const Socket& caller) {
    ++relayed;
    const Socket on = begin_connect(addresses_of("::1", port, why).front());
    if (await_socket(on, true, steady_clock::now() + 5s) && connected(on) == 0) relay(caller, on);
  });
  port = program.port();
  Rendezvous first = place(0, 2, port), other = place(1, 2, port);
  first.address = "::1";
  other.address = "127.0.0.1";  // alone, so that nothing else can be reached
  const auto run = [&](std::chrono::milliseconds limit) { return meet_all({first, other}, limit); };
  const auto ends = ends_within(run, "that has dialled another address");
  EXPECT_GT(relayed, 0);
  EXPECT_TRUE(has(ends[1], "something between the two passes connections on")) << ends[1];
}

/// It has said who it is, and something else listens where it says, or nobody.
TEST(Meeting, ARankThatCannotBeReachedIsNamed) {
  struct Case {
    std::function<void(Socket)> deed;
    const char *before, *after;
  };
  const Case cases[] = {
      {{}, " cannot reach ", ": Connection refused; every host must reach every other"},
      {say_go_away, " cannot reach ", ": it refuses: go away"},
      {prove_nothing, " cannot reach ",
       ": what listens there does not know the secret of this run; every host must reach"},
      {[](Socket caller) {
         const Moment until = steady_clock::now() + 10s;
         say_anything(receive_caller(std::move(caller), until), Word::Welcome);
       },
       ": what came from ", " was changed on its way: use a network that others cannot change"},
  };
  for (const Case& c : cases) {
    const std::unique_ptr<Stranger> listens = c.deed ? std::make_unique<Stranger>(c.deed) : nullptr;
    const int port = free_port_here(), at = listens ? listens->port() : free_port_here();
    const auto ends = meet_all({place(0, 3, port), place(2, 3, port)}, 20s,
                               [&] { heard_at(port, greeting_of(place(1, 3, port), 0, at)); });
    for (const std::string& end : ends)
      EXPECT_TRUE(has(end, text("rank 2 of 3", c.before, "rank 1 at 127.0.0.1:", at, c.after)))
          << end;
  }
}

/// Connections that say nothing keep no rank out, however many they are, nor all files of rank 0.
TEST(Callers, ThoseThatSayNothingAreLetGoWhereTheyAreMany) {
  allow_files(4 * Callers::kMost);
  const Secret secret("a secret of these tests");
  Callers callers({listen_here()}, secret, 20s);
  const Endpoint where = local_end(callers.listener());
  const Moment until = steady_clock::now() + 20s;
  bool came = false;
  const auto look = [&] {
    std::vector<pollfd> files;
    callers.add_to(files);
    ASSERT_LE(files.size(), 1 + Callers::kMost);
    poll(files.data(), files.size(), 10);
    ASSERT_EQ(callers.look(files,
                           [&](const Greeting& it, Line& line) {
                             came = it.rank == 1;
                             line.say(Word::Welcome, "", until);
                           }),
              0);
  };
  std::vector<Socket> silent;
  for (std::size_t i = 0; i < Callers::kMost + 20; ++i) {
    silent.push_back(begin_connect(where));
    if (!silent.back().open()) GTEST_SKIP() << "this user may open few files";
    if (i % 100 == 0) look();
  }
  Reception how;
  std::thread rank([&] {
    Socket socket = begin_connect(where);
    EXPECT_TRUE(await_socket(socket, true, until));
    how = introduce(std::move(socket), greeting_of(place(1, 2, 1), 0, 1), secret, until);
  });
  while (!came && steady_clock::now() < until) look();
  rank.join();
  EXPECT_TRUE(came);
  EXPECT_EQ(how.how, Reception::Welcome);
  EXPECT_TRUE(has(callers.strangers(), "; let go: ")) << callers.strangers();
}

/// Another user's process: it is told so, and the ranks meet without it.
TEST(Meeting, WhoDoesNotKnowTheSecretIsNoRank) {
  const int port = free_port_here();
  Rendezvous impostor = place(1, 2, port);
  impostor.secret = Secret("a secret of somebody else");
  std::string its_end, end;
  std::thread late;
  const std::vector<std::string> ends = meet_all({place(0, 2, port)}, 20s, [&] {
    const auto run = [&](std::chrono::milliseconds limit) { return meet_all({impostor}, limit); };
    its_end = ends_within(run, "does not know the secret of this run").front();
    late = std::thread([&] { end = meet_all({place(1, 2, port)}).front(); });
  });
  late.join();
  EXPECT_TRUE(has(its_end, "--secret-file or TESSERA_SECRET")) << its_end;
  EXPECT_EQ(ends.front(), "met");
  EXPECT_EQ(end, "met");
}

/// Rank 0 waits for its ranks until its time is over, and says who else came.
TEST(Meeting, WhoDoesNotKnowTheSecretIsNamedAtTheEnd) {
  const auto run = [](std::chrono::milliseconds limit) {
    const int port = free_port_here();
    Rendezvous impostor = place(1, 2, port);
    impostor.secret = Secret("a secret of somebody else");
    return meet_all({place(0, 2, port), impostor}, limit);
  };
  ends_within(run, "that does not know the secret of this run");
}

TEST(Secret, AProofIsOfOneConnectionAndOneSide) {
  const Secret secret("a secret of these tests");
  Said said = {{greeting_of(place(1, 2, 1), 0, 1), draw_challenge()}, draw_challenge()};
  const Proof of_words = said.key(secret).proof("caller", {});
  const Proof proof = said.proof_of_caller(secret);
  EXPECT_TRUE(Secret::same(proof, said.proof_of_caller(secret)));
  EXPECT_FALSE(Secret::same(proof, said.proof_of_listener(secret)));
  EXPECT_FALSE(Secret::same(proof, said.proof_of_caller(Secret("another secret of tests"))));
  said.answer = draw_challenge();
  EXPECT_FALSE(Secret::same(proof, said.proof_of_caller(secret)));
  EXPECT_FALSE(Secret::same(of_words, said.key(secret).proof("caller", {})));
  Said elsewhere = said;
  elsewhere.opening.dialled[0] ^= 1;
  EXPECT_FALSE(Secret::same(said.proof_of_listener(secret), elsewhere.proof_of_listener(secret)));
  EXPECT_EQ(draw_secret().size(), 64u);
  EXPECT_NE(draw_secret(), draw_secret());
}

/// A listener in the place of rank 0, which says `words` to rank 1 that has proved itself, closes.
std::string end_after(const std::function<void(Line&)>& words) {
  const Socket listener = listen_here();
  std::thread leader([&] {
    const Moment until = steady_clock::now() + 10s;
    await_socket(listener, false, until);
    Line caller = receive_caller(accept_next(listener), until);
    words(caller);
  });
  const std::string out = meet_all({place(1, 2, local_end(listener).port())}, 5s).front();
  leader.join();
  return out;
}

/// Without its hash a refusal may be anybody's.
TEST(Meeting, ARefusalThatDoesNotComeWholeIsALostConnection) {
  Word refusal = word_of(Word::Refusal, Fault::Usage, false);
  refusal.bytes = 60;
  const auto say_half = [&](Line& to) {
    to.say(Word::Welcome, "", steady_clock::now() + 1s);
    send_all(to.socket(), &refusal, sizeof(refusal), steady_clock::now() + 1s);
  };
  EXPECT_TRUE(has(end_after(say_half), "has lost rank 0 at localhost:"));
  refusal.bytes = 0;
  EXPECT_TRUE(has(end_after(say_half), "was changed on its way"));
}

/// So is each other word, of both sides.
TEST(Meeting, AWordThatWasChangedOnItsWayEndsTheMeeting) {
  const std::string words = " was changed on its way: use a network that others cannot change";
  const auto welcome = [](Line& to) { say_anything(to, Word::Welcome); };
  EXPECT_TRUE(has(end_after(welcome), words)) << "rank 0's welcome";
  const int port = free_port_here();
  const auto ends = meet_all({place(0, 2, port)}, 20s, [&] {
    const Rendezvous where = place(1, 2, port);
    const Moment until = steady_clock::now() + 10s;
    Reception how = introduce(connection_to(port), greeting_of(where, 0, 1), where.secret, until);
    Word word;
    std::string rest;
    EXPECT_TRUE(how.line.hear(word, rest, until));
    say_anything(how.line, Word::Ready);
  });
  EXPECT_TRUE(has(ends[0], text("what came from rank 1 of 2 (127.0.0.1:1)", words))) << ends[0];
}

TEST(Meeting, AWordOfRankZeroThatIsNotDueEndsTheMeeting) {
  const auto go = [](Line& to) {
    to.say(Word::Welcome, "", steady_clock::now() + 1s);
    to.say(Word::Go, "", steady_clock::now() + 1s);
  };
  EXPECT_TRUE(has(end_after(go), " sent an unexpected message; start the same program"));
}

TEST(Meeting, ATableOfAnotherSizeIsRefused) {
  const auto say_little = [](Line& to) {
    to.say(Word::Welcome, "", steady_clock::now() + 1s);
    to.say(Word::Table, "little", steady_clock::now() + 1s);
  };
  const std::string end = end_after(say_little);
  EXPECT_TRUE(has(end, "got a table of 6 bytes from rank 0")) << end;
  EXPECT_TRUE(has(end, "start the same program on all ranks")) << end;
}

}  // namespace
}  // namespace tessera::process
