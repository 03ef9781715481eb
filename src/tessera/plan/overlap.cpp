#include "tessera/plan/overlap.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

#include "tessera/base/index.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/value_table.h"
#include "tessera/ops/collective.h"
#include "tessera/tensor/per_memory.h"

namespace tessera {

namespace {

class Overlap {
 public:
  explicit Overlap(const Program& program)
      : regions_(program.regions),
        time_(program),
        ends_in_order_(ActionOrder(program).ends_in_order()) {}

  Timeline run() {
    for (int r = 0; r < static_cast<int>(regions_.size()); ++r) {
      widen_exchanges(r);
      widen_copies(r);
      for (const Output& output : graph(r).outputs()) {
        if (output.kind == Output::Kind::Slot || output.kind == Output::Kind::Accumulate)
          filled_[output.name] = {r, output.value.node, output.kind == Output::Kind::Accumulate};
      }
    }
    return std::move(time_);
  }

 private:
  struct Filled {
    int region;
    NodeId node;
    bool summed;  // over micro-batches
  };

  const Graph& graph(int r) const { return regions_[at(r)].graph; }

  /// As wide as operands and readers allow, then narrowed where memory would be held. Copies to and
  /// from the host are taken to need no time: they are made wide around what is found here.
  void widen_exchanges(int r) {
    const ValueTable<std::int32_t> deadline = deadlines(r, /*through_copies=*/true);
    std::vector<Busy*> growing, shrinking;
    std::vector<NodeId> permutes;
    for (NodeId id = 0; id < graph(r).size(); ++id) {
      const Node& node = graph(r).node(id);
      if (node.op->part != nullptr) join(r, id);
      if (!node.op->traits.exchanges) continue;
      const std::int64_t in = graph(r).type(node.inputs[0]).bytes(), out = node.type().bytes();
      const bool in_place = node.op->in_place[0].result == 0;
      Busy& busy = time_.busy[at(r)][at(id)];
      if (node.op == &kPermute) permutes.push_back(id);
      if (in == out && !in_place) continue;
      const ValueId from = source(r, node.inputs[0]);
      const bool lies_there = in_place && from == node.inputs[0];
      std::int32_t first = ready(r, from, lies_there);
      for (const ValueId ids : std::span(node.inputs).subspan(1))
        first = std::max(first, ready(r, source(r, ids), false));
      busy = {first, std::max(first, deadline[{id, 0}])};
      if (!in_place) (out > in ? growing : shrinking).push_back(&busy);
    }
    start_one_ahead(growing, time_.begins[at(r)]);
    end_one_behind(shrinking);
    end_in_order(r, permutes);
  }

  /// Permutes in the order in which they start. Exchanges that read them were widened before, from
  /// where the permutes would end if they ended at once.
  void end_in_order(int r, std::span<const NodeId> permutes) {
    constexpr std::size_t kMost = 7;  // under way, fewer than Group::messages
    const ValueTable<std::int32_t> deadline = deadlines(r, /*through_copies=*/true);
    std::vector<Busy>& busy = time_.busy[at(r)];
    for (std::size_t i = permutes.size(); i-- > 0;) {
      std::int32_t last = deadline[{permutes[i], 0}];
      if (i + 1 < permutes.size()) last = std::min(last, busy[at(permutes[i + 1])].last);
      if (i + kMost < permutes.size()) last = std::min(last, busy[at(permutes[i + kMost])].first);
      Busy& mine = busy[at(permutes[i])];
      mine.last = std::max(mine.last, last);
    }
  }

  /// A bucket exists as soon as the last of its operands does. It is summed in place.
  void join(int r, NodeId id) {
    std::int32_t last = 0;
    for (const ValueId v : graph(r).node(id).inputs) {
      const ValueId from = source(r, v);
      last = std::max(last, ready(r, from, /*in_place=*/from == v));
    }
    time_.busy[at(r)][at(id)] = {last, last};
  }

