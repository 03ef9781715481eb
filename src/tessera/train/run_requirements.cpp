#include "tessera/train/run_requirements.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tessera/base/size.h"
#include "tessera/comm/share_text.h"
#include "tessera/plan/traffic.h"
#include "tessera/train/programs.h"

namespace tessera {

std::int64_t RunRequirements::sent_bytes() const {
  std::int64_t out = 0;
  for (const auto& [axes, bytes] : sent) out = size_sum(out, bytes, "bytes that a device sends");
  return out;
}

RunRequirements requirements_of(const Plan& plan) {
  const ProgramPlan& train = plan.program(kTrainProgram);
  RunRequirements out{plan.peak_bytes(),     plan.lower_bound_bytes(),
                      train.flops,           {},
                      plan.host_bytes(),     plan.peak_bytes() + plan.host_bytes(),
                      train.recomputed_flops};
  for (const auto& [axes, counts] : planned_counts(train)) out.sent.emplace(axes, bytes_of(counts));
  return out;
}

RunRequirements over_all_ranks(const std::vector<RunRequirements>& ranks) {
  RunRequirements out;
  std::int64_t most = -1;
  for (const RunRequirements& rank : ranks) {
    out.peak_bytes = std::max(out.peak_bytes, rank.peak_bytes);
    out.host_bytes = std::max(out.host_bytes, rank.host_bytes);
    out.both_bytes = std::max(out.both_bytes, rank.both_bytes);
    out.lower_bound_bytes = std::max(out.lower_bound_bytes, rank.lower_bound_bytes);
    out.flops += rank.flops;
    out.recomputed_flops += rank.recomputed_flops;
    if (rank.sent_bytes() <= most) continue;
    most = rank.sent_bytes();
    out.sent = rank.sent;
  }
  return out;
}

RunRequirements requirements_of_all(const Plan& plan, Communicator* world) {
  const RunRequirements mine = requirements_of(plan);
  const std::vector<std::string> texts =
      gather_texts(world, to_text(mine), "what the run asks of ranks");
  if (world != nullptr && world->rank() != 0) return mine;
  std::vector<RunRequirements> all;
  for (const std::string& line : texts) all.push_back(parse_requirements(line));
  return over_all_ranks(all);
}

std::string to_text(const RunRequirements& facts) {
  return nlohmann::json{{"peak_bytes", facts.peak_bytes},
                        {"lower_bound_bytes", facts.lower_bound_bytes},
                        {"flops", facts.flops},
                        {"sent", facts.sent},
                        {"host_bytes", facts.host_bytes},
                        {"both_bytes", facts.both_bytes},
                        {"recomputed_flops", facts.recomputed_flops}}
      .dump();
}

RunRequirements parse_requirements(const std::string& line) {
  const nlohmann::json json = nlohmann::json::parse(line);
  return {json.at("peak_bytes"),      json.at("lower_bound_bytes"),
          json.at("flops"),           json.at("sent"),
          json.at("host_bytes"),      json.at("both_bytes"),
          json.at("recomputed_flops")};
}

}  // namespace tessera
