/// Fields as text: one reader and one writer for each kind of slot.

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/config/fields.h"
#include "tessera/models/family.h"

namespace tessera {

namespace {

template <typename T>
struct Names;  // of the values of an enumeration, in their order
template <>
struct Names<VocabularyKind> {
  static constexpr std::array<std::string_view, 4> kList = {"bytes", "characters", "bpe",
                                                            "tokenizer"};
};
template <>
struct Names<SampleOrder> {
  static constexpr std::array<std::string_view, 2> kList = {"shuffled-windows", "random-offsets"};
};
template <>
struct Names<OptimizerKind> {
  static constexpr auto kList = kOptimizerNames;
};
template <>
struct Names<ScheduleKind> {
  static constexpr auto kList = kScheduleNames;
};

template <>
struct Names<RouterScore> {
  static constexpr std::array<std::string_view, 2> kList = {"softmax", "sigmoid"};
};
template <>
struct Names<DropPolicy> {
  static constexpr std::array<std::string_view, 4> kList = {"probs", "position", "choice",
                                                            "random"};
};

/// What set_text has to say where a value does not fit.
struct Reader {
  const Field& field;
  std::string_view value, source;
  const OwnFamilies& families;

  void read(std::int64_t* to) const;
  void read(double* to) const;
  void read(bool* to) const;
  void read(std::string* to) const {
    require_utf8();
    *to = value;
  }
  void read(std::vector<std::string>* to) const {
    if (value.empty()) refuse("is empty; give a path");
    require_utf8();
    // Lists are recorded as lines.
    if (const std::size_t at = value.find('\n'); at != value.npos)
      refuse(text("has a line break after '", value.substr(0, at), "'; rename the file"));
    to->emplace_back(value);
  }
  void read(FamilyRef* to) const { *to = find_model(value, families); }
  template <typename Enum>
  void read(Enum* to) const;

  [[noreturn]] void refuse(std::string_view why) const { fail(Fault::Usage, source, " ", why); }
  void within(double number, std::string_view example) const;
  /// Checkpoints record it as JSON.
  void require_utf8() const {
    const std::size_t at = find_invalid_utf8(value);
    if (at != value.npos)
      refuse(text("is not UTF-8 after '", value.substr(0, at), "'; give a name in UTF-8"));
  }
};

std::string write(const std::int64_t* from) { return number_text(*from); }
std::string write(const double* from) { return number_text(*from); }
std::string write(const bool* from) { return *from ? "true" : "false"; }
std::string write(const std::string* from) { return *from; }
std::string write(const std::vector<std::string>* from) { return join(*from, "\n"); }
std::string write(const FamilyRef* from) { return to_text(*from); }
template <typename Enum>
std::string write(const Enum* from) {
  return std::string(Names<Enum>::kList[static_cast<std::size_t>(*from)]);
}

std::string kind(const std::int64_t*) { return "N"; }
std::string kind(const double*) { return "NUMBER"; }
std::string kind(const bool*) { return ""; }
std::string kind(const std::string*) { return "TEXT"; }
std::string kind(const std::vector<std::string>*) { return "TEXT"; }
std::string kind(const FamilyRef*) { return "NAME"; }
template <typename Enum>
std::string kind(const Enum*) {
  return join(Names<Enum>::kList, "|");
}

}  // namespace

Slot read_slot(const Field& field, const RunConfig& config) {
  return field.slot(const_cast<RunConfig&>(config));  // it only takes addresses
}

bool is_switch(const Field& field) {
  RunConfig config;
  return std::holds_alternative<bool*>(field.slot(config));
}

bool is_list(const Field& field) {
  RunConfig config;
  return std::holds_alternative<std::vector<std::string>*>(field.slot(config));
}

std::string kind_text(const Field& field) {
  if (!field.words.empty()) return join(field.words, "|");
  if (!field.unit.empty()) return text(field.unit, is_list(field) ? "..." : "");
  RunConfig config;
  return std::visit([](const auto* slot) { return kind(slot); }, field.slot(config));
}

std::string get_text(const Field& field, const RunConfig& config) {
  return std::visit([](const auto* slot) { return write(slot); }, read_slot(field, config));
}

void set_text(const Field& field, RunConfig& config, std::string_view value,
              std::string_view source) {
  const Reader reader{field, value, source, config.families};
  std::visit([&](auto* slot) { reader.read(slot); }, field.slot(config));
}

void copy_field(const Field& field, RunConfig& to, const RunConfig& from) {
  const Slot theirs = read_slot(field, from);
  std::visit([&](auto* slot) { *slot = *std::get<decltype(slot)>(theirs); }, field.slot(to));
  // The family of that name is `to`'s own, where it has one.
  if (auto* const* const family = std::get_if<FamilyRef*>(&theirs))
    *std::get<FamilyRef*>(field.slot(to)) = find_model((*family)->name(), to.families);
}

namespace {

void Reader::read(std::int64_t* to) const {
  std::int64_t number = 0;
  read_number(source, value, &number);
  within(static_cast<double>(number), "whole number");
  *to = number;
}

void Reader::read(double* to) const {
  double number = 0;
  read_number(source, value, &number);
  within(number, "number");
  *to = number;
}

void Reader::read(bool* to) const {
  if (value != "true" && value != "false")
    refuse(text("is '", value, "'; it is a switch: true or false"));
  *to = value == "true";
}

template <typename Enum>
void Reader::read(Enum* to) const {
  const auto& names = Names<Enum>::kList;
  const auto found = std::find(names.begin(), names.end(), value);
  if (found == names.end()) refuse(text("is '", value, "'; known are ", join(names)));
  *to = static_cast<Enum>(found - names.begin());
}

void Reader::within(double number, std::string_view what) const {
  if (number >= field.low && number <= field.high) return;
  constexpr double kShown = 1e9;  // greater limits only say that the number is absurd
  if (number < field.low) {
    refuse(text("is ", value, "; it must be a ", what, " of at least ", field.low,
                field.high <= kShown ? text(" and at most ", field.high) : ""));
  }
  refuse(text("is ", value, "; it must be a ", what, " of at most ", field.high));
}

}  // namespace

void read_number(std::string_view source, std::string_view value, std::int64_t* to) {
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), *to);
  require(error != std::errc::result_out_of_range, source, " is ", value,
          ", which does not fit 64 bits; give a whole number like 100");
  require(error == std::errc{} && end == value.data() + value.size(), source, " is '", value,
          "'; it must be a whole number, like 100");
}

void read_number(std::string_view source, std::string_view value, double* to) {
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), *to);
  const bool whole = end == value.data() + value.size();
  if (error == std::errc::result_out_of_range && whole &&
      std::abs(std::strtod(std::string(value).c_str(), nullptr)) < 1)
    fail(Fault::Usage, source, " is ", value,
         ", which is closer to 0 than 64 bits can hold; give 0, or a number like 1e-300");
  require(error != std::errc::result_out_of_range && !(whole && !std::isfinite(*to)), source,
          " is ", value, "; it must be a finite number, like 0.1");
  require(error == std::errc{} && whole, source, " is '", value,
          "'; it must be a number, like 0.1 or 1e-3");
}

}  // namespace tessera
