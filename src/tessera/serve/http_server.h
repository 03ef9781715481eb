#pragma once
/// A server of HTTP: one request for each connection, bounded in bytes, time and number.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tessera/comm/process/tcp/sockets.h"
#include "tessera/serve/http_head.h"

namespace tessera {

struct HttpLimits {
  std::size_t head_bytes = 16 << 10, body_bytes = 4 << 20;
  std::size_t connections = 64;
  /// For the whole head, for the whole body, and for each piece that is sent.
  std::chrono::milliseconds head_time{10'000}, body_time{30'000}, send_time{30'000};
};

/// A request, and the way to answer it once.
class HttpExchange {
 public:
  using Fields = std::vector<std::pair<std::string, std::string>>;
  HttpExchange(const process::Socket& socket, const HttpLimits& limits)
      : socket_(socket), limits_(limits) {}

  /// The first call on it. Errors: ApiError.
  void read_head();
  const HttpHead& head() const { return head_; }
  /// Errors: as of body_bytes; ApiError 400, 408: less than that comes, or too late.
  std::string body();
  /// True where the client has gone, which hears nothing any more.
  bool gone() const;

  void send_json(int status, const std::string& json, const Fields& fields = {});
  /// An answer in pieces: what follows are server-sent events, until the exchange ends.
  void begin_events();
  /// False: the client takes no more.
  bool send_event(std::string_view data);
  void end_events();
  bool begun() const { return begun_; }

 private:
  bool send(const std::string& bytes);
  bool send_chunk(const std::string& bytes);

  const process::Socket& socket_;
  const HttpLimits& limits_;
  HttpHead head_;
  std::string after_head_;
  bool begun_ = false;
};

class HttpServer {
 public:
  /// Called on a thread of each connection, for requests whose head is one. An ApiError is the
  /// answer, if it has not begun; any other exception is one of 500.
  using Handler = std::function<void(HttpExchange&)>;
  /// From now on it answers. Errors: Fault::Resource: no thread can be started.
  HttpServer(process::Socket listener, Handler handler, const HttpLimits& limits = {});
  /// Takes no more connections, closes those that it has, and waits for their handlers.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

 private:
  struct Connection {
    process::Socket socket;
    std::thread thread;
    std::atomic<bool> done = false;
  };
  void accept_all();
  void take(process::Socket socket);
  void serve(Connection& connection);
  void forget_done();

  process::Socket listener_;
  Handler handler_;
  HttpLimits limits_;
  std::atomic<bool> stops_ = false;
  std::list<Connection> connections_;  // of the thread that accepts
  std::thread thread_;
};

}  // namespace tessera
