#include "tessera/apps/switches.h"

#include <algorithm>
#include <array>

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

Arguments flags_of(const std::string& word) {
  const std::size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const auto* const known =
      std::ranges::find_if(kShort, [&](const ShortSwitch& s) { return name == s.name; });
  const bool has_value = equals != std::string::npos;
  if (known == std::end(kShort) || known->has_value != has_value) return {"--" + word};
  if (has_value) return {known->flags + word.substr(equals)};
  return split(known->flags, ' ');
}

SwitchSet set_of(std::string_view name) {
  SwitchSet out{std::string(name), {}};
  for (const std::string& word : split(name, '+')) {
    for (std::string& flag : flags_of(word)) out.flags.push_back(std::move(flag));
  }
  return out;
}

}  // namespace

std::vector<SwitchSet> parse_switches(std::string_view list, Problems& problems) {
  std::vector<SwitchSet> out;
  for (const std::string& name : split(list, ',')) {
    const std::vector<std::string> words = split(name, '+');
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
      out.push_back(set_of(name));
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
  for (const std::string& name : names) out.push_back(set_of(name));
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
