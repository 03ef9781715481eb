#include "tessera/rapidformer/given_flags.h"

#include <algorithm>
#include <charconv>
#include <span>

#include "tessera/base/text.h"
#include "tessera/config/fields.h"
#include "tessera/rapidformer/flag_table.h"

namespace tessera {

namespace {

Flag flag_of(const FlagRow& row) {
  Flag out{std::string(row.name), {}, std::string(row.takes), becomes_text(row), "", row.many};
  if (row.kind == FlagKind::Same) out.group = "field";  // configure() says what disagrees
  return out;
}

/// Rows first: where one has the name of a field, it says what the name means here.
std::vector<Flag> all_flags(const OwnFamilies& families, bool with_rows) {
  std::vector<Flag> out;
  if (with_rows) {
    for (const FlagRow& row : flag_rows()) out.push_back(flag_of(row));
  }
  for (Flag& flag : field_flags(families)) {
    std::erase_if(flag.also,
                  [](const std::string& name) { return find_flag_row(name) != nullptr; });
    const FlagRow* const row = find_flag_row(flag.name);
    if (row == nullptr) {
      out.push_back(std::move(flag));
    } else if (!flag.also.empty()) {
      if (row->kind == FlagKind::Same && row->field == flag.name) {
        flag.help = text(find_field(flag.also.front()).negated ? "not --" : "as --", flag.name);
        if (!flag.value.empty() && flag.also.size() > 1)
          flag.help += text(" (also --", join(std::span(flag.also).subspan(1), ", --"), ")");
      }
      flag.name = flag.also.front();
      flag.also.erase(flag.also.begin());
      out.push_back(std::move(flag));
    }
  }
  return out;
}

std::optional<double> as_number(std::string_view word) {
  double out = 0;
  const auto [at, error] = std::from_chars(word.data(), word.data() + word.size(), out);
  if (error != std::errc() || at != word.data() + word.size()) return {};
  return out;
}

/// Numbers are compared as such: .15 is 0.15.
bool same_word(std::string_view a, std::string_view b) {
  const std::optional<double> x = as_number(a), y = as_number(b);
  return x && y ? *x == *y : a == b;
}

/// The field that a flag is in the same words; none: the flag is more than that.
FoundField field_of(std::string_view flag) {
  const FlagRow* const row = find_flag_row(flag);
  if (row == nullptr) return find_field(flag);
  return row->kind == FlagKind::Same ? find_field(row->field) : FoundField();
}

bool same_flag(std::string_view a, std::string_view b) {
  if (a == b) return true;
  const FoundField one = field_of(a), other = field_of(b);
  return one.field != nullptr && one.field == other.field && one.negated == other.negated;
}

/// Says that the value of a flag that is no field is not what the flag takes.
void check_taken(const FlagRow& row, const Setting& setting, Problems& problems) {
  const bool rank = row.takes == "RANK";
  if (row.takes != "N" && row.takes != "X" && !rank) return;
  for (const std::string& word : setting.values) {
    problems.gather([&] {
      if (row.takes == "X") {
        double ignored = 0;
        return read_number(setting.source, word, &ignored);
      }
      std::int64_t number = 0;
      read_number(setting.source, word, &number);
      const std::int64_t least = rank ? -1 : 0;
      require(number >= least, setting.source, " is ", number, "; give a number from ", least,
              " on");
    });
  }
}

}  // namespace

void refuse_comments(const Arguments& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view word = trim(arguments[i]);
    if (!word.empty() && word.front() != '#') continue;
    if (arguments[i].empty()) continue;  // "$NOT_SET": parse_flags names the flag
    const std::string before = i == 0 ? "rapidformer" : arguments[i - 1];
    fail(Fault::Usage, "after '", before, "' a backslash is followed by a ",
         word.empty() ? "blank" : "comment",
         ", so the shell ends the command there and drops the flags of the lines below; make the "
         "backslash the last character of its line, and put comments above the command");
  }
}

GivenFlags::GivenFlags(const Arguments& arguments, const OwnFamilies& families, Problems& problems,
                       std::vector<std::string>& notices)
    : parsed_(parse_flags(arguments, all_flags(families, true), problems)) {
  for (const std::string& word : parsed_.words)
    problems.add(text("unexpected '", word, "'; flags begin with --, as in --task pretraining"));
  for (const Setting& setting : parsed_.settings) take(setting, problems, notices);
  for (auto word = arguments.rbegin(); word != arguments.rend(); ++word) {
    last_.insert(0, last_.empty() ? *word : *word + " ");
    if (starts_with(*word, "--")) break;
  }
}

