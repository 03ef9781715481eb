#include "tessera/hlo/start_order.h"

#include <algorithm>
#include <set>
#include <span>

#include "tessera/base/error.h"
#include "tessera/base/index.h"

namespace tessera::hlo {

namespace {

/// One stage on its way through its actions.
struct StageInOrder {
  int stage = 0;
  std::span<const Piece> pieces;
  std::span<const Action> actions;
  std::size_t action = 0, piece = 0;  // that are next

  bool done() const { return action == actions.size(); }

  /// Adds what can start before a message is missing.
  void advance(std::set<ValueKey>& sent, std::vector<Start>& out) {
    for (; !done(); ++action, piece = 0) {
      const auto& [region, chunk, microbatch] = actions[action];
      for (; piece < pieces.size(); ++piece) {
        const Piece& next = pieces[piece];
        if (next.region != region || next.chunk != chunk) continue;
        const Start start{stage, static_cast<int>(piece), microbatch};
        const auto there = [&](const Port& port) {
          return port.kind != Port::Kind::Message || sent.contains(key_of(port, start));
        };
        if (!std::ranges::all_of(next.module.arguments, there)) return;
        for (const Port& port : next.module.results) {
          if (port.kind == Port::Kind::Message) sent.insert(key_of(port, start));
        }
        out.push_back(start);
      }
    }
  }
};

bool is_handed_on(const Port& port) {
  using Kind = Port::Kind;
  return port.kind == Kind::Slot || port.kind == Kind::Message || port.kind == Kind::Sum;
}

}  // namespace

ValueKey key_of(const Port& port, const Start& start) {
  const bool own = port.each_microbatch || port.kind == Port::Kind::Microbatch;
  return {port.kind == Port::Kind::Message ? port.to : start.stage, port.kind, port.name,
          own ? start.microbatch : -1};
}

std::vector<Start> start_order(const std::vector<std::vector<Piece>>& pieces,
                               const std::vector<Actions>& actions) {
  std::vector<StageInOrder> stages;
  for (std::size_t s = 0; s < pieces.size(); ++s)
    stages.push_back({static_cast<int>(s), pieces[s], actions[s]});
  std::set<ValueKey> sent;
  std::vector<Start> out;
  std::size_t before = 0;
  do {
    before = out.size();
    for (StageInOrder& stage : stages) stage.advance(sent, out);
  } while (out.size() > before);
  for (const StageInOrder& stage : stages) check(stage.done(), "stages wait for each other");
  std::set<ValueKey> read;
  for (auto start = out.rbegin(); start != out.rend(); ++start) {
    const std::vector<Port>& arguments =
        pieces[at(start->stage)][at(start->piece)].module.arguments;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (is_handed_on(arguments[i]) && read.insert(key_of(arguments[i], *start)).second)
        start->last.push_back(static_cast<int>(i));
    }
  }
  return out;
}

}  // namespace tessera::hlo
