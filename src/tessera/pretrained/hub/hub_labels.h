#pragma once
/// Labels of a classifier in config.json: id2label, label2id, num_labels.

#include <span>
#include <string>
#include <vector>

#include "tessera/pretrained/hub/hub_config.h"

namespace tessera {

struct HubLabels {
  std::int64_t count = 0;
  std::vector<std::string> names = {};  // by number; empty: nobody named them
};
/// Those of id2label, or as many as num_labels says, or 2. Names such as LABEL_0 are none.
/// Errors: Fault::Data: an id2label that does not name 0, 1, ... each once.
HubLabels read_labels(const HubConfig& from);

/// Writes so many: `names`, or those that are there if they are as many, or LABEL_0, LABEL_1, ...
void write_labels(std::int64_t classes, std::span<const std::string> names, HubJson& to);

}  // namespace tessera
