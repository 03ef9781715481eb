#include "tessera/report/report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "tessera/base/text.h"
#include "tessera/models/layer.h"
#include "tessera/plan/memory_parts.h"
#include "tessera/report/compiled_report.h"
#include "tessera/report/json/reports.h"
#include "tessera/report/planned_pipeline.h"
#include "tessera/train/run_requirements.h"
#include "tessera/train/within_cap.h"

namespace tessera {

namespace {

constexpr std::int64_t kSmall = 1024;  // bytes; what is smaller is told in JSON alone

std::string fixed(double value, int digits) {
  std::array<char, 64> buffer;
  std::snprintf(buffer.data(), buffer.size(), "%.*f", digits, value);
  return buffer.data();
}

std::string row(std::string_view name, const std::string& value, std::size_t width = 22) {
  std::string out = text("  ", name);
  out.resize(std::max<std::size_t>(out.size() + 1, width), ' ');
  const std::size_t pad = value.size() < 14 ? 14 - value.size() : 0;
  return out + std::string(pad, ' ') + value + "\n";
}

std::vector<WorkspaceUse> workspaces_of(const ProgramPlan& program) {
  std::map<std::tuple<std::int64_t, RegionKind, std::string_view, std::string_view>, std::int64_t>
      calls;  // by bytes below zero: the largest first
  for (const RegionPlan& region : program.regions) {
    for (const Call& call : region.calls) {
      const std::int64_t bytes = workspace_bytes(call);
      if (bytes > 0) ++calls[{-bytes, region.kind, call.op->name, kernel_name(call)}];
    }
  }
  std::vector<WorkspaceUse> out;
  for (const auto& [what, count] : calls) {
    const auto& [bytes, region, op, kernel] = what;
    out.push_back(
        {std::string(to_text(region)), std::string(op), std::string(kernel), -bytes, count});
  }
  return out;
}

/// One row of the table of kernels.
std::string kernel_row(const std::string& calls, const std::string& gflop, const std::string& moved,
                       const std::string& name) {
  const auto right = [](const std::string& value, std::size_t width) {
    return std::string(width - std::min(width, value.size()), ' ') + value;
  };
  return text(right(calls, 9), right(gflop, 13), right(moved, 13), "  ", name, "\n");
}

std::string to_text(const std::vector<KernelUse>& kernels) {
  std::string out =
      text("kernels of a step on a device\n", kernel_row("calls", "GFLOP", "moved", "op (kernel)"));
  std::int64_t small = 0;
  for (const KernelUse& use : kernels) {
    const auto bytes = static_cast<std::int64_t>(use.bytes);
    if (bytes < kSmall * use.calls) {
      small += use.calls;
      continue;
    }
    out += kernel_row(grouped(use.calls), fixed(use.flops * 1e-9, 3), bytes_text(bytes),
                      text(use.op, " (", use.kernel, ")"));
  }
  return small == 0 ? out
                    : out + text("  ", small, " calls move on average less than ",
                                 bytes_text(kSmall), " each\n");
}

/// Of the device that works longest: where its time goes.
std::string to_text(const Prediction& p, const std::string& machine) {
  const auto ms = [](double seconds) { return fixed(seconds * 1e3, 3); };
  std::string out = text("a step on ", machine, ", predicted, ms\n", row("step", ms(p.seconds)));
  for (std::size_t part = 0; part < kNumTimeParts; ++part) {
    if (p.whole[part] == 0 && p.exposed[part] == 0) continue;
    out += row(to_text(static_cast<TimePart>(part)), ms(p.exposed[part]));
    if (p.whole[part] > p.exposed[part])
      out.insert(out.size() - 1, text(" of ", ms(p.whole[part]), ", the rest overlapped"));
  }
  return out + (p.bubble > 1e-9 ? row("waiting", ms(p.bubble)) : "");
}

/// "4 x matmul, softmax"
std::string ops_text(const std::map<std::string, int>& ops) {
  std::vector<std::string> out;
  for (const auto& [op, count] : ops) out.push_back(count == 1 ? op : text(count, " x ", op));
  return join(out);
}

/// A line for each stretch of blocks that are alike.
std::string to_text(const std::vector<BlockUse>& blocks) {
  constexpr std::size_t kWidth = 34;  // 12 x layers.0 ... layers.11
  std::string kept, again;
  const auto alike = [](const BlockUse& a, const BlockUse& b) {
    return a.kept_bytes == b.kept_bytes && a.recomputed_flops == b.recomputed_flops &&
           a.recomputed_ops == b.recomputed_ops;
  };
  for (auto first = blocks.begin(); first != blocks.end();) {
    const auto end = std::find_if_not(first, blocks.end(),
                                      [&](const BlockUse& other) { return alike(*first, other); });
    const std::int64_t count = end - first;
    const std::string name =
        count == 1 ? first->block : text(count, " x ", first->block, " ... ", (end - 1)->block);
    const auto& [device, host] = first->kept_bytes;
    if (device + host > 0) {
      kept += row(name, bytes_text(device), kWidth);
      if (host > 0) kept.insert(kept.size() - 1, text(" and ", bytes_text(host), " on the host"));
    }
    if (!first->recomputed_ops.empty()) {
      again += row(name, text(fixed(first->recomputed_flops * 1e-9, 3), " GFLOP"), kWidth);
      again.insert(again.size() - 1, text("  ", ops_text(first->recomputed_ops)));
    }
    first = end;
  }
  if (!kept.empty())
    kept = text("each block keeps of a micro-batch, from forward for backward\n", kept);
  if (!again.empty()) again = text("each block recomputes in a step\n", again);
  return kept + again;
}

}  // namespace

PlanReport report_of(const Compiled& compiled, const RunSetup& setup) {
  const RunConfig& config = setup.config;
  const std::vector<const Plan*> plans = plans_of(compiled);
  std::vector<RunRequirements> stages;
  for (const Plan* plan : plans) stages.push_back(requirements_of(*plan));
  const RunRequirements all = over_all_ranks(stages);
  const auto fullest = std::ranges::find(stages, all.peak_bytes, &RunRequirements::peak_bytes);
  const Plan& plan = *plans[static_cast<std::size_t>(fullest - stages.begin())];
  const ProgramPlan& train = plan.program(kTrainProgram);
  PlanReport out;
  out.parameters = count_parameters(plan);
  if (const ModelConfig& model = config.model; has_experts(model)) {
    out.experts = model.experts.experts;
    out.active_parameters = count_active_parameters(plan, model.experts);
  }
  out.stage = plan.stage();
  out.memory = train.memory;
  out.peak_bytes = all.peak_bytes;
  out.lower_bound_bytes = all.lower_bound_bytes;
  out.base_bytes = plan.base_bytes;
  out.state_bytes = plan.state_bytes.device + plan.base_bytes;
  out.unshared_bytes = out.state_bytes + train.work.device.unshared_bytes;
  out.work_bytes = plan.work_bytes();
  out.host = host_use(config, all.host_bytes);
  out.choice = memory_choice_of(config);
  out.save_copy_bytes = save_copy_bytes(config, plan);
  out.capped_bytes = capped_bytes(config, all);
  out.mesh = mesh_report_of(compiled);
  if (const auto pipeline = planned_pipeline(compiled, setup)) {
    out.pipeline = pipeline->report();
    out.mesh.mesh = mesh_text(setup.cut);
  }
  const auto ranks = static_cast<double>(plan.mesh.ranks());  // of a stage
  out.flops_per_step = all.flops * ranks;
  out.recomputed_flops_per_step = all.recomputed_flops * ranks;
  out.tokens_per_step = setup.tokens_per_step();
  out.micro_batches = config.micro_batches();
  for (const Plan* each : plans) {
    const std::vector<BlockUse>& blocks = each->program(kTrainProgram).blocks;
    out.blocks.insert(out.blocks.end(), blocks.begin(), blocks.end());
  }
  out.kernels = kernels_of(train);
  out.workspaces = workspaces_of(train);
  out.outside = outside_arena(compiled, 0);
  if (!config.machine.empty()) {
    const Machine& machine = config.parallel.machine;
    out.machine = machine.name;
    out.prediction = predict(plans, kTrainProgram, pipeline_of(plans, kTrainProgram), machine);
  }
  out.passes = compiled.passes;
  out.compile_seconds = compiled.seconds;
  return out;
}

std::string details_text(const PlanReport& r) {
  const bool many = r.mesh.devices > 1;
  std::string out = r.pipeline ? to_text(*r.pipeline) : "";
  const std::string where = r.pipeline ? text(" on a device of stage ", r.stage, ", the fullest")
                            : many     ? " on each device"
                                       : "";
  out += text("memory of a training step", where, ", at its fullest moment\n");
  for (const MemoryPart& part : kMemoryParts)
    out += row(part.name, bytes_text(r.memory.*part.bytes));
  out += row("planned peak", bytes_text(r.peak_bytes));
  if (r.base_bytes > 0) out += row("of it in common", bytes_text(r.base_bytes));
  out += row("lower bound", bytes_text(r.lower_bound_bytes));
  out += row("without reuse", bytes_text(r.unshared_bytes));
  if (r.host.memory > 0) out += row("on the host", bytes_text(r.host.memory));
  if (r.host.file > 0) out += row("in a file", bytes_text(r.host.file));
  out += text("outside the arena: ", bytes_text(r.outside.program), " of program, ",
              bytes_text(r.outside.plan),
              " of plan and kernels, 4 bytes for each token of the "
              "text\n");
  if (r.save_copy_bytes > 0) out += row("copy to save from", bytes_text(r.save_copy_bytes));
  out += "workspaces of kernels in the arena, each\n";
  std::int64_t small = 0;
  for (const WorkspaceUse& w : r.workspaces) {
    if (w.bytes < kSmall) {
      small += w.calls;
      continue;
    }
    out += row(text(w.calls, " x ", w.region), bytes_text(w.bytes));
    out.back() = ' ';
    out += text(" ", w.op, " (", w.kernel, ")\n");
  }
  out += text("  ", small, " calls want less than ", bytes_text(kSmall), "\n");
  out += traffic_text(r.mesh);
  out += text("step\n", row("tokens", grouped(r.tokens_per_step)),
              row("micro-batches", grouped(r.micro_batches)),
              row(many ? "GFLOP of all devices" : "GFLOP", fixed(r.flops_per_step * 1e-9, 3)));
  if (r.recomputed_flops_per_step > 0)
    out += row("of these again", fixed(r.recomputed_flops_per_step * 1e-9, 3));
  if (r.prediction) out += to_text(*r.prediction, r.machine);
  out += to_text(r.kernels);
  out += to_text(r.blocks);
  out += "compile time, ms\n";
  for (const PassTime& pass : r.passes)
    out += row(text(pass.program, " ", pass.pass), fixed(pass.seconds * 1e3, 1));
  return out + row("in all", fixed(r.compile_seconds * 1e3, 1));
}

std::string to_json(const PlanReport& r) {
  nlohmann::ordered_json json;
  json["parameters"] = r.parameters;
  if (r.experts > 0) {
    json["experts"] = r.experts;
    json["active_parameters"] = r.active_parameters;
  }
  for (const MemoryPart& part : kMemoryParts) json["memory"][part.key] = r.memory.*part.bytes;
  json["planned_peak_bytes"] = r.peak_bytes;
  json["base_bytes"] = r.base_bytes;
  json["lower_bound_bytes"] = r.lower_bound_bytes;
  if (r.compiled) json["compiled"] = to_json(*r.compiled);
  json["bytes_without_reuse"] = r.unshared_bytes;
  json["planned_host_bytes"] = r.host.memory;
  json["planned_file_bytes"] = r.host.file;
  json["recompute_granularity"] = to_text(r.choice.recompute);
  json["recompute_layers"] = recomputed_layers(r.choice);
  json["micro_batch_size"] = r.choice.micro_batch_size;
  json["offload"] = offload_words(r.choice.offload);
  json["state_bytes"] = r.state_bytes;
  json["work_bytes"] = r.work_bytes;
  json["save_copy_bytes"] = r.save_copy_bytes;
  json["outside_arena_bytes"] = {{"program", r.outside.program}, {"plan", r.outside.plan}};
  json["workspaces"] = nlohmann::ordered_json::array();
  for (const WorkspaceUse& w : r.workspaces)
    json["workspaces"].push_back({{"region", w.region},
                                  {"op", w.op},
                                  {"kernel", w.kernel},
                                  {"bytes", w.bytes},
                                  {"calls", w.calls}});
  add_to(json, r.mesh);
  if (r.pipeline) add_to(json, *r.pipeline);
  json["flops_per_step"] = r.flops_per_step;
  json["recomputed_flops_per_step"] = r.recomputed_flops_per_step;
  json["kernels"] = nlohmann::ordered_json::array();
  for (const KernelUse& use : r.kernels)
    json["kernels"].push_back({{"op", use.op},
                               {"kernel", use.kernel},
                               {"calls", use.calls},
                               {"flops", use.flops},
                               {"bytes", use.bytes}});
  json["blocks"] = nlohmann::ordered_json::array();
  for (const BlockUse& block : r.blocks)
    json["blocks"].push_back({{"block", block.block},
                              {"kept_bytes", block.kept_bytes.device},
                              {"kept_host_bytes", block.kept_bytes.host},
                              {"recomputed_flops", block.recomputed_flops},
                              {"recomputed_ops", block.recomputed_ops}});
  if (r.prediction) {
    json["machine"] = r.machine;
    json["predicted_step_seconds"] = r.prediction->seconds;
    for (std::size_t part = 0; part < kNumTimeParts; ++part)
      json["predicted_parts"][std::string(to_text(static_cast<TimePart>(part)))] = {
          {"exposed_seconds", r.prediction->exposed[part]}, {"seconds", r.prediction->whole[part]}};
    json["predicted_parts"]["waiting"]["exposed_seconds"] = r.prediction->bubble;
  }
  json["tokens_per_step"] = r.tokens_per_step;
  json["micro_batches"] = r.micro_batches;
  json["compile_seconds"] = r.compile_seconds;
  json["passes"] = nlohmann::ordered_json::array();
  for (const PassTime& pass : r.passes)
    json["passes"].push_back(
        {{"program", pass.program}, {"pass", pass.pass}, {"seconds", pass.seconds}});
  return json.dump(2) + "\n";
}

}  // namespace tessera
