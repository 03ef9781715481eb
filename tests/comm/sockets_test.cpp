#include "tessera/comm/process/tcp/sockets.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <thread>

#include "comm/meet_all.h"
#include "tessera/comm/process/letter.h"
#include "tessera/comm/process/tcp/meeting_leader.h"
#include "tessera/comm/process/tcp/meeting_words.h"

namespace tessera::process {
namespace {

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
