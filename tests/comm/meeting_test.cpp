/// How ranks meet over TCP: threads as ranks, on ports that the system picks.
///
/// Names that end with .test are those of the stand-in for name servers below.

#include "tessera/comm/process/meeting.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/comm/process/callers.h"
#include "tessera/comm/process/introduce.h"
#include "tessera/comm/process/letter.h"
#include "tessera/comm/process/meeting_leader.h"
#include "tessera/comm/process/meeting_words.h"
#include "tessera/comm/processes.h"

static std::atomic<int> questions_for_nobody = 0;

/// In place of the system's: "slow.test" is answered after 3 s, "nobody.test" with no address,
/// "both.test" with 127.0.0.1 and 127.0.0.2.
extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints,
                           addrinfo** found) {
  const std::string_view asked = name == nullptr ? "" : name;
  const bool number = hints != nullptr && (hints->ai_flags & AI_NUMERICHOST) != 0;
  if (number && asked.ends_with(".test")) return EAI_NONAME;
  if (asked == "nobody.test") return ++questions_for_nobody, EAI_NONAME;
  if (asked == "slow.test") {
    std::this_thread::sleep_for(std::chrono::seconds(3));
    return EAI_AGAIN;
  }
  static const auto systems =
      reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  if (asked != "both.test") return systems(name, service, hints, found);
  addrinfo* second = nullptr;
  const int code = systems("127.0.0.1", service, hints, found);
  if (code != 0 || systems("127.0.0.2", service, hints, &second) != 0) return EAI_FAIL;
  (*found)->ai_next = second;  // one of each; the system's own lists are freed one by one too
  return 0;
}

namespace tessera::process {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

int free_port_here() { return local_end(listen_here()).port(); }

Rendezvous place(int rank, int size, int port) {
  return {rank, size, "localhost", port, "run 7", "PORT", -1, Secret("a secret of these tests")};
}

/// What each of some processes ends with: "met", "silent: ..." where another rank tells, or words.
/// Process i comes after delays[i], if there is one.
std::vector<std::string> meet_all(const std::vector<Rendezvous>& places,
                                  std::chrono::milliseconds limit = 20s,
                                  const std::function<void()>& meanwhile = {},
                                  const std::vector<std::chrono::milliseconds>& delays = {}) {
  std::vector<std::string> out(places.size());
  std::vector<std::vector<Socket>> met(places.size());  // open until all have ended
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < places.size(); ++i) {
    threads.emplace_back([&, i] {
      if (i < delays.size()) std::this_thread::sleep_for(delays[i]);
      try {
        met[i] = meet(places[i], limit);
        out[i] = "met";
      } catch (const Reported& e) {
        out[i] = text("silent: ", e.what());
      } catch (const Error& e) {
        out[i] = e.what();
      }
    });
  }
  if (meanwhile) meanwhile();
  for (std::thread& thread : threads) thread.join();
  for (std::size_t a = 0; a < places.size(); ++a) {
    for (std::size_t b = 0; b < met[a].size(); ++b)
      EXPECT_EQ(met[a][b].open(), static_cast<int>(b) != places[a].rank) << a << " " << b;
  }
  return out;
}

bool has(const std::string& all, const std::string& words) {
  return all.find(words) != std::string::npos;
}

