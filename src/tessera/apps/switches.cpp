#include "tessera/apps/switches.h"

#include <algorithm>
#include <cctype>

#include "tessera/base/text.h"

namespace tessera {

namespace {

/// A name, and what it is short for. One that takes a value passes it to its flag.
struct ShortSwitch {
  const char* name;
  const char* flags;  // with blanks between them
  bool has_value = false;
};
constexpr ShortSwitch kShort[] = {
    {"fp32", "--no-bf16 --no-fp16 --no-mixed-precision"},
    {"zero-1", "--zero-stage=1"},
    {"zero-2", "--zero-stage=2"},
    {"zero-3", "--zero-stage=3"},
    {"fsdp", "--fsdp-memory-optimization"},
    {"dp", "--data-parallel-size", true},
    {"tp", "--tensor-model-parallel-size", true},
    {"cp", "--context-parallel-size", true},
    {"pp", "--pipeline-model-parallel-size", true},
    {"schedule", "--pipeline-schedule", true},
    {"recompute", "--recompute-granularity=full"},
    {"no-recompute", "--recompute-granularity=none"},
    {"offload", "--offload-optimizer"},
};

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

Arguments flags_of(const std::string& word, Problems& problems) {
  const std::size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const auto* const known =
      std::ranges::find_if(kShort, [&](const ShortSwitch& s) { return name == s.name; });
  const bool has_value = equals != std::string::npos;
  if (known == std::end(kShort)) return {"--" + word};
  if (known->has_value != has_value) {
    problems.add(has_value ? text("switch ", name, " takes no value, and has one in '", word, "'")
                           : text("switch ", name, " needs a value, like ", name, "=2"));
    return {};
  }
  if (has_value) return {known->flags + word.substr(equals)};
  return split(known->flags, ' ');
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
  for (const ShortSwitch& known : kShort) {
    std::string name = text("  ", known.name, known.has_value ? "=N" : "");
    if (known.name == std::string_view("schedule")) name = "  schedule=NAME";
    name.resize(20, ' ');
    out += text(name, known.flags, known.has_value ? "=..." : "", "\n");
  }
  return out;
}

}  // namespace tessera