void GivenFlags::take(const Setting& setting, Problems& problems,
                      std::vector<std::string>& notices) {
  const FlagRow* const row = find_flag_row(setting.key);
  if (row == nullptr) {
    settings_.settings.push_back(setting);
    settings_.flags.push_back(setting.key);
    return;
  }
  const bool is_switch = row->takes.empty(), off = is_switch && setting.values.back() == "false";
  const std::string written =
      text(setting.source, is_switch ? "" : " ", is_switch ? "" : join(setting.values, " "));
  if (row->kind != FlagKind::Same) check_taken(*row, setting, problems);
  switch (row->kind) {
    case FlagKind::Same: return set(row->field, setting.values, setting.source);
    case FlagKind::Opposite: return set(row->field, {off ? "true" : "false"}, setting.source);
    case FlagKind::Fixed:
      if (!off) set(row->field, {std::string(row->value)}, setting.source);
      return;
    case FlagKind::Read:
    case FlagKind::Always: return;
    case FlagKind::Idle:
      if (!off) notices.push_back(text(written, " does nothing: ", row->note));
      return;
    case FlagKind::Only: {
      const std::vector<std::string> known = split(row->value, ' ');
      const bool is_known = std::ranges::any_of(
          known, [&](const std::string& word) { return same_word(word, setting.values.back()); });
      if (!is_known)
        problems.add(text(written, " is not possible: it can be ", join(known, " or "),
                          ", because ", row->note));
      return;
    }
    case FlagKind::Refused:
      if (!off) problems.add(text(written, " is not possible: ", row->note));
      return;
  }
}

const Setting* GivenFlags::last_setting(std::string_view name) const {
  for (auto setting = parsed_.settings.rbegin(); setting != parsed_.settings.rend(); ++setting) {
    if (same_flag(setting->key, name)) return &*setting;
  }
  return nullptr;
}

const std::string* GivenFlags::find(std::string_view name) const {
  const Setting* const setting = last_setting(name);
  return setting == nullptr ? nullptr : &setting->values.back();
}

std::vector<std::string> GivenFlags::find_all(std::string_view name) const {
  std::vector<std::string> out;
  for (const Setting& setting : parsed_.settings) {
    if (same_flag(setting.key, name))
      out.insert(out.end(), setting.values.begin(), setting.values.end());
  }
  return out;
}

bool GivenFlags::typed(std::string_view name) const {
  return std::ranges::find(parsed_.settings, name, &Setting::key) != parsed_.settings.end();
}

bool GivenFlags::on(std::string_view name) const {
  const std::string* const value = find(name);
  return value != nullptr && *value == "true";
}

std::optional<std::int64_t> GivenFlags::count(std::string_view name) const {
  const std::string* const value = find(name);
  if (value == nullptr) return {};
  std::int64_t out = 0;
  read_number(text("--", name), *value, &out);
  return out;
}

std::optional<double> GivenFlags::number(std::string_view name) const {
  const std::string* const value = find(name);
  if (value == nullptr) return {};
  double out = 0;
  read_number(text("--", name), *value, &out);
  return out;
}

std::string GivenFlags::written(std::string_view name) const {
  const Setting* const setting = last_setting(name);
  if (setting == nullptr) return text("--", name);
  const bool alone = setting->values.size() == 1 && setting->values.front() == "true";
  return alone ? setting->source : text(setting->source, " ", join(setting->values, " "));
}

bool GivenFlags::tells(std::string_view field) const {
  const Field* const wanted = find_field(field).field;
  return std::ranges::any_of(settings_.settings, [&](const Setting& setting) {
    return find_field(setting.key).field == wanted;
  });
}

void GivenFlags::set(std::string_view field, std::vector<std::string> values,
                     std::string_view source) {
  settings_.settings.push_back({std::string(field), std::move(values), std::string(source)});
  settings_.flags.emplace_back(field);
}

void GivenFlags::forget(std::string_view field) {
  for (std::size_t i = settings_.settings.size(); i-- > 0;) {
    if (settings_.flags[i] != field) continue;
    settings_.settings.erase(settings_.settings.begin() + static_cast<std::ptrdiff_t>(i));
    settings_.flags.erase(settings_.flags.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

std::vector<std::string> rapidformer_flag_names() {
  std::vector<std::string> out;
  for (const Flag& flag : all_flags({}, /*with_rows=*/true)) {
    out.push_back(flag.name);
    out.insert(out.end(), flag.also.begin(), flag.also.end());
  }
  return out;
}

std::string rapidformer_help(const OwnFamilies& families, int columns) {
  std::vector<Flag> flags;
  for (const FlagRow& row : flag_rows()) {
    if (row.kind == FlagKind::Refused) continue;
    flags.push_back(flag_of(row));
    flags.back().group = "flags of Rapidformer and Megatron-LM, and the fields that they are";
  }
  std::vector<Flag> others = all_flags(families, false);
  flags.insert(flags.end(), others.begin(), others.end());
  return flags_help(flags, columns);
}

}  // namespace tessera
