#pragma once
/// Whole models out of short ones: the stages of a pipeline, what each takes, and when it does.

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "tessera/planner/short_model.h"
#include "tessera/schedule/pipeline.h"

namespace tessera {

/// Seconds of a plan that cannot run.
inline constexpr double kNoEnd = std::numeric_limits<double>::infinity();

/// Bytes that a stage may take; none: any number.
struct StageCaps {
  std::vector<double> device;  // by stage; empty: all the same
  double all = 0, host = 0;    // 0: no limit
  double of(std::size_t stage) const;
};

/// What a choice comes to.
struct Composition {
  std::vector<std::int64_t> layout;      // layers of each chunk
  std::vector<std::int64_t> recomputed;  // of these: so many first ones are computed again
  bool fits = false;
  double seconds = 0;
  double loop_seconds = 0;  // of these: from the first micro-batch to the last
  double bubble = 0;        // the part of them in which stages wait
  std::vector<double> stage_bytes, host_bytes;
  StageUse busiest;  // of the stage that works longest in a micro-batch

  double peak_bytes() const;
};

/// How layers may be computed: by the fastest recomputation, or the one of least memory. Both
/// may be the same.
struct RecomputeOptions {
  const ModelUse* cheapest = nullptr;
  const ModelUse* smallest = nullptr;
};

class Composer {
 public:
  /// `stacks`: layers of each.
  Composer(std::vector<std::int64_t> stacks, const Machine& machine)
      : stacks_(std::move(stacks)), machine_(machine) {}

  /// The fastest layout, in which as few layers as possible are computed by `smallest`; a layout that
  /// the choice gives is kept. If nothing fits, the one of least memory, with `fits` false.
  Composition compose(const PlanChoice& choice, const RecomputeOptions& ways,
                      std::int64_t micro_batches, const StageCaps& caps);

 private:
  struct Chunk {
    std::int64_t first = 0, layers = 0;
  };
  /// A chunk alone: without what each stage takes once.
  StageUse use_of(const RecomputeOptions& ways, std::size_t chunk, std::size_t chunks,
                  const Chunk& has, std::int64_t again) const;
  std::int64_t layers() const;
  struct Shape;
  bool cut(const Shape& shape, bool capped, Composition& out) const;
  bool fill(const Shape& shape, Composition& out) const;
  std::int64_t least_again(const Shape& shape, std::size_t chunk, const Chunk& has) const;
  double bytes_of(const Shape& shape, std::size_t chunk, const StageUse& use) const;
  void place(Shape& shape);
  void time(const Shape& shape, Composition& out);
  void weigh(const Shape& shape, Composition& out) const;
  double loop_seconds(const Shape& shape, const std::vector<StageUse>& chunks);
  double played(const Shape& shape, const std::vector<StageUse>& chunks, std::int64_t count);
  const Pipeline& pipeline(const std::string& schedule, std::int64_t stages, std::int64_t chunks,
                           std::int64_t micro_batches);

  std::vector<std::int64_t> stacks_;
  const Machine& machine_;
  using PipelineKey = std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t>;
  std::map<PipelineKey, std::unique_ptr<Pipeline>> pipelines_;
};

}  // namespace tessera
