#pragma once
/// Plays the messages of plans: do stages ever wait for each other, with buffers as the plans have
/// them?

#include <map>
#include <string>
#include <vector>

#include "tessera/base/index.h"
#include "tessera/plan/plan.h"

namespace tessera {

/// One rank of every stage. All ranks of a stage make the same calls, so collectives inside a stage
/// never wait for other stages.
class PlayedPlans {
 public:
  PlayedPlans(const std::vector<Plan>& plans, std::string_view program) {
    for (const Plan& plan : plans) list_calls(plan.program(program));
  }

  /// Where each stage waits for ever; empty where all come to their ends.
  std::string stuck() {
    for (bool moved = true; moved;) {
      moved = false;
      for (Stage& stage : stages_) {
        for (; stage.next < stage.steps.size() && go(stage); ++stage.next) moved = true;
      }
    }
    std::string out;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if (stages_[s].next < stages_[s].steps.size())
        out += text("stage ", s, " at ", stages_[s].steps[stages_[s].next].name, "; ");
    }
    return out;
  }

 private:
  enum class Kind { Post, Send, AwaitReceive, AwaitSend };
  struct Step {
    Kind kind;
    std::string name;
    std::int64_t number = 0;  // of the message in its channel: the micro-batch
  };
  struct Stage {
    std::vector<Step> steps;
    std::size_t next = 0;
  };
  struct Channel {
    std::int64_t posted = 0, sent = 0;
  };

  void list_calls(const ProgramPlan& program) {
    Stage& stage = stages_.emplace_back();
    std::map<std::int32_t, const Transfer*> starts;  // by ticket
    for (const RegionPlan& region : program.regions) {
      for (const Call& call : region.calls) {
        for (std::int32_t t = 0; call.transfer && t < call.tickets; ++t)
          starts[call.ticket + t] = &*call.transfer;
      }
    }
    std::map<std::int32_t, std::int64_t> under_way;  // micro-batch, by ticket
    for (const Action& action : program.actions) {
      for (const Call& call : program.region(action.region, action.chunk).calls) {
        if (call.ticket < 0 || !program.runs(call, action)) continue;
        const std::int64_t k = action.microbatch + call.ahead;
        const std::int32_t ticket = call.ticket + static_cast<std::int32_t>(k % call.tickets);
        const Transfer& transfer = *starts.at(ticket);
        if (!transfer.is_message()) continue;
        const bool sends = transfer.collective.kind == CollectiveKind::Send;
        const std::string& name = transfer.group.name;
        if (call.transfer) {
          check(!under_way.contains(ticket), "ticket ", ticket, " of ", name, " is taken");
          under_way[ticket] = k;
          stage.steps.push_back({sends ? Kind::Send : Kind::Post, name, k});
        } else if (const auto found = under_way.find(ticket); found != under_way.end()) {
          stage.steps.push_back(
              {sends ? Kind::AwaitSend : Kind::AwaitReceive, name, found->second});
          under_way.erase(found);
        }
      }
    }
    check(under_way.empty(), under_way.size(), " messages are never waited for");
  }

  bool go(const Stage& stage) {
    const Step& step = stage.steps[stage.next];
    Channel& channel = channels_[step.name];
    switch (step.kind) {
      case Kind::Post: check(step.number == channel.posted++, step.name, " out of order"); break;
      case Kind::Send: check(step.number == channel.sent++, step.name, " out of order"); break;
      case Kind::AwaitReceive: return channel.sent > step.number;
      case Kind::AwaitSend: return channel.posted > step.number;
    }
    return true;
  }

  std::vector<Stage> stages_;
  std::map<std::string, Channel> channels_;
};

}  // namespace tessera
