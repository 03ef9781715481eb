#pragma once
/// What a stage of a pipeline takes, as numbers that add up over the layers that it has.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tessera/plan/plan.h"
#include "tessera/schedule/pipeline.h"
#include "tessera/tensor/machine.h"

namespace tessera {

/// Seconds of the regions, and of what takes them; bytes. It is a vector: what n more layers take
/// is n times what one more takes.
struct StageUse {
  enum Part : std::uint8_t {
    kForward,  // three each: of the first micro-batch, of those between, of the last
    kBackward = 3,
    kWeights = 6,
    kBegin = 9,
    kUpdate,
    // Of a micro-batch between the first and the last, as if nothing ran beside anything:
    kProducts,  // matrix products and attention
    kKernels,   // others
    kInner,     // transfers along the axes that split layers
    kData,      // those along the axes that split the batch
    kCopies,    // to and from the host
    kDataOnce,  // of begin and update: transfers along the axes that split the batch
    kDataLast,  // the same, that the last micro-batch begins
    // Bytes on the device and on the host, with one micro-batch in flight and without samples:
    kPeak,
    kHost,
    // Of these, of one micro-batch: what forward leaves for backward, for weights, what backward
    // leaves for weights, and what lies on the host meanwhile.
    kKept,
    kKeptLong,
    kHeld,
    kHostKept,
    kMoments,  // of the device's: states of the optimizer
    kParts
  };
  std::array<double, kParts> parts = {};

  double operator[](std::size_t part) const { return parts[part]; }
  double& operator[](std::size_t part) { return parts[part]; }
  StageUse& operator+=(const StageUse& other);
  friend StageUse operator+(StageUse a, const StageUse& b) { return a += b; }
  friend StageUse operator-(const StageUse& a, const StageUse& b);
  friend StageUse operator*(double times, StageUse a);

  /// Seconds of a region in micro-batch k of n.
  double seconds(RegionKind region, std::int64_t k, std::int64_t n) const;
  /// Of forward, backward and weights in a micro-batch that is neither the first nor the last.
  double micro_batch_seconds() const;
};

/// Micro-batches of a chunk that are there at once between two of its regions.
struct InFlight {
  double kept = 1, kept_long = 1, held = 1;  // forward to backward, to weights; backward to weights
  /// Bytes of what is kept, but for that of one micro-batch.
  double more_bytes(const StageUse& use) const;
  double more_host_bytes(const StageUse& use) const;
};
InFlight in_flight_of(const Pipeline& pipeline, int chunk);

/// Of the program that trains: on the first rank of every stage, where each has one chunk. The
/// seconds, and the bytes.
std::vector<StageUse> stage_seconds_of(const std::vector<Plan>& stages, const Pipeline& pipeline,
                                       const Machine& machine);
std::vector<StageUse> stage_bytes_of(const std::vector<Plan>& stages, const Pipeline& pipeline);

/// Takes from a plan what only its bytes are told by: places, states, kernels of its own.
void keep_seconds(Plan& plan);

/// About what it would be with `data` data parallel ranks in place of `from`, where transfers are
/// priced for them already, and the optimizer's states are shared out among them (`shared`).
void take_data_ranks(StageUse& use, std::int64_t from, std::int64_t data, bool shared);

/// Bytes of a micro-batch of samples in that program.
std::int64_t sample_bytes_of(const Plan& plan);

}  // namespace tessera
