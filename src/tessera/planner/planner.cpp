#include "tessera/planner/planner.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "tessera/base/error.h"
#include "tessera/base/size.h"
#include "tessera/base/text.h"
#include "tessera/planner/explain.h"
#include "tessera/planner/refusal.h"
#include "tessera/planner/room.h"
#include "tessera/train/host_pool.h"
#include "tessera/train/programs.h"

namespace tessera {

namespace {

/// The whole plan of a choice.
std::shared_ptr<const Compiled> compile_whole(const RunConfig& config, const DeviceOf& device_of,
                                              bool local = false) {
  const RunSetup setup(config);
  WantedPrograms wanted = wanted_programs(setup);
  wanted.stages = true;
  wanted.local = local;
  return std::make_shared<const Compiled>(compile_programs(setup, wanted, device_of(config)));
}

Prediction predict_whole(const Compiled& compiled, const Machine& machine) {
  const std::vector<const Plan*> plans = plans_of(compiled);
  return predict(plans, kTrainProgram, pipeline_of(plans, kTrainProgram), machine);
}

/// Whole plans of choices, each compiled once.
class WholePlans {
 public:
  WholePlans(const PlanQuestion& question, const DeviceOf& device_of)
      : question_(question), device_of_(device_of) {}

  std::optional<Verdict> verdict(const PlanChoice& choice) {
    const RunConfig config = with(question_.base, choice);
    const auto [found, fresh] = known_.try_emplace(to_toml(config));
    if (!fresh) return found->second;
    try {
      const auto compiled = compile_whole(config, device_of_);
      Verdict out{predict_whole(*compiled, question_.machine), {}, {}, {}};
      for (const Plan* plan : plans_of(*compiled)) {
        out.peak_bytes.push_back(plan->peak_bytes());
        out.host_bytes.push_back(plan->host_bytes());
        out.capped_bytes.push_back(capped_bytes(config, *plan));
      }
      return found->second = out;
    } catch (const Error& error) {
      if (error.fault() != Fault::Usage) throw;
      return std::nullopt;
    }
  }

  /// From now on a plan takes what the compiler of the devices says.
  void correct(const Candidate& candidate, const CompiledBytes& bytes) {
    std::optional<Verdict>& known =
        known_.at(to_toml(with(question_.base, candidate.considered.choice)));
    known->peak_bytes.clear();
    for (const StageBytes& stage : bytes.stages) known->peak_bytes.push_back(stage.peak());
    known->capped_bytes = known->peak_bytes;
  }

