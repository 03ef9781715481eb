#pragma once
/// What ranks write to each other beside the data itself.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "tessera/comm/backend/call.h"
#include "tessera/comm/collective.h"
#include "tessera/comm/group.h"

namespace tessera::process {

using backend::Number;
using backend::Seen;

enum Tag { kLetter = 1, kData, kReduced, kSendHeader, kNotice, kSendData };  // the last: and above

/// A hash of name and ranks: what a group is called in letters.
std::uint64_t id_of(const Group& group);

/// One call of one rank: what must agree, and the words where it does not.
struct Header {
  Number number = 0;  // of the group; of a send: of its mailbox
  std::uint64_t group = 0;
  std::uint64_t signature = 0;
  std::int64_t step = -1;
  std::uint64_t mail = 0;  // of a send: its number among all from this rank to the same one
  CollectiveKind kind{};
  DType dtype{};
  Monoid monoid{};
  std::int8_t gather = -1, scatter = -1, ndim = 0;
  std::int32_t peer = -1;
  std::array<std::int64_t, Shape::kMaxDims> whole{};
  std::array<char, 24> group_name{};  // cut
  std::array<char, 48> name{};        // cut

  void fill(const Collective& c, const Group& of, std::uint64_t group_id, Number call,
            std::int64_t at_step);
  bool agrees(const Header& other) const {
    return number == other.number && group == other.group && signature == other.signature;
  }
  /// What of it no rank writes, where it is not as fill() made it; empty: nothing. The rest is to
  /// be asked only of a header without one.
  std::string problem() const;
  Shape shape() const;
  Collective collective() const;
  /// Writes what others know of this rank by it.
  void show(Seen& seen) const;
};

/// To every other member of the group, at the beginning of a collective. A small operand comes
/// along, and then nothing more is sent.
struct Letter {
  static constexpr std::int64_t kInline = 2048;  // with the header below every eager limit
  Header header;
  std::array<std::byte, kInline> small;
};

/// To every other rank of the world, at most one of a kind, but for signs of life.
struct Notice {
  enum Kind : std::int32_t {
    Leaving,  // a call that others take part in was given up; why is not known yet
    Failed,   // the first cause, as far as this rank knows
    Ended,    // the body has returned or thrown
    Stop,     // this process was asked to stop
    Alive     // this rank works; comes without words
  };
  static constexpr int kKinds = 4;  // that are sent once
  Kind kind{-1};                    // as long as it is not written
  std::int32_t rank = 0;
  std::int32_t fault = 0;
  std::uint8_t told_by_others = 0;  // that the world has stopped
  std::array<char, 1500> words{};   // cut; of Ended: where the rank was

  void write(const std::string& text);
  /// What of it no rank of a world of `ranks` writes; empty: nothing.
  std::string problem(int ranks) const;
};

}  // namespace tessera::process
