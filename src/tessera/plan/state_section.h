#pragma once
/// The addresses of states and constants.

#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tessera/plan/plan.h"

namespace tessera {

/// A 16-bit copy of a parameter.
struct CopyPlace {
  std::string path;
  Place place;
  std::int64_t bytes = 0;
};

/// The state sections that all programs of a plan share, built up as programs are lowered. A state
/// lies in the memory of its home, constants on the device. Copies are rewritten by every step:
/// they lie next to the work section, which uses their memory while nobody reads them.
class StateSection {
 public:
  /// `in_base`: which states lie in Section::Base; empty: none.
  explicit StateSection(std::int64_t guard_bytes, std::function<bool(const State&)> in_base = {})
      : guard_bytes(guard_bytes), in_base_(std::move(in_base)) {}
  /// The place of a state; the same state of several programs must have one type.
  Place place(const State& state, const Result& lies);
  Place constant(DType dtype, double value);
  std::vector<StatePlan> states;
  std::vector<ConstantPlan> constants;
  std::vector<CopyPlace> copies;  // each below the one before
  PerMemory<std::int64_t> bytes;
  std::int64_t base_bytes = 0;
  const std::int64_t guard_bytes;  // on both sides of every buffer, in the work section too

 private:
  Place take(Memory memory, std::int64_t size);
  Place take_for_copy(Memory memory, std::int64_t size);
  std::int64_t take_bytes(Memory memory, std::int64_t size);  // with guards
  Place take_for(const State& state, const Result& lies);
  std::function<bool(const State&)> in_base_;
  PerMemory<std::int64_t> copy_bytes_;
  std::unordered_map<std::string, std::size_t> by_path_;
  std::map<std::pair<DType, std::uint64_t>, std::size_t> by_bits_;
};

}  // namespace tessera
