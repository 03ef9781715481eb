#pragma once
/// What ranks write to each other while they meet. All processes of a world run on machines of one
/// kind, so values are sent as they lie in memory; another layout does not get past the greeting.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/comm/process/tcp/sockets.h"

namespace tessera::process {

/// Raised with every change of what ranks send each other.
inline constexpr std::uint32_t kProtocol = 4;
inline constexpr std::array<char, 16> kMagic = {'\x89', 't', 'e', 's', 's', 'e',  'r',  'a',
                                                ' ',    'r', 'a', 'n', 'k', '\r', '\n', '\x1a'};

/// The first bytes of every connection. Never changed, so that ranks of two versions can tell
/// whether they are of one run.
struct Greeting {
  std::array<char, 16> magic = kMagic;
  std::uint32_t protocol = kProtocol;
  std::uint32_t layout = 0;  // of what ranks send each other later: a hash of its sizes
  std::int32_t rank = 0, size = 0;
  std::uint64_t world = 0;  // a number that rank 0 drew; 0: not met yet
  std::int32_t port = 0;    // at which this rank listens
  std::int32_t unused = 0;
  std::array<char, 64> run{};  // cut
};

/// Between rank 0 and another (line.h), and at the beginning of every connection (introduce.h).
struct Word {
  enum Kind : std::uint32_t {
    Table,    // all addresses follow, and the number of the world
    Ready,    // this rank has all its connections
    Go,       // all have
    Trouble,  // this rank cannot go on: the reason follows
    Refusal,  // nobody goes on: the reason follows
    Answer,   // to an opening: introduce.h
    Welcome   // this rank is known now
  };
  std::array<char, 16> magic = kMagic;
  Kind kind = Table;
  std::int32_t fault = 0;   // of Trouble and Refusal
  std::int32_t speaks = 0;  // of Refusal: the one who gets it tells the reason
  std::uint32_t bytes = 0;  // that follow
};

Word word_of(Word::Kind kind, Fault fault, bool speaks);
/// Writes a word with the text that follows, in one piece. False by errno.
bool say(const Socket& to, Word::Kind kind, const std::string& rest, Moment until,
         Fault fault = Fault::Peer, bool speaks = false);
/// Of a table of many thousand ranks; and of those who have not proved that they are of this run.
inline constexpr std::uint32_t kMostWords = 64 << 20, kMostOfUnproved = 4096;
/// Reads one. False by errno; EPROTO: what comes is none, or has more than `most` bytes. What was
/// read of it by then is there.
bool hear(const Socket& from, Word& word, std::string& rest, Moment until,
          std::uint32_t most = kMostWords);
/// Whether it begins a word of at most so many bytes. Its kind, its fault may be none that there
/// is.
bool is_word(const Word& word, std::uint32_t most);

/// What rank 0 tells the others: a number that it drew for the world, and where each rank listens.
struct Table {
  std::uint64_t world = 0;
  // Of rank 0: where others dial its host, if that is no address that the host itself has.
  std::vector<Endpoint> listens;
};
std::string to_text(const Table& table);
/// Reads it at rank `rank` of `ranks`, which needs the addresses of those between 0 and itself.
/// `who` is that rank, for messages. Errors: Fault::Peer.
Table read_table(std::string_view bytes, int rank, int ranks, const std::string& who);

/// The fault of a word; Fault::Peer where it is none that there is.
Fault fault_of(std::int32_t number);

}  // namespace tessera::process
