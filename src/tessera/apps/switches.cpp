#include "tessera/apps/switches.h"

#include <algorithm>
#include <cctype>
#include <span>

#include "tessera/apps/switch_table.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

/// At commas and plus signs that a letter follows: those before digits are in values, as in
/// recompute-layers=0,2.
std::vector<std::string> parts_of(std::string_view list, char separator) {
  std::vector<std::string> out(1);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::size_t next = list.find_first_not_of(' ', i + 1);
    const bool in_value =
        next != std::string_view::npos && std::isdigit(static_cast<unsigned char>(list[next])) != 0;
    if (list[i] == separator && !in_value) {
      out.emplace_back();
    } else {
      out.back() += list[i];
    }
  }
  for (std::string& part : out) part = std::string(trim(part));
  return out;
}

/// The name is that of the flag, as of any flag that is not in the table.
bool is_its_flag(const SwitchRow& row) {
  return std::string_view(row.flags) == text("--", row.name);
}

Arguments flags_of(const std::string& word, Problems& problems) {
  const std::size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const std::span<const SwitchRow> table = switch_table();
  const auto known =
      std::ranges::find_if(table, [&](const SwitchRow& row) { return name == row.name; });
  if (known == table.end() || is_its_flag(*known)) return {"--" + word};
  const bool given = equals != std::string::npos, wanted = known->value[0] != '\0';
  if (wanted != given) {
    problems.add(given ? text("switch ", name, " takes no value, but has one in '", word, "'")
                       : text("switch ", name, " needs a value, like ", name, "=", known->sample));
    return {};
  }
  Arguments out = split(known->flags, ' ');
  if (given) out.back() += word.substr(equals);
  return out;
}

SwitchSet set_of(const std::string& name, Problems& problems) {
  SwitchSet out{name, {}};
  for (const std::string& word : parts_of(name, '+')) {
    for (std::string& flag : flags_of(word, problems)) out.flags.push_back(std::move(flag));
  }
  return out;
}

}  // namespace

std::vector<SwitchSet> parse_switches(std::string_view list, Problems& problems) {
  std::vector<SwitchSet> out;
  for (const std::string& name : parts_of(list, ',')) {
    const std::vector<std::string> words = parts_of(name, '+');
    if (std::ranges::any_of(words, [](const std::string& word) { return word.empty(); })) {
      problems.add(text("switches '", list, "' has an empty name; write them like bf16,zero-1 or ",
                        "bf16+zero-1"));
      return {};
    }
    const bool twice =
        std::ranges::any_of(out, [&](const SwitchSet& known) { return known.name == name; });
    if (twice) {
      problems.add(text("switches has '", name, "' twice; give it once"));
    } else {
      out.push_back(set_of(name, problems));
    }
  }
  return out;
}

std::vector<SwitchSet> all_switches(std::int64_t devices) {
  std::vector<std::string> names = {"bf16",          "fp16",    "no-graph-optimization",
                                    "recompute",     "offload", "bf16+no-graph-optimization",
                                    "bf16+recompute"};
  if (devices > 1) {
    const std::string n = number_text(devices);
    const std::string several[] = {"zero-1",      "zero-2",       "zero-3",
                                   "fsdp",        "tp=" + n,      "tp=" + n + "+sequence-parallel",
                                   "cp=" + n,     "pp=" + n,      "pp=" + n + "+schedule=zb-h1",
                                   "bf16+zero-1", "bf16+zero-2",  "bf16+zero-3",
                                   "bf16+fsdp",   "bf16+tp=" + n, "bf16+pp=" + n};
    names.insert(names.end(), std::begin(several), std::end(several));
  }
  std::vector<SwitchSet> out;
  Problems none;
  for (const std::string& name : names) out.push_back(set_of(name, none));
  check(none.empty(), "a switch of ours is none");
  return out;
}

std::string short_switches_text() {
  std::string out;
  for (const SwitchRow& row : switch_table()) {
    if (is_its_flag(row)) continue;
    std::string name = text("  ", row.name, row.value[0] == '\0' ? "" : "=", row.value);
    name.resize(24, ' ');
    out += text(name, flags_text(row), "\n");
  }
  return out;
}

}  // namespace tessera
