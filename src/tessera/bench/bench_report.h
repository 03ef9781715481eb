#pragma once
/// What `tessera bench` found, as a table, as JSON and as a page.

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/bench/standing.h"

namespace tessera {

struct BenchReport {
  std::string model;  // the preset, or the family
  std::string flags;  // of the first contestant: the command line
  std::string version;
  std::string processor;                   // its name
  std::string isa;                         // the instruction set that kernels use
  int cores = 1;                           // that this process may use
  double load_before = 0, load_after = 0;  // load average of a minute
  TurnLength length;
  std::int64_t turns = 1;
  bool stopped = false;  // on request, before all turns were taken
  double seconds = 0;    // all of it
  std::string peaks;     // the machine whose devices' peaks `mfu` is of; empty: none
  std::vector<Standing> results;
  std::vector<std::string> left_out;       // what was not measured because it cannot be, and why
  std::vector<std::string> peer_problems;  // why a peer that was asked for was not measured
};

/// A table, and below it what a reader must know before using it.
std::string to_text(const BenchReport& report);
/// One object; docs/reference/files.md has its keys.
std::string to_json(const BenchReport& report);
/// A page that needs nothing else: tables, charts of speed and memory, loss curves.
std::string to_html(const BenchReport& report);

}  // namespace tessera
