#include "tessera/models/rope_scaling.h"

#include <algorithm>
#include <charconv>

#include "tessera/base/text.h"
#include "tessera/models/family.h"

namespace tessera {

namespace {

constexpr RopeKey kRopeKeys[] = {
    {"factor", &RotaryScaling::factor, "linear dynamic llama3 yarn longrope",
     "linear dynamic llama3 yarn"},
    {"original_max_position_embeddings", &RotaryScaling::original_length,
     "dynamic llama3 yarn longrope"},
    {"low_freq_factor", &RotaryScaling::low_freq_factor, "llama3", "llama3"},
    {"high_freq_factor", &RotaryScaling::high_freq_factor, "llama3", "llama3"},
    {"beta_fast", &RotaryScaling::beta_fast, "yarn"},
    {"beta_slow", &RotaryScaling::beta_slow, "yarn"},
    {"truncate", &RotaryScaling::truncate, "yarn"},
    {"mscale", &RotaryScaling::mscale, "yarn"},
    {"mscale_all_dim", &RotaryScaling::mscale_all_dim, "yarn"},
    {"attention_factor", &RotaryScaling::attention_factor, "yarn longrope"},
    {"short_factor", &RotaryScaling::short_factor, "longrope", "longrope"},
    {"long_factor", &RotaryScaling::long_factor, "longrope", "longrope"},
};

double number_of(std::string_view key, std::string_view word) {
  double out = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), out);
  require(error == std::errc() && end == word.data() + word.size(), key, " is '", word,
          "'; it must be a number");
  return out;
}

/// Puts a value of a text where it belongs.
struct PutRopeValue {
  RotaryScaling& to;
  std::string_view key, word;

  void operator()(double RotaryScaling::*slot) const { to.*slot = number_of(key, word); }
  void operator()(std::int64_t RotaryScaling::*slot) const {
    const double number = number_of(key, word);
    require(number >= 1 && number <= 1e12 &&
                number == static_cast<double>(static_cast<std::int64_t>(number)),
            key, " is ", word, "; it must be a number of tokens");
    to.*slot = static_cast<std::int64_t>(number);
  }
  void operator()(bool RotaryScaling::*slot) const {
    require(word == "true" || word == "false", key, " is '", word, "'; it must be true or false");
    to.*slot = word == "true";
  }
  void operator()(std::optional<double> RotaryScaling::*slot) const {
    to.*slot = number_of(key, word);
  }
  void operator()(std::vector<double> RotaryScaling::*slot) const {
    for (const std::string& each : split(word, ':')) (to.*slot).push_back(number_of(key, each));
  }
};

std::string shown_value(double value) { return text(value); }
std::string shown_value(std::int64_t value) { return text(value); }
std::string shown_value(bool value) { return value ? "true" : "false"; }
std::string shown_value(const std::optional<double>& value) { return text(*value); }
std::string shown_value(const std::vector<double>& values) {
  std::vector<std::string> out;
  for (const double each : values) out.push_back(text(each));
  return join(out, ":");
}

}  // namespace

std::span<const RopeKey> rope_keys() { return kRopeKeys; }

bool is_needed_by(const RopeKey& key, RotaryKind kind) {
  return is_one_of(key.needs, to_text(kind));
}

RotaryScaling rotary_scaling_of(std::string_view given) {
  RotaryScaling out;
  if (given.empty()) return out;
  const std::vector<std::string> parts = split(given, ',');
  std::vector<std::string> said;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t at = parts[i].find('=');
    const std::string key = parts[i].substr(0, at),
                      word = at == std::string::npos ? "" : parts[i].substr(at + 1);
    require(at != std::string::npos && (i == 0) == (key == kRopeType), "'", parts[i],
            "' is not KEY=VALUE, with ", kRopeType, " first");
    if (i == 0) {
      const std::optional<RotaryKind> kind = find_rotary_kind(word);
      require(kind.has_value(), key, " is '", word,
              "'; known are default, linear, dynamic, llama3, yarn, longrope");
      out.kind = *kind;
      continue;
    }
    const auto known = std::ranges::find(kRopeKeys, key, &RopeKey::key);
    require(known != std::end(kRopeKeys) && is_one_of(known->kinds, to_text(out.kind)), key,
            ": positions of ", kRopeType, " ", to_text(out.kind), " do not read it");
    std::visit(PutRopeValue{out, key, word}, known->slot);
    said.push_back(key);
  }
  for (const RopeKey& each : kRopeKeys) {
    require(!is_needed_by(each, out.kind) || std::ranges::find(said, each.key) != said.end(),
            each.key, " is missing, which positions of ", kRopeType, " ", to_text(out.kind),
            " need");
  }
  return out;
}

std::string to_text(const RotaryScaling& scaling) {
  const RotaryScaling standard;
  if (scaling == standard) return "";
  std::string out = text(kRopeType, "=", to_text(scaling.kind));
  for (const RopeKey& each : kRopeKeys) {
    std::visit(
        [&](auto slot) {
          if (scaling.*slot != standard.*slot || is_needed_by(each, scaling.kind))
            out += text(",", each.key, "=", shown_value(scaling.*slot));
        },
        each.slot);
  }
  return out;
}

Rotary rotary_of(const ModelConfig& config) {
  return {.base = config.rope_base,
          .share = reads_field(config, "rotary-share") ? config.rotary_share : 1,
          .scaling = rotary_scaling_of(config.rope_scaling)};
}

}  // namespace tessera
