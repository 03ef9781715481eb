#pragma once
/// A connection between two ranks that have proved themselves, while the ranks of a world meet.
///
/// Each word has a keyed hash of it, of who says it and of how many that side has said before. So
/// nobody between the hosts can change a word, leave one out, repeat it or send it to another.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tessera/comm/process/tcp/meeting_words.h"
#include "tessera/comm/process/tcp/secret.h"
#include "tessera/comm/process/tcp/sockets.h"

namespace tessera::process {

class Line {
 public:
  enum class Side { Caller, Listener };

  Line() = default;
  /// `key` is of this connection alone (Said::key), `side` that of this rank.
  Line(Socket socket, const Secret& key, Side side)
      : socket_(std::move(socket)), key_(key), side_(side) {}
  const Socket& socket() const { return socket_; }
  int file() const { return socket_.file(); }
  bool open() const { return socket_.open(); }
  Socket release() { return std::move(socket_); }

  /// As the function of that name.
  bool say(Word::Kind kind, const std::string& rest, Moment until, Fault fault = Fault::Peer,
           bool speaks = false);
  /// The same. EBADMSG: what has come was not said so by the other side; never EPROTO. What was not
  /// heard whole is an empty word of the kind Table.
  bool hear(Word& word, std::string& rest, Moment until);

 private:
  Proof proof(Side speaker, std::uint64_t before, const std::string& word) const;

  Socket socket_;
  Secret key_;
  Side side_ = Side::Caller;
  std::uint64_t said_ = 0, heard_ = 0;
};

/// What EBADMSG means, for messages: "what came from rank 2 was changed on its way: use ..."
std::string changed_text(const std::string& who);

/// Of all ranks, for what they say once they have met.
std::vector<Socket> sockets_of(std::vector<Line>& ranks);

}  // namespace tessera::process
