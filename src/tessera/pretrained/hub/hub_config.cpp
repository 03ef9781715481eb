#include "tessera/pretrained/hub/hub_config.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tessera/base/printable.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

constexpr std::int64_t kMostCount = 1'000'000'000'000;

std::string shown(const HubJson& value) {
  constexpr std::size_t kMost = 60;
  const std::string whole = value.dump(-1, ' ', true, HubJson::error_handler_t::replace);
  return printable(whole.size() <= kMost ? whole : whole.substr(0, kMost) + "...");
}

}  // namespace

HubJson parse_hub_json(std::string_view json, const std::string& path, Fault fault) {
  constexpr int kMostDepth = 100;
  const auto guard = [&](int depth, HubJson::parse_event_t, HubJson&) {
    if (depth > kMostDepth)
      fail(fault, path, " has lists or objects within others, deeper than ", kMostDepth,
           "; download it again");
    return true;
  };
  return HubJson::parse(json, guard, /*allow_exceptions=*/false);
}

HubConfig::HubConfig(std::string_view json, std::string path) : path_(std::move(path)) {
  json_ = parse_hub_json(json, path_, Fault::Data);
  if (!json_.is_object())
    fail(Fault::Data, path_, " is no JSON object; it is to be the config.json of a model");
}

const HubJson* HubConfig::find(std::string_view key) const {
  const auto found = json_.find(key);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

bool HubConfig::has(std::string_view key) const { return find(key) != nullptr; }

void HubConfig::refuse(std::string_view key, std::string_view otherwise) const {
  const HubJson* value = find(key);
  fail(Fault::Data, path_, ": ", key, " is ", value == nullptr ? "missing" : shown(*value), "; ",
       otherwise);
}

std::int64_t HubConfig::whole(std::string_view key, std::int64_t standard, std::int64_t least,
                              std::int64_t most) const {
  const HubJson* value = find(key);
  if (value == nullptr) return standard;
  if (!value->is_number_integer() || *value < least || *value > most)
    refuse(key, text("it must be a whole number from ", least, " to ", most));
  return *value;
}

std::int64_t HubConfig::count(std::string_view key, std::int64_t standard) const {
  return whole(key, standard, 1, kMostCount);
}

std::int64_t HubConfig::id(std::string_view key, std::int64_t standard) const {
  return whole(key, standard, 0, std::numeric_limits<std::int32_t>::max());
}

double HubConfig::number(std::string_view key, double standard) const {
  const HubJson* value = find(key);
  if (value == nullptr) return standard;
  if (!value->is_number() || !std::isfinite(value->get<double>()))
    refuse(key, "it must be a finite number");
  return *value;
}

bool HubConfig::truth(std::string_view key, bool standard) const {
  const HubJson* value = find(key);
  if (value == nullptr) return standard;
  if (!value->is_boolean()) refuse(key, "it must be true or false");
  return *value;
}

std::string HubConfig::word(std::string_view key, std::string_view standard) const {
  const HubJson* value = find(key);
  if (value == nullptr) return std::string(standard);
  if (!value->is_string()) refuse(key, "it must be a text");
  return *value;
}

void HubConfig::require_word(std::string_view key, std::string_view standard,
                             std::initializer_list<std::string_view> known) const {
  if (std::ranges::find(known, word(key, standard)) != known.end()) return;
  refuse(key, text("what is computed here is ",
                   join(std::vector<std::string>(known.begin(), known.end()), " or ")));
}

void HubConfig::require_truth(std::string_view key, bool wanted, std::string_view otherwise) const {
  if (truth(key, wanted) != wanted) refuse(key, otherwise);
}

void HubConfig::require_count(std::string_view key, std::int64_t standard, std::int64_t wanted,
                              std::string_view otherwise) const {
  if (count(key, standard) != wanted) refuse(key, otherwise);
}

double HubConfig::same_rate(std::initializer_list<std::string_view> keys, double standard) const {
  const std::string_view first = *keys.begin();
  const double out = number(first, standard);
  for (const std::string_view key : keys) {
    const double rate = number(key, standard);
    if (rate < 0 || rate >= 1) refuse(key, "it must be a share from 0 to below 1");
    if (rate != out)
      notices_.push_back(text(path_, ": ", key, " is ", rate, " and ", first, " ", out,
                              "; one rate is used here for both, ", out));
  }
  return out;
}

double HubConfig::rate_beside(std::string_view key, double standard, double dropout) const {
  const double rate = same_rate({key}, standard);
  return rate == dropout ? -1 : rate;
}

}  // namespace tessera
