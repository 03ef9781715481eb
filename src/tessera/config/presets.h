#pragma once
/// Presets: a model and its recipe under one name.

#include <span>
#include <string_view>

#include "tessera/config/config.h"

namespace tessera {

struct Preset {
  std::string_view name;
  std::string_view doc;
  void (*apply)(RunConfig&);
  std::string_view source = {};  // of a published model: where
  double parameters = 0;         // of a published model: as many as its authors say it has
};

std::span<const Preset> presets();
/// Errors: an unknown name; the message names the nearest, or all.
const Preset& find_preset(std::string_view name);

}  // namespace tessera
