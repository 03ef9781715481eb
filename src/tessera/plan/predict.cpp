#include "tessera/plan/predict.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/plan/play_region.h"
#include "tessera/plan/price.h"
#include "tessera/plan/share_cores.h"

namespace tessera {

namespace {

double total(const PartSeconds& parts) { return std::accumulate(parts.begin(), parts.end(), 0.0); }

void add_parts(PartSeconds& to, const PartSeconds& parts, double times) {
  for (std::size_t i = 0; i < parts.size(); ++i) to[i] += times * parts[i];
}

/// Micro-batches between the first and the last are alike: the action of the second stands for
/// them.
Action first_alike(const Action& action, std::int64_t microbatches) {
  const std::int64_t last = microbatches - 1;
  const bool between = action.microbatch != 0 && action.microbatch != last;
  return {action.region, action.chunk,
          between ? std::min<std::int64_t>(1, last) : action.microbatch};
}

/// Plays the regions of one stage. A region begins each micro-batch with idle links; only transfers
/// that it leaves under way for Update are carried over.
class StagePlayer {
 public:
  StagePlayer(const ProgramPlan& program, const Mesh& mesh, const Machine& machine)
      : program_(program) {
    for (const RegionPlan& region : program.regions) {
      index_.emplace(std::pair(region.kind, region.chunk), regions_.size());
      regions_.emplace_back(region, program, mesh, machine);
    }
  }

  const ProgramPlan& program() const { return program_; }
  bool has(RegionKind kind, int chunk) const { return index_.contains({kind, chunk}); }
  const RegionPlayer& region(RegionKind kind, int chunk = 0) const {
    return regions_[index_.at({kind, chunk})];
  }
  /// From 0 on.
  const StageClock& played(const Action& action) {
    const Action like = first_alike(action, program_.microbatches);
    const auto [found, fresh] = known_.try_emplace(like);
    if (fresh) region(like.region, like.chunk).play(found->second, like.microbatch);
    return found->second;
  }

 private:
  const ProgramPlan& program_;
  std::map<std::pair<RegionKind, int>, std::size_t> index_;  // of regions_
  std::vector<RegionPlayer> regions_;
  std::map<Action, StageClock> known_;
};

using StagePlayers = std::vector<StagePlayer>;

StagePlayers players_of(std::span<const Plan* const> stages, std::string_view program,
                        const Machine& machine) {
  StagePlayers out;
  for (const Plan* plan : stages) out.emplace_back(plan->program(program), plan->mesh, machine);
  return out;
}

/// The least places for what is sent in the loop.
std::int64_t send_slots(const StagePlayers& stages) {
  std::int64_t out = 0;
  for (const StagePlayer& stage : stages) {
    for (const RegionPlan& region : stage.program().regions) {
      for (const Call& call : region.calls) {
        const bool sends = in_loop(region.kind) && call.transfer && call.transfer->is_message() &&
                           call.transfer->collective.kind == CollectiveKind::Send;
        if (sends) out = out == 0 ? call.tickets : std::min<std::int64_t>(out, call.tickets);
      }
    }
  }
  return out;
}

PlayOptions play_options(StagePlayers& stages, const Pipeline& pipeline, std::int64_t ranks,
                         const Machine& machine) {
  PlayOptions out;
  const std::int64_t microbatches = stages[0].program().microbatches;
  std::map<Action, double> seconds;  // of those that stand for others
  for (StagePlayer& stage : stages) {
    for (const RegionPlan& region : stage.program().regions) {
      if (!in_loop(region.kind)) continue;
      for (const std::int64_t k : {std::int64_t{0}, std::int64_t{1}, microbatches - 1}) {
        const Action action = first_alike({region.kind, region.chunk, k}, microbatches);
        seconds[action] = stage.played(action).now;
      }
    }
  }
  out.cost = [seconds = std::move(seconds), microbatches](const Action& action) {
    const auto found = seconds.find(first_alike(action, microbatches));
    return found == seconds.end() ? 0 : found->second;
  };
  for (const Edge& edge : pipeline.edges()) {
    const auto& sent = stages[0].program().edges;
    const auto found = std::ranges::find(sent, edge, &EdgeBytes::edge);
    const bool is_sent = found != sent.end();
    out.sends.push_back(
        is_sent ? machine.weights.beta2 * message_seconds(*found, pipeline, ranks, machine) : 0);
  }
  out.ahead = true;
  out.send_slots = send_slots(stages);
  return out;
}

/// Plays the updates after the last micro-batches; returns each stage's clock at its end.
std::vector<StageClock> play_updates(StagePlayers& stages, const Pipeline& pipeline,
                                     const std::vector<Spans>& played, double begin, bool overlap) {
  std::vector<StageClock> out(stages.size());
  double all = 0;  // stages that are told something wait for all
  for (std::size_t s = 0; s < stages.size(); ++s) {
    StageClock& clock = out[s];
    const Actions& actions = pipeline.schedule().stages[s];
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (actions[i].microbatch + 1 < pipeline.microbatches()) continue;
      if (!stages[s].has(actions[i].region, actions[i].chunk)) continue;
      const StageClock& left = stages[s].played(actions[i]);
      const double from = begin + played[s][i].begin;
      for (const auto& [ticket, transfer] : left.open)
        clock.open[ticket] = {transfer.end + (overlap ? from : 0), transfer.part};
      for (std::size_t link = 0; link < clock.free.size(); ++link)
        clock.free[link] = std::max(clock.free[link], left.free[link] + from);
    }
    clock.now = begin + (played[s].empty() ? 0 : played[s].back().end);
    stages[s].region(RegionKind::Update).play_alone(clock);
    all = std::max(all, clock.now);
  }
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const RegionPlayer& update = stages[s].region(RegionKind::Update);
    if (update.is_told()) out[s].now = all;
    update.play_told(out[s]);
  }
  return out;
}

