#include "tessera/pretrained/hub/hub_config.h"

#include <cmath>
#include <limits>
#include <utility>

#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/files/deep_json.h"
#include "tessera/pretrained/hub/hub_folder.h"

namespace tessera {

namespace {

void require_flat(std::string_view json, const std::string& path, Fault fault) {
  if (is_deep_json(json))
    fail(fault, path, " has lists or objects nested deeper than ", kMostJsonDepth,
         "; download it again");
}

}  // namespace

std::string shown(const HubJson& value) {
  constexpr std::size_t kMost = 60;
  const std::string whole = value.dump(-1, ' ', true, HubJson::error_handler_t::replace);
  return printable(whole.size() <= kMost ? whole : whole.substr(0, kMost) + "...");
}

HubJson parse_hub_json(std::string_view json, const std::string& path, Fault fault) {
  // A model of the 21,843 classes of ImageNet names each of them twice.
  constexpr int kMostKeys = 50'000;
  int keys = 0;
  const auto guard = [&](int, HubJson::parse_event_t event, HubJson&) {
    if (event == HubJson::parse_event_t::key && ++keys > kMostKeys)
      fail(fault, path, " has more than ", kMostKeys, " keys; download it again");
    return true;
  };
  require_flat(json, path, fault);
  return HubJson::parse(json, guard, /*allow_exceptions=*/false);
}

nlohmann::json parse_hub_map(std::string_view json, const std::string& path, Fault fault) {
  require_flat(json, path, fault);
  return nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
}

HubConfig::HubConfig(std::string_view json, std::string path) : path_(std::move(path)) {
  require_no_pointer(json, path_, Fault::Data);
  json_ = parse_hub_json(json, path_, Fault::Data);
  if (!json_.is_object())
    fail(Fault::Data, path_, " is not a JSON object, as the config.json of a model must be");
}

const HubJson* HubConfig::find(std::string_view key) const {
  const auto found = json_.find(key);
  return found == json_.end() ? nullptr : &*found;
}

bool HubConfig::has(std::string_view key) const {
  const HubJson* value = find(key);
  return value != nullptr && !value->is_null();
}

void HubConfig::refuse(std::string_view key, std::string_view what_to_do) const {
  const HubJson* value = find(key);
  fail(Fault::Data, path_, ": ", key, " is ", value == nullptr ? "missing" : shown(*value), "; ",
       what_to_do);
}

std::int64_t HubConfig::whole(std::string_view key, std::int64_t least, std::int64_t most) const {
  const HubJson* value = find(key);
  if (value == nullptr || !value->is_number_integer() || *value < least || *value > most)
    refuse(key, text("it must be a whole number from ", least, " to ", most));
  return *value;
}

double HubConfig::number(std::string_view key, double least, double most) const {
  const HubJson* value = find(key);
  if (value == nullptr || !value->is_number()) refuse(key, "it must be a number");
  const double out = *value;
  if (!std::isfinite(out) || out < least || out > most)
    refuse(key, text("it must be a number from ", least, " to ", most));
  return out;
}

bool HubConfig::truth(std::string_view key) const {
  const HubJson* value = find(key);
  if (value == nullptr || !value->is_boolean()) refuse(key, "it must be true or false");
  return *value;
}

std::string HubConfig::word(std::string_view key) const {
  const HubJson* value = find(key);
  if (value == nullptr || !value->is_string()) refuse(key, "it must be a text");
  return *value;
}

std::int32_t HubConfig::id(std::string_view key, std::int32_t standard) const {
  if (find(key) == nullptr) return standard;
  return static_cast<std::int32_t>(whole(key, 0, std::numeric_limits<std::int32_t>::max()));
}

}  // namespace tessera
