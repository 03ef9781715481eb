#pragma once
/// The fields of a run's configuration, each told once: flag, TOML key, help line, checkpoint
/// record and printed value all come from its row.

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tessera/config/config.h"

namespace tessera {

enum class FieldGroup { Run, Data, Model, Adapters, Optimizer, Parallel, Machine };
inline constexpr std::array<FieldGroup, 7> kFieldGroups = {
    FieldGroup::Run,       FieldGroup::Data,     FieldGroup::Model,  FieldGroup::Adapters,
    FieldGroup::Optimizer, FieldGroup::Parallel, FieldGroup::Machine};
std::string_view to_text(FieldGroup group);

/// What it means that a run goes on with another value than it began with.
enum class OnResume {
  Free,      // the numbers do not depend on it
  Notice,    // told, and used from there on
  AtStart,   // told, and used if the checkpoint does not have what it is the first value of
  Rounding,  // told, and used: from there on, bits are not those of the uninterrupted run
  Confirm,   // other samples are drawn: refused without --allow-changes
  Model,     // other tensors, or another meaning of the same ones: refused
};

/// Where a field lies in a RunConfig; its type is the kind of the field.
using Slot = std::variant<std::int64_t*, double*, bool*, std::string*, std::vector<std::string>*,
                          VocabularyKind*, SampleOrder*, OptimizerKind*, ScheduleKind*, RouterScore*,
                          DropPolicy*, FamilyRef*>;

struct Field {
  std::string_view name;
  /// Other names of the field, separated by blanks; one that begins with ! says the opposite.
  std::string_view aliases;
  FieldGroup group;
  OnResume on_resume;
  std::string_view unit;  // of the value, for help: "steps", "PATH"; empty: told by the kind
  std::string_view help;
  Slot (*slot)(RunConfig&);
  /// Least and greatest value of a number that no other room judges.
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  /// The condition under which it has an effect; empty: always. Of fields of the model, families
  /// say which of them they read (config/family_fields.h).
  std::string_view when = {};
  bool in_plan = false;                          // what `tessera plan` reports depends on it
  std::span<const std::string_view> words = {};  // all values of a text; empty: others judge it
};

std::span<const Field> fields();

/// The field called `key`; `negated` where the alias says the opposite. nullptr: none.
struct FoundField {
  const Field* field = nullptr;
  bool negated = false;
};
FoundField find_field(std::string_view key);
/// "; nearest are steps and seed", "; here it is lr", or "".
std::string near_fields(std::string_view key, std::string_view prefix = "");
/// All names and aliases.
std::vector<std::string> field_names(const Field& field);

/// Where the field lies, to be read only.
Slot read_slot(const Field& field, const RunConfig& config);
bool is_switch(const Field& field);
bool is_list(const Field& field);
/// "N", "NUMBER", "constant|linear|cosine", "PATH...", and the like.
std::string kind_text(const Field& field);

/// A number from text. Errors: Fault::Usage: not one, not finite, too large; `source` names it.
void read_number(std::string_view source, std::string_view text, std::int64_t* to);
void read_number(std::string_view source, std::string_view text, double* to);

/// The value as text; set_text reads it back.
std::string get_text(const Field& field, const RunConfig& config);
/// The value as TOML has it: 4, true, "text", ["a", "b"].
std::string toml_value(const Field& field, const RunConfig& config);
/// `source` names the setting in messages. A list gets one more entry. Errors: Fault::Usage: what
/// was given, what is allowed.
void set_text(const Field& field, RunConfig& config, std::string_view value,
              std::string_view source);
/// Gives `to` the value that `from` has; of a family, the one that `to` knows by that name.
void copy_field(const Field& field, RunConfig& to, const RunConfig& from);

}  // namespace tessera
