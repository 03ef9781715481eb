#include "tessera/planner/answer_page.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/format.h"
#include "tessera/base/index.h"
#include "tessera/base/size.h"
#include "tessera/base/text.h"
#include "tessera/plan/memory_parts.h"
#include "tessera/planner/explain.h"
#include "tessera/planner/plan_speed.h"
#include "tessera/report/bar_chart.h"
#include "tessera/report/page.h"
#include "tessera/report/planned_pipeline.h"
#include "tessera/report/svg.h"

namespace tessera {

namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string milliseconds(double seconds) { return format("%.3f", 1e3 * seconds); }

std::string time_table(const Prediction& p) {
  Rows rows = {{"part", "ms, while nothing else ran", "ms in all"}};
  for (std::size_t part = 0; part < kNumTimeParts; ++part)
    rows.push_back({std::string(to_text(static_cast<TimePart>(part))),
                    milliseconds(p.exposed[part]), milliseconds(p.whole[part])});
  rows.push_back({"waiting for other stages", milliseconds(p.bubble), ""});
  rows.push_back({"a step", milliseconds(p.seconds), ""});
  return page::table(rows);
}

std::string speed_part(const PlanAnswer& answer, const PlanQuestion& question) {
  const PlanSpeed speed = speed_of(answer, question);
  return page::paragraph(text(
             grouped(std::llround(speed.tokens_per_s)), " tokens/s, ",
             format("%.4g samples/s", speed.samples_per_s),
             speed.mfu ? format(", %.1f %% of the devices' peak (MFU)", 100 * *speed.mfu) : "")) +
         page::paragraph(known_error_text(question));
}

std::string memory_part(const PlanAnswer& answer) {
  Rows rows = {{"stage", "peak"}};
  for (const MemoryPart& part : kMemoryParts) rows[0].emplace_back(part.name);
  std::vector<Bar> bars;
  for (const Plan* plan : plans_of(*answer.compiled)) {
    const MemoryUse& use = plan->program(kTrainProgram).memory;
    const std::int64_t peak = plan->peak_bytes();
    rows.push_back({text(plan->stage()), bytes_text(peak)});
    for (const MemoryPart& part : kMemoryParts) rows.back().push_back(bytes_text(use.*part.bytes));
    bars.push_back(
        {text("stage ", plan->stage()), bytes_text(peak), static_cast<double>(peak), {}});
  }
  return bar_chart("Memory of a device, at its fullest moment", bars) + page::table(rows);
}

std::string other_plans(const PlanAnswer& answer) {
  Rows rows = {{"plan", "a step", "memory", "why it lost"}};
  for (const Alternative& each : answer.alternatives)
    rows.push_back({to_text(each.choice),
                    text(each.whole ? "" : "about ", seconds_text(each.seconds)),
                    bytes_text(each.bytes), each.why});
  return page::table(rows, 1);
}

std::string shares(const PlanAnswer& answer) {
  Rows rows = {{"what", "time", "of a step"}};
  for (const Share& share : answer.binds)
    rows.push_back({share.what, seconds_text(share.seconds),
                    format("%.1f %%", 100 * share.seconds / answer.best().seconds())});
  return page::table(rows);
}

std::string more(const PlanAnswer& answer) {
  Rows rows = {{"what", "a step", "less"}};
  for (const WhatIf& each : answer.what_if)
    rows.push_back({each.what, seconds_text(each.seconds),
                    format("%.2f %%", 100 * (1 - each.seconds / answer.best().seconds()))});
  return page::table(rows);
}

/// "dp 3, tp 1": where a rank of a stage lies along the axes.
std::string place_text(const Mesh& mesh, std::int64_t rank) {
  std::string out;
  for (const Axis& axis : mesh.axes())
    out += text(out.empty() ? "" : ", ", axis.name, " ", rank / mesh.stride(axis.name) % axis.size);
  return out;
}

}  // namespace

std::string topology_svg(const PlanAnswer& answer, const PlanQuestion& question) {
  constexpr std::int64_t kMostServers = 16, kWidth = 110, kHeight = 44, kLeft = 80, kTop = 40;
  const Plan& plan = answer.compiled->plan;
  const std::int64_t ranks = plan.ranks(), server = question.machine.devices(Level::Socket);
  const std::int64_t in_row = std::clamp<std::int64_t>(server > 0 ? server : ranks, 1, 16);
  const std::int64_t rows = std::min((ranks + in_row - 1) / in_row, kMostServers);
  std::string out =
      svg::begin(static_cast<double>(kLeft + in_row * kWidth + 10),
                 static_cast<double>(kTop + rows * kHeight + 10), "Where ranks lie", R"(
  .box { stroke: #5a6676; }
  .small { font-size: 10px; })");
  out += svg::written(10, 22, "title",
                      text("Ranks on the first ", rows, " of ", (ranks + in_row - 1) / in_row,
                           server > 0 ? " servers" : " rows of devices"));
  for (std::int64_t rank = 0; rank < rows * in_row && rank < ranks; ++rank) {
    const std::int64_t stage = rank / plan.mesh.ranks();
    const auto x = static_cast<double>(kLeft + rank % in_row * kWidth),
               y = static_cast<double>(kTop + rank / in_row * kHeight);
    out += format("<rect class=\"box\" x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\" ", x, y,
                  static_cast<int>(kWidth - 4), static_cast<int>(kHeight - 6));
    out += format("fill=\"hsl(%d 60%% 60%% / 0.35)\"/>\n", static_cast<int>(stage * 47 % 360));
    out += svg::written(x + 4, y + 15, "small", text("rank ", rank, ", stage ", stage));
    out += svg::written(x + 4, y + 30, "small", place_text(plan.mesh, rank % plan.mesh.ranks()));
    if (rank % in_row == 0)
      out += svg::written(10, y + 24, "", text(server > 0 ? "server " : "row ", rank / in_row));
  }
  return out + "</svg>\n";
}

std::string to_html(const PlanAnswer& answer, const PlanQuestion& question) {
  const PlanChoice& choice = answer.best().considered.choice;
  std::string out = page::begin(text("Plan for ", question.machine_name()));
  out += page::paragraph(
             text(choice.devices(), " of ", question.devices, " devices: ", to_text(choice))) +
         page::paragraph(plan_text(question.base, choice));
  out += page::heading("Time of a step, of the device that works longest") +
         time_table(answer.best().verdict.predicted) + speed_part(answer, question);
  out += page::heading("Topology") + page::wide(topology_svg(answer, question));
  if (const auto pipeline = planned_pipeline(*answer.compiled, RunSetup(answer.config)))
    out += page::heading("The pipeline in time") + page::wide(pipeline->svg());
  out += page::heading("Memory by stage") + memory_part(answer);
  out += page::heading("What binds") + shares(answer);
  out += page::heading("Other plans, and why they lost") + other_plans(answer);
  out += page::heading("What more resources would gain") + more(answer);
  return out + page::end();
}

}  // namespace tessera
