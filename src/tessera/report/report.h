#pragma once
/// The room `report`: what people look at: the report of a plan, pages and charts of runs,
/// `inspect`.
/// For: turning values of a run into text, SVG and HTML.
/// Not for: anything that a run needs: nothing that trains reads a report, so it is above `train`.
/// Rejected: below `train`, where programs, memory and metrics would have had to come too.
///
/// The report that `tessera plan` prints: memory, communication and work of a run.
/// docs/guides/plan.md explains it line by line.

#include <optional>
#include <string>

#include "tessera/plan/compiled_bytes.h"
#include "tessera/plan/kernel_use.h"
#include "tessera/plan/predict.h"
#include "tessera/report/mesh_report.h"
#include "tessera/report/pipeline_report.h"
#include "tessera/train/host_pool.h"
#include "tessera/train/memory_choice.h"
#include "tessera/train/outside_arena.h"
#include "tessera/train/programs.h"

namespace tessera {

/// Scratch memory of kernels of the training step: calls of one region, op and kernel with the same
/// number of bytes.
struct WorkspaceUse {
  std::string region, op, kernel;
  std::int64_t bytes = 0;  // of each call
  std::int64_t calls = 0;
};

struct PlanReport {
  std::int64_t parameters = 0;
  std::int64_t experts = 0, active_parameters = 0;  // of a layer; that a token reads; 0: no experts
  int stage = 0;     // the fullest, of which the memory is
  MemoryUse memory;  // of the training step on one device, in bytes
  std::int64_t peak_bytes = 0, lower_bound_bytes = 0, state_bytes = 0, work_bytes = 0;
  std::int64_t base_bytes = 0;       // of the peak: what devices of a process have in common
  std::int64_t unshared_bytes = 0;   // if no two buffers of a training step were at one place
  HostUse host;                      // of the device that has most there
  MemoryChoice choice;               // what is done to take so much
  std::int64_t capped_bytes = 0;     // that count against a memory cap, of the fullest device
  std::int64_t save_copy_bytes = 0;  // beside the arena, of the device that writes most
  MeshReport mesh;
  std::optional<PipelineReport> pipeline;                    // none: one stage
  double flops_per_step = 0, recomputed_flops_per_step = 0;  // of all devices
  std::int64_t tokens_per_step = 0, micro_batches = 1;
  std::vector<BlockUse> blocks;           // of all stages; bytes and FLOPs of one device
  std::vector<KernelUse> kernels;         // most FLOPs first, then most bytes
  std::vector<WorkspaceUse> workspaces;   // the largest first
  OutsideArena outside;                   // of this process, without a text
  std::string machine;                    // that the step is predicted for; empty: none was told
  std::optional<Prediction> prediction;   // there
  std::optional<CompiledBytes> compiled;  // by an accelerator's compiler; none: not asked for
  std::vector<PassTime> passes;
  double compile_seconds = 0;
};

/// `compiled` has the plans of all stages.
PlanReport report_of(const Compiled& compiled, const RunSetup& setup);

/// Tables for people, of all but the placements.
std::string details_text(const PlanReport& report);
/// One object, all sizes in bytes and times in seconds; docs/reference/files.md has its keys.
std::string to_json(const PlanReport& report);

}  // namespace tessera
