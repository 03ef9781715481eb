#include "tessera/comm/process/tcp/sockets.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <future>
#include <memory>
#include <system_error>
#include <thread>

#include "tessera/base/start_thread.h"
#include "tessera/base/text.h"

namespace tessera::process {

namespace {

constexpr int kWaiting = 1024;  // connections that the system keeps until they are accepted

void set(const Socket& socket, int level, int option, int value) {
  setsockopt(socket.file(), level, option, &value, sizeof(value));
}

Socket new_socket(int family) {
  Socket out(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (out.open()) set(out, IPPROTO_TCP, TCP_NODELAY, 1);
  return out;
}

/// Closes it, and leaves errno as it is.
Socket closed(Socket socket) {
  const int number = errno;
  close(socket.release());
  errno = number;
  return socket;
}

/// Of an address of this family, or nullptr.
template <typename Address>
const Address* as(const Endpoint& endpoint, int family) {
  return endpoint.address.ss_family == family
             ? reinterpret_cast<const Address*>(&endpoint.address)  // as the system's calls do
             : nullptr;
}

sockaddr* raw(Endpoint& endpoint) { return reinterpret_cast<sockaddr*>(&endpoint.address); }
const sockaddr* raw(const Endpoint& endpoint) {
  return reinterpret_cast<const sockaddr*>(&endpoint.address);
}

/// An address of IPv4 as a socket of IPv6 has it, as what it is: other hosts may have no IPv6.
Endpoint as_four(const Endpoint& endpoint) {
  const auto* six = as<sockaddr_in6>(endpoint, AF_INET6);
  if (six == nullptr || !IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) return endpoint;
  Endpoint out;
  auto* four = reinterpret_cast<sockaddr_in*>(&out.address);
  four->sin_family = AF_INET;
  four->sin_port = six->sin6_port;
  std::memcpy(&four->sin_addr, &six->sin6_addr.s6_addr[12], sizeof(four->sin_addr));
  out.length = sizeof(*four);
  return out;
}

/// What the system says of a name.
struct Answer {
  int code = 0;  // of getaddrinfo
  std::vector<Endpoint> addresses;
  std::string why;  // there is none
};

Answer ask(const std::string& host, int flags) {
  Answer out;
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM, hints.ai_flags = flags;
  addrinfo* found = nullptr;
  out.code = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (out.code != 0) {
    out.why = out.code == EAI_SYSTEM ? error_text(errno) : gai_strerror(out.code);
    return out;
  }
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (one->ai_family != AF_INET && one->ai_family != AF_INET6) continue;
    Endpoint& endpoint = out.addresses.emplace_back();
    std::memcpy(&endpoint.address, one->ai_addr, one->ai_addrlen);
    endpoint.length = one->ai_addrlen;
  }
  freeaddrinfo(found);
  // Most of what listens for a name with addresses of both kinds listens on IPv4.
  std::stable_partition(out.addresses.begin(), out.addresses.end(),
                        [](const Endpoint& e) { return e.address.ss_family == AF_INET; });
  if (out.addresses.empty()) out.why = "it has no address";
  return out;
}

/// Name servers that do not answer keep a thread for as long as the system likes: it is left to
/// itself.
Answer ask_until(const std::string& host, Moment until) {
  if (until == Moment::max()) return ask(host, 0);
  const auto answer = std::make_shared<std::promise<Answer>>();
  std::future<Answer> answered = answer->get_future();
  // Signals are for the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    start_thread([answer, host] { answer->set_value(ask(host, 0)); }).detach();
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (answered.wait_until(until) == std::future_status::ready) return answered.get();
  Answer out;
  out.code = EAI_AGAIN, out.why = "no name server answers";
  return out;
}

}  // namespace

Socket::~Socket() {
  if (file_ >= 0) close(file_);
}

int Endpoint::port() const {
  if (const auto* four = as<sockaddr_in>(*this, AF_INET)) return ntohs(four->sin_port);
  if (const auto* six = as<sockaddr_in6>(*this, AF_INET6)) return ntohs(six->sin6_port);
  return 0;
}

void Endpoint::set_port(int port) {
  const in_port_t value = htons(static_cast<std::uint16_t>(port));
  if (auto* four = const_cast<sockaddr_in*>(as<sockaddr_in>(*this, AF_INET)))
    four->sin_port = value;
  if (auto* six = const_cast<sockaddr_in6*>(as<sockaddr_in6>(*this, AF_INET6)))
    six->sin6_port = value;
}

bool Endpoint::loopback() const {
  if (const auto* four = as<sockaddr_in>(*this, AF_INET))
    return ntohl(four->sin_addr.s_addr) >> 24 == 127;
  const auto* six = as<sockaddr_in6>(*this, AF_INET6);
  return six != nullptr &&
         (IN6_IS_ADDR_LOOPBACK(&six->sin6_addr) ||
          (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr) && six->sin6_addr.s6_addr[12] == 127));
}

