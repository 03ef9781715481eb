#include "tessera/planner/refusal.h"

#include <algorithm>
#include <set>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/size.h"
#include "tessera/base/text.h"
#include "tessera/planner/knobs.h"
#include "tessera/planner/room.h"
#include "tessera/planner/space.h"
#include "tessera/train/programs.h"

namespace tessera {

namespace {

constexpr std::size_t kMostTried = 8;

/// What is wrong with the sizes that were asked for, on as few devices as have them.
std::vector<std::string> problems_of(const PlanQuestion& question) {
  const RunConfig& base = question.base;
  ParallelConfig asked = base.parallel;
  const ParallelConfig usual;
  const auto usual_unless = [&](std::string_view knob, auto& value, const auto& otherwise) {
    if (!is_given(knob, base)) value = otherwise;
  };
  usual_unless("tensor-model-parallel-size", asked.tensor, 1);
  usual_unless("context-parallel-size", asked.context, 1);
  usual_unless("expert-model-parallel-size", asked.experts, 1);
  usual_unless("pipeline-schedule", asked.schedule, usual.schedule);
  usual_unless("virtual-pipeline-stages", asked.virtual_stages, 0);
  usual_unless("pipeline-layout", asked.layout, usual.layout);
  usual_unless("optimizer-shard-size", asked.shard_size, 0);
  asked.shard_threshold = 0;
  if (!is_given("zero-stage", base)) asked.shard_optimizer = asked.shard_size > 0;
  const bool staged =
      !asked.layout.empty() || asked.virtual_stages > 0 || asked.schedule != usual.schedule;
  usual_unless("pipeline-model-parallel-size", asked.pipeline, staged ? 2 : 1);
  asked.machine = {};
  asked.repeat = 1;
  const bool groups = asked.shard_size > 0;
  const std::int64_t ranks = std::max<std::int64_t>(groups ? asked.shard_size : asked.experts, 1);
  const std::int64_t parts = asked.tensor * asked.context * asked.pipeline * ranks;
  if (!base.given.contains("devices")) asked.devices = parts;
  std::vector<std::string> out = problems(asked, base.model).texts();
  if (out.empty() && parts > question.devices)
    out.push_back(text("the sizes that were given take ", parts, ": tensor-model-parallel-size ",
                       asked.tensor, " x context-parallel-size ", asked.context,
                       " x pipeline-model-parallel-size ", asked.pipeline,
                       groups ? " x optimizer-shard-size " : " x expert-model-parallel-size ",
                       ranks));
  return out;
}

bool has_a_way(const PlanQuestion& question, const RunConfig& base) {
  const Space space(base, question.devices, question.precision);
  for (const PlanChoice& frame : space.frames())
    for (const PlanChoice& split : space.splits(frame))
      for (const PlanChoice& scheduled : space.schedules(split))
        if (!space.starts(scheduled).empty()) return true;
  return false;
}

/// What was asked for without which there would be a way, as it was written; where no single one is
/// to blame, all of it.
std::vector<std::string> culprits(const PlanQuestion& question) {
  std::vector<std::string> all, out;
  for (const Knob& knob : knobs()) {
    RunConfig without = question.base;
    std::string written;
    std::vector<std::string> names = split(knob.others, ' ');
    names.emplace_back(knob.field);
    for (const std::string& name : names) {
      const auto asked = without.given.find(name);
      if (asked == without.given.end()) continue;
      written = asked->second;
      without.given.erase(asked);
    }
    if (written.empty()) continue;
    all.push_back(written);
    if (has_a_way(question, without)) out.push_back(written);
  }
  return out.empty() ? all : out;
}

/// By how much it is above the caps, as a factor.
double excess(const Verdict& verdict, const StageCaps& caps) {
  const auto of = [](std::int64_t bytes, double cap) {
    return cap > 0 ? static_cast<double>(bytes) / cap : 0;
  };
  return std::max(of(verdict.capped(), caps.all), of(verdict.host(), caps.host));
}

[[noreturn]] void refuse_all_sizes(const PlanQuestion& question) {
  const std::string begin =
      text("no way to run this model on ", counted(question.devices, "device"), " is legal: ");
  if (const auto asked = problems_of(question); !asked.empty())
    fail(Fault::Usage, begin, join(asked));
  if (has_a_way(question, question.base))
    fail(Fault::Usage, "no plan of this model on ", counted(question.devices, "device"),
         " compiles; tessera plan without --auto prints the reason for one");
  const std::vector<std::string> given = culprits(question);
  fail(Fault::Usage, begin, "data-parallel-size x micro-batch-size must divide global-batch-size ",
       question.base.global_batch_size, ", but no divisor works with ", join(given, " "),
       "; leave ", given.size() == 1 ? "that" : "one of these", " out, or give another value");
}

}  // namespace

std::vector<Candidate> leanest_of(const SearchResult& found, const Verify& verify) {
  std::vector<const Considered*> all;
  for (const Considered& each : found.considered) all.push_back(&each);
  std::ranges::stable_sort(all, {},
                           [](const Considered* each) { return each->composed.peak_bytes(); });
  std::vector<Candidate> out;
  std::set<std::string> tried;
  for (const Considered* each : all) {
    if (tried.size() == kMostTried) break;
    if (!tried.insert(to_text(each->choice)).second) continue;
    if (const std::optional<Verdict> verdict = verify(each->choice))
      out.push_back({*each, *verdict});
  }
  std::ranges::stable_sort(out, {}, [](const Candidate& each) { return each.verdict.capped(); });
  return out;
}

void refuse(const PlanQuestion& question, const std::vector<Candidate>& leanest) {
  if (leanest.empty()) refuse_all_sizes(question);
  const StageCaps caps = question.caps();
  const Candidate& nearest = *std::ranges::min_element(
      leanest, {}, [&](const Candidate& each) { return excess(each.verdict, caps); });
  const std::int64_t cap = question.room().value_or(0), host = question.machine.memory.memory_bytes;
  const bool of_device = cap > 0 && nearest.verdict.capped() > cap;
  const std::int64_t bytes = of_device ? nearest.verdict.capped() : nearest.verdict.host();
  const std::string limit = of_device ? cap_text(question)
                                      : text("the memory of the host for a device of ",
                                             question.machine.name, " (", host, " bytes)");
  fail(Fault::Usage, limit, " is below ", bytes_text(bytes), " (", bytes,
       " bytes), the least of all plans tried, which uses ",
       plan_text(question.base, nearest.considered.choice), "; ",
       of_device ? "raise the cap" : "offload less", ", or plan for more than ",
       counted(question.devices, "device"));
}

}  // namespace tessera
