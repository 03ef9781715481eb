#pragma once
/// The lines at the top of a case of text_test.cpp: which pass runs, and how.

#include <set>
#include <string>

#include "tessera/ir/strategy.h"
#include "tessera/tensor/machine.h"

namespace tessera {

/// The first line is "# PASS: why the case exists". The next ones, up to the graph, are lines of a
/// strategy (strategy_text.h) behind "# ", or of these:
///
///   # machine host=1GB/s+5us            what a link costs
///   # show REGION...                    of the result; "none" for the lists of actions alone
struct TextSetup {
  std::string pass;
  Strategy strategy;
  Machine machine;
  std::set<std::string> show;  // empty: all
};

TextSetup read_setup(const std::string& content);

}  // namespace tessera
