#include "tessera/planner/answer.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tessera/base/format.h"
#include "tessera/base/index.h"
#include "tessera/base/size.h"
#include "tessera/base/text.h"
#include "tessera/plan/memory_parts.h"
#include "tessera/planner/explain.h"
#include "tessera/planner/plan_speed.h"
#include "tessera/report/compiled_report.h"
#include "tessera/report/pipeline_report.h"
#include "tessera/train/host_pool.h"
#include "tessera/train/run_requirements.h"

namespace tessera {

namespace {

using Json = nlohmann::ordered_json;

std::string row(std::string_view name, const std::string& value, std::string_view more = "") {
  std::string out = format("  %-24s %14s", std::string(name).c_str(), value.c_str());
  return text(out, more.empty() ? "" : "  ", more, "\n");
}

std::string share_text(double part, double whole) { return format("%.1f %%", 100 * part / whole); }

std::vector<StageFacts> stages_of(const PlanAnswer& answer) {
  std::vector<StageFacts> out;
  for (const Plan* plan : plans_of(*answer.compiled))
    out.push_back(stage_facts_of(*plan, answer.config));
  return out;
}

std::string time_text(const PlanAnswer& answer) {
  const Prediction& p = answer.best().verdict.predicted;
  std::string out = "time of a step, of the device that works longest\n";
  for (std::size_t part = 0; part < kNumTimeParts; ++part) {
    if (p.exposed[part] == 0 && p.whole[part] == 0) continue;
    const bool hidden = p.whole[part] > p.exposed[part];
    out += row(to_text(static_cast<TimePart>(part)), seconds_text(p.exposed[part]),
               hidden ? text("of ", seconds_text(p.whole[part]), ", the rest overlapped") : "");
  }
  if (p.bubble > 0) out += row("waiting for other stages", seconds_text(p.bubble));
  return out + row("in all", seconds_text(p.seconds));
}

std::string speed_text(const PlanAnswer& answer, const PlanQuestion& question) {
  const PlanSpeed speed = speed_of(answer, question);
  std::string out = "speed\n";
  out += row("tokens/s", grouped(std::llround(speed.tokens_per_s)));
  out += row("samples/s", format("%.4g", speed.samples_per_s));
  if (speed.mfu)
    out += row("MFU", share_text(*speed.mfu, 1),
               text("of ", format("%.4g", 1e-12 * speed.peak_flops_per_s), " TFLOP/s a device"));
  return out + text("  ", known_error_text(question), "\n");
}

std::string memory_text(const PlanAnswer& answer, const PlanQuestion& question) {
  const std::vector<StageFacts> stages = stages_of(answer);
  std::vector<MemoryPart> parts(std::begin(kMemoryParts), std::end(kMemoryParts));
  std::erase_if(parts, [&](const MemoryPart& part) {
    return std::ranges::all_of(
        stages, [&](const StageFacts& stage) { return stage.memory.*part.bytes == 0; });
  });
  const auto compiled_cell = [&](const std::string& value) {
    return answer.by_compiler ? format(" %12s", value.c_str()) : "";
  };
  std::string out = text("memory of a device, by stage\n", format("  %5s %12s", "stage", "peak"),
                         compiled_cell("as compiled"));
  const auto cell = [](const MemoryPart& part, const std::string& value) {
    return format(" %*s", std::max(12, static_cast<int>(std::string_view(part.name).size())),
                  value.c_str());
  };
  for (const MemoryPart& part : parts) out += cell(part, part.name);
  out += "\n";
  for (std::size_t s = 0; s < stages.size(); ++s) {
    out += format("  %5zu %12s", s, bytes_text(stages[s].rank.peak_bytes).c_str());
    if (answer.by_compiler) out += compiled_cell(bytes_text(answer.by_compiler->stages[s].peak()));
    for (const MemoryPart& part : parts)
      out += cell(part, bytes_text(stages[s].memory.*part.bytes));
    out += "\n";
  }
  if (question.cap)
    out += text("  the cap is ", bytes_text(*question.cap), ", of which ",
                bytes_text(*question.room()), " may be planned\n");
  if (answer.by_compiler) out += text("  as compiled ", to_text(*answer.by_compiler), "\n");
  const HostUse host = host_use(answer.config, answer.best().verdict.host());
  if (host.memory > 0) out += text("  on the host ", bytes_text(host.memory), "\n");
  return host.file > 0 ? out + text("  in a file ", bytes_text(host.file), "\n") : out;
}

}  // namespace

std::string to_text(const PlanAnswer& answer, const PlanQuestion& question) {
  const PlanChoice& choice = answer.best().considered.choice;
  const double seconds = answer.best().seconds();
  std::string out =
      text("plan for ", question.machine_name(), ", ", choice.devices(), " of ", question.devices,
           " devices\n  ", to_text(choice), "\n  ", plan_text(question.base, choice), "\n");
  out += time_text(answer) + speed_text(answer, question) + memory_text(answer, question);
  out += "what binds\n";
  for (const Share& share : answer.binds) {
    if (share.seconds > 0)
      out += row(share.what, seconds_text(share.seconds), share_text(share.seconds, seconds));
  }
  out += "other plans\n";
  for (const Alternative& each : answer.alternatives)
    out += text("  ", seconds_text(each.seconds), each.whole ? "" : " (about)", ", ",
                bytes_text(each.bytes), ": ", to_text(each.choice), "\n    ", each.why, "\n");
  if (!answer.what_if.empty()) out += "what more resources would gain\n";
  for (const WhatIf& each : answer.what_if) {
    out += text("  ", each.what, ": ", seconds_text(each.seconds), ", ",
                format("%.2f %% less", 100 * (1 - each.seconds / seconds)), "\n");
    if (!each.changes.empty()) out += text("    ", each.changes, "\n");
  }
  return out + text("search: ", format("%.1f s", answer.search_seconds), ", ", answer.short_models,
                    " short models and ", answer.found.whole_plans, " whole plans compiled, ",
                    answer.found.considered.size(), " plans compared",
                    answer.found.complete ? "" : "; it ended before all plans were compared", "\n");
}

std::string to_json(const PlanAnswer& answer, const PlanQuestion& question) {
  const Candidate& best = answer.best();
  const Prediction& p = best.verdict.predicted;
  Json json;
  json["plan"] = plan_flags(question.base, best.considered.choice);
  json["summary"] = to_text(best.considered.choice);
  json["machine"] = question.machine_name();
  json["devices"] = best.considered.choice.devices();
  json["predicted_step_seconds"] = p.seconds;
  for (std::size_t part = 0; part < kNumTimeParts; ++part)
    json["predicted_parts"][std::string(to_text(static_cast<TimePart>(part)))] = {
        {"exposed_seconds", p.exposed[part]}, {"seconds", p.whole[part]}};
  json["predicted_parts"]["waiting"]["exposed_seconds"] = p.bubble;
  const PlanSpeed speed = speed_of(answer, question);
  json["predicted_tokens_per_s"] = speed.tokens_per_s;
  json["predicted_samples_per_s"] = speed.samples_per_s;
  json["predicted_mfu"] = speed.mfu ? Json(*speed.mfu) : Json(nullptr);
  const std::string& known_error = question.machine.known_error;
  json["known_error"] = known_error.empty() ? Json(nullptr) : Json(known_error);
  json["planned_peak_bytes"] = best.verdict.peak();
  if (answer.by_compiler) json["compiled"] = to_json(*answer.by_compiler);
  const HostUse host = host_use(answer.config, best.verdict.host());
  json["planned_host_bytes"] = host.memory;
  json["planned_file_bytes"] = host.file;
  json["memory_cap_bytes"] = question.cap ? Json(*question.cap) : Json(nullptr);
  json["memory_margin_percent"] = question.margin;
  json["stages"] = Json::array();
  for (const StageFacts& stage : stages_of(answer)) {
    Json each{{"peak_bytes", stage.rank.peak_bytes}, {"state_bytes", stage.state_bytes}};
    for (const MemoryPart& part : kMemoryParts) each["memory"][part.key] = stage.memory.*part.bytes;
    json["stages"].push_back(std::move(each));
  }
  json["binds"] = Json::array();
  for (const Share& share : answer.binds)
    json["binds"].push_back({{"what", share.what}, {"seconds", share.seconds}});
  json["alternatives"] = Json::array();
  for (const Alternative& each : answer.alternatives)
    json["alternatives"].push_back({{"plan", plan_flags(question.base, each.choice)},
                                    {"summary", to_text(each.choice)},
                                    {"predicted_step_seconds", each.seconds},
                                    {"planned_peak_bytes", each.bytes},
                                    {"compiled", each.whole},
                                    {"fits", each.fits},
                                    {"why", each.why}});
  json["what_if"] = Json::array();
  for (const WhatIf& each : answer.what_if)
    json["what_if"].push_back({{"what", each.what},
                               {"predicted_step_seconds", each.seconds},
                               {"gain", 1 - each.seconds / p.seconds},
                               {"plan", each.changes}});
  json["whole_plans"] = Json::array();
  for (const Candidate& each : answer.found.fit)
    json["whole_plans"].push_back(
        {{"summary", to_text(each.considered.choice)},
         {"predicted_step_seconds", each.seconds()},
         {"planned_peak_bytes", each.verdict.peak()},
         {"composed_step_seconds", each.considered.composed.seconds},
         {"composed_peak_bytes", std::llround(each.considered.composed.peak_bytes())}});
  json["search_seconds"] = answer.search_seconds;
  json["search"] = {{"short_models", answer.short_models},
                    {"whole_plans", answer.found.whole_plans},
                    {"plans_compared", answer.found.considered.size()},
                    {"complete", answer.found.complete}};
  return json.dump(2) + "\n";
}

}  // namespace tessera
