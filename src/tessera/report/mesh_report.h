#pragma once
/// The part of `tessera plan` about the mesh: collectives with their bytes, and placements.

#include <map>
#include <string>
#include <vector>

#include "tessera/plan/traffic.h"
#include "tessera/train/programs.h"

namespace tessera {

/// A value of a training step.
struct PlacedValue {
  std::string kind;  // "parameter", "moment", "counter", "cache", "batch"; else its phase
  std::string path;  // of a state or batch input, or where it is computed; without the block
  std::string op;    // empty for a state or batch input
  std::string type;  // of the whole: "f32[8,64,192]"
  std::string lies;  // "[dp,-,tp]"; of a state as it is stored
  std::string use;   // of a state, as forward and backward read it, where that differs
};

/// Blocks that are equal but for their paths. Values outside of blocks have an empty path.
struct PlacedBlocks {
  std::vector<std::string> blocks;
  std::vector<PlacedValue> values;  // of one of them
};

struct MeshReport {
  std::string mesh;  // "dp=2 tp=2"; empty for one device
  std::int64_t devices = 1;
  int stages = 1, stage = 0;  // of the pipeline; that whose devices send most, as said here
  std::map<std::string, std::int64_t> sent;  // bytes per step of one device, by axes
  bool sends_chosen_rows = false;        // of experts: `sent` has the most, as if all were chosen
  std::vector<FlowClass> flows;          // of a step
  std::vector<BucketUse> buckets;        // of a step
  std::vector<PlacedBlocks> placements;  // where they were asked for
};

MeshReport mesh_report_of(const Compiled& compiled);

/// What is sent; empty for one device.
std::string traffic_text(const MeshReport& report);
/// Empty where they were not asked for.
std::string placements_text(const MeshReport& report);

}  // namespace tessera
