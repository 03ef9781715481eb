/// How ranks meet over TCP.
///
/// Names that end with .test are those of the stand-in for name servers below.

#include "tessera/comm/process/tcp/meeting.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "comm/meet_all.h"
#include "tessera/comm/process/tcp/introduce.h"
#include "tessera/comm/process/tcp/meeting_leader.h"

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
    EXPECT_TRUE(has(end, "was started as one of 3 ranks, and rank 0 as one of 2")) << end;
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

}  // namespace
}  // namespace tessera::process
