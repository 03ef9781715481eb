#pragma once
/// All ways to run a model on a machine among which the planner chooses.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/planner/choice.h"
#include "tessera/planner/knobs.h"
#include "tessera/schedule/schedule.h"

namespace tessera {

/// What a run asked for by a flag or a file stays as it is: is_told(). What is legal,
/// problems(ParallelConfig, ModelConfig) says. Every data parallel size divides the global batch
/// with the micro-batches, so that all devices have the same work.
class Space {
 public:
  /// `base` is complete; on at most so many devices.
  Space(const RunConfig& base, std::int64_t devices, bool precision);

  /// Sizes: data, experts, tensor, context, pipeline.
  std::vector<PlanChoice> frames() const;
  /// Of sizes: with micro-batches, sequence parallelism and floats.
  std::vector<PlanChoice> splits(const PlanChoice& frame) const;
  /// Of these: with schedules, where there is a pipeline, and with orders of the axes.
  std::vector<PlanChoice> schedules(const PlanChoice& split) const;
  /// Of these: with each level of ZeRO, among all data parallel ranks.
  std::vector<PlanChoice> starts(const PlanChoice& scheduled) const;
  /// What takes less memory, and as a rule more time, in one respect. Sharing out states in groups
  /// is next to sharing out less among all.
  std::vector<PlanChoice> leaner(const PlanChoice& choice) const;

  std::int64_t micro_batches(const PlanChoice& choice) const {
    return base_.global_batch_size / (choice.data * choice.micro_batch_size);
  }
  std::int64_t layers() const { return layers_; }
  /// The cheapest way to compute layers that goes with this one: another, or the same.
  Recompute less(Recompute what) const;
  bool recompute_given() const { return given("recompute-granularity"); }
  bool zero_given() const { return given("zero-stage"); }
  /// Most chunks of a stage.
  std::int64_t most_chunks(std::int64_t stages) const { return (layers_ + 2) / stages; }

 private:
  bool given(std::string_view knob) const { return is_given(knob, base_); }
  bool wants_zero() const;
  bool legal(const PlanChoice& choice) const;
  bool goes_with_given(const PlanChoice& frame) const;
  std::vector<std::int64_t> experts_of(std::int64_t data) const;
  bool holds_groups(const PlanChoice& split) const;
  std::vector<std::int64_t> chunks_of(const ScheduleDef& schedule, std::int64_t stages) const;

  const RunConfig& base_;
  std::int64_t devices_, layers_, zero_ = 0;
  bool precision_;
  std::vector<std::int64_t> layout_;  // that is given; empty: none is
  std::string given_layers_;          // that are computed again; empty: none are given
};

/// Ways to number the ranks of a stage: the axes, outermost first. Those that only move axes of one
/// rank are left out; the usual one comes first, and is empty.
std::vector<std::string> orders_of(const PlanChoice& choice);

}  // namespace tessera
