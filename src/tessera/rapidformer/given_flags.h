#pragma once
/// The flags of a command line as they were typed, and the settings of fields that they become.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/apps/flags.h"

namespace tessera {

/// Refuses what a shell makes of a comment behind a backslash: an argument that is a blank, or
/// begins with '#'. Errors: Fault::Usage.
void refuse_comments(const Arguments& arguments);

class GivenFlags {
 public:
  /// Reads the arguments. Flags that are one field in the same words become settings, those of
  /// `tessera train` included; what is refused, and what is unknown, becomes a problem; what does
  /// nothing, a notice.
  GivenFlags(const Arguments& arguments, const OwnFamilies& families, Problems& problems,
             std::vector<std::string>& notices);

  bool help() const { return parsed_.help; }
  /// The last value of a flag, under any name of its field where it is one; nullptr: it was not
  /// given.
  const std::string* find(std::string_view name) const;
  /// All values, wherever they stand.
  std::vector<std::string> find_all(std::string_view name) const;
  /// Whether this very name was given.
  bool typed(std::string_view name) const;
  bool on(std::string_view name) const;
  std::optional<std::int64_t> count(std::string_view name) const;
  std::optional<double> number(std::string_view name) const;
  /// "--lr-warmup-fraction .01", as it was given, for messages.
  std::string written(std::string_view name) const;
  /// The last flag of the command line, with its values; empty: there is none.
  const std::string& last() const { return last_; }

  /// Whether a setting tells the field.
  bool tells(std::string_view field) const;
  /// Tells a field; `source` is for messages, "--lr-warmup-fraction".
  void set(std::string_view field, std::vector<std::string> values, std::string_view source);
  void forget(std::string_view field);
  /// All that were given, in their order; the name of each is in `flags`.
  const ParsedFlags& typed_all() const { return parsed_; }
  /// What configure() takes.
  const ParsedFlags& settings() const { return settings_; }

 private:
  const Setting* last_setting(std::string_view name) const;
  void take(const Setting& setting, Problems& problems, std::vector<std::string>& notices);

  ParsedFlags parsed_;    // all
  ParsedFlags settings_;  // of fields
  std::string last_;
};

/// The name of each flag.
std::vector<std::string> rapidformer_flag_names();
/// All flags with their help.
std::string rapidformer_help(const OwnFamilies& families, int columns);

}  // namespace tessera
