#include "tessera/serve/http_server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>

#include "tessera/base/text.h"
#include "tessera/serve/api_error.h"

namespace tessera {
namespace {

using namespace std::chrono_literals;
using process::Socket;

/// Answers with what it was sent, or in events.
void echo(HttpExchange& exchange) {
  if (exchange.head().path == "/fails") throw std::runtime_error("it failed");
  if (exchange.head().method == "GET") {
    exchange.begin_events();
    for (const char* event : {"one", "two"}) exchange.send_event(event);
    return exchange.end_events();
  }
  exchange.send_json(200, text("\"", exchange.body(), "\""));
}

class HttpServerTest : public testing::Test {
 protected:
  /// A server whose times are short.
  HttpServer& serve(HttpServer::Handler handler = echo) {
    Socket listener = process::listen_here();
    at_ = process::local_end(listener);
    return server_.emplace(std::move(listener), std::move(handler), limits_);
  }
  Socket call(const std::string& bytes) {
    Socket out = process::begin_connect(at_);
    EXPECT_TRUE(process::await_socket(out, true, soon()));
    EXPECT_TRUE(process::send_all(out, bytes.data(), bytes.size(), soon()));
    return out;
  }
  /// All that comes until the end of the connection.
  std::string heard(const Socket& socket) {
    std::string out;
    std::array<char, 4096> piece;
    while (process::await_socket(socket, false, soon())) {
      const ssize_t got = recv(socket.file(), piece.data(), piece.size(), 0);
      if (got <= 0) break;
      out.append(piece.data(), static_cast<std::size_t>(got));
    }
    return out;
  }
  std::string answer(const std::string& bytes) { return heard(call(bytes)); }
  static process::Moment soon() { return std::chrono::steady_clock::now() + 20s; }

  HttpLimits limits_ = {.head_bytes = 1000,
                        .body_bytes = 1000,
                        .connections = 4,
                        .head_time = 200ms,
                        .body_time = 200ms,
                        .send_time = 200ms};
  process::Endpoint at_;
  std::optional<HttpServer> server_;
};

std::string post(const std::string& body) {
  return text("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
}

TEST_F(HttpServerTest, OneRequestOneAnswer) {
  serve();
  EXPECT_EQ(answer(post("abc")),
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 6\r\n"
            "Connection: close\r\n\r\n\"abc\"\n");
  // A second one on the same connection is not answered.
  EXPECT_EQ(answer(post("a") + post("b")).find("b\""), std::string::npos);
  const std::string expects =
      "POST / HTTP/1.1\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n";
  const Socket waits = call(expects);
  EXPECT_TRUE(process::await_socket(waits, false, soon()));
  EXPECT_TRUE(process::send_all(waits, "z", 1, soon()));
  EXPECT_EQ(heard(waits).substr(0, 40), "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK");
}

TEST_F(HttpServerTest, EventsInChunksOrToTheEnd) {
  serve();
  EXPECT_TRUE(answer("GET / HTTP/1.1\r\n\r\n")
                  .ends_with("\r\n\r\nb\r\ndata: one\n\n\r\nb\r\ndata: two\n\n\r\n0\r\n\r\n"));
  EXPECT_TRUE(answer("GET / HTTP/1.0\r\n\r\n").ends_with("\r\n\r\ndata: one\n\ndata: two\n\n"));
}

TEST_F(HttpServerTest, FailuresAreAnswers) {
  serve();
  const auto status = [](const std::string& answer) { return answer.substr(9, 3); };
  EXPECT_EQ(status(answer("nonsense\r\n\r\n")), "400");
  EXPECT_EQ(status(answer("GET / HTTP/1.1\r\nA: " + std::string(2000, 'a'))), "431");
  EXPECT_EQ(status(answer(post(std::string(1001, 'a')))), "413");
  EXPECT_EQ(status(answer("POST /fails HTTP/1.1\r\n\r\n")), "500");
  EXPECT_EQ(status(answer("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")),
            "411");
}

TEST_F(HttpServerTest, TheSlowAreNotWaitedFor) {
  serve();
  EXPECT_EQ(answer("GET / HTTP/1.1\r\n").substr(0, 12), "HTTP/1.1 408");
  EXPECT_EQ(answer("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab").substr(0, 12), "HTTP/1.1 408");
  // A letter now and then does not make it longer.
  const Socket slow = call("GET / HT");
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 100 && send(slow.file(), "x", 1, MSG_NOSIGNAL) == 1; ++i) {
    if (process::await_socket(slow, false, std::chrono::steady_clock::now() + 50ms)) break;
  }
  EXPECT_EQ(heard(slow).substr(0, 12), "HTTP/1.1 408");
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
}

TEST_F(HttpServerTest, MoreConnectionsThanMayBeAreRefused) {
  limits_.head_time = 10s;
  serve();
  std::vector<Socket> idle;
  for (int i = 0; i < 4; ++i) idle.push_back(call("GET"));
  EXPECT_EQ(heard(call("")).substr(0, 12), "HTTP/1.1 503");
  idle.clear();  // they go, and others may come
  for (int i = 0; i < 100; ++i) {
    if (answer(post("abc")).starts_with("HTTP/1.1 200")) return;
    std::this_thread::sleep_for(50ms);
  }
  ADD_FAILURE() << "no connection became free";
}

TEST_F(HttpServerTest, AHandlerSeesWhoIsGoneAndTheEndOfTheServer) {
  std::atomic<int> waits = 0, gone = 0;
  serve([&](HttpExchange& exchange) {
    ++waits;
    while (!exchange.gone()) std::this_thread::sleep_for(10ms);
    ++gone;
  });
  {
    const Socket client = call(post("a"));
    while (waits < 1) std::this_thread::sleep_for(10ms);
  }
  while (gone < 1) std::this_thread::sleep_for(10ms);
  const Socket stays = call(post("a"));
  while (waits < 2) std::this_thread::sleep_for(10ms);
  server_.reset();
  EXPECT_EQ(gone, 2);
}

}  // namespace
}  // namespace tessera
