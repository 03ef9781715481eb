#pragma once
/// The words and numbers of a report, for the table and the page alike.

#include <string>
#include <vector>

#include "tessera/bench/bench_report.h"

namespace tessera {

/// What was measured, and on what, line by line.
std::vector<std::string> heading(const BenchReport& report);
/// The head of the table, then a row for each result.
std::vector<std::vector<std::string>> table(const BenchReport& report);
/// What must be known before the numbers are used: failures, turns that disagree, a busy machine.
std::vector<std::string> notes(const BenchReport& report);

}  // namespace tessera
