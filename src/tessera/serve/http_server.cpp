#include "tessera/serve/http_server.h"

#include <poll.h>
#include <signal.h>

#include <array>
#include <cerrno>

#include "tessera/base/start_thread.h"
#include "tessera/base/text.h"
#include "tessera/serve/api_error.h"

namespace tessera {

namespace {

using std::chrono::steady_clock;

constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr std::chrono::milliseconds kBetweenAccepts{50};

const char* reason(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 411: return "Length Required";
    case 413: return "Content Too Large";
    case 431: return "Request Header Fields Too Large";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    default: return "Internal Server Error";
  }
}

/// Appends what comes to `bytes`, at most `most` bytes. False: nothing comes any more, or not by
/// then, and `late` says which.
bool receive_more(const process::Socket& socket, std::string& bytes, std::size_t most,
                  process::Moment until, bool& late) {
  std::array<char, 16 << 10> piece;
  for (;;) {
    late = steady_clock::now() >= until || !process::await_socket(socket, false, until);
    if (late) return false;
    const ssize_t got = recv(socket.file(), piece.data(), std::min(piece.size(), most), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) return false;
    bytes.append(piece.data(), static_cast<std::size_t>(got));
    return true;
  }
}

}  // namespace

void HttpExchange::read_head() {
  const process::Moment until = steady_clock::now() + limits_.head_time;
  std::string bytes;
  std::size_t end = std::string::npos;
  for (std::size_t seen = 0; end == std::string::npos;) {
    if (bytes.size() >= limits_.head_bytes)
      throw ApiError(431, text("the head has more than ", limits_.head_bytes, " bytes"));
    bool late = false;
    if (!receive_more(socket_, bytes, limits_.head_bytes - bytes.size(), until, late))
      throw ApiError(late ? 408 : 400, late ? "the head has not come in time" : "no whole head");
    end = bytes.find(kHeadEnd, seen < kHeadEnd.size() ? 0 : seen - kHeadEnd.size());
    seen = bytes.size();
  }
  after_head_ = bytes.substr(end + kHeadEnd.size());
  bytes.resize(end + kHeadEnd.size());
  head_ = parse_http_head(bytes);
}

std::string HttpExchange::body() {
  const process::Moment until = steady_clock::now() + limits_.body_time;
  const std::size_t bytes = body_bytes(head_, limits_.body_bytes);
  std::string out = std::exchange(after_head_, {});
  if (out.size() > bytes) out.resize(bytes);
  if (out.size() < bytes && head_.find("expect") != nullptr) send("HTTP/1.1 100 Continue\r\n\r\n");
  while (out.size() < bytes) {
    bool late = false;
    if (!receive_more(socket_, out, bytes - out.size(), until, late))
      throw ApiError(late ? 408 : 400, text(out.size(), " of ", bytes, " bytes of the body came",
                                            late ? " in time" : ""));
  }
  return out;
}

bool HttpExchange::gone() const {
  pollfd file = {socket_.file(), POLLRDHUP, 0};
  return ::poll(&file, 1, 0) > 0 && (file.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

bool HttpExchange::send(const std::string& bytes) {
  return process::send_all(socket_, bytes.data(), bytes.size(),
                           steady_clock::now() + limits_.send_time);
}

void HttpExchange::send_json(int status, const std::string& json, const Fields& fields) {
  begun_ = true;
  std::string head = text("HTTP/1.1 ", status, " ", reason(status),
                          "\r\nContent-Type: application/json\r\nContent-Length: ", json.size() + 1,
                          "\r\nConnection: close\r\n");
  for (const auto& [name, value] : fields) head += text(name, ": ", value, "\r\n");
  send(head + "\r\n" + json + "\n");
}

void HttpExchange::begin_events() {
  begun_ = true;
  send(text("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n",
            head_.minor == 0 ? "" : "Transfer-Encoding: chunked\r\n", "Connection: close\r\n\r\n"));
}

bool HttpExchange::send_chunk(const std::string& bytes) {
  if (head_.minor == 0) return send(bytes);  // ends with the connection
  std::array<char, 20> size;
  const int digits = std::snprintf(size.data(), size.size(), "%zx\r\n", bytes.size());
  return send(std::string(size.data(), static_cast<std::size_t>(digits)) + bytes + "\r\n");
}

bool HttpExchange::send_event(std::string_view data) {
  return send_chunk(text("data: ", data, "\n\n"));
}

void HttpExchange::end_events() {
  if (head_.minor > 0) send("0\r\n\r\n");
}

HttpServer::HttpServer(process::Socket listener, Handler handler, const HttpLimits& limits)
    : listener_(std::move(listener)), handler_(std::move(handler)), limits_(limits) {
  // Signals are for the program's own threads; those that this one starts block them too.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = start_thread([this] { accept_all(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

HttpServer::~HttpServer() {
  stops_ = true;
  thread_.join();
  // Who reads a request hears that none comes; who writes an answer may end it.
  for (Connection& connection : connections_) shutdown(connection.socket.file(), SHUT_RD);
  for (Connection& connection : connections_) connection.thread.join();
}

void HttpServer::accept_all() {
  while (!stops_) {
    forget_done();
    if (!process::await_socket(listener_, false, steady_clock::now() + kBetweenAccepts)) continue;
    process::Socket socket = process::accept_next(listener_);
    if (socket.open())
      take(std::move(socket));
    else if (errno != 0)
      std::this_thread::sleep_for(kBetweenAccepts);  // no more files: one may be closed by then
  }
}

void HttpServer::take(process::Socket socket) {
  const auto refuse = [&](const process::Socket& who) {
    HttpExchange(who, {.send_time = std::chrono::milliseconds(0)})
        .send_json(503, dump(ApiError(503, "the server has too many connections").json()),
                   {{"Retry-After", "1"}});
  };
  if (connections_.size() >= limits_.connections) return refuse(socket);
  Connection& connection = connections_.emplace_back();
  connection.socket = std::move(socket);
  try {
    connection.thread = start_thread([this, &connection] { serve(connection); });
  } catch (const std::exception&) {
    refuse(connection.socket);
    connections_.pop_back();
  }
}

void HttpServer::serve(Connection& connection) {
  HttpExchange exchange(connection.socket, limits_);
  const auto refuse = [&](const ApiError& error) {
    if (!exchange.begun()) exchange.send_json(error.status(), dump(error.json()), error.fields);
  };
  try {
    exchange.read_head();
    handler_(exchange);
  } catch (const ApiError& error) {
    refuse(error);
  } catch (const std::exception& error) {
    refuse(ApiError(500, error.what()));
  }
  // What is still sent to a closed socket would make the system take back the answer.
  process::end_orderly(connection.socket, steady_clock::now() + std::chrono::seconds(1));
  connection.done = true;
}

void HttpServer::forget_done() {
  for (auto at = connections_.begin(); at != connections_.end();) {
    if (!at->done) {
      ++at;
      continue;
    }
    at->thread.join();
    at = connections_.erase(at);
  }
}

}  // namespace tessera
