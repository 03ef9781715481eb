#pragma once
/// The regions of one stage while they are built, and what each of them knows. For partition.cpp.

#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "tessera/ir/builder.h"
#include "tessera/ir/strategy.h"
#include "tessera/ir/value_table.h"
#include "tessera/passes/node_regions.h"
#include "tessera/passes/program.h"

namespace tessera {

class StageRegions {
 public:
  /// Values that the stage sends and does not compute are in its regions from the begin. `regions`
  /// are those of the same graph and pipeline; all arguments outlive this object.
  StageRegions(const Graph& placed, const Pipeline& pipeline, const NodeRegions& regions,
               int stage);

  int count() const { return static_cast<int>(program_.regions.size()); }
  int update() const { return count() - 1; }
  Builder& builder(int region) { return *builders_[static_cast<std::size_t>(region)]; }
  /// The region's value for a value of the placed graph; not valid if the region does not have it.
  Value& known(ValueId v, int region) { return known_[static_cast<std::size_t>(region)][v]; }

  bool computes(NodeId id) const { return of_.computed_on(stage_, id); }
  int region_of(NodeId id) const { return index_of(of_.kind(id), of_.chunk(id)); }
  /// Does another stage compute it?
  bool arrives(ValueId v) const;
  /// The region that has the value first: that computes it, or, for who reads it in region `to`,
  /// that receives it.
  int home(ValueId v, int to) const;

  /// The value inside region `to`: computed there, an input of it, a slot that an earlier region
  /// fills, or received from another stage.
  Value import(ValueId v, int to);

  /// A result as it lies on a rank, and in that region: sums over micro-batches are whole in
  /// Update.
  Result local(const Result& placed, int region) const;
  Sharding in_region(const Sharding& sharding, int region) const {
    return region == update() ? sharding.without(kMicrobatchAxis) : sharding;
  }

  /// The graphs, with what they hand over and send.
  Program finish();

 private:
  /// A slot that a region fills and others read.
  struct Handed {
    ValueId value;
    int region = 0;
    friend auto operator<=>(const Handed&, const Handed&) = default;
  };
  /// A value that a region sends to another stage.
  struct Sent {
    ValueId value;
    int region = 0;
    std::string name;
  };

  void make_regions();
  void list_messages();
  void count_bytes(const Message& message);
  void list_unread();
  int index_of(RegionKind kind, int chunk) const;
  Result local(const Result& placed) const;
  void lie(Result& result, Sharding sharding) const;
  Value import_leaf(ValueId v, int to, Result result);
  Result hand_over(ValueId v, int from, Result result);
  std::string value_name(ValueId v) const;
  std::string message_name(ValueId v, RegionKind region, int taker) const;
  std::string slot_name(ValueId v, int from) const;

  const Graph& graph_;
  const Pipeline& pipeline_;
  int stage_;
  int first_chunk_ = 0;
  const NodeRegions& of_;
  Program program_;
  std::vector<std::unique_ptr<Builder>> builders_;  // by region
  std::vector<ValueTable<Value>> known_;            // by region
  std::set<Handed> handed_;
  std::vector<Sent> sent_;
  std::vector<std::int32_t> place_in_block_;
  std::unordered_map<NodeId, const State*> states_;
};

}  // namespace tessera
