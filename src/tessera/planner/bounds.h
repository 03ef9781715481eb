#pragma once
/// What the choices below a node of the search take at least.

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tessera/planner/compose.h"
#include "tessera/planner/least_seconds.h"
#include "tessera/planner/space.h"

namespace tessera {

/// A bound holds for every composition below it (Composer::compose of ShortModels::of): with any
/// layout and any cap, whatever is computed again or lies on the host. What a layout takes at least
/// is told by least_seconds, a fact. What goes into it rests on this, which only a test says
/// (tests/planner/bounds_test.cpp):
///
///   - a sample takes no less in a small micro-batch than in one of the whole batch, nor in parts
///     that are split less than evenly (of_sizes, of_split);
///   - what computing again saves it saves the most in such a micro-batch;
///   - backward in two parts takes no less than in one, and in the only micro-batch, or one of two,
///     no less than in the cheapest of three, but for adding up gradients (of_any_zero, of_like,
///     of_level);
///   - ZeRO sums, and gathers, in each micro-batch at least a quarter of what is summed at the end
///     without it (of_like);
///   - the layout that is chosen with memory without end loses at most 7 % against others in what
///     stages wait for each other (of_choice);
///   - with two data parallel ranks an action takes what it does with more (ShortModels::about).
class Bounds {
 public:
  Bounds(const RunConfig& base, const Machine& machine, const Space& space, ShortModels& models);

  /// Of sizes alone: as if tensor and context parallelism cost nothing.
  double of_sizes(const PlanChoice& frame);
  /// Of sizes with micro-batches: any schedule.
  double of_split(const PlanChoice& split);
  /// With a schedule and an order, and any level of ZeRO.
  double of_any_zero(const PlanChoice& scheduled);
  /// With its level of ZeRO, but without a short model of that level.
  double of_like(const PlanChoice& start);
  /// The same, where the schedule is played.
  double of_like_played(const PlanChoice& start, Composer& composer);
  /// Of a short model of that level, whatever the schedule.
  double of_level(const PlanChoice& start);
  /// Of its own short model, played.
  double of_choice(const PlanChoice& start, Composer& composer);

 private:
  /// Of a sample in a micro-batch of the whole batch.
  struct Floor {
    ModelUse use;
    double forward = 1, backward = 1;  // what computing again leaves of a layer's
  };
  const Floor& floor_of(const PlanChoice& choice);
  std::int64_t larger(std::int64_t size) const;
  bool read_like(const PlanChoice& choice, std::int64_t size, bool own_schedule, ModelUse& out);
  bool read_zero(const PlanChoice& start, bool own_schedule, ModelUse& use, double& sums);
  void add_up_less(StageUse& use, const PlanChoice& choice, double times, double kernels) const;
  double played(const PlanChoice& start, const ModelUse& use, Composer& composer);
  bool read(const PlanChoice& choice, std::int64_t micro_batches, ModelUse& out);
  double of_floor(const PlanChoice& split, const ModelUse& floor) const;
  double groups_share(const PlanChoice& choice) const;
  double least(const PlanChoice& choice, const ModelUse& use, double sums);

  const RunConfig& base_;
  const Machine& machine_;
  const Space& space_;
  ShortModels& models_;
  std::vector<std::int64_t> stacks_;
  std::map<std::tuple<std::int64_t, std::int64_t, bool, Floats>, Floor> floors_;
  using ShapeKey = std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t>;
  std::map<ShapeKey, PipelineShape> shapes_;
};

}  // namespace tessera