 private:
  const PlanQuestion& question_;
  const DeviceOf& device_of_;
  std::map<std::string, std::optional<Verdict>> known_;
};

/// The progress of a search that answers another question than was asked: which.
OnProgress beside(const PlanQuestion& question, const std::string& what) {
  if (!question.on_progress) return {};
  return [&question, what](SearchProgress so_far) {
    so_far.beside = what;
    question.on_progress(so_far);
  };
}

/// One more of everything that a machine file says, with the same plan.
void add_faster_links(const PlanAnswer& answer, const PlanQuestion& question,
                      std::vector<WhatIf>& out) {
  const auto add = [&](const std::string& what, const Machine& machine) {
    const double seconds = predict_whole(*answer.compiled, machine).seconds;
    const bool visible = seconds < answer.best().seconds() * 0.9999;
    if (visible) out.push_back({what, seconds, ""});
  };
  for (const MachineLevel& level : machine_levels()) {
    Machine faster = question.machine;
    (faster.*level.link).gigabytes_per_s += 1;
    add(text("one more GB/s on each ", level.name, " link"), faster);
  }
  Machine copies = question.machine;
  copies.memory.gigabytes_per_s += 1;
  add("one more GB/s between device and host", copies);
}

/// With more memory, and with another server.
void add_more(PlanAnswer& answer, const PlanQuestion& question, ShortModels& models,
              const Verify& verify) {
  const auto ask = [&](const std::string& what, const PlanQuestion& more) {
    const Space space(more.base, more.devices, more.precision);
    Search search(more.base, question.machine, space, models, verify,
                  {.whole_plans = 2, .failures = 4}, beside(question, text("with ", what)));
    const SearchResult found = search.run(more.caps());
    if (found.fit.empty()) return;
    const Candidate& best = found.fit.front();
    if (best.seconds() < answer.found.least_seconds())
      answer.what_if.push_back({what, best.seconds(), to_text(best.considered.choice)});
  };
  if (question.cap) {
    PlanQuestion more = question;
    *more.cap += std::int64_t{1} << 30;
    ask("one more GiB of memory in each device", more);
  }
  const std::int64_t server = question.machine.devices(Level::Socket);
  if (question.machine.devices() > 0 && server > 0) {
    PlanQuestion more = question;
    more.devices += server;
    more.base.given.erase("devices");
    ask(text("one more server of ", server, " devices"), more);
  }
}

/// Seconds of the fastest plan without caps; those of the fastest, where no cap is in its way.
double free_seconds(const SearchResult& found, const PlanQuestion& question, const Space& space,
                    ShortModels& models, const Verify& verify) {
  const Candidate& fastest = *std::ranges::min_element(found.fit, {}, &Candidate::seconds);
  const bool binds = std::ranges::any_of(found.considered, [&](const Considered& each) {
    return each.free_seconds < fastest.considered.composed.seconds;
  });
  if (!binds) return fastest.seconds();
  Search search(question.base, question.machine, space, models, verify, {.whole_plans = 2},
                beside(question, "without a memory cap"));
  const SearchResult free = search.run({});
  return free.fit.empty() ? fastest.seconds() : free.least_seconds();
}

/// Short models may tell too much: what takes least is compiled whole before it is refused.
void take_leanest(SearchResult& found, const Verify& verify, const PlanQuestion& question) {
  const std::vector<Candidate> leanest = leanest_of(found, verify);
  for (const Candidate& each : leanest)
    if (each.verdict.fits(question.caps())) found.fit.push_back(each);
  if (found.fit.empty()) refuse(question, leanest);
  choose(found.fit);
}

}  // namespace

std::optional<std::int64_t> PlanQuestion::room() const {
  if (!cap) return cap;
  return static_cast<std::int64_t>(static_cast<double>(*cap) * (1 - margin / 100));
}

StageCaps PlanQuestion::caps() const {
  // No room at all is still a cap.
  const double all = cap ? std::max(1.0, static_cast<double>(*room())) : 0;
  return {{}, all, static_cast<double>(machine.memory.memory_bytes)};
}

PlanAnswer plan_for(const PlanQuestion& question, const DeviceOf& device_of) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  require_room(question);
  ShortModels models(question.base, question.machine, device_of);
  WholePlans whole(question, device_of);
  const Verify verify = [&](const PlanChoice& choice) { return whole.verdict(choice); };
  const Space space(question.base, question.devices, question.precision);
  PlanAnswer out;
  const auto search = [&] {
    out.found = Search(question.base, question.machine, space, models, verify, question.limits,
                       question.on_progress)
                    .run(question.caps());
    if (out.found.fit.empty()) take_leanest(out.found, verify, question);
    out.config = with(question.base, out.best().considered.choice);
    out.compiled = compile_whole(out.config, device_of, question.ask_compiler != nullptr);
  };
  search();
  // The compiler of the devices has the last word: what it does not fit is searched without.
  std::vector<Candidate> refuted;
  while (question.ask_compiler) {
    out.by_compiler = question.ask_compiler(out.config, *out.compiled);
    if (!question.cap || out.by_compiler->peak() <= *question.room()) break;
    Candidate& last = refuted.emplace_back(out.best());
    whole.correct(last, *out.by_compiler);
    last.verdict = *whole.verdict(last.considered.choice);
    if (std::ssize(refuted) == question.limits.whole_plans) refuse(question, refuted);
    search();
  }
  out.binds = binds_of(out.found, free_seconds(out.found, question, space, models, verify));
  out.alternatives = alternatives_of(out.found, question.base, question.caps());
  if (question.what_if) {
    add_more(out, question, models, verify);
    add_faster_links(out, question, out.what_if);
  }
  out.short_models = models.compiled();
  out.search_seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return out;
}

}  // namespace tessera
