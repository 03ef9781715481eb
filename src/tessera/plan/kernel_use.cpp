#include "tessera/plan/kernel_use.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace tessera {

std::vector<KernelUse> kernels_of(const ProgramPlan& program) {
  std::map<std::pair<std::string_view, std::string_view>, KernelUse> uses;
  for (const Action& action : program.actions) {
    for (const RegionPlan& region : program.regions) {
      if (!region.runs_in(action)) continue;
      for (const Call& call : region.calls) {
        if (call.kernel == nullptr || call.op == nullptr || !program.runs(call, action)) continue;
        KernelUse& use = uses[{call.op->name, kernel_name(call)}];
        ++use.calls;
        use.flops += call.flops;
        use.bytes += call.bytes;
      }
    }
  }
  std::vector<KernelUse> out;
  for (auto& [what, use] : uses) {
    use.op = what.first, use.kernel = what.second;
    out.push_back(std::move(use));
  }
  std::stable_sort(out.begin(), out.end(), [](const KernelUse& a, const KernelUse& b) {
    return std::pair(a.flops, a.bytes) > std::pair(b.flops, b.bytes);
  });
  return out;
}

std::vector<std::string> main_kernels(const ProgramPlan& program) {
  constexpr double kMuch = 0.01;  // of all FLOPs
  std::vector<std::string> out;
  for (const KernelUse& use : kernels_of(program)) {
    const bool known = std::ranges::find(out, use.kernel) != out.end();
    if (!known && use.flops > kMuch * program.flops) out.push_back(use.kernel);
  }
  return out;
}

}  // namespace tessera
