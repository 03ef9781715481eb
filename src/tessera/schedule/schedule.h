#pragma once
/// The room `schedule`: in which order the stages of a pipeline take their actions, and what
/// follows from that. It knows neither tensors nor models.
/// For: a new order, as a function and a row; one verifier holds all of them to the same rules.
/// Not for: when a step is done in seconds (plan/timeline.h).
/// Rejected: properties that depend on a schedule's name. How much is held at a time follows from
/// the list of actions, so schedules yet to be written are planned as tightly as those that are
/// here.
///
/// Schedules: in which order the stages of a pipeline pass micro-batches through their chunks of a
/// model.
///
/// A model is cut into chunks of neighbouring blocks, `chunks` of them on each of `stages` stages,
/// and a batch into `microbatches`. An action is one region of one chunk for one micro-batch. A
/// schedule says in which order each stage takes its actions, not when: each starts as soon as what
/// it needs is there (pipeline.h).

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// The parts of a step. Begin runs once, before the first micro-batch; Forward, Backward and
/// Weights run for every micro-batch; Update runs once, after the last. Backward computes the
/// gradients of a chunk's inputs, and those of its weights too unless the schedule leaves them to
/// Weights.
enum class RegionKind : std::uint8_t { Begin, Forward, Backward, Weights, Update };
constexpr int kNumRegionKinds = 5;
/// "begin", "forward", "backward", "weights", "update"
std::string_view to_text(RegionKind kind);

/// One region of one chunk for one micro-batch; of Begin and Update, which are no part of a
/// schedule, both are 0.
struct Action {
  RegionKind region = RegionKind::Forward;
  int chunk = 0;  // numbered through the whole model
  std::int64_t microbatch = 0;
  friend auto operator<=>(const Action&, const Action&) = default;
};
using Actions = std::vector<Action>;

struct PipelineSize {
  int stages = 1;
  int chunks = 1;  // per stage
  std::int64_t microbatches = 1;
};

struct Schedule {
  std::vector<Actions> stages;
  bool splits = false;  // Backward and Weights are apart

  /// The last action of a micro-batch in a chunk: nothing that its forward left is needed after it.
  RegionKind last() const { return splits ? RegionKind::Weights : RegionKind::Backward; }
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// "F0.3": kind, chunk, micro-batch. The kinds are F, B and W; BW where they are not apart.
std::string to_text(const Action& action, const Schedule& schedule);

/// name          chunks  results of forwards alive on stage i of p, with m micro-batches
/// gpipe         1       m: all forwards, then all backwards
/// 1f1b          1       min(m, p-i): a forward and a backward in turns
/// interleaved   2, ...  as 1f1b, micro-batches in groups of p, with shorter waits and more alive
/// zb-h1         1       min(m, p): as 1f1b, gradients of weights put off to where a stage waits
/// zb-v          2       at most 2p: down the stages and up again
struct ScheduleDef {
  std::string_view name;
  int least_chunks, most_chunks;  // per stage; 0: any number
  Schedule (*make)(const PipelineSize& size);
  bool splits_backward = false;  // Schedule::splits
  bool keeps_all = false;        // results of all forwards are alive before the first backward
  /// One that takes no longer and keeps no more, where there is one: the planner never chooses
  /// this one.
  std::string_view dominated_by = {};
};
/// What a pipeline has unless it is told otherwise.
inline constexpr std::string_view kUsualSchedule = "1f1b";
/// All of them, in the order of the table.
std::span<const ScheduleDef> schedules();
/// Errors: no schedule of that name.
const ScheduleDef& find_schedule(std::string_view name);
std::vector<std::string> schedule_names();
/// The first with one chunk on each stage that is not dominated.
const ScheduleDef& simplest_schedule(bool splits_backward);

/// Errors: no schedule of that name; a number of chunks, stages or micro-batches that it does not
/// admit.
Schedule make_schedule(std::string_view name, const PipelineSize& size);

}  // namespace tessera
