#include "tessera/plan/plan.h"

#include <algorithm>
#include <set>

#include "tessera/base/text.h"
#include "tessera/ops/collective.h"

namespace tessera {

namespace {

std::string types_text(const TensorTypes& types) {
  std::vector<std::string> out;
  for (const TensorType& type : types)
    out.push_back(text(type.dtype, type.shape, type.layout.plain() ? "" : "@packed"));
  return join(out, " ");
}

}  // namespace

std::string_view kernel_name(const Call& call) {
  if (call.kernel) return call.kernel->name();
  return call.op == &kCopy ? call.op->name : "comm";
}

std::int64_t workspace_bytes(const Call& call) {
  return call.kernel ? call.kernel->workspace_bytes() : 0;
}

std::string op_text(const Call& call) {
  for (const AttrValue& attr : call.types->attrs) {
    const auto* body = std::get_if<std::shared_ptr<const Graph>>(&attr);
    if (body == nullptr || *body == nullptr) continue;
    std::vector<std::string_view> inner;
    for (const Node& node : (*body)->nodes()) {
      if (!node.op->traits.leaf) inner.push_back(node.op->name);
    }
    return text(call.op->name, "(", join(inner, ","), ")");
  }
  return std::string(call.op->name);
}

std::string types_text(const Call& call) {
  return text(types_text(call.types->ins), " -> ", types_text(call.types->outs));
}

const ProgramPlan& Plan::program(std::string_view name) const {
  for (const ProgramPlan& program : programs) {
    if (program.name == name) return program;
  }
  throw Broken(text("the plan has no program '", name, "'"));
}

const StatePlan* Plan::find_state(std::string_view path) const {
  for (const StatePlan& state : states) {
    if (state.state.path == path && has(state)) return &state;
  }
  return nullptr;
}

std::string Plan::base_key() const {
  std::string out = text(stage());
  const Coordinates at = coordinates_of(mesh, rank_in_stage());
  for (const StatePlan& state : states) {
    if (!has(state) || state.place.section != Place::Section::Base) continue;
    out += text(' ', state.state.path);
    for (const std::vector<std::string>& axes : state.state.home->sharding.dims)
      for (const std::string& axis : axes) out += text(',', at.at(axis));
  }
  return out;
}

std::int64_t Plan::base_keys() const {
  std::set<std::string> axes;
  for (const StatePlan& state : states) {
    if (state.place.section != Place::Section::Base) continue;
    for (const std::vector<std::string>& of_dim : state.state.home->sharding.dims)
      axes.insert(of_dim.begin(), of_dim.end());
  }
  std::int64_t out = stages;
  for (const Axis& axis : mesh.axes()) out *= axes.contains(axis.name) ? axis.size : 1;
  return out;
}

std::int64_t Plan::work_bytes(Memory memory) const {
  std::int64_t most = 0;
  for (const ProgramPlan& program : programs) most = std::max(most, program.work[memory].bytes);
  return most;
}

std::int64_t Plan::lower_bound_bytes(Memory memory) const {
  std::int64_t most = 0;
  for (const ProgramPlan& program : programs)
    most = std::max(most, program.work[memory].lower_bound_bytes);
  return state_bytes[memory] + (memory == Memory::Device ? base_bytes : 0) + most;
}

}  // namespace tessera
