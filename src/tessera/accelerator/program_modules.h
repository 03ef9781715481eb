#pragma once
/// A program of a plan as the modules that a plugin compiles.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/hlo/start_order.h"
#include "tessera/pjrt/named_value.h"
#include "tessera/plan/plan.h"

namespace tessera {

/// What modules are for: a plugin by its platform ("cpu", "cuda", ...), and what it says of a
/// device.
struct Target {
  std::string platform;
  pjrt::NamedValues device = {};
};

/// Without a pipeline one stage with one piece, which is the whole program and starts once.
struct ProgramModules {
  std::vector<std::vector<hlo::Piece>> stages;
  std::vector<hlo::Start> starts;
  hlo::EmitOptions options;

  /// True where they call kernels of the device's vendor.
  bool call_kernels() const;
};
/// `plans`: of a rank of each stage; they keep what programs compute (ProgramPlan::local). Errors: as
/// of hlo::whole_module.
ProgramModules modules_of(std::span<const Plan* const> plans, std::string_view program,
                          const Target& target);

/// Whether values lie in the host's memory where they should.
bool reaches_pinned_host(std::string_view platform);

}  // namespace tessera
