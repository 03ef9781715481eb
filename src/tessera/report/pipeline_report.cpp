#include "tessera/report/pipeline_report.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/format.h"
#include "tessera/base/index.h"
#include "tessera/base/text.h"
#include "tessera/plan/memory_parts.h"
#include "tessera/report/json/reports.h"
#include "tessera/train/programs.h"

namespace tessera {

namespace {

StageReport stage_of(const Pipeline& pipeline, int stage, const PipelineFacts& facts) {
  StageReport out;
  for (int chunk = 0; chunk < pipeline.chunks(); ++chunk) {
    if (pipeline.stage_of(chunk) != stage) continue;
    out.chunks.push_back(chunk);
    if (facts.cut.empty()) continue;
    std::vector<std::string>& blocks = out.blocks.emplace_back();
    for (const ChunkPin& pin : facts.cut) {
      if (pin.chunk == chunk) blocks.push_back(pin.blocks);
    }
  }
  out.in_flight = pipeline.in_flight(stage);
  if (!facts.stages.empty()) out.facts = facts.stages.at(at(stage));
  for (const Action& action : pipeline.schedule().stages[at(stage)])
    out.actions.push_back(to_text(action, pipeline.schedule()));
  return out;
}

/// "layers." and 3 of "layers.3"; a number below 0 where there is none at the end.
std::pair<std::string_view, std::int64_t> numbered(std::string_view block) {
  const std::size_t begin = block.find_last_not_of("0123456789") + 1;  // npos + 1 is 0
  std::int64_t number = -1;
  std::from_chars(block.data() + begin, block.data() + block.size(), number);
  return {block.substr(0, begin), number};
}

std::string percent(double share) { return format("%.1f %%", 100 * share); }

/// By stage: what `Take` makes of its facts.
template <typename Take>
nlohmann::ordered_json by_stage(const std::vector<StageReport>& stages, const Take& take) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const StageReport& stage : stages) out.push_back(take(stage.facts));
  return out;
}

nlohmann::ordered_json memory_of(const StageFacts& facts) {
  nlohmann::ordered_json out;
  for (const MemoryPart& part : kMemoryParts) out[part.key] = facts.memory.*part.bytes;
  return out;
}

void add_facts(nlohmann::ordered_json& out, const std::vector<StageReport>& stages) {
  using F = StageFacts;
  out["planned_peak_bytes"] = by_stage(stages, [](const F& f) { return f.rank.peak_bytes; });
  out["planned_host_bytes"] = by_stage(stages, [](const F& f) { return f.host.memory; });
  out["planned_file_bytes"] = by_stage(stages, [](const F& f) { return f.host.file; });
  out["lower_bound_bytes"] = by_stage(stages, [](const F& f) { return f.rank.lower_bound_bytes; });
  out["state_bytes"] = by_stage(stages, [](const F& f) { return f.state_bytes; });
  out["memory"] = by_stage(stages, memory_of);
  out["sent_bytes_per_step"] = by_stage(stages, [](const F& f) { return f.rank.sent; });
  out["flops_per_step"] = by_stage(stages, [](const F& f) { return f.rank.flops; });
}

}  // namespace

StageFacts stage_facts_of(const Plan& plan, const RunConfig& config) {
  return {requirements_of(plan), plan.state_bytes.device, plan.program(kTrainProgram).memory,
          host_use(config, plan.host_bytes())};
}

PipelineReport report_of(const std::string& schedule, const Pipeline& pipeline,
                         const PipelineFacts& facts) {
  const std::size_t stages = pipeline.schedule().stages.size();
  check(facts.stages.empty() || facts.stages.size() == stages, "facts of ", facts.stages.size(),
        " stages for a pipeline of ", stages);
  const std::vector<Spans> played = pipeline.play(facts.prices);
  PipelineReport out;
  out.schedule = schedule;
  out.micro_batches = pipeline.microbatches();
  out.bubble_ideal = bubble(pipeline.play());
  out.bubble = bubble(played);
  out.makespan = makespan(played);
  out.priced = facts.prices.cost != nullptr || facts.prices.send > 0 || !facts.prices.sends.empty();
  for (std::size_t i = 0; i < stages; ++i)
    out.stages.push_back(stage_of(pipeline, static_cast<int>(i), facts));
  return out;
}

