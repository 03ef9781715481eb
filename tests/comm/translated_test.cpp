/// Ranks that others dial at an address which their host does not have itself.

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
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

}  // namespace
}  // namespace tessera::process
