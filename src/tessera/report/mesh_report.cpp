#include "tessera/report/mesh_report.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint.h"
#include "tessera/ir/blocks.h"
#include "tessera/report/json/reports.h"
#include "tessera/train/run_requirements.h"

namespace tessera {

namespace {

constexpr std::int64_t kSmallCall = 1024;  // bytes; smaller calls are summed up in the table

std::string left(std::string word, std::size_t width) {
  word.resize(std::max(word.size(), width), ' ');
  return word;
}
std::string right(const std::string& word, std::size_t width) {
  return std::string(width - std::min(width, word.size()), ' ') + word;
}

std::string names_of(const std::vector<std::string>& blocks) {
  if (blocks[0].empty()) return "outside of blocks";
  if (blocks.size() == 1) return blocks[0];
  return text("each of ", blocks[0], blocks.size() == 2 ? ", " : " ... ", blocks.back(), " (",
              blocks.size(), " blocks)");
}

std::string flow_row(std::string_view region, std::string_view kind, const std::string& axes,
                     const std::string& calls, const std::string& each, const std::string& all) {
  return text("    ", left(std::string(region), 10), left(std::string(kind), 16), left(axes, 8),
              right(calls, 7), right(each, 14), right(all, 14), "\n");
}

std::string table_of(const FlowClass& flows) {
  std::string out = text("  ", names_of(flows.blocks), "\n");
  std::int64_t small = 0, small_bytes = 0;
  for (const Flow& flow : flows.flows) {
    if (flow.bytes < kSmallCall) {
      small += flow.calls;
      small_bytes += flow.total();
      continue;
    }
    out += flow_row(to_text(flow.region), to_text(flow.kind), flow.axes, grouped(flow.calls),
                    bytes_text(flow.bytes), bytes_text(flow.total()));
  }
  if (small > 0)
    out += flow_row("", text("below ", bytes_text(kSmallCall)), "", grouped(small), "",
                    bytes_text(small_bytes));
  return out;
}

std::string_view phase_text(Phase phase) {
  constexpr std::array<std::string_view, 3> kNames = {"forward", "backward", "update"};
  return kNames[static_cast<std::size_t>(phase)];
}

std::string below(std::string_view path, std::string_view block) {
  path.remove_prefix(starts_with(path, block) ? block.size() : 0);
  if (!path.empty() && path[0] == '.') path.remove_prefix(1);
  return std::string(path);
}

/// Where the results of a node lie. Values that only lie otherwise than they did are left out:
/// their readers say where they are wanted.
void add_values(const Graph& graph, NodeId id, const std::map<NodeId, const State*>& states,
                std::string_view block, std::vector<PlacedValue>& out) {
  const Node& node = graph.node(id);
  if (node.results[0].type.ndim() == 0 && node.op->traits.leaf && node.inputs.empty() &&
      !states.contains(id))
    return;
  for (const Result& result : node.results) {
    PlacedValue value;
    value.type = to_text(result.type);
    value.lies = to_text(result.placement->sharding);
    if (const auto found = states.find(id); found != states.end()) {
      const State& state = *found->second;
      value.kind = role_text(state.role);
      value.path = below(state.path, block);
      if (state.use && !(state.use == state.home)) value.use = to_text(state.use->sharding);
    } else {
      value.kind = node.op == &kBatch ? "batch" : phase_text(node.phase);
      value.path =
          node.op == &kBatch ? std::get<std::string>(node.attrs[0]) : below(node.block, block);
      if (node.op != &kBatch) value.op = node.op->name;
      if (!node.name.empty())
        value.path += text(value.path.empty() ? "" : ".", std::string_view(node.name));
    }
    out.push_back(std::move(value));
  }
}

std::vector<PlacedBlocks> placements_of(const Graph& graph) {
  std::map<NodeId, const State*> states;
  for (const State& state : graph.states()) states.emplace(state.value.node, &state);
  std::vector<PlacedBlocks> out;
  for (const BlockClass& alike : block_classes(graph)) {
    PlacedBlocks& blocks = out.emplace_back();
    for (const Block& block : alike.blocks) blocks.blocks.push_back(block.path);
    for (const NodeId id : alike.blocks[0].nodes)
      add_values(graph, id, states, alike.blocks[0].path, blocks.values);
  }
  PlacedBlocks others{{""}, {}};
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (block_of(graph.node(id).block).empty()) add_values(graph, id, states, "", others.values);
  }
  out.push_back(std::move(others));
  return out;
}

/// "54 all_reduces of gradients are 2, of 98.0 KiB to 708 KiB"; what is copied, if anything is.
std::string buckets_text(const std::vector<BucketUse>& buckets) {
  std::int64_t values = 0, copied = 0;
  for (const BucketUse& bucket : buckets) values += bucket.values, copied += bucket.copied_bytes;
  const auto [least, most] = std::ranges::minmax(buckets, {}, &BucketUse::bytes);
  return text("  buckets: ", grouped(values), " all_reduces of gradients are ",
              grouped(std::ssize(buckets)), ", of ",
              least.bytes == most.bytes ? "" : text(bytes_text(least.bytes), " to "),
              bytes_text(most.bytes),
              copied > 0 ? text("; ", bytes_text(copied), " are copied") : "", "\n");
}

}  // namespace

