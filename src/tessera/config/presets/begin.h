#pragma once
/// How a preset begins.

#include "tessera/config/config.h"

namespace tessera {

struct PresetSizes {
  std::int64_t layers, heads, width, context;
};

/// A model of the family as it was published, in these sizes, with the vocabulary of the data.
inline void begin_preset(RunConfig& c, const FamilyRef& family, const PresetSizes& sizes) {
  c.model = published(family);
  c.model.layers = sizes.layers, c.model.heads = sizes.heads;
  c.model.width = sizes.width, c.model.context = sizes.context;
  c.model.vocabulary = 0;
}

}  // namespace tessera
