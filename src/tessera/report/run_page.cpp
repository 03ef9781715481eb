/// The report of runs as a page.

#include <algorithm>

#include "tessera/base/format.h"
#include "tessera/base/text.h"
#include "tessera/report/bar_chart.h"
#include "tessera/report/page.h"
#include "tessera/report/run_report.h"

namespace tessera {

namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr std::size_t kMostKernels = 20;

/// A row for each name that a run has, with a column for each run.
template <typename Pairs>
Rows beside_each_other(const std::vector<RunReport>& runs, const char* what, const Pairs& pairs) {
  Rows out = {{what}};
  for (const RunReport& run : runs) out.front().push_back(run.name);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const auto& [name, value] : pairs(runs[i])) {
      auto row = std::ranges::find_if(
          out, [&](const std::vector<std::string>& known) { return known.front() == name; });
      if (row == out.end()) {
        out.push_back(std::vector<std::string>(runs.size() + 1));
        out.back().front() = name;
        row = out.end() - 1;
      }
      (*row)[i + 1] = value;
    }
  }
  return out;
}

/// What a metric is called above its drawing.
std::string title_of(const std::string& key) {
  constexpr std::pair<const char*, const char*> kTitles[] = {
      {"loss", "Loss"},
      {"lr", "Learning rate"},
      {"grad_norm", "Gradient norm, before clipping"},
      {"tokens_per_s", "Tokens per second"},
      {"loss_scale", "Loss scale"},
      {"bleu", "BLEU"}};
  for (const auto& [known, title] : kTitles) {
    if (key == known) return title;
  }
  std::string out = key;
  std::ranges::replace(out, '_', ' ');
  return out;
}

const LossPoints* points_of(const RunReport& run, std::string_view kind, std::string_view key) {
  for (const MetricSeries& one : run.series) {
    if (one.kind == kind && one.key == key) return &one.points;
  }
  return nullptr;
}

/// Of all runs, in the order of first occurrence.
std::vector<std::string> keys_of(const std::vector<RunReport>& runs) {
  std::vector<std::string> out;
  for (const RunReport& run : runs) {
    for (const MetricSeries& one : run.series) {
      const bool is_time = one.key == "step_seconds";  // tokens per second, upside down
      if (!is_time && std::ranges::find(out, one.key) == out.end()) out.push_back(one.key);
    }
  }
  return out;
}

/// A drawing of a metric; empty where no run has it. A run has the same colour in each.
std::string drawn(const std::vector<LossCurve>& curves, const std::string& title,
                  const CurveWords& words) {
  const bool any = std::ranges::any_of(
      curves, [](const LossCurve& curve) { return !curve.train.empty() || !curve.valid.empty(); });
  return any ? loss_chart(curves, title, words) : "";
}

/// Lines of steps, dots of validations; scores of epochs have a drawing of their own.
std::string drawings(const std::vector<RunReport>& runs, const std::string& key) {
  std::vector<LossCurve> curves, scores;
  bool validated = false;
  for (const RunReport& run : runs) {
    const auto points = [&](const char* kind) {
      const LossPoints* const found = points_of(run, kind, key);
      return found == nullptr ? LossPoints() : *found;
    };
    curves.push_back({run.name, points("train"), points("valid")});
    // What a validation measures too is drawn with it.
    scores.push_back({run.name, {}, points("valid").empty() ? points("eval") : LossPoints()});
    validated = validated || !curves.back().valid.empty();
  }
  return drawn(curves, text(title_of(key), " against steps"),
               validated ? CurveWords{} : CurveWords{"", ""}) +
         drawn(scores, text(title_of(key), " in validation"), {"", ""});
}

std::string memory_bars(const RunReport& run) {
  std::vector<Bar> bars;
  std::int64_t all = 0;
  for (const auto& [name, bytes] : run.memory) all += bytes;
  bars.push_back({"together", bytes_text(all), static_cast<double>(all)});
  for (const auto& [name, bytes] : run.memory)
    bars.push_back({name, bytes_text(bytes), static_cast<double>(bytes)});
  return bar_chart(text(run.name, ": memory of rank 0 at the fullest moment of a step, as planned"),
                   bars);
}

