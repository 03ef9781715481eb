#pragma once
/// Which region and which stage computes each node of a placed graph, and what stages tell each
/// other. For partition.cpp.

#include <tuple>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/schedule/pipeline.h"

namespace tessera {

/// A value that one stage has and another one reads. In the loop it goes from chunk to chunk, once
/// per micro-batch, and the regions on both sides are of one kind; in Begin and Update it goes from
/// stage to stage.
struct Message {
  ValueId value;
  RegionKind region = RegionKind::Forward;
  int giver = 0, taker = 0;
  friend bool operator<(const Message& a, const Message& b) {
    return std::tie(a.region, a.giver, a.taker, a.value) <
           std::tie(b.region, b.giver, b.taker, b.value);
  }
};

class NodeRegions {
 public:
  /// Errors: as partition's.
  NodeRegions(const Graph& placed, const Pipeline& pipeline);

  RegionKind kind(NodeId id) const { return kind_[static_cast<std::size_t>(id)]; }
  /// -1: every stage that needs it computes it.
  int chunk(NodeId id) const { return chunk_[static_cast<std::size_t>(id)]; }
  bool computed_on(int stage, NodeId id) const {
    return on_[static_cast<std::size_t>(stage)][static_cast<std::size_t>(id)];
  }
  /// In order.
  const std::vector<Message>& messages() const { return messages_; }

 private:
  void find_updates();
  void find_kinds();
  void find_weights();
  void find_stages();
  void find_messages();
  int stage_of(NodeId id) const { return chunk(id) < 0 ? -1 : pipeline_.stage_of(chunk(id)); }
  bool is_late(NodeId id) const;
  bool hands_out(int stage, std::size_t output) const;
  void tell(ValueId v, RegionKind reader, int chunk, int stage);

  const Graph& graph_;
  const Pipeline& pipeline_;
  std::vector<NodeId> updates_;  // per output: the state whose next value it is; -1: none
  std::vector<RegionKind> kind_;
  std::vector<int> chunk_;
  std::vector<bool> late_;             // a sum of terms that several regions of the loop have
  std::vector<std::vector<bool>> on_;  // by stage
  std::vector<Message> messages_;
};

}  // namespace tessera
