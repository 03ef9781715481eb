#pragma once
/// What the folders of Qwen's versions have alike.

#include "tessera/pretrained/hub/hub_rotary.h"

namespace tessera {

inline constexpr auto kQwenKeys = hub_rotary_keys({.width = 4096,
                                                   .layers = 32,
                                                   .heads = 32,
                                                   .kv_heads = 32,
                                                   .ffn_width = 22016,
                                                   .vocabulary = 151936,
                                                   .context = 32768});

constexpr HubFamily hub_qwen_family(HubFamily with) {
  with.read = read_rotary_with_switch;
  with.write = write_rotary_with_switch;
  return hub_rotary_family(with);
}

}  // namespace tessera