std::string blocks_text(const std::vector<std::string>& blocks) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < blocks.size();) {
    const auto [name, first] = numbered(blocks[i]);
    std::size_t end = i + 1;
    while (end < blocks.size() && first >= 0 &&
           numbered(blocks[end]) == std::pair(name, first + static_cast<std::int64_t>(end - i)))
      ++end;
    if (end - i > 2) {
      out.push_back(text(blocks[i], " ... ", blocks[end - 1]));
      i = end;
    } else {
      out.push_back(blocks[i++]);
    }
  }
  return join(out);
}

std::string headline(const PipelineReport& r) {
  return text(r.schedule, ": ", counted(std::ssize(r.stages), "stage"), ", ",
              counted(std::ssize(r.stages[0].chunks), "chunk"), " on each, ", r.micro_batches,
              r.micro_batches == 1 ? " micro-batch" : " micro-batches");
}

std::string starved_text(const PipelineReport& r) {
  if (r.micro_batches >= std::ssize(r.stages)) return "";
  return "  fewer micro-batches than stages: some always wait; lower --micro-batch-size\n";
}

std::string to_text(const PipelineReport& r) {
  const bool peaks = r.stages[0].facts.rank.peak_bytes > 0;
  std::string out = text("pipeline              ", headline(r), "\n  stage  in flight",
                         peaks ? "  planned peak" : "", "   chunks\n");
  for (std::size_t i = 0; i < r.stages.size(); ++i) {
    const StageReport& stage = r.stages[i];
    std::vector<std::string> chunks;
    for (std::size_t c = 0; c < stage.chunks.size(); ++c)
      chunks.push_back(text(stage.chunks[c],
                            c < stage.blocks.size() ? ": " + blocks_text(stage.blocks[c]) : ""));
    out += format("  %5d %10d", static_cast<int>(i), static_cast<int>(stage.in_flight));
    if (peaks) out += format(" %13s", bytes_text(stage.facts.rank.peak_bytes).c_str());
    out += text("   ", join(chunks, "; "), "\n");
  }
  const auto line = [&](const char* name, double share, const char* meaning) {
    out += format("  %-20s %13s   %s\n", name, percent(share).c_str(), meaning);
  };
  if (r.priced) line("bubble", r.bubble, "of a step, as priced");
  line("bubble, ideal", r.bubble_ideal, "if F, B and W of a chunk took the same time, sends none");
  return out + starved_text(r);
}

void add_to(nlohmann::ordered_json& json, const PipelineReport& r) {
  using Json = nlohmann::ordered_json;
  Json out{{"schedule", r.schedule},
           {"stages", r.stages.size()},
           {"micro_batches", r.micro_batches},
           {"bubble_ideal", r.bubble_ideal},
           {"bubble", r.bubble}};
  Json chunks = Json::array();
  out["in_flight"] = out["actions"] = Json::array();
  for (std::size_t i = 0; i < r.stages.size(); ++i) {
    const StageReport& stage = r.stages[i];
    out["in_flight"].push_back(stage.in_flight);
    out["actions"].push_back(stage.actions);
    for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
      Json chunk{{"chunk", stage.chunks[c]}, {"stage", i}};
      if (c < stage.blocks.size()) chunk["blocks"] = stage.blocks[c];
      chunks.push_back(std::move(chunk));
    }
  }
  std::sort(chunks.begin(), chunks.end(),
            [](const Json& a, const Json& b) { return a["chunk"] < b["chunk"]; });
  out["chunks"] = std::move(chunks);
  if (r.stages[0].facts.rank.peak_bytes > 0) add_facts(out, r.stages);
  json["pipeline"] = std::move(out);
}

}  // namespace tessera
