#pragma once
/// How tests let ranks meet over TCP: threads as ranks, on ports that the system picks.

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "comm/outcome.h"
#include "tessera/base/error.h"
#include "tessera/comm/process/tcp/introduce.h"
#include "tessera/comm/process/tcp/meeting.h"
#include "tessera/comm/process/tcp/meeting_words.h"
#include "tessera/comm/processes.h"

namespace tessera::process {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

inline int free_port_here() { return local_end(listen_here()).port(); }

inline Rendezvous place(int rank, int size, int port) {
  return {rank, size, "localhost", port, "run 7", "PORT", -1, Secret("a secret of these tests")};
}

/// What each of some processes ends with: "met", "silent: ..." where another rank tells, or words.
/// Process i comes after delays[i], if there is one.
inline std::vector<std::string> meet_all(
    const std::vector<Rendezvous>& places, std::chrono::milliseconds limit = 20s,
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

/// What a test ends with whose ranks wait for their whole limit, or may: with a longer one while a
/// busy machine does not get as far as `words` of the first within it.
inline std::vector<std::string> ends_within(
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
inline bool comes(const std::function<bool()>& so, std::chrono::milliseconds limit = 20s) {
  const Moment until = steady_clock::now() + limit;
  while (!so()) {
    if (steady_clock::now() > until) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

/// Connects to a port as soon as somebody listens, says something, and hears what is answered.
inline std::string answer_at(int port, const void* words, std::size_t bytes,
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
inline Socket connection_to(int port) {
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
inline std::string heard_at(int port, const Greeting& greeting) {
  const Moment until = steady_clock::now() + 10s;
  Reception how = introduce(connection_to(port), greeting, place(0, 2, port).secret, until);
  std::string out = how.reason;
  for (char c = 0; how.line.open() && receive_all(how.line.socket(), &c, 1, until);) out += c;
  return out;
}

/// The part of who listens, for a stand-in of rank 0; `from` is who has come.
inline Line receive_caller(Socket caller, Moment until, Greeting* from = nullptr) {
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
inline void say_anything(const Line& to, Word::Kind kind) {
  const std::string hash(sizeof(Proof), '?');
  say(to.socket(), kind, hash, steady_clock::now() + 1s);
  await_socket(to.socket(), false, steady_clock::now() + 10s);
}

}  // namespace tessera::process
