#pragma once
/// The order in which one thread starts the pieces of all stages, and what each leaves.

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "tessera/hlo/modules.h"

namespace tessera::hlo {

/// A piece that starts for a micro-batch.
struct Start {
  int stage = 0, piece = 0;
  std::int64_t microbatch = 0;
  /// Of its arguments: slots, messages and sums that nothing reads behind it.
  std::vector<int> last = {};
};

/// Which value a port of a piece that starts is.
struct ValueKey {
  int stage = 0;  // that has it: of a message the one that receives
  Port::Kind kind = Port::Kind::State;
  std::string name;
  std::int64_t microbatch = -1;  // -1: it is none's own
  friend auto operator<=>(const ValueKey&, const ValueKey&) = default;
};
ValueKey key_of(const Port& port, const Start& start);

/// Every stage runs its actions in order, each action its pieces in order, and a piece waits for its
/// messages. Whatever can start does so at once: pieces run in that order on their devices.
/// `pieces`, `actions`: by stage.
/// Errors: Broken: stages wait for each other.
std::vector<Start> start_order(const std::vector<std::vector<Piece>>& pieces,
                               const std::vector<Actions>& actions);

}  // namespace tessera::hlo