std::string kernels_of(const RunReport& run) {
  Rows rows = {{"kernel", "op", "block", "calls", "ms of a step", "share", "floor"}};
  for (const RecordedKernel& one : run.kernels) {
    if (rows.size() > kMostKernels) break;
    rows.push_back(
        {one.kernel, one.op, one.block, number_text(one.calls), format("%.3f", one.seconds * 1e3),
         format("%.1f %%", one.share * 100),
         one.seconds > 0 ? format("%.0f %%", one.floor_seconds / one.seconds * 100) : ""});
  }
  return page::heading(text("Slowest kernels of ", run.name)) + page::table(rows) +
         page::paragraph(
             "floor: the shortest possible time of the kernel, in per cent of its time; 100 % is "
             "best");
}

std::string checkpoints_of(const RunReport& run) {
  Rows rows = {{"checkpoint", "size", ""}};
  for (const RecordedCheckpoint& one : run.checkpoints)
    rows.push_back({one.name, bytes_text(one.bytes), one.best ? "best" : ""});
  return page::heading(text("Checkpoints of ", run.name)) + page::table(rows);
}

std::string lines_of(const std::string& title, const std::vector<std::string>& lines) {
  std::string out = page::heading(title);
  for (const std::string& line : lines) out += page::paragraph(line);
  return out;
}

std::string configurations(const std::vector<RunReport>& runs) {
  Rows rows = beside_each_other(runs, "field", [](const RunReport& run) {
    std::vector<std::pair<std::string, std::string>> out;
    for (const ChangedField& field : run.changed) out.emplace_back(field.name, field.value);
    return out;
  });
  if (rows.size() == 1) return "";
  rows.front().emplace_back("default");
  for (std::size_t i = 1; i < rows.size(); ++i) {
    for (const RunReport& run : runs) {
      const auto field = std::ranges::find(run.changed, rows[i].front(), &ChangedField::name);
      if (field == run.changed.end()) continue;
      rows[i].resize(runs.size() + 1);
      rows[i].push_back(field->standard);
    }
    // A run of which the row says nothing has the default, where its fields are known.
    for (std::size_t r = 1; r <= runs.size(); ++r) {
      if (rows[i][r].empty()) rows[i][r] = runs[r - 1].configured ? rows[i].back() : "?";
    }
  }
  return page::heading("Configuration: values other than the defaults") + page::table(rows);
}

}  // namespace

std::string to_html(const std::vector<RunReport>& runs) {
  std::vector<std::string> names;
  for (const RunReport& run : runs) names.push_back(run.name);
  std::string out = page::begin(text("tessera report: ", join(names)));
  out +=
      page::table(beside_each_other(runs, "run", [](const RunReport& run) { return run.facts; }));
  for (const RunReport& run : runs) {
    for (const std::string& remark : run.remarks)
      out += page::paragraph(text(run.name, ": ", remark));
  }
  out += page::heading("Curves");
  std::string curves;
  for (const std::string& key : keys_of(runs)) curves += drawings(runs, key);
  out += page::beside(curves);
  if (std::ranges::any_of(runs, [](const RunReport& run) { return !run.memory.empty(); }))
    out += page::heading("Memory");
  std::string memory;
  for (const RunReport& run : runs) memory += run.memory.empty() ? "" : memory_bars(run);
  out += page::beside(memory);
  out += configurations(runs);
  for (const RunReport& run : runs) {
    if (!run.kernels.empty()) out += kernels_of(run);
    if (!run.notices.empty())
      out += lines_of(text("Notices of ", run.name, ", in its last invocation"), run.notices);
    if (!run.checkpoints.empty()) out += checkpoints_of(run);
  }
  return out + page::end();
}

}  // namespace tessera
