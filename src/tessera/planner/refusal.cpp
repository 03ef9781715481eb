#include "tessera/planner/refusal.h"

#include <algorithm>
#include <set>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/size.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

constexpr std::size_t kMostTried = 8;

std::string words_text(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += text(out.empty() ? "" : " ", word);
  return out;
}

/// What is wrong with the sizes that were asked for, on as few devices as have them.
std::vector<std::string> problems_of(const RunConfig& base) {
  ParallelConfig asked = base.parallel;
  const auto one_unless = [&](std::string_view field, std::int64_t& size) {
    if (!base.asked_for.contains(field)) size = 1;
  };
  one_unless("tensor-model-parallel-size", asked.tensor);
  one_unless("context-parallel-size", asked.context);
  one_unless("pipeline-model-parallel-size", asked.pipeline);
  const bool told = base.asked_for.contains("devices");
  if (!told) asked.devices = asked.tensor * asked.context * asked.pipeline;
  asked.repeat = 1;
  return problems(asked, base.model).texts();
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
  std::ranges::stable_sort(out, {}, [](const Candidate& each) { return each.verdict.peak(); });
  return out;
}

void refuse(const PlanQuestion& question, const std::vector<Candidate>& leanest) {
  const std::string devices = counted(question.devices, "device");
  if (leanest.empty()) {
    const std::vector<std::string> asked = problems_of(question.base);
    fail(Fault::Usage, "no way to run this model on ", devices, " is legal: ",
         asked.empty()
             ? text("global-batch-size ", question.base.global_batch_size,
                    " is shared out evenly over data parallel devices, and no size that ",
                    "divides it goes with these devices; give another, or other --devices")
             : join(asked));
  }
  const bool told = question.base.memory_cap != "none";
  const std::int64_t bytes = leanest.front().verdict.peak(), cap = question.cap.value_or(0);
  fail(Fault::Usage,
       told ? text("memory-cap ", question.base.memory_cap)
            : text("the memory of a device of ", question.machine.name),
       " (", cap, " bytes) is below ", bytes_text(bytes), " (", bytes,
       " bytes), the least of all that was tried, which takes ",
       words_text(plan_flags(question.base, leanest.front().considered.choice)),
       "; raise the cap, or plan for more than ", devices);
}

}  // namespace tessera
