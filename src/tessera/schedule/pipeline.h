#pragma once
/// What follows from a schedule: which chunk lies where, who sends what to whom, when all of it
/// happens, and how much is held at a time. One verifier for all schedules.

#include <functional>
#include <utility>
#include <vector>

#include "tessera/schedule/schedule.h"

namespace tessera {

/// Results of one region of chunk `giver` that the same region of chunk `taker`, on another stage,
/// reads: one message per micro-batch.
struct Edge {
  RegionKind region = RegionKind::Forward;
  int giver = 0, taker = 0;
  friend auto operator<=>(const Edge&, const Edge&) = default;
};

/// The pairs of chunks, lower first, that tell each other something past their neighbours.
std::vector<std::pair<int, int>> skips_of(const std::vector<Edge>& edges);

/// When an action begins and ends. The unit is what `cost` gives.
struct Span {
  double begin = 0, end = 0;
};
using Spans = std::vector<Span>;  // of the actions of a stage

struct PlayOptions {
  /// How long an action takes. Empty: 1, and 2 for a Backward that does the work of Weights too.
  std::function<double(const Action&)> cost;
  /// How long a message takes, while both stages go on working; and by edge(), where they differ.
  double send = 0;
  std::vector<double> sends = {};
  /// Micro-batches for which the receiver of each edge has room, by edge(); empty: for all.
  /// The receive of micro-batch k is posted when the slot of micro-batch k - slots is free.
  std::vector<std::int64_t> slots;
  /// True where a message stays in its slot until the last action of its chunk and micro-batch has
  /// ended; else until the action has ended that waits for it.
  bool hold = false;
  /// True where the receive of micro-batch k is posted, besides, no earlier than the action begins
  /// that waits for micro-batch k - ahead().
  bool ahead = false;
  /// Slots of each edge at its sender, free when the message has arrived; 0: for all.
  std::int64_t send_slots = 0;
};

class Pipeline {
 public:
  /// Chunk c + 1 reads what chunk c results in; `skips` are further pairs (a, b), a < b, where
  /// chunk b reads the result of chunk a. Backward reads the other way round.
  /// Errors:  Broken where a chunk is on two stages, an action is missing or there twice, or
  ///          micro-batches of one region and chunk are out of order.
  explicit Pipeline(Schedule schedule, const std::vector<std::pair<int, int>>& skips = {});

  const Schedule& schedule() const { return schedule_; }
  int chunks() const { return static_cast<int>(stage_.size()); }
  std::int64_t microbatches() const { return microbatches_; }
  int stage_of(int chunk) const { return stage_[static_cast<std::size_t>(chunk)]; }
  const std::vector<Edge>& edges() const { return edges_; }

  /// Plays the schedule, every action as early as it can: spans by stage and action.
  /// Errors:  Broken where nothing can go on; it names the action before which each stage waits.
  std::vector<Spans> play(const PlayOptions& options = {}) const;

  /// Most micro-batches of a chunk at once from the begin of `first` to the end of `last`.
  std::int64_t alive(int chunk, RegionKind first, RegionKind last) const;
  /// Most results of forwards that a stage holds at once, over all its chunks, each from its
  /// Forward to the end of `last`.
  std::int64_t in_flight(int stage, RegionKind last) const;
  std::int64_t in_flight(int stage) const { return in_flight(stage, schedule_.last()); }
  /// How many micro-batches ahead of the action that waits plans post the receives of an edge. One
  /// between neighbours; past a chunk so many that the sender never waits long enough for others to
  /// wait for it in turn.
  std::int64_t ahead(const Edge& edge) const;
  /// Slots that each edge needs at its receiver, where messages stay until their last reader and
  /// no edge skips a chunk.
  std::vector<std::int64_t> held_slots() const;

 private:
  friend class Player;
  std::size_t index(RegionKind region, int chunk) const;

  Schedule schedule_;
  std::int64_t microbatches_ = 0;
  std::vector<int> stage_;  // by chunk
  std::vector<Edge> edges_;
  std::vector<std::vector<int>> givers_;         // chunks, by region and chunk that reads
  std::vector<std::vector<std::size_t>> sends_;  // edges, by region and chunk that gives
};

/// From the first begin of any stage to the last end.
double makespan(const std::vector<Spans>& played);
/// The share of the makespan that stages do nothing, over all of them.
double bubble(const std::vector<Spans>& played);

}  // namespace tessera
