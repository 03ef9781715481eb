#include "tessera/bench/verify.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tessera/base/counted.h"
#include "tessera/base/format.h"
#include "tessera/base/index.h"
#include "tessera/base/text.h"
#include "tessera/bench/random_steps.h"
#include "tessera/models/family.h"
#include "tessera/train/programs.h"
#include "tessera/train/rank_group.h"

namespace tessera {

namespace {

constexpr double kTolerance = 1e-4;  // of f32 sums in another order
constexpr double kNoise = 1e-6;      // of the global norm: gradients below are rounding
constexpr std::size_t kShownRows = 10;

/// Sums of squares of the differences and of the numbers; noise is left out, but must stay small.
struct Distance {
  double difference = 0, size = 0;
  bool noise_is_small = true;
  double relative(double least) const {
    return std::sqrt(difference) / std::max({std::sqrt(size), least, 1e-300});
  }
  /// Of a gradient: where its terms cancel, rounding has no digits in common with what is left, so
  /// that the difference may be `noise` too.
  double relative_or_noise(double noise) const { return relative(noise / kTolerance); }
};

/// Of a parameter, by element: noise was its gradient at a step, so that Adam has carried it apart.
using Adrift = std::vector<bool>;

void find_noise(const HostTensor& one, const HostTensor& mesh, double noise, Adrift& adrift) {
  adrift.resize(static_cast<std::size_t>(one.numel()));
  for (std::int64_t i = 0; i < one.numel(); ++i)
    if (std::abs(one.at(i)) < noise && mesh.at(i) != one.at(i)) adrift[at(i)] = true;
}

/// `bound`: how far elements that are adrift may be apart.
Distance tensor_distance(const HostTensor& one, const HostTensor& mesh, const Adrift& adrift = {},
                         double bound = 0) {
  Distance out;
  for (std::int64_t i = 0; i < one.numel(); ++i) {
    const double x = one.at(i), d = mesh.at(i) - x;
    if (!adrift.empty() && adrift[at(i)]) {
      out.noise_is_small = out.noise_is_small && std::abs(d) <= bound;
      continue;
    }
    out.difference += d * d;
    out.size += x * x;
  }
  return out;
}

class Comparison {
 public:
  void take(const std::string& name, std::int64_t step, double error, bool ok) {
    if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
    VerifyRow& row = rows_.try_emplace(name, VerifyRow{name, step, -1, true}).first->second;
    if (error > row.error) row.error = error, row.step = step;
    row.ok = row.ok && ok && error <= kTolerance;
  }

  std::vector<VerifyRow> rows() const {
    std::vector<VerifyRow> out;
    for (const auto& [name, row] : rows_) out.push_back(row);
    std::stable_sort(out.begin(), out.end(), [](const VerifyRow& a, const VerifyRow& b) {
      return a.ok != b.ok ? b.ok : a.error > b.error;
    });
    return out;
  }

