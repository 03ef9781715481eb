#pragma once
/// The values of a program across its regions, and which of them share a buffer. For lower.cpp.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "tessera/device/device.h"
#include "tessera/ir/value_table.h"
#include "tessera/plan/memory.h"
#include "tessera/plan/plan.h"
#include "tessera/plan/timeline.h"

namespace tessera {

/// One consumer of a value.
struct ValueUse {
  int region = 0;
  NodeId node = -1;
  int operand = 0;
};

/// A value with storage: slots of later regions are the value that the earlier region put out.
struct StoredValue {
  enum class Kind : std::uint8_t {
    Computed,
    State,
    Batch,
    Constant,
    Accumulator
  } kind = Kind::Computed;
  const Result* result = nullptr;  // in the graph of its region
  std::string name;                // of a state, batch input or accumulator
  int region = 0;
  ValueId id;                        // Computed, State, Batch, Constant: its first occurrence
  std::int32_t first = 0, last = 0;  // on the Timeline
  std::vector<ValueUse> uses;
  bool leaves = false;     // an output reads it: it must be dense
  bool sent = false;       // to another stage
  bool received = false;   // from another stage
  std::int64_t ahead = 0;  // Program::Message
  bool held = false;       // sent, received, or other actions run before it is read
  bool part = false;       // computed where a value lies that will hold it (OpDef::part)
  int buffer = -1;
  std::int64_t offset_elements = 0;  // in its buffer, for views
  Shape strides;
};

/// A stretch of a memory; the values in it have one lifetime together. A ring is `depth` of them,
/// for as many micro-batches.
struct Buffer {
  Memory memory = Memory::Device;
  enum class Home : std::uint8_t { Work, State, Constant } home = Home::Work;
  std::int64_t bytes = 0;  // of one micro-batch
  std::int64_t depth = 1;
  bool held = false;  // a value in it is
  std::int32_t first = 0, last = 0;
  std::vector<int> values;
  bool in_place_allowed = true;  // false for states, batch inputs, constants
};

/// A micro-batch's contribution to an accumulator.
struct Accumulation {
  int region = 0;
  ValueId value;
  int into = 0;  // a StoredValue
};

class ProgramValues {
 public:
  /// `shares`: views lie in their operand's buffer, and ops work in place.
  ProgramValues(const Program& program, const Timeline& time, const Device& device,
                bool shares = true);

  int value(int region, ValueId id) const;
  const std::vector<StoredValue>& values() const { return values_; }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  const std::vector<Accumulation>& accumulations() const { return accumulations_; }
  std::vector<BucketUse> buckets() const;
  /// When nobody needs what a state holds: after the last time it is read, until its next value is
  /// computed there. Nullopt: it is always needed, or the program does not read it.
  std::optional<TimeSpan> idle(const std::string& state) const;
  /// True where the node needs no call: its result is a view, or holds what was computed there.
  bool is_view(int region, NodeId node) const {
    return views_[static_cast<std::size_t>(region)][static_cast<std::size_t>(node)];
  }

 private:
  void collect(const Program& program);
  void becomes_next(int region, const Output& output);
  void find_uses();
  void find_held();
  void find_lifetimes();
  void assign_buffers();
  void place_parts(int region, NodeId node);
  bool place_part(int value, int whole, std::int64_t offset_elements);
  void place_source(const StoredValue& part, int whole);
  bool try_view(int region, NodeId node);
  bool accepted_by_all(int value, bool dense) const;
  bool try_in_place(int region, NodeId node, int result);
  bool try_state(int region, NodeId node, int result);
  bool dies_in(const Buffer& buffer, int region, NodeId node) const;
  bool may_share(const StoredValue& value, const Buffer& buffer) const;
  void share(int value, int buffer);
  void hold(Buffer& buffer);
  std::set<int> readers(const StoredValue& value) const;
  int new_buffer(int value);

  const std::vector<Region>& regions_;
  const Timeline& time_;
  const Device& device_;
  const bool shares_;
  const ActionOrder order_;
  const std::int64_t microbatches_;
  std::vector<StoredValue> values_;
  std::vector<Buffer> buffers_;
  std::vector<Accumulation> accumulations_;
  std::vector<ValueTable<int>> index_;  // [region]
  std::unordered_map<std::string, int> slots_, states_, batches_;
  std::map<std::tuple<int, NodeId, int>, std::string>
      next_of_;  // (region, node, result) -> the state it becomes the next value of
  std::vector<std::vector<bool>> views_;
};

}  // namespace tessera