MeshReport mesh_report_of(const Compiled& compiled) {
  const std::vector<const Plan*> plans = plans_of(compiled);
  const Plan& plan = **std::ranges::max_element(
      plans, {}, [](const Plan* stage) { return requirements_of(*stage).sent_bytes(); });
  MeshReport out;
  out.mesh = to_text(plan.mesh);
  out.devices = plan.ranks();
  out.stages = plan.stages;
  out.stage = plan.stage();
  out.sent = requirements_of(plan).sent;
  for (const RegionPlan& region : plan.program(kTrainProgram).regions)
    for (const Call& call : region.calls)
      out.sends_chosen_rows |= call.transfer && call.transfer->collective.rows.choices > 0;
  out.flows = by_class(flows_of(plan.program(kTrainProgram)));
  out.buckets = plan.program(kTrainProgram).buckets;
  if (compiled.placed) out.placements = placements_of(*compiled.placed);
  return out;
}

std::string traffic_text(const MeshReport& r) {
  if (r.devices == 1) return "";
  std::string out = r.stages == 1 ? "what each device sends in a step\n"
                                  : text("what a device of stage ", r.stage,
                                         " sends in a step, the most of all stages\n");
  std::int64_t all = 0;
  for (const auto& [axes, bytes] : r.sent) {
    out += text("  ", left(text("along ", axes), 20), right(bytes_text(bytes), 14), "\n");
    all += bytes;
  }
  out += text("  ", left("in all", 20), right(bytes_text(all), 14), "\n");
  out += flow_row("region", "collective", "along", "calls", "bytes each", "in all");
  for (const FlowClass& flows : r.flows) out += table_of(flows);
  return r.buckets.empty() ? out : out + buckets_text(r.buckets);
}

std::string placements_text(const MeshReport& r) {
  if (r.placements.empty()) return "";
  std::string out =
      "placements: per dim the axes that split it, - for none; +axis: partial along it, a sum that "
      "is not finished\n";
  for (const PlacedBlocks& blocks : r.placements) {
    out += text("  ", names_of(blocks.blocks), "\n");
    for (const PlacedValue& v : blocks.values)
      out +=
          text("    ", left(v.kind, 11), left(v.path, 24), " ", left(v.op, 20), " ",
               left(v.type, 20), " ", v.lies, v.use.empty() ? "" : text(", read as ", v.use), "\n");
  }
  return out;
}

void add_to(nlohmann::ordered_json& json, const MeshReport& r) {
  using Json = nlohmann::ordered_json;
  json["devices"] = r.devices;
  json["mesh"] = r.mesh;
  json["sent_bytes_per_step"] = Json::object();
  for (const auto& [axes, bytes] : r.sent) json["sent_bytes_per_step"][axes] = bytes;
  json["collectives"] = Json::array();
  for (const FlowClass& flows : r.flows) {
    Json calls = Json::array();
    for (const Flow& f : flows.flows)
      calls.push_back({{"region", to_text(f.region)},
                       {"kind", to_text(f.kind)},
                       {"axes", f.axes},
                       {"bytes", f.bytes},
                       {"calls", f.calls}});
    json["collectives"].push_back({{"blocks", flows.blocks}, {"calls", std::move(calls)}});
  }
  if (!r.buckets.empty()) {
    json["buckets"] = Json::array();
    for (const BucketUse& b : r.buckets)
      json["buckets"].push_back({{"region", to_text(b.region)},
                                 {"all_reduces", b.values},
                                 {"bytes", b.bytes},
                                 {"copied_bytes", b.copied_bytes}});
  }
  if (r.placements.empty()) return;
  json["placements"] = Json::array();
  for (const PlacedBlocks& blocks : r.placements) {
    Json values = Json::array();
    for (const PlacedValue& v : blocks.values) {
      Json value{{"kind", v.kind}, {"path", v.path}};
      if (!v.op.empty()) value["op"] = v.op;
      value["type"] = v.type;
      value["placement"] = v.lies;
      if (!v.use.empty()) value["read_as"] = v.use;
      values.push_back(std::move(value));
    }
    json["placements"].push_back({{"blocks", blocks.blocks}, {"values", std::move(values)}});
  }
}

}  // namespace tessera
