#pragma once
/// The switches that make training faster or smaller, each once: names, effects, guarantees.
/// `tessera help switches` prints the table, docs/guides/memory.md shows it, `tessera bench` takes
/// its short names, and tests/apps/switch_pairs_test.cpp holds every pair of them to it.

#include <span>
#include <string>

namespace tessera {

struct SwitchRow {
  const char* name;    // the short name, as `tessera bench` takes it
  const char* flags;   // with blanks between them; a value goes to the last
  const char* value;   // what to give, as "N"; empty: nothing
  const char* sample;  // such a value; {} stands for a folder
  const char* needs;   // short names, with blanks between them: one of these must be on; or ""
  /// What it is called in Rapidformer (R), Megatron-LM (M) and DeepSpeed (D).
  const char* elsewhere;
  const char* memory;
  const char* time;
  const char* numbers;
  /// By how much losses of ten steps may differ from those without the switch, relative; 0: the
  /// same bits.
  double tolerance;
};

std::span<const SwitchRow> switch_table();

/// As typed: "--tensor-model-parallel-size=N".
std::string flags_text(const SwitchRow& row);

/// "the same bits; ...", "within 1e-05; ..."
std::string numbers_text(const SwitchRow& row);

/// A heading and lines of a Markdown table.
std::string switches_markdown();

/// For a screen with so many columns.
std::string switches_text(int columns);

}  // namespace tessera
