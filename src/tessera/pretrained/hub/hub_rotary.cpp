#include "tessera/pretrained/hub/hub_rotary.h"

#include "tessera/base/text.h"

namespace tessera {

/// Versions before 5 have the base at the top and scaled positions in rope_scaling, later ones both
/// in rope_parameters. Of a file with both, transformers takes rope_scaling.
void read_rotary(const HubConfig& from, ModelConfig& to) {
  const auto base = [](const HubConfig& of, double standard) {
    return of.find("rope_theta") == nullptr ? standard : of.number("rope_theta", 1, 1e12);
  };
  to.rope_base = base(from, 10'000);
  if (to.heads > 0 && to.width % to.heads == 0 && to.head_width == to.width / to.heads)
    to.head_width = 0;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!from.has(key)) continue;
    if (!from.json()[key].is_object()) from.refuse(key, "it must be an object, or null");
    if (from.json()[key].empty()) continue;
    const HubConfig rope(from.json()[key].dump(), text(from.path(), ": ", key));
    for (const char* type : {"type", "rope_type"}) {
      if (rope.find(type) != nullptr && rope.word(type) != "default")
        rope.refuse(type, "positions are rotated as they are here, which is called default");
    }
    if (rope.find("partial_rotary_factor") != nullptr &&
        rope.number("partial_rotary_factor", 0, 1) != 1)
      rope.refuse("partial_rotary_factor", "all channels of a head are rotated here");
    to.rope_base = base(rope, to.rope_base);
    return;
  }
}

void write_rotary(const ModelConfig& from, HubJson& to) {
  to["rope_theta"] = from.rope_base;
  to["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", from.rope_base}};
}

void read_rotary_without_windows(const HubConfig& from, ModelConfig& to) {
  read_rotary(from, to);
  if (!from.has("layer_types")) return;
  for (const HubJson& type : from.json()["layer_types"]) {
    if (type != "full_attention")
      from.refuse("layer_types", "every token sees all before it here, full_attention");
  }
}

}  // namespace tessera
