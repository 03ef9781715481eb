#pragma once
/// Sockets of TCP: how they are made, named and waited for. None of them blocks, and what is
/// written goes at once, however small it is.

#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tessera::process {

/// An open file, closed with its owner.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int file) : file_(file) {}
  Socket(Socket&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~Socket();
  int file() const { return file_; }
  bool open() const { return file_ >= 0; }
  /// The file, which is the caller's to close from now on.
  int release() { return std::exchange(file_, -1); }

 private:
  int file_ = -1;
};

/// An address with its port.
struct Endpoint {
  sockaddr_storage address = {};
  socklen_t length = 0;

  int port() const;
  void set_port(int port);
  bool loopback() const;
  /// An address of IPv4 or IPv6 with a port: one from elsewhere may be anything.
  bool valid() const;
};
/// "10.0.0.1:4711", "[fe80::1]:4711"
std::string to_text(const Endpoint& endpoint);

/// An address and port in bytes, alike on both ends of a connection: without what an address means
/// on one host alone, as the zone of one of IPv6.
using PlainEndpoint = std::array<unsigned char, 24>;
PlainEndpoint plain(const Endpoint& endpoint);

Endpoint local_end(const Socket& socket);
Endpoint other_end(const Socket& socket);

using Moment = std::chrono::steady_clock::time_point;

/// All addresses of a host, by name or number. Empty: it has none, and `why` says so; or the name
/// servers have not answered by `until`.
std::vector<Endpoint> addresses_of(const std::string& host, int port, std::string& why,
                                   Moment until = Moment::max());

/// True of what can mean this host alone, however it is spelled: a number of the loopback, as
/// 127.0.0.1, 127.1 and 0:0:0:0:0:0:0:1, and the names localhost and x.localhost (RFC 6761). Not of
/// another name whose address is of the loopback here: Debian gives a host's own name 127.0.1.1,
/// and other hosts reach it by that name.
bool means_this_host(const std::string& host);

/// Listens at `where`. Not open: errno says why.
Socket listen_at(const Endpoint& where);
/// Listens at every address of this host, of IPv6 and IPv4 where it has both.
Socket listen_anywhere(int port);
/// Listens at a port that the system picks, for this host alone: 127.0.0.1.
Socket listen_here();
/// True of a file, of whoever opened it, that listens at this port.
bool listens_at(int file, int port);

/// Begins to connect; the socket can be written once that is done. Not open: errno says why.
Socket begin_connect(const Endpoint& to);
/// What became of it, when it can be written: 0, or an errno.
int connected(const Socket& socket);
/// The next connection that has come. Not open: none has, and errno is 0, or it says why none can
/// be taken, as EMFILE does.
Socket accept_next(const Socket& listener);
/// True where this process, or the system, can open no more files.
bool out_of_files(int number);
/// The remedy of that.
inline constexpr const char* kMoreFiles = "raise the limit of open files (ulimit -n)";
/// Raises this process's limit of open files to `count`, or as far as the system lets it.
void allow_files(std::uint64_t count);

/// A host that vanishes while nothing is sent is noticed within `limit`, but not within less than
/// 4 s, and within a day at most.
void watch_host(const Socket& socket, std::chrono::milliseconds limit);
/// Says that nothing more follows, and reads until the other side has closed too, or until then: a
/// socket that is closed with bytes to be read may lose what it has sent.
void end_orderly(const Socket& socket, Moment until);

/// Waits until `socket` can be read (or written), or until then. False: the time is over.
bool await_socket(const Socket& socket, bool write, Moment until);
/// Sends all of it, or says by errno why not; ETIMEDOUT: the time is over.
bool send_all(const Socket& socket, const void* data, std::size_t bytes, Moment until);
/// Receives all of it. False by errno; 0 there means that the other side has closed.
bool receive_all(const Socket& socket, void* data, std::size_t bytes, Moment until);

/// The system's words.
std::string error_text(int number);

}  // namespace tessera::process