std::vector<RegionSeconds> regions_of(StagePlayers& stages) {
  std::vector<RegionSeconds> out;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    for (const RegionPlan& region : stages[s].program().regions) {
      const Action action{region.kind, region.chunk, in_loop(region.kind) ? 1 : 0};
      out.push_back({static_cast<int>(s), region.kind, region.chunk, stages[s].played(action).now});
    }
  }
  return out;
}

}  // namespace

Pipeline pipeline_of(std::span<const Plan* const> stages, std::string_view program) {
  Schedule schedule;
  std::vector<Edge> edges;
  for (const Plan* plan : stages) {
    Actions& actions = schedule.stages.emplace_back();
    for (const Action& action : plan->program(program).actions) {
      if (in_loop(action.region)) actions.push_back(action);
      schedule.splits = schedule.splits || action.region == RegionKind::Weights;
    }
  }
  for (const EdgeBytes& each : stages[0]->program(program).edges) edges.push_back(each.edge);
  return Pipeline(schedule, skips_of(edges));
}

PlayOptions prices_of(std::span<const Plan* const> stages, std::string_view program,
                      const Pipeline& pipeline, const Machine& machine) {
  StagePlayers players = players_of(stages, program, machine);
  return play_options(players, pipeline, stages[0]->mesh.ranks(), machine);
}

Prediction predict(std::span<const Plan* const> stages, std::string_view program,
                   const Pipeline& pipeline, const Machine& machine) {
  StagePlayers players = players_of(stages, program, machine);
  check(stages.size() == pipeline.schedule().stages.size(), "plans of ", stages.size(),
        " stages for a pipeline of ", pipeline.schedule().stages.size());
  PlayOptions options = play_options(players, pipeline, stages[0]->mesh.ranks(), machine);
  const std::vector<Spans> played = play_on_cores(pipeline, options, machine.device.sharing);
  const std::vector<double> sends = std::exchange(options.sends, {});
  const double told_at_once = makespan(play_on_cores(pipeline, options, machine.device.sharing));

  Prediction out;
  double begin = 0;
  for (StagePlayer& stage : players)
    begin = std::max(begin, stage.played({RegionKind::Begin, 0, 0}).now);
  const std::vector<StageClock> ends =
      play_updates(players, pipeline, played, begin, machine.device.overlap);
  double longest = -1;
  for (std::size_t s = 0; s < players.size(); ++s) {
    StagePlayer& stage = players[s];
    out.seconds = std::max(out.seconds, ends[s].now);
    PartSeconds exposed = ends[s].exposed, whole = ends[s].whole;
    const auto add_played = [&](const Action& action, double times) {
      add_parts(exposed, stage.played(action).exposed, times);
      add_parts(whole, stage.played(action).whole, times);
    };
    add_played({RegionKind::Begin, 0, 0}, 1);
    const Actions& actions = pipeline.schedule().stages[s];
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (!stage.has(actions[i].region, actions[i].chunk)) continue;
      const double alone = options.cost(actions[i]);
      add_played(actions[i], alone > 0 ? (played[s][i].end - played[s][i].begin) / alone : 1);
    }
    for (std::size_t e = 0; e < sends.size(); ++e) {
      if (pipeline.stage_of(pipeline.edges()[e].giver) == static_cast<int>(s))
        whole[static_cast<std::size_t>(TimePart::Messages)] +=
            sends[e] * static_cast<double>(pipeline.microbatches());
    }
    if (total(exposed) <= longest) continue;
    longest = total(exposed);
    out.exposed = exposed, out.whole = whole;
  }
  const double waits = std::max(0.0, out.seconds - longest);
  const double messages =
      sends.empty() ? 0 : std::clamp(makespan(played) - told_at_once, 0.0, waits);
  out.exposed[static_cast<std::size_t>(TimePart::Messages)] = messages;
  out.bubble = waits - messages;
  out.regions = regions_of(players);
  return out;
}

Prediction predict(const std::vector<Plan>& stages, std::string_view program,
                   const Pipeline& pipeline, const Machine& machine) {
  std::vector<const Plan*> all;
  for (const Plan& plan : stages) all.push_back(&plan);
  return predict(all, program, pipeline, machine);
}

}  // namespace tessera