  /// Widens copies from where their operands exist to where the first reader or exchange begins. A
  /// copy that is read in this region holds memory at its destination, another one at its source.
  void widen_copies(int r) {
    const ValueTable<std::int32_t> deadline = deadlines(r, /*through_copies=*/false);
    PerMemory<std::vector<Busy*>> read, unread;  // by where they go
    for (NodeId id = 0; id < graph(r).size(); ++id) {
      const Node& node = graph(r).node(id);
      if (node.op != &kCopy) continue;
      Busy& busy = time_.busy[at(r)][at(id)];
      // What is copied again is due when that is, though its exchange may have been made to end
      // later.
      const std::int32_t first = ready(r, node.inputs[0], /*in_place=*/false);
      busy = {first, std::max(first, deadline[{id, 0}])};
      const bool has_reader = busy.last < time_.ends[at(r)];
      (has_reader ? read : unread)[memory_of(node.results[0])].push_back(&busy);
    }
    for (const Memory memory : kMemories) {
      start_one_ahead(read[memory], time_.begins[at(r)]);
      end_one_behind(unread[memory]);
    }
  }

  /// Deadline of each value: its first reader, or the region's end. A value that another stage
  /// reads is sent as soon as it exists, because this stage may wait for that one.
  /// `through_copies`: a copy reads its operand when its result is read.
  ValueTable<std::int32_t> deadlines(int r, bool through_copies) const {
    ValueTable<std::int32_t> out(graph(r), time_.ends[at(r)]);
    for (const Output& output : graph(r).outputs()) {
      if (output.kind == Output::Kind::Send)
        out[output.value] = time_.of(r, output.value.node).first + 1;
    }
    for (NodeId id = graph(r).size(); id-- > 0;) {
      const Node& node = graph(r).node(id);
      const std::int32_t first = time_.of(r, id).first;
      const bool through = through_copies && node.op == &kCopy;
      const std::int32_t deadline = through ? out[{id, 0}] : first - first % 2;
      for (const ValueId v : node.inputs) out[v] = std::min(out[v], deadline);
    }
    return out;
  }

  /// The value that a copy, or a copy of a copy, was made from.
  ValueId source(int r, ValueId v) const {
    const Node& node = graph(r).node(v.node);
    return node.op == &kCopy ? source(r, node.inputs[0]) : v;
  }

  std::int32_t ready(int r, ValueId v, bool in_place) const {
    const Node& node = graph(r).node(v.node);
    if (node.op == &kSlot) {
      const Filled& slot = filled_.at(std::get<std::string>(node.attrs[0]));
      const bool loop_ends = regions_[at(r)].kind == RegionKind::Update && ends_in_order_ &&
                             in_loop(regions_[at(slot.region)].kind) && (in_place || !slot.summed);
      return loop_ends ? behind(time_.of(slot.region, slot.node)) : time_.begins[at(r)];
    }
    const bool input = node.op->traits.leaf && node.op != &kReceive;
    return input ? time_.begins[at(r)] : behind(time_.of(r, v.node));
  }

  /// The first even time at which the node's results are there.
  static std::int32_t behind(const Busy& busy) { return busy.last + busy.last % 2; }

  static void start_one_ahead(std::vector<Busy*>& transfers, std::int32_t begin) {
    std::ranges::stable_sort(transfers, {}, &Busy::last);
    std::int32_t ahead = begin, last = begin;
    for (Busy* busy : transfers) {
      if (busy->last > last) ahead = std::exchange(last, busy->last);
      busy->first = std::max(busy->first, ahead);
    }
  }

  static void end_one_behind(std::vector<Busy*>& transfers) {
    std::ranges::stable_sort(transfers, std::greater(), &Busy::first);
    std::int32_t next = std::numeric_limits<std::int32_t>::max(), first = next;
    for (Busy* busy : transfers) {
      if (busy->first < first) next = std::exchange(first, busy->first);
      busy->last = std::min(busy->last, next);
    }
  }

  const std::vector<Region>& regions_;
  Timeline time_;
  const bool ends_in_order_;
  std::unordered_map<std::string, Filled> filled_;  // slots, by name
};

}  // namespace

Timeline overlap(const Program& program) { return Overlap(program).run(); }

}  // namespace tessera
