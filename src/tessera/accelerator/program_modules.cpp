#include "tessera/accelerator/program_modules.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "tessera/base/error.h"

namespace tessera {

namespace {

/// What the plugins of a platform have beside StableHLO.
struct Ability {
  std::string_view platform;
  bool pinned_host = true;
  /// The least compute capability that cuDNN's attention is for.
  double cudnn_from = std::numeric_limits<double>::infinity();
};
constexpr Ability kAbilities[] = {
    {.platform = "cpu", .pinned_host = false},  // it has such memory too, and no way to it
    {.platform = "cuda", .cudnn_from = 8.0}};

Ability ability_of(std::string_view platform) {
  const auto found = std::ranges::find(kAbilities, platform, &Ability::platform);
  return found == std::end(kAbilities) ? Ability{platform} : *found;
}

/// "9.0" as 9.0; 0: the plugin does not say.
double compute_capability(const Target& target) {
  const pjrt::Value* said = pjrt::find(target.device, "compute_capability");
  const auto* number = said == nullptr ? nullptr : std::get_if<std::string>(said);
  return number == nullptr ? 0 : std::strtod(number->c_str(), nullptr);
}

hlo::EmitOptions emit_options(const Plan& plan, const Target& target) {
  const Ability ability = ability_of(target.platform);
  hlo::EmitOptions out;
  out.seed = plan.seed;
  out.tf32 = plan.tf32;
  out.pinned_host = ability.pinned_host;
  out.cudnn_attention = plan.vendor_kernels && compute_capability(target) >= ability.cudnn_from;
  return out;
}

const Program& local_of(const Plan& plan, std::string_view program) {
  const ProgramPlan& found = plan.program(program);
  check(found.local != nullptr, "program ", program, " was compiled for kernels");
  return *found.local;
}

}  // namespace

bool reaches_pinned_host(std::string_view platform) { return ability_of(platform).pinned_host; }

bool ProgramModules::call_kernels() const {
  for (const std::vector<hlo::Piece>& pieces : stages) {
    for (const hlo::Piece& piece : pieces)
      if (piece.module.text.find("custom_call @__cudnn$") != std::string::npos) return true;
  }
  return false;
}

ProgramModules modules_of(std::span<const Plan* const> plans, std::string_view program,
                          const Target& target) {
  const std::string name(program);
  const hlo::EmitOptions options = emit_options(*plans[0], target);
  ProgramModules out;
  out.options = options;
  std::vector<Actions> actions;
  if (plans.size() == 1) {
    hlo::Module whole = hlo::whole_module(name, local_of(*plans[0], program), options);
    out.stages.emplace_back().push_back({RegionKind::Begin, 0, 0, std::move(whole)});
    actions = {{{RegionKind::Begin, 0, 0}}};
  } else {
    std::vector<Program> stages;
    for (const Plan* plan : plans) {
      stages.push_back(local_of(*plan, program));
      actions.push_back(stages.back().actions);
    }
    out.stages = hlo::staged_modules(name, stages, options);
  }
  out.starts = hlo::start_order(out.stages, actions);
  return out;
}

}  // namespace tessera