bool Endpoint::valid() const {
  const bool four = address.ss_family == AF_INET && length == sizeof(sockaddr_in);
  const bool six = address.ss_family == AF_INET6 && length == sizeof(sockaddr_in6);
  return (four || six) && port() > 0;
}

std::string to_text(const Endpoint& endpoint) {
  std::array<char, NI_MAXHOST> host{};
  if (getnameinfo(raw(endpoint), endpoint.length, host.data(), host.size(), nullptr, 0,
                  NI_NUMERICHOST) != 0)
    return "an unknown address";
  std::string name = host.data();
  if (name.find(':') != std::string::npos) name = text("[", name, "]");
  return text(name, ":", endpoint.port());
}

PlainEndpoint plain(const Endpoint& endpoint) {
  PlainEndpoint out{};
  const Endpoint bare = as_four(endpoint);
  if (const auto* four = as<sockaddr_in>(bare, AF_INET)) {
    out[10] = out[11] = 0xff;  // as IPv6 writes an address of IPv4
    std::memcpy(&out[12], &four->sin_addr, sizeof(four->sin_addr));
  } else if (const auto* six = as<sockaddr_in6>(bare, AF_INET6)) {
    std::memcpy(out.data(), &six->sin6_addr, sizeof(six->sin6_addr));
  }
  out[16] = static_cast<unsigned char>(bare.port() >> 8);
  out[17] = static_cast<unsigned char>(bare.port() & 0xff);
  return out;
}

Endpoint local_end(const Socket& socket) {
  Endpoint out;
  out.length = sizeof(out.address);
  getsockname(socket.file(), raw(out), &out.length);
  return as_four(out);
}

Endpoint other_end(const Socket& socket) {
  Endpoint out;
  out.length = sizeof(out.address);
  getpeername(socket.file(), raw(out), &out.length);
  return as_four(out);
}

std::vector<Endpoint> addresses_of(const std::string& host, int port, std::string& why,
                                   Moment until) {
  Answer answer = ask(host, AI_NUMERICHOST);
  if (answer.code == EAI_NONAME) answer = ask_until(host, until);
  why = answer.why;
  for (Endpoint& endpoint : answer.addresses) endpoint.set_port(port);
  return answer.addresses;
}

bool means_this_host(const std::string& host) {
  const Answer number = ask(host, AI_NUMERICHOST);
  if (!number.addresses.empty()) return number.addresses.front().loopback();
  std::string name = host;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (name.ends_with('.')) name.pop_back();
  return name == "localhost" || name.ends_with(".localhost");
}

Socket listen_at(const Endpoint& where) {
  Socket out = new_socket(where.address.ss_family);
  if (!out.open()) return out;
  set(out, SOL_SOCKET, SO_REUSEADDR, 1);  // what an earlier run has closed may be used again
  if (bind(out.file(), raw(where), where.length) == 0 && listen(out.file(), kWaiting) == 0)
    return out;
  return closed(std::move(out));
}

Socket listen_here() {
  Endpoint here;
  auto* four = reinterpret_cast<sockaddr_in*>(&here.address);
  four->sin_family = AF_INET;
  four->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  here.length = sizeof(*four);
  return listen_at(here);
}