/// What a test ends with whose ranks wait for their whole limit, or may: with a longer one while a
/// busy machine does not get as far as `words` of the first within it.
std::vector<std::string> ends_within(
    const std::function<std::vector<std::string>(std::chrono::milliseconds)>& run,
    const std::string& words) {
  std::vector<std::string> ends;
  for (const auto limit : {400ms, 2000ms, 10'000ms}) {
    ends = run(limit);
    if (has(ends.front(), words)) break;
  }
  EXPECT_TRUE(has(ends.front(), words)) << ends.front();
  return ends;
}

/// Waits until something is so. False: it never was.
bool comes(const std::function<bool()>& so, std::chrono::milliseconds limit = 20s) {
  const Moment until = steady_clock::now() + limit;
  while (!so()) {
    if (steady_clock::now() > until) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

/// Connects to a port as soon as somebody listens, says something, and hears what is answered.
std::string answer_at(int port, const void* words, std::size_t bytes,
                      std::chrono::milliseconds limit = 10s) {
  const Moment until = steady_clock::now() + limit;
  std::string why, out;
  for (;;) {
    const Socket socket = begin_connect(addresses_of("127.0.0.1", port, why).front());
    if (!socket.open() || !await_socket(socket, true, until) || connected(socket) != 0) {
      std::this_thread::sleep_for(5ms);
      if (steady_clock::now() > until) return "nobody listens";
      continue;
    }
    send_all(socket, words, bytes, until);
    for (char c = 0; receive_all(socket, &c, 1, until);) out += c;
    return out;
  }
}

/// A connection to a port, as soon as somebody listens there; not open: nobody does.
Socket connection_to(int port) {
  const Moment until = steady_clock::now() + 10s;
  std::string why;
  while (steady_clock::now() < until) {
    Socket socket = begin_connect(addresses_of("127.0.0.1", port, why).front());
    if (socket.open() && await_socket(socket, true, until) && connected(socket) == 0) return socket;
    std::this_thread::sleep_for(5ms);
  }
  return {};
}

/// What a rank that greets so hears at a port after it has proved itself: a reason, or more bytes.
std::string heard_at(int port, const Greeting& greeting) {
  const Moment until = steady_clock::now() + 10s;
  Reception how = introduce(connection_to(port), greeting, place(0, 2, port).secret, until);
  std::string out = how.reason;
  for (char c = 0; how.line.open() && receive_all(how.line.socket(), &c, 1, until);) out += c;
  return out;
}

/// The part of who listens, for a stand-in of rank 0; `from` is who has come.
Line receive_caller(Socket caller, Moment until, Greeting* from = nullptr) {
  const Secret secret = place(0, 2, 1).secret;
  Said said = {};
  Response answer = {draw_challenge(), {}};
  EXPECT_TRUE(receive_all(caller, &said.opening, sizeof(said.opening), until));
  EXPECT_EQ(said.opening.dialled, plain(local_end(caller)));
  said.answer = answer.challenge;
  answer.proof = said.proof_of_listener(secret);
  say(caller, Word::Answer, {reinterpret_cast<const char*>(&answer), sizeof(answer)}, until);
  Proof proof;
  EXPECT_TRUE(receive_all(caller, &proof, sizeof(proof), until));
  EXPECT_TRUE(Secret::same(proof, said.proof_of_caller(secret)));
  if (from != nullptr) *from = said.opening.greeting;
  return Line(std::move(caller), said.key(secret), Line::Side::Listener);
}

/// A word with a hash that is none, as where somebody has changed it.
void say_anything(const Line& to, Word::Kind kind) {
  const std::string hash(sizeof(Proof), '?');
  say(to.socket(), kind, hash, steady_clock::now() + 1s);
  await_socket(to.socket(), false, steady_clock::now() + 10s);
}

TEST(Meeting, AllMeetInWhateverOrderTheyCome) {
  for (const int n : {1, 2, 3, 8}) {
    const int port = free_port_here();
    std::vector<Rendezvous> places;
    for (int r = n - 1; r >= 0; --r) places.push_back(place(r, n, port));
    for (const std::string& end : meet_all(places)) EXPECT_EQ(end, "met");
  }
}

/// Rank 1 has been there for longer than the limit when the last comes, which rank 0 waits for yet.
TEST(Meeting, ARankThatCameLongBeforeTheLastOneMeetsIt) {
  const auto run = [](std::chrono::milliseconds limit) {
    const int port = free_port_here();
    return meet_all({place(0, 3, port), place(1, 3, port), place(2, 3, port)}, limit, {},
                    {limit * 7 / 10, 0ms, limit * 13 / 10});
  };
  for (const std::string& end : ends_within(run, "met")) EXPECT_EQ(end, "met");
}

TEST(Meeting, RankZeroTakesASocketThatListens) {
  Socket listener = listen_here();
  const int port = local_end(listener).port();
  Rendezvous first = place(0, 2, port), other = first;
  first.listener = listener.file();
  other.listener = STDERR_FILENO;  // a file that listens nowhere
  // Somebody has the port, and it is rank 0.
  const auto ends = meet_all({other});
  EXPECT_TRUE(has(ends[0], "the port is in use on this host")) << ends[0];
  listener.release();
  for (const std::string& end : meet_all({first, place(1, 2, port)})) EXPECT_EQ(end, "met");
}

/// By name, by number, and at every address of the host, of IPv6 too where it has that.
TEST(Meeting, AtWhateverAddress) {
  for (const char* address : {"127.0.0.1", "::1", "0.0.0.0"}) {
    SCOPED_TRACE(address);
    std::string why;
    const auto found = addresses_of(address, 0, why);
    ASSERT_FALSE(found.empty()) << why;
    if (!listen_at(found.front()).open()) continue;  // no IPv6 here
    const int port = free_port_here();
    std::vector<Rendezvous> places;
    for (int r = 0; r < 3; ++r) {
      places.push_back(place(r, 3, port));
      places.back().address = address;
    }
    for (const std::string& end : meet_all(places)) EXPECT_EQ(end, "met");
  }
}

TEST(Meeting, StrangersAreRefusedInWordsAndTheRanksMeet) {
  const int port = free_port_here();
  std::string http, rank, version;
  // Rank 1 comes late, so that strangers are there before.
  std::thread late;
  std::string end;
  const std::vector<std::string> ends = meet_all({place(0, 2, port)}, 20s, [&] {
    const std::string request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    http = answer_at(port, request.data(), request.size());
    Rendezvous other = place(1, 2, port);
    other.run = "run 8";
    const Greeting greeting = greeting_of(other, 0, 1);
    rank = heard_at(port, greeting);
    // One of another version as well, whose name has no end and a character that moves cursors.
    Greeting old = greeting;
    old.protocol = 1, old.run.fill('x'), old.run[0] = '\x1b';
    version = answer_at(port, &old, sizeof(old));
    late = std::thread([&] { end = meet_all({place(1, 2, port)}).front(); });
  });
  late.join();
  EXPECT_EQ(ends.front(), "met");
  EXPECT_EQ(end, "met");
  EXPECT_TRUE(has(http, "Tessera: the ranks of a run meet at this port")) << http;
  EXPECT_TRUE(has(rank, "belongs to the run 'run 7', and this rank to 'run 8'; give")) << rank;
  EXPECT_TRUE(has(version, "another build of Tessera (protocol 1.")) << version;
}

TEST(Meeting, ARankThatComesTwiceIsNamed) {
  const int port = free_port_here();
  const auto ends = meet_all({place(0, 3, port), place(1, 3, port), place(1, 3, port)});
  EXPECT_TRUE(has(ends[0], "two processes say that they are rank 1: one at 127.0.0.1:")) << ends[0];
  // One of the two is refused, and the other told that another speaks.
  EXPECT_EQ(has(ends[1], "silent: ") + has(ends[2], "silent: "), 1) << ends[1] << ends[2];
  for (const std::string& end : ends) EXPECT_TRUE(has(end, "two processes say")) << end;
}

TEST(Meeting, AnotherSizeIsNamed) {
  const int port = free_port_here();
  const auto ends = meet_all({place(0, 2, port), place(1, 3, port)});
  for (const std::string& end : ends)
    EXPECT_TRUE(has(end, "was told that there are 3 ranks, and rank 0 that there are 2")) << end;
}

TEST(Meeting, ARankBeyondTheSizeIsNamed) {
  const int port = free_port_here();
  for (const std::string& end : meet_all({place(0, 2, port), place(-5, 2, port)}))
    EXPECT_TRUE(has(end,
                    "says that it is rank -5, and there are 2 ranks; give each process a rank "
                    "from 0 to 1"))
        << end;
}

TEST(Meeting, AnotherProtocolIsNamed) {
  const std::string words = "another build of Tessera (protocol 99.";
  const auto run = [](std::chrono::milliseconds limit) {
    const int port = free_port_here();
    std::string answer;
    auto ends = meet_all({place(0, 2, port)}, limit, [&] {
      Greeting greeting = greeting_of(place(1, 2, port), 0, 1);
      greeting.protocol = 99;
      answer = answer_at(port, &greeting, sizeof(greeting), limit);
    });
    ends.push_back(answer);
    return ends;
  };
  EXPECT_TRUE(has(ends_within(run, words)[1], words));
}

TEST(Meeting, APortInUseIsTold) {
  std::string why;
  const Socket taken = listen_at(addresses_of("127.0.0.1", 0, why).front());
  const auto ends = meet_all({place(0, 2, local_end(taken).port())});
  EXPECT_TRUE(has(ends[0], "the port is in use on this host")) << ends[0];
}

TEST(Meeting, WhoHasNotComeIsNamed) {
  const auto run = [](std::chrono::milliseconds limit) {
    const int port = free_port_here();
    return meet_all({place(0, 4, port), place(2, 4, port)}, limit);
  };
  const auto ends = ends_within(run, " s for all ranks to come up; ranks 1, 3 have not come to ");
  EXPECT_TRUE(has(ends[0], "rank 0 of 4 has waited ")) << ends[0];
  EXPECT_TRUE(has(ends[1], "silent: rank 0 of 4 has waited ")) << ends[1];
}

TEST(Meeting, ARankZeroThatIsNotThereIsNamed) {
  const auto ends = ends_within(
      [](std::chrono::milliseconds limit) {
        return meet_all({place(1, 2, free_port_here())}, limit);
      },
      " (PORT): Connection refused; start rank 0 there");
  EXPECT_TRUE(has(ends[0], "rank 1 of 2 has waited ")) << ends[0];
  EXPECT_TRUE(has(ends[0], " s for rank 0 at localhost:")) << ends[0];
}

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
       " is no rank of Tessera (it says something else); give a port that nothing else uses"},
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

/// Where addresses are translated on the way, rank 0 says which it is known by.
/// What a rank hears that has dialled `dialled`, and comes to `there` by some translation.
std::string answer_to(const Endpoint& dialled, const Endpoint& there) {
  const Moment until = steady_clock::now() + 20s;
  const Socket socket = connection_to(there.port());
  const Opening opening = {greeting_of(place(2, 3, 1), 0, 1), draw_challenge(), plain(dialled)};
  Word word;
  std::string rest;
  EXPECT_TRUE(send_all(socket, &opening, sizeof(opening), until));
  EXPECT_TRUE(hear(socket, word, rest, until));
  return word.kind == Word::Answer ? "answered" : rest;
}

TEST(Callers, AnAddressThatIsTranslatedMayBeDialled) {
  std::string why;
  const Endpoint outside = addresses_of("192.0.2.7", 29500, why).front();
  const Endpoint port = addresses_of("192.0.2.7", 29501, why).front();
  const Endpoint host = addresses_of("192.0.2.8", 29500, why).front();
  const Secret secret("a secret of these tests");
  Callers callers({listen_here(), {outside}}, secret, 20s);
  const Endpoint there = local_end(callers.listener());
  std::atomic<bool> over = false;
  std::thread rank([&] {
    while (!over) {
      std::vector<pollfd> files;
      callers.add_to(files);
      poll(files.data(), files.size(), 10);
      callers.look(files, [](const Greeting&, Line&) {});
    }
  });
  EXPECT_EQ(answer_to(there, there), "answered");
  EXPECT_EQ(answer_to(outside, there), "answered");
  for (const Endpoint& other : {port, host})
    EXPECT_TRUE(has(answer_to(other, there), text("has not dialled ", to_text(there), ", and")));
  over = true;
  rank.join();
}

/// Rank 0 tells all ranks by which address others dial its host.
TEST(Meeting, RankZeroMayBeDialledAtAnAddressThatIsTranslated) {
  Rendezvous first = place(0, 2, free_port_here());
  first.address = "192.0.2.7";  // of documents: nobody's
  meet_all({first}, 20s, [&] {
    const Moment until = steady_clock::now() + 10s;
    Reception how = introduce(connection_to(first.port), greeting_of(place(1, 2, 1), 0, 1),
                              first.secret, until);
    Word word;
    std::string table;
    ASSERT_TRUE(how.line.hear(word, table, until)) << how.reason;
    EXPECT_EQ(to_text(read_table(table, 1, 2, "rank 1").listens[0]),
              text("192.0.2.7:", first.port));
  });
}

/// So they dial each rank of that host.
TEST(Meeting, ARankOfRankZerosHostMayBeDialledWhereThatIs) {
  const Socket listener = listen_here();
  std::thread leader([&] {
    std::string why;
    const Moment until = steady_clock::now() + 10s;
    await_socket(listener, false, until);
    Greeting from;
    Line rank = receive_caller(accept_next(listener), until, &from);
    Endpoint there = local_end(listener);
    there.set_port(from.port);
    const Endpoint host = addresses_of("192.0.2.7", 29500, why).front();
    const Endpoint outside = addresses_of("192.0.2.7", from.port, why).front();
    EXPECT_TRUE(rank.say(Word::Welcome, "", until));
    EXPECT_TRUE(rank.say(Word::Table, to_text(Table{7, {host, there, {}}}), until));
    EXPECT_EQ(answer_to(there, there), "answered");
    EXPECT_EQ(answer_to(outside, there), "answered");
    EXPECT_TRUE(has(answer_to(host, there), "has not dialled "));
  });
  const auto ends = meet_all({place(1, 3, local_end(listener).port())});
  leader.join();
  EXPECT_TRUE(has(ends[0], "rank 1 of 3 has lost rank 0 at localhost:")) << ends[0];
}

TEST(Meeting, ARankThatEndsBeforeAllHaveComeIsNamed) {
  const int port = free_port_here();
  const auto ends = meet_all({place(0, 3, port)}, 20s, [&] {
    const Rendezvous where = place(2, 3, port);
    introduce(connection_to(port), greeting_of(where, 0, 1), where.secret,
              steady_clock::now() + 10s);
  });
  EXPECT_TRUE(has(ends[0], "rank 2 of 3 (127.0.0.1:1) has ended before all ranks came up"))
      << ends[0];
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

/// Rank 0 may open two files: one that listens, and one for another rank.
TEST(MeetingDeathTest, WantOfFilesIsNamed) {
  const auto run = [](int size) {
    const int port = free_port_here();
    std::vector<Rendezvous> others;
    for (int r = 1; r < size; ++r) others.push_back(place(r, size, port));
    Rendezvous first = place(0, size, port);
    first.address = "127.0.0.1";
    const pid_t child = fork();
    if (child == 0) {
      meet_all(others);
      _exit(0);
    }
    const int one = dup(STDERR_FILENO), other = dup(STDERR_FILENO);
    close(one), close(other);
    rlimit limit = {};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = static_cast<rlim_t>(other) + 1;
    setrlimit(RLIMIT_NOFILE, &limit);
    std::fprintf(stderr, "rank 0 ends: %s\n", meet_all({first}).front().c_str());
    kill(child, SIGKILL);  // those that were not let in would wait on
    waitpid(child, nullptr, 0);
    _exit(0);
  };
  EXPECT_EXIT(run(2), testing::ExitedWithCode(0), "rank 0 ends: met");
  EXPECT_EXIT(run(4), testing::ExitedWithCode(0),
              "rank 0 ends: rank 0 of 4 cannot let in more ranks: Too many open files; raise the "
              "limit of open files");
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

TEST(Meeting, ANameServerThatDoesNotAnswerIsTold) {
  Rendezvous where = place(1, 2, 1);
  where.address = "slow.test";
  const Moment start = steady_clock::now();
  const std::string end = meet_all({where}, 300ms).front();
  EXPECT_LT(steady_clock::now() - start, 2s);
  EXPECT_TRUE(has(end, "has waited 0.3 s for rank 0 at slow.test:1 (PORT): no name server answers"))
      << end;
}

TEST(Meeting, NameServersAreAskedOnceASecond) {
  Rendezvous where = place(1, 2, 1);
  where.address = "nobody.test";
  meet_all({where}, 1500ms);
  EXPECT_GE(questions_for_nobody.load(), 1);
  EXPECT_LE(questions_for_nobody.load(), 2);
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
  EXPECT_TRUE(has(end_after(go), " does not say what is due; start the same program"));
}

TEST(Meeting, ATableOfAnotherSizeIsRefused) {
  const auto say_little = [](Line& to) {
    to.say(Word::Welcome, "", steady_clock::now() + 1s);
    to.say(Word::Table, "little", steady_clock::now() + 1s);
  };
  const std::string end = end_after(say_little);
  EXPECT_TRUE(has(end, "gets a table of 6 bytes from rank 0")) << end;
  EXPECT_TRUE(has(end, "start the same program on all ranks")) << end;
}

/// In two pieces the second would wait until the first is acknowledged, and be lost with the
/// connection.
TEST(MeetingWords, AWordAndItsReasonComeTogether) {
  const Moment until = steady_clock::now() + 10s;
  const Socket listener = listen_here();
  const Socket from = begin_connect(local_end(listener));
  ASSERT_TRUE(await_socket(from, true, until) && await_socket(listener, false, until));
  const Socket to = accept_next(listener);
  for (int turn = 0; turn < 20; ++turn) {
    ASSERT_TRUE(say(from, Word::Refusal, "no room", until));
    ASSERT_TRUE(await_socket(to, false, until));
    std::array<char, 100> got;
    EXPECT_EQ(recv(to.file(), got.data(), got.size(), 0),
              static_cast<ssize_t>(sizeof(Word) + std::string_view("no room").size()));
  }
}

/// The other side has something to say yet, and reads late.
TEST(Sockets, AnOrderlyEndWaitsForTheOtherSide) {
  const Moment until = steady_clock::now() + 10s;
  const Socket listener = listen_here();
  const Socket from = begin_connect(local_end(listener));
  ASSERT_TRUE(await_socket(from, true, until) && await_socket(listener, false, until));
  Socket to = accept_next(listener);
  ASSERT_TRUE(say(from, Word::Refusal, "no room", until));
  ASSERT_TRUE(say(to, Word::Ready, "unread", until));
  end_orderly(from, steady_clock::now() + 20ms);
  EXPECT_FALSE(await_socket(from, false, steady_clock::now())) << "what came was read";
  std::thread late([&] {
    std::this_thread::sleep_for(100ms);
    Word word;
    std::string rest;
    EXPECT_TRUE(hear(to, word, rest, until));
    EXPECT_EQ(rest, "no room");
    to = Socket();
  });
  end_orderly(from, until);
  EXPECT_LT(steady_clock::now(), until) << "it has closed";
  late.join();
}

/// What a rank never writes is told in words, whatever field it is.
TEST(Letters, EveryFieldIsLookedAt) {
  Group group = world_group(4);
  Header good;
  good.fill(Collective::all_reduce(DType::F32, {2, 3}, Monoid::Sum, "grads"), group, 7, 1, 0);
  EXPECT_EQ(good.problem(), "");
  const auto damaged = [&](auto change) {
    Header bad = good;
    change(bad);
    return bad.problem();
  };
  EXPECT_NE(Header().problem(), "");
  EXPECT_NE(damaged([](Header& h) { h.kind = static_cast<CollectiveKind>(8); }), "");
  EXPECT_NE(damaged([](Header& h) { h.dtype = static_cast<DType>(99); }), "");
  EXPECT_NE(damaged([](Header& h) { h.monoid = static_cast<Monoid>(3); }), "");
  EXPECT_NE(damaged([](Header& h) { h.ndim = 15; }), "");
  EXPECT_NE(damaged([](Header& h) { h.ndim = -1; }), "");
  EXPECT_NE(damaged([](Header& h) { h.gather = 2; }), "");
  EXPECT_NE(damaged([](Header& h) { h.whole[1] = -3; }), "");
  EXPECT_NE(damaged([](Header& h) { h.name.fill('x'); }), "");
  Notice notice;
  EXPECT_NE(notice.problem(4), "");
  notice.kind = Notice::Failed, notice.rank = 3, notice.fault = 3;
  EXPECT_EQ(notice.problem(4), "");
  for (const int rank : {-1, 4, -100'000'000}) {
    Notice bad = notice;
    bad.rank = rank;
    EXPECT_NE(bad.problem(4), "") << rank;
  }
  for (const int fault : {0, 1, 9, 99, -7}) {
    Notice bad = notice;
    bad.fault = fault;
    EXPECT_NE(bad.problem(4), "") << fault;
    EXPECT_EQ(fault_of(fault), Fault::Peer);
  }
  notice.words.fill('x');
  EXPECT_NE(notice.problem(4), "");
}

TEST(Sockets, WhatMeansThisHostAlone) {
  for (const char* name : {"localhost", "LOCALHOST", "localhost.", "node.localhost", "127.0.0.1",
                           "127.1", "127.8.9.10", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1"})
    EXPECT_TRUE(means_this_host(name)) << name;
  // Debian's name of a host has a number of the loopback there, and another elsewhere.
  for (const char* name : {"node1", "127.org", "localhost.example", "mylocalhost", "10.0.0.1",
                           "0.0.0.0", "::", "fe80::1", ""})
    EXPECT_FALSE(means_this_host(name)) << name;
  for (const char* name : {"LOCALHOST", "127.1"}) {
    Rendezvous where;
    where.address = name;
    const Socket listener = listen_for(where, Moment::max()).socket;
    EXPECT_TRUE(local_end(listener).loopback()) << name << ": " << to_text(local_end(listener));
  }
}

TEST(Sockets, TextOfAddresses) {
  std::string why;
  EXPECT_EQ(to_text(addresses_of("127.0.0.1", 80, why).front()), "127.0.0.1:80");
  EXPECT_EQ(to_text(addresses_of("::1", 80, why).front()), "[::1]:80");
  EXPECT_TRUE(addresses_of("::1", 80, why).front().loopback());
  EXPECT_TRUE(addresses_of("::ffff:127.0.0.2", 80, why).front().loopback());
  EXPECT_FALSE(addresses_of("10.0.0.1", 80, why).front().loopback());
  EXPECT_TRUE(addresses_of("no host of this name.invalid", 80, why).empty());
  EXPECT_FALSE(why.empty());
}

}  // namespace
}  // namespace tessera::process