 private:
  std::map<std::string, VerifyRow> rows_;
};

double relative(double one, double mesh) {
  return std::abs(mesh - one) / std::max(std::abs(one), 1e-300);
}

}  // namespace

std::vector<StepTrace> trace_steps(RunConfig config, std::int64_t steps, const Backend& backend,
                                   Communicator* world) {
  config.dump_dir.clear();
  // 16-bit rounding depends on the order of sums by far more than an error of the mesh may hide in;
  // without it, there is nothing to scale.
  config.optimizer.loss_scale.on = false;
  const RunSetup setup(std::move(config));
  const WantedPrograms wanted{.evaluate = false, .texts = 0, .gradients = true, .rounded = false};
  const int rank = world == nullptr ? 0 : world->rank();
  RankGroup group(compile_programs(setup, wanted, backend, rank).plan, backend, world);
  std::vector<StepTrace> out;
  run_random_steps(group, setup, steps, [&](double) {
    StepTrace trace;
    const Engine& mine = group.engine();
    trace.loss = mine.scalar(kTrainProgram, "loss");
    trace.grad_norm = mine.scalar(kTrainProgram, "grad_norm");
    trace.lr = mine.scalar(kTrainProgram, "lr");
    for (const TaskMean& mean : setup.task().means) {
      if (mean.weight != 0 && mean.name != kLossMean)
        trace.means.emplace(mean.name, mine.scalar(kTrainProgram, mean.name));
    }
    for (const NamedTensor& metric : group.plan().program(kTrainProgram).metrics) {
      if (starts_with(metric.name, "gradient "))
        trace.gradients.emplace(metric.name.substr(9), mine.metric(kTrainProgram, metric.name));
    }
    for (const CheckpointTensor& state : group.states()) {
      if (!is_of_model(state.role)) continue;
      HostTensor value(state.type);
      std::copy(state.bytes.begin(), state.bytes.end(), value.bytes().begin());
      trace.parameters.emplace(state.name, std::move(value));
    }
    group.forget_states();
    out.push_back(std::move(trace));
  });
  return out;
}

bool VerifyReport::ok() const {
  return std::all_of(rows.begin(), rows.end(), [](const VerifyRow& row) { return row.ok; });
}

VerifyReport compare_traces(const std::vector<StepTrace>& one, const std::vector<StepTrace>& mesh) {
  Comparison all;
  std::map<std::string, Adrift> adrift;
  double moved = 0;  // how far noise may have carried an element apart
  for (std::size_t i = 0; i < one.size(); ++i) {
    const auto step = static_cast<std::int64_t>(i) + 1;
    const StepTrace &a = one[i], &b = mesh.at(i);
    const double noise = kNoise * a.grad_norm;
    moved += 2 * a.lr;
    all.take("loss", step, relative(a.loss, b.loss), true);
    for (const auto& [name, mean] : a.means)
      all.take(name, step, relative(mean, b.means.at(name)), true);
    all.take("gradient norm", step, relative(a.grad_norm, b.grad_norm), true);
    for (const auto& [path, gradient] : a.gradients) {
      const HostTensor& other = b.gradients.at(path);
      find_noise(gradient, other, noise, adrift[path]);
      const Distance d = tensor_distance(gradient, other);
      all.take("gradient " + path, step, d.relative_or_noise(noise), true);
    }
    for (const auto& [path, parameter] : a.parameters) {
      Adrift& its = adrift[path];
      its.resize(static_cast<std::size_t>(parameter.numel()));  // of one that is not trained
      const Distance d = tensor_distance(parameter, b.parameters.at(path), its, moved);
      all.take("parameter " + path, step, d.relative(a.lr), d.noise_is_small);
    }
  }
  VerifyReport out;
  out.rows = all.rows();
  out.steps = static_cast<std::int64_t>(one.size());
  out.tolerance = kTolerance;
  return out;
}

std::string to_text(const VerifyReport& r) {
  const auto count = [&](std::string_view prefix) {
    return std::count_if(r.rows.begin(), r.rows.end(),
                         [&](const VerifyRow& row) { return starts_with(row.name, prefix); });
  };
  std::string out = text(counted(r.devices, "device"), r.mesh.empty() ? "" : " (" + r.mesh + ")",
                         ", ", counted(r.steps, "step"), ": loss, gradient norm, ",
                         count("gradient ") - 1, " gradients and ", count("parameter "),
                         " updated parameters beside those of one device\n\n");
  out += "  error     step  of\n";
  for (std::size_t i = 0; i < std::min(kShownRows, r.rows.size()); ++i) {
    const VerifyRow& row = r.rows[i];
    std::string error = format("%.2e", row.error), step = text(row.step);
    error.resize(std::max<std::size_t>(error.size(), 10), ' ');
    step.resize(std::max<std::size_t>(step.size(), 6), ' ');
    out += text("  ", error, step, row.name, row.ok ? "" : "   <- differs", "\n");
  }
  if (r.rows.size() > kShownRows)
    out += text("  ... and ", r.rows.size() - kShownRows, " closer ones\n");
  out += r.ok() ? text("\nthe same numbers: worst is ", r.worst().name, ", ",
                       format("%.2e", r.worst().error), " (", format("%.0e", r.tolerance),
                       " is allowed: f32 sums in another order",
                       r.rounding_left_out ? "; rounding to 16 bits was left out" : "",
                       r.loss_scale ? text(", and the loss scale, which begins at ", *r.loss_scale)
                                    : "",
                       ")\n")
                : text("\nNOT the same numbers: worst is ", r.worst().name, ", ",
                       format("%.2e", r.worst().error), " where ", format("%.0e", r.tolerance),
                       " is allowed; please report this with the command\n");
  return out;
}

std::string to_json(const VerifyReport& r) {
  nlohmann::ordered_json out{{"ok", r.ok()},
                             {"max_relative_error", r.worst().error},
                             {"worst", r.worst().name},
                             {"tolerance", r.tolerance},
                             {"rounding_left_out", r.rounding_left_out},
                             {"loss_scale_left_out", r.loss_scale.has_value()},
                             {"devices", r.devices},
                             {"mesh", r.mesh},
                             {"steps", r.steps}};
  for (const VerifyRow& row : r.rows)
    out["rows"].push_back(
        {{"name", row.name}, {"step", row.step}, {"relative_error", row.error}, {"ok", row.ok}});
  return out.dump(2) + "\n";
}

}  // namespace tessera