bool listens_at(int file, int port) {
  int listens = 0;
  socklen_t length = sizeof(listens);
  Endpoint own;
  own.length = sizeof(own.address);
  return getsockopt(file, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0 && listens != 0 &&
         getsockname(file, raw(own), &own.length) == 0 && own.port() == port;
}

Socket listen_anywhere(int port) {
  Endpoint six;
  auto* address = reinterpret_cast<sockaddr_in6*>(&six.address);
  address->sin6_family = AF_INET6;
  six.length = sizeof(sockaddr_in6);
  six.set_port(port);
  Socket out = new_socket(AF_INET6);
  if (out.open()) {
    set(out, SOL_SOCKET, SO_REUSEADDR, 1);
    set(out, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    if (bind(out.file(), raw(six), six.length) == 0 && listen(out.file(), kWaiting) == 0)
      return out;
    if (errno == EADDRINUSE || errno == EACCES) return closed(std::move(out));
  }
  Endpoint four;
  four.address.ss_family = AF_INET;
  four.length = sizeof(sockaddr_in);
  four.set_port(port);
  return listen_at(four);
}

Socket begin_connect(const Endpoint& to) {
  Socket out = new_socket(to.address.ss_family);
  if (!out.open() || connect(out.file(), raw(to), to.length) == 0 || errno == EINPROGRESS)
    return out;
  return closed(std::move(out));
}

int connected(const Socket& socket) {
  int number = 0;
  socklen_t length = sizeof(number);
  return getsockopt(socket.file(), SOL_SOCKET, SO_ERROR, &number, &length) == 0 ? number : errno;
}

Socket accept_next(const Socket& listener) {
  Socket out(accept4(listener.file(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (out.open()) {
    set(out, IPPROTO_TCP, TCP_NODELAY, 1);
    return out;
  }
  const int number = errno;  // it may also be that one which came has gone
  const bool want = out_of_files(number) || number == ENOBUFS || number == ENOMEM;
  // Of want the system speaks even where none has come.
  errno = want && await_socket(listener, false, Moment()) ? number : 0;
  return out;
}

bool out_of_files(int number) { return number == EMFILE || number == ENFILE; }

void allow_files(std::uint64_t count) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= count) return;
  limit.rlim_cur = std::min<rlim_t>(count, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
}

void watch_host(const Socket& socket, std::chrono::milliseconds limit) {
  // After a quiet quarter of the limit the system asks; three questions without an answer are a
  // death. TCP_USER_TIMEOUT is left alone: a rank that computes, and reads nothing for as long,
  // would look dead too.
  constexpr std::int64_t kLongest = 32767;  // seconds that Linux takes
  const int quarter = static_cast<int>(std::clamp<std::int64_t>(limit.count() / 4000, 1, kLongest));
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, quarter);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, std::max(1, quarter / 2));
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

void end_orderly(const Socket& socket, Moment until) {
  shutdown(socket.file(), SHUT_WR);
  std::array<char, 4096> nowhere;
  while (await_socket(socket, false, until)) {
    const ssize_t got = recv(socket.file(), nowhere.data(), nowhere.size(), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return;
    if (std::chrono::steady_clock::now() > until) return;
  }
}

bool await_socket(const Socket& socket, bool write, Moment until) {
  pollfd file = {socket.file(), static_cast<short>(write ? POLLOUT : POLLIN), 0};
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    const int count = poll(&file, 1, static_cast<int>(std::max<std::int64_t>(0, left.count())));
    if (count > 0) return true;
    if (left.count() <= 0) return false;
  }
}

bool send_all(const Socket& socket, const void* data, std::size_t bytes, Moment until) {
  const auto* at = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(socket.file(), at, bytes, MSG_NOSIGNAL);
    if (sent > 0) {
      at += sent, bytes -= static_cast<std::size_t>(sent);
    } else if (errno != EAGAIN && errno != EINTR) {
      return false;
    } else if (!await_socket(socket, true, until)) {
      errno = ETIMEDOUT;
      return false;
    }
  }
  return true;
}

bool receive_all(const Socket& socket, void* data, std::size_t bytes, Moment until) {
  auto* at = static_cast<std::byte*>(data);
  while (bytes > 0) {
    const ssize_t got = recv(socket.file(), at, bytes, 0);
    if (got > 0) {
      at += got, bytes -= static_cast<std::size_t>(got);
    } else if (got == 0) {
      errno = 0;
      return false;
    } else if (errno != EAGAIN && errno != EINTR) {
      return false;
    } else if (!await_socket(socket, false, until)) {
      errno = ETIMEDOUT;
      return false;
    }
  }
  return true;
}

std::string error_text(int number) {
  return number == 0 ? "it closed the connection" : std::generic_category().message(number);
}

}  // namespace tessera::process
