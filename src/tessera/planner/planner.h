#pragma once
/// The room `planner`: the best plan of a model for a machine, and why it is.
/// For: `tessera plan --auto` and `train --auto`: how many devices each kind of parallelism gets,
/// and what is recomputed, offloaded and sharded.
/// Not for: the placement of single ops (passes, search).
/// Rejected: compiling every plan at full size. Short models are compiled and composed, and bounds
/// say which plans need no look; only the best are compiled whole.
///
/// `tessera plan --auto`: the best plan of a model for a machine, and why it is.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/plan/compiled_bytes.h"
#include "tessera/planner/search.h"
#include "tessera/train/programs.h"

namespace tessera {

/// What the compiler of the devices says of a training step; null where they have none.
using AskCompiler = std::function<CompiledBytes(const RunConfig& config, const Compiled& compiled)>;

/// What is asked.
struct PlanQuestion {
  RunConfig base;  // complete, with a vocabulary size; what it asked for stays
  Machine machine;
  std::int64_t devices = 1;         // of the machine
  std::optional<std::int64_t> cap;  // bytes of a device
  double margin = 0;                // percent of these that stay free
  bool precision = false;           // also choose the floats
  bool what_if = true;              // also plan for a little more of everything
  PlannerLimits limits = {};
  OnProgress on_progress = {};
  /// Asked about the best, and where that does not fit about the next, limits.whole_plans times.
  AskCompiler ask_compiler = {};

  /// What a plan may take: the cap without the margin.
  std::optional<std::int64_t> room() const;
  StageCaps caps() const;
  std::string machine_name() const { return machine.name.empty() ? "this machine" : machine.name; }
};

/// Another plan, and why it is not the best.
struct Alternative {
  PlanChoice choice;
  double seconds = 0;
  std::int64_t bytes = 0;
  bool whole = false;  // compiled whole; else put together from short models
  bool fits = true;
  std::string why;
};

/// What a little more of something would bring.
struct WhatIf {
  std::string what;     // "one more GiB of memory in each device"
  double seconds = 0;   // of a step
  std::string changes;  // the plan that makes use of it; empty: the same
};

/// Parts of a step that a better machine, or another plan, would shorten.
struct Share {
  std::string what;
  double seconds = 0;
};

struct PlanAnswer {
  SearchResult found;
  RunConfig config;  // of the best
  std::shared_ptr<const Compiled> compiled;
  std::optional<CompiledBytes> by_compiler;  // of the devices, where it was asked
  std::vector<Share> binds;                  // the largest first
  std::vector<Alternative> alternatives;
  std::vector<WhatIf> what_if;
  double search_seconds = 0;
  std::int64_t short_models = 0;

  const Candidate& best() const { return found.fit.front(); }
};

/// Errors: Fault::Usage: nothing fits: the least that was found, with its flags, and what would
/// help; no size of the machine goes with the model.
PlanAnswer plan_for(const PlanQuestion& question, const DeviceOf& device_of);

}  // namespace tessera
