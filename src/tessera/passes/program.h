#pragma once
/// Programs: what one rank runs in a step, as graphs and an order of them.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/ir/graph.h"
#include "tessera/schedule/pipeline.h"

namespace tessera {

/// The bytes that cross an edge of the pipeline for each micro-batch, on each rank.
struct EdgeBytes {
  Edge edge;
  std::int64_t bytes = 0;
  friend bool operator==(const EdgeBytes&, const EdgeBytes&) = default;
};

/// True of the regions that every micro-batch runs.
constexpr bool in_loop(RegionKind kind) {
  return kind != RegionKind::Begin && kind != RegionKind::Update;
}

/// A part of a step: Begin, Update, or what a chunk of the model does for one micro-batch.
struct Region {
  RegionKind kind = RegionKind::Forward;
  int chunk = 0;
  Graph graph;
};

/// The index of the region of that kind and chunk among some that have both. Errors: Broken where
/// there is none.
template <typename Regions>
int region_index(const Regions& regions, RegionKind kind, int chunk) {
  const auto found = std::ranges::find_if(
      regions, [&](const auto& region) { return region.kind == kind && region.chunk == chunk; });
  check(found != regions.end(), "no region ", to_text(kind), " of chunk ", chunk);
  return static_cast<int>(found - regions.begin());
}

/// Regions in an order in which they could run, Begin first and Update last, and the actions, each
/// a run of one region, in the order in which they do run. A value that a region hands to a later
/// one is an output there, Slot or Accumulate, and a slot of that name here.
struct Program {
  /// A value that one stage sends to another: an output Send there, received here, by one name.
  struct Message {
    std::string name;
    int from = 0, to = 0;    // stages
    std::int64_t ahead = 0;  // in the loop: how many micro-batches early its receive is posted
  };
  std::vector<Region> regions;
  Actions actions;                // each region takes micro-batches in order
  std::vector<Message> messages;  // of this stage; in an order that all stages share
  std::vector<EdgeBytes> edges;   // of all stages, in order, each once
  /// Depth of each slot that the loop fills and reads: for how many micro-batches it holds a value
  /// at a time. The value of micro-batch k is in place k % depth.
  std::map<std::string, std::int64_t> rings;

  /// Errors: Broken where this stage has no message of that name.
  const Message& message(std::string_view name) const;
  const Mesh& mesh() const { return regions[0].graph.mesh(); }
  int index_of(RegionKind kind, int chunk = 0) const;
  const Graph& graph(RegionKind kind, int chunk = 0) const;
  /// "forward"; "forward2" where the rank has several chunks.
  std::string name_of(const Region& region) const;
};

/// True of a value that is partial along the micro-batch axis: an accumulator takes it.
bool accumulates(const Result& result);
/// How micro-batches combine in a value that leaves as Output::Accumulate: by the reduction that
/// its placement leaves unfinished. Errors: it leaves none unfinished.
Monoid reduction_over_time(const Result& result);

/// The order of a program's actions, for values that one region of the loop fills and others read,
/// each for its own micro-batch. Regions are given by index.
class ActionOrder {
 public:
  explicit ActionOrder(const Program& program);

  /// For how many micro-batches such a value is there at a time, from the action that fills it to
  /// the last that reads it. `ahead`: the receive of micro-batch k is posted when the
  /// action of micro-batch k - ahead begins.
  std::int64_t depth(int fill, const std::set<int>& readers, std::int64_t ahead = 0) const;
  /// True where between those actions only regions run that lie between them.
  bool in_turn(int fill, const std::set<int>& readers) const;
  /// True where the last runs of the loop's regions come in the order of the regions.
  bool ends_in_order() const;

 private:
  std::size_t last_run(const std::set<int>& readers, std::size_t microbatch) const;

  std::vector<int> region_;                     // by action
  std::vector<std::vector<std::size_t>> runs_;  // actions, by region and micro-batch
};

/// The rings that the actions of a program need, from the graphs of its regions: as deep as the
/// values are that are alive at once, from the action that fills the slot to the last that reads.
std::map<std::string, std::int64_t> find_rings(const Program& program);

/// Begin, the actions of one stage, and Update.
Actions whole_step(const Actions& stage);

}  // namespace tessera
