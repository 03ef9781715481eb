#include "tessera/plan/plan.h"

#include <algorithm>

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

std::int64_t Plan::work_bytes(Memory memory) const {
  std::int64_t most = 0;
  for (const ProgramPlan& program : programs) most = std::max(most, program.work[memory].bytes);
  return most;
}

std::int64_t Plan::lower_bound_bytes(Memory memory) const {
  std::int64_t most = 0;
  for (const ProgramPlan& program : programs)
    most = std::max(most, program.work[memory].lower_bound_bytes);
  return state_bytes[memory] + most;
}

}  // namespace tessera
