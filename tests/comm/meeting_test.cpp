/// How ranks meet over TCP: threads as ranks, on ports that the system picks.

#include "tessera/comm/process/meeting.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/comm/process/meeting_host.h"
#include "tessera/comm/process/meeting_words.h"
#include "tessera/comm/processes.h"

namespace tessera::process {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

int free_port_here() {
  std::string why;
  return local_end(listen_at(addresses_of("127.0.0.1", 0, why).front())).port();
}

Place place(int rank, int size, int port) {
  return {rank, size, "localhost", port, "run 7", "PORT"};
}

/// What each of some processes ends with: "met", "silent: ..." where another rank tells, or words.
std::vector<std::string> meet_all(const std::vector<Place>& places,
                                  std::chrono::milliseconds limit = 20s,
                                  const std::function<void()>& meanwhile = {}) {
  std::vector<std::string> out(places.size());
  std::vector<std::vector<Socket>> met(places.size());  // open until all have ended
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < places.size(); ++i) {
    threads.emplace_back([&, i] {
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

/// Connects to a port as soon as somebody listens, says something, and hears what is answered.
std::string answer_at(int port, const void* words, std::size_t bytes) {
  const Moment until = steady_clock::now() + 10s;
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

TEST(Meeting, AllMeetInWhateverOrderTheyCome) {
  for (const int n : {1, 2, 3, 8}) {
    const int port = free_port_here();
    std::vector<Place> places;
    for (int r = n - 1; r >= 0; --r) places.push_back(place(r, n, port));
    for (const std::string& end : meet_all(places)) EXPECT_EQ(end, "met");
  }
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
    std::vector<Place> places;
    for (int r = 0; r < 3; ++r) {
      places.push_back(place(r, 3, port));
      places.back().address = address;
    }
    for (const std::string& end : meet_all(places)) EXPECT_EQ(end, "met");
  }
}

TEST(Meeting, StrangersAreRefusedInWordsAndTheRanksMeet) {
  const int port = free_port_here();
  std::string http, rank;
  // Rank 1 comes late, so that strangers are there before.
  std::thread late;
  std::string end;
  const std::vector<std::string> ends = meet_all({place(0, 2, port)}, 20s, [&] {
    const std::string request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    http = answer_at(port, request.data(), request.size());
    Place other = place(1, 2, port);
    other.run = "run 8";
    const Greeting greeting = greeting_of(other, 0, 1);
    rank = answer_at(port, &greeting, sizeof(greeting));
    late = std::thread([&] { end = meet_all({place(1, 2, port)}).front(); });
  });
  late.join();
  EXPECT_EQ(ends.front(), "met");
  EXPECT_EQ(end, "met");
  EXPECT_TRUE(has(http, "Tessera: the ranks of a run meet at this port")) << http;
  EXPECT_TRUE(has(rank, "is of another run ('run 7', and this is 'run 8')")) << rank;
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

TEST(Meeting, AnotherProtocolIsNamed) {
  const int port = free_port_here();
  std::string words;
  const auto ends = meet_all({place(0, 2, port)}, 20s, [&] {
    Greeting greeting = greeting_of(place(1, 2, port), 0, 1);
    greeting.protocol = 99;
    words = answer_at(port, &greeting, sizeof(greeting));
  });
  for (const std::string& all : {ends[0], words})
    EXPECT_TRUE(has(all, "is another build of Tessera (protocol 99.")) << all;
}

TEST(Meeting, APortInUseIsTold) {
  std::string why;
  const Socket taken = listen_at(addresses_of("127.0.0.1", 0, why).front());
  const auto ends = meet_all({place(0, 2, local_end(taken).port())}, 300ms);
  EXPECT_TRUE(has(ends[0], "the port is in use on this host")) << ends[0];
}

TEST(Meeting, WhoHasNotComeIsNamed) {
  const int port = free_port_here();
  const auto ends = meet_all({place(0, 4, port), place(2, 4, port)}, 400ms);
  EXPECT_TRUE(has(ends[0],
                  "rank 0 of 4 has waited 0.4 s for all ranks to come up; ranks 1, 3 have "
                  "not come to localhost:"))
      << ends[0];
  EXPECT_TRUE(has(ends[1], "silent: rank 0 of 4 has waited")) << ends[1];
}

TEST(Meeting, ARankZeroThatIsNotThereIsNamed) {
  const auto ends = meet_all({place(1, 2, free_port_here())}, 300ms);
  EXPECT_TRUE(has(ends[0], "rank 1 of 2 has waited 0.3 s for rank 0 at localhost:")) << ends[0];
  EXPECT_TRUE(has(ends[0], " (PORT): Connection refused; start rank 0 there")) << ends[0];
}

TEST(Meeting, AnotherProgramInPlaceOfRankZeroIsNamed) {
  std::string why;
  const Socket listener = listen_at(addresses_of("127.0.0.1", 0, why).front());
  std::thread program([&] {
    await_socket(listener, false, steady_clock::now() + 10s);
    const Socket caller = accept_next(listener);
    const std::string words(200, 'x');
    send_all(caller, words.data(), words.size(), steady_clock::now() + 1s);
    std::this_thread::sleep_for(200ms);
  });
  const auto ends = meet_all({place(1, 2, local_end(listener).port())}, 5s);
  program.join();
  EXPECT_TRUE(has(ends[0], "is no rank of Tessera; give a port that nothing else uses")) << ends[0];
}

TEST(Meeting, ARankThatEndsBeforeAllHaveComeIsNamed) {
  const int port = free_port_here();
  const auto ends = meet_all({place(0, 3, port)}, 20s, [&] {
    const Greeting greeting = greeting_of(place(2, 3, port), 0, 1);
    std::string why;
    for (;;) {
      const Socket socket = begin_connect(addresses_of("127.0.0.1", port, why).front());
      if (socket.open() && await_socket(socket, true, steady_clock::now() + 1s) &&
          connected(socket) == 0 &&
          send_all(socket, &greeting, sizeof(greeting), steady_clock::now()))
        return std::this_thread::sleep_for(100ms);
    }
  });
  EXPECT_TRUE(has(ends[0], "rank 2 of 3 (127.0.0.1:1) has ended before all ranks came up"))
      << ends[0];
}

/// It has said who it is, and nobody listens where it says.
TEST(Meeting, ARankThatCannotBeReachedIsNamed) {
  const int port = free_port_here(), nobody = free_port_here();
  std::string table;
  const auto ends = meet_all({place(0, 3, port), place(2, 3, port)}, 20s, [&] {
    const Greeting greeting = greeting_of(place(1, 3, port), 0, nobody);
    table = answer_at(port, &greeting, sizeof(greeting));
  });
  for (const std::string& end : ends)
    EXPECT_TRUE(has(end, text("rank 2 of 3 cannot reach rank 1 at 127.0.0.1:", nobody,
                              ": Connection refused; every host must reach every other")))
        << end;
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
