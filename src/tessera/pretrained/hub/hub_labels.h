#pragma once
/// Labels of a classifier in config.json: id2label, label2id, num_labels.

#include <span>
#include <string>
#include <vector>

#include "tessera/pretrained/hub/hub_config.h"

namespace tessera {

/// The names of id2label, by number; LABEL_0, LABEL_1, ... where there are num_labels, or 2, and
/// none is named. Errors: Fault::Data: an id2label that does not name 0, 1, ... each once.
std::vector<std::string> read_labels(const HubConfig& from);

/// Writes so many: `names`, or those that are there if they are as many, or LABEL_0, LABEL_1, ...
void write_labels(std::int64_t classes, std::span<const std::string> names, HubJson& to);

}  // namespace tessera
