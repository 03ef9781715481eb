/// Messages over TCP between two or three ends in one process, which this thread moves in turn.

#include "tessera/comm/process/tcp/tcp_link.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "tessera/base/error.h"

namespace tessera::process {
namespace {

using namespace std::chrono_literals;

/// Two ends of a connection of this host.
std::pair<Socket, Socket> connection() {
  const Moment until = std::chrono::steady_clock::now() + 20s;
  const Socket listener = listen_here();
  Socket a = begin_connect(local_end(listener));
  EXPECT_TRUE(await_socket(a, true, until) && await_socket(listener, false, until));
  Socket b = accept_next(listener);
  EXPECT_TRUE(b.open());
  return {std::move(a), std::move(b)};
}

/// Ends of one world, joined by connections as hosts are.
std::vector<std::unique_ptr<TcpLink>> ends(int n) {
  std::vector<std::vector<Socket>> sockets(static_cast<std::size_t>(n));
  for (auto& row : sockets) row.resize(static_cast<std::size_t>(n));
  for (std::size_t a = 0; a < sockets.size(); ++a) {
    for (std::size_t b = a + 1; b < sockets.size(); ++b) {
      std::tie(sockets[a][b], sockets[b][a]) = connection();
    }
  }
  std::vector<std::unique_ptr<TcpLink>> out;
  for (int r = 0; r < n; ++r)
    out.push_back(std::make_unique<TcpLink>(r, std::move(sockets[static_cast<std::size_t>(r)])));
  return out;
}

/// A message with its memory, and the end that moves it.
struct Message {
  TcpLink* link;
  std::vector<int> data;
  Request request;
  std::size_t bytes() const { return data.size() * sizeof(int); }
};

std::unique_ptr<Message> sent(TcpLink& from, int to, int tag, int count, int first,
                              Channel channel = Channel::Calls) {
  auto out = std::make_unique<Message>(
      Message{&from, std::vector<int>(static_cast<std::size_t>(count)), {}});
  std::iota(out->data.begin(), out->data.end(), first);
  out->request = from.send(channel, out->data.data(), out->bytes(), to, tag);
  return out;
}

std::unique_ptr<Message> received(TcpLink& at, int from, int tag, int count,
                                  Channel channel = Channel::Calls) {
  auto out = std::make_unique<Message>(
      Message{&at, std::vector<int>(static_cast<std::size_t>(count), -1), {}});
  out->request = at.receive(channel, out->data.data(), out->bytes(), from, tag);
  return out;
}

template <typename... Messages>
void await(const Messages&... messages) {
  const auto until = std::chrono::steady_clock::now() + 20s;
  const auto all = [&] { return (messages->link->done(messages->request) & ... & true); };
  while (!all() && std::chrono::steady_clock::now() < until) {
  }
  EXPECT_TRUE(all());
}

void expect_counts_from(const Message& message, int first) {
  for (std::size_t i = 0; i < message.data.size(); ++i)
    ASSERT_EQ(message.data[i], first + static_cast<int>(i)) << i;
}

constexpr int kSmall = 5, kSegment = 60'000, kLarge = 3'000'000;  // ints; the last is offered first

TEST(TcpLink, MessagesOfATagComeInOrderWhoeverIsFirst) {
  for (const int count : {0, kSmall, kSegment, kLarge}) {
    for (const bool early : {false, true}) {
      SCOPED_TRACE(text(count, early ? " early" : ""));
      const auto links = ends(2);
      TcpLink &a = *links[0], &b = *links[1];
      std::unique_ptr<Message> in[3], out[3];
      const auto send_all = [&] {
        for (int i = 0; i < 3; ++i) out[i] = sent(a, 1, 7, count, 1000 * i);
      };
      const auto receive_all = [&] {
        for (int i = 0; i < 3; ++i) in[i] = received(b, 0, 7, count);
      };
      if (early) {
        send_all();
        // What is small has come before its receive, or half of it has.
        for (int i = 0; i < 3; ++i) {
          Request none;
          none = b.receive(Channel::Control, nullptr, 0, 0, 99);
          a.done(out[0]->request), b.done(none), b.cancel(none);
        }
        receive_all();
      } else {
        receive_all();
        send_all();
      }
      await(in[2], in[0], in[1], out[0], out[1], out[2]);
      for (int i = 0; i < 3; ++i) expect_counts_from(*in[i], 1000 * i);
    }
  }
}

TEST(TcpLink, TagsAndChannelsDoNotWaitForEachOther) {
  const auto links = ends(2);
  TcpLink &a = *links[0], &b = *links[1];
  const auto large = sent(a, 1, 1, kLarge, 5), other = sent(a, 1, 2, kSmall, 6),
             control = sent(a, 1, 1, kSmall, 7, Channel::Control);
  const auto got_control = received(b, 0, 1, kSmall, Channel::Control);
  const auto got_other = received(b, 0, 2, kSmall);
  await(got_control, got_other, other, control);
  EXPECT_FALSE(a.done(large->request)) << "nobody has a place for it";
  const auto got_large = received(b, 0, 1, kLarge);
  await(large, got_large);
  expect_counts_from(*got_large, 5), expect_counts_from(*got_other, 6);
  expect_counts_from(*got_control, 7);
}

TEST(TcpLink, AReceiveFromAnyoneTakesWhatComes) {
  const auto links = ends(3);
  const auto one = sent(*links[1], 0, 5, kSmall, 10), two = sent(*links[2], 0, 5, kSmall, 20);
  int all = 0;
  for (int i = 0; i < 2; ++i) {
    const auto got = received(*links[0], Link::kAnyone, 5, kSmall);
    await(got, one, two);
    all += got->data[0];
  }
  EXPECT_EQ(all, 30);
}

TEST(TcpLink, AMessageToOneself) {
  const auto links = ends(1);
  const auto out = sent(*links[0], 0, 5, kLarge, 10), in = received(*links[0], 0, 5, kLarge),
             next = received(*links[0], 0, 5, kSmall), later = sent(*links[0], 0, 5, kSmall, 20);
  await(out, in, next, later);
  expect_counts_from(*in, 10), expect_counts_from(*next, 20);
}

TEST(TcpLink, BothSendMuchAtOnce) {
  const auto links = ends(2);
  std::vector<std::unique_ptr<Message>> all;
  for (int i = 0; i < 20; ++i) {
    for (const int r : {0, 1}) {
      all.push_back(sent(*links[static_cast<std::size_t>(r)], 1 - r, i % 3, kSegment, i));
      all.push_back(received(*links[static_cast<std::size_t>(r)], 1 - r, i % 3, kSegment));
    }
  }
  for (const auto& message : all) {
    for (const auto& other : all) other->link->done(other->request);
    await(message);
  }
  for (std::size_t i = 0; i < all.size(); ++i) expect_counts_from(*all[i], static_cast<int>(i / 4));
}

/// What was cancelled reads and writes no memory any more, whatever was on its way; the rest moves.
TEST(TcpLink, WhatIsCancelledIsNoPartOfAnything) {
  for (const int count : {kSmall, kSegment, kLarge}) {
    SCOPED_TRACE(count);
    const auto links = ends(2);
    TcpLink &a = *links[0], &b = *links[1];
    auto lost_in = received(b, 0, 1, count);
    auto lost_out = sent(a, 1, 1, count, 5), unwanted = sent(a, 1, 2, count, 6);
    a.done(lost_out->request), b.done(lost_in->request);
    for (const auto* one : {&lost_in, &lost_out, &unwanted}) {
      (*one)->link->cancel((*one)->request);
      EXPECT_TRUE((*one)->link->done((*one)->request));
    }
    lost_in.reset(), lost_out.reset(), unwanted.reset();  // a sanitizer sees who touches it
    const auto in = received(b, 0, 3, kSegment), out = sent(a, 1, 3, kSegment, 9);
    await(in, out);
    expect_counts_from(*in, 9);
    if (count == kLarge) continue;  // nobody had a place for it
    const auto begun = received(b, 0, 2, count);
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (!b.done(begun->request) && std::chrono::steady_clock::now() < until) {
      Request none = a.receive(Channel::Control, nullptr, 0, 1, 99);
      a.done(none), a.cancel(none);  // moves what is left of it
    }
    expect_counts_from(*begun, 6);
  }
}

TEST(TcpLink, AnEndWithoutAWordIsALossAndAnOrderlyOneIsNone) {
  auto links = ends(3);
  const auto last_words = sent(*links[1], 0, 1, kSmall, 3);
  links[1].reset();
  const auto heard = received(*links[0], 1, 1, kSmall), never = received(*links[0], 1, 1, kSmall);
  await(heard);
  expect_counts_from(*heard, 3);
  for (int i = 0; i < 100 && links[0]->losses() == 0; ++i) links[0]->done(never->request);
  EXPECT_EQ(links[0]->losses(), 1);
  EXPECT_TRUE(links[0]->lost(1));
  EXPECT_FALSE(links[0]->lost(2));
  const auto nowhere = sent(*links[0], 1, 1, kSmall, 4);
  await(nowhere);  // nobody will read it
  // The others end in order: each waits for the other's word.
  links[0]->cancel(never->request);
  std::thread other([&] { links[2]->finish(); });
  links[0]->finish();
  other.join();
  EXPECT_EQ(links[0]->losses(), 1);
  EXPECT_EQ(links[2]->losses(), 1);
}

/// A system that resets a connection has closed it; one that hears nothing says so.
TEST(TcpLink, TheErrorByWhichAConnectionEndsIsKept) {
  for (const bool reset : {false, true}) {
    SCOPED_TRACE(reset);
    auto [mine, theirs] = connection();
    std::vector<Socket> sockets(2);
    sockets[1] = std::move(mine);
    TcpLink link(0, std::move(sockets));
    const auto never = received(link, 1, 1, kSmall);
    const linger at_once = {reset, 0};
    ASSERT_EQ(setsockopt(theirs.file(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
    theirs = Socket();
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (link.losses() == 0 && std::chrono::steady_clock::now() < until)
      link.done(never->request);
    EXPECT_TRUE(link.lost(1));
    EXPECT_EQ(link.loss_errno(1), reset ? ECONNRESET : 0);
    link.cancel(never->request);
  }
}

/// A segment of two ranks is as long in a world of many, and waits for no answer there either.
TEST(TcpLink, ASegmentGoesAtOnceHoweverManyRanksThereAre) {
  auto [mine, theirs] = connection();
  std::vector<Socket> a(64), b(64);
  a[1] = std::move(mine), b[0] = std::move(theirs);
  TcpLink from(0, std::move(a)), to(1, std::move(b));
  const auto out = sent(from, 1, 1, static_cast<int>(kLongestSegment / sizeof(int)), 7);
  const auto until = std::chrono::steady_clock::now() + 20s;
  while (!from.done(out->request) && std::chrono::steady_clock::now() < until) {
    Request none = to.receive(Channel::Control, nullptr, 0, 0, 99);
    to.done(none), to.cancel(none);  // takes in what comes, and has no place for it
  }
  EXPECT_FALSE(out->request.pending);
}

TEST(TcpLink, AConnectionWatchesItsHost) {
  const auto [a, b] = connection();
  const auto option = [](const Socket& socket, int name) {
    int value = 0;
    socklen_t length = sizeof(value);
    EXPECT_EQ(getsockopt(socket.file(), IPPROTO_TCP, name, &value, &length), 0);
    return value;
  };
  EXPECT_EQ(option(a, TCP_NODELAY), 1);
  EXPECT_EQ(option(b, TCP_NODELAY), 1);
  for (const auto& [limit, idle] : {std::pair{60s, 15}, {1s, 1}, {1'000'000s, 32767}}) {
    watch_host(a, limit);
    EXPECT_EQ(option(a, TCP_KEEPIDLE), idle);
    EXPECT_EQ(option(a, TCP_KEEPINTVL), std::max(1, idle / 2));
  }
}

TEST(TcpLink, GathersWhatAllHave) {
  const auto links = ends(3);
  std::vector<std::thread> threads;
  for (int r = 0; r < 3; ++r) {
    threads.emplace_back([&, r] {
      TcpLink& link = *links[static_cast<std::size_t>(r)];
      int all[3] = {};
      const int mine = 10 + r;
      link.gather(&mine, all, sizeof(mine));
      for (int i = 0; i < 3; ++i) EXPECT_EQ(all[i], 10 + i);
      EXPECT_EQ(link.machine(), 0) << "one machine";
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tessera::process
