#pragma once
/// The flags of Rapidformer and Megatron-LM, a row each: what it becomes here, or why it is refused
/// and what to do.

#include <span>
#include <string>
#include <string_view>

namespace tessera {

enum class FlagKind {
  Same,      // the field `field`, in the same words
  Opposite,  // a switch that sets the field `field` to false
  Fixed,     // a switch that sets the field `field` to `value`
  Read,      // what `note` says: it concerns several fields, or is counted otherwise
  Always,    // accepted: what it asks for is always so
  Idle,      // accepted, and told that it does nothing
  Only,      // accepted with the values in `value`, separated by blanks: the others are refused
  Refused,   // `note` says what to do
};

struct FlagRow {
  std::string_view name;  // without the dashes
  /// What to give, for help; empty: a switch. N is a whole number from 0 on, RANK one from -1 on, X
  /// a number.
  std::string_view takes;
  FlagKind kind = FlagKind::Same;
  std::string_view field = {};
  std::string_view value = {};
  std::string_view note = {};
  bool many = false;  // takes all words up to the next flag
};

std::span<const FlagRow> flag_rows();
/// nullptr: there is no row of that name.
const FlagRow* find_flag_row(std::string_view name);

/// What becomes of the flag, in Markdown, for `rapidformer --help` and docs/reference/flags.md.
std::string becomes_text(const FlagRow& row);

}  // namespace tessera
