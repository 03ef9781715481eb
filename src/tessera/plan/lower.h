#pragma once
/// From the regions of one program to ready calls over an arena.

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tessera/passes/partition.h"
#include "tessera/plan/plan.h"

namespace tessera {

/// The state section that all programs of a plan share, built up as programs are lowered.
class StateSection {
 public:
  explicit StateSection(std::int64_t guard_bytes) : guard_bytes(guard_bytes) {}
  /// The place of a state; the same state of several programs must have one type.
  Place place(const State& state, const Result& lies);
  Place constant(DType dtype, double value);
  std::vector<StatePlan> states;
  std::vector<ConstantPlan> constants;
  std::int64_t bytes = 0;
  const std::int64_t guard_bytes;  // on both sides of every buffer, in the work section too

 private:
  Place take(std::int64_t size);
  std::unordered_map<std::string, std::size_t> by_path_;
  std::map<std::pair<DType, double>, std::size_t> by_value_;
};

/// In:      four regions in Form::Local, as partition made them (fused or not).
/// Out:     calls in the order of the nodes; values placed in the work section: views share their
/// operand's buffer,
///          ops work in place where their column allows it and the operand is read by nobody after,
///          a state's next value is written into the state where that is safe and copied at the end
///          where it is not. Offsets of shards are those of `rank`.
ProgramPlan lower(const std::string& name, const std::vector<Region>& regions, StateSection& states,
                  Device& device, std::uint64_t seed, int rank = 0);

}  // namespace tessera
