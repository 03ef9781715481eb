#include "tessera/pretrained/hub/hub_rotary.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/models/rope_scaling.h"

namespace tessera {

namespace {

// Kinds of layers.
constexpr std::string_view kSliding = "sliding_attention", kFull = "full_attention";
constexpr std::string_view kOriginalLength = "original_max_position_embeddings";
constexpr std::int64_t kMostHubLength = 1'000'000'000;

/// The text of rotary_scaling_of for an object of config.json.
std::string scaling_text(const HubConfig& rope, const HubConfig& from, const ModelConfig& to) {
  const std::string_view named = rope.find(kRopeType) != nullptr ? kRopeType : "type";
  const std::string kind = rope.find(named) == nullptr ? "default" : rope.word(named);
  if (kind == "default") return "";
  const std::optional<RotaryKind> known = find_rotary_kind(kind);
  if (!known) rope.refuse(named, "known are default, linear, dynamic, llama3, yarn, longrope");
  std::string out = text(kRopeType, "=", kind);
  // Of dynamic positions the model's own length counts; of the others what the file says beside
  // them, before what it says in them.
  const bool scaled_by_length = *known != RotaryKind::Linear;
  const bool dynamic = *known == RotaryKind::Dynamic;
  const bool beside = scaled_by_length && !dynamic && from.has(kOriginalLength);
  bool has_length = false, has_factor = false;
  for (const auto& [key, value] : rope.json().items()) {
    if (key == "type" || key == kRopeType || key == "rope_theta" ||
        key == "partial_rotary_factor" || value.is_null() ||
        ((beside || dynamic) && key == kOriginalLength))
      continue;
    std::string word = value.dump();
    std::erase_if(word, [](char c) { return c == '[' || c == ']' || c == '"'; });
    std::ranges::replace(word, ',', ':');
    out += text(",", key, "=", word);
    has_length = has_length || key == kOriginalLength;
    has_factor = has_factor || key == "factor";
  }
  if (scaled_by_length && !has_length)
    out += text(",", kOriginalLength, "=",
                beside ? from.whole(kOriginalLength, 1, kMostHubLength) : to.context);
  if (*known == RotaryKind::LongRope && !has_factor)
    out += text(",factor=", static_cast<double>(to.context) /
                                static_cast<double>(rotary_scaling_of(out).original_length));
  return out;
}

/// Base, share of channels and scaling of one kind of layers.
void read_rope(const HubConfig& rope, const HubConfig& from, ModelConfig& to) {
  if (rope.find("rope_theta") != nullptr) to.rope_base = rope.number("rope_theta", 1, 1e12);
  if (rope.has("partial_rotary_factor"))
    to.rotary_share = rope.number("partial_rotary_factor", 0, 1);
  if (to.rotary_share != 1 && !reads_field(*to.family, "rotary-share"))
    rope.refuse("partial_rotary_factor", "all channels of a head are rotated here");
  try {
    to.rope_scaling = to_text(rotary_scaling_of(scaling_text(rope, from, to)));
  } catch (const Error& error) {
    if (error.fault() == Fault::Data) throw;
    fail(Fault::Data, rope.path(), ": ", error.what());
  }
}

HubConfig object_of(const HubConfig& from, std::string_view key) {
  if (!from.json()[key].is_object()) from.refuse(key, "it must be an object, or null");
  return HubConfig(from.json()[key].dump(), text(from.path(), ": ", key));
}

HubJson rope_json(const ModelConfig& from) {
  const RotaryScaling scaling = rotary_scaling_of(from.rope_scaling), standard;
  HubJson out = {{"rope_theta", from.rope_base}, {kRopeType, to_text(scaling.kind)}};
  if (reads_field(*from.family, "rotary-share")) out["partial_rotary_factor"] = from.rotary_share;
  for (const RopeKey& each : rope_keys()) {
    std::visit(
        [&](auto slot) {
          if (scaling.*slot == standard.*slot && !is_needed_by(each, scaling.kind)) return;
          if constexpr (requires { (scaling.*slot).value(); }) {
            out[each.key] = (scaling.*slot).value();
          } else {
            out[each.key] = scaling.*slot;
          }
        },
        each.slot);
  }
  return out;
}

}  // namespace

/// Versions before 5 have the base at the top and scaled positions in rope_scaling, later ones both
/// in rope_parameters. Of a file with both, transformers takes rope_scaling.
void read_rotary(const HubConfig& from, ModelConfig& to) {
  to.rope_base = 10'000;
  if (to.heads > 0 && to.width % to.heads == 0 && to.head_width == to.width / to.heads)
    to.head_width = 0;
  read_rope(from, from, to);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!from.has(key) || from.json()[key].empty()) continue;
    return read_rope(object_of(from, key), from, to);
  }
}

void write_rotary(const ModelConfig& from, HubJson& to) {
  to["rope_parameters"] = rope_json(from);
  to["rope_theta"] = from.rope_base;
  if (reads_field(*from.family, "rotary-share")) to["partial_rotary_factor"] = from.rotary_share;
  if (from.rope_scaling.empty()) return;
  // Of dynamic positions the model's own length is that of pre-training.
  const RotaryScaling scaling = rotary_scaling_of(from.rope_scaling);
  if (scaling.kind == RotaryKind::Dynamic) {
    to["max_position_embeddings"] = scaling.original_length;
    to["rope_parameters"].erase(std::string(kOriginalLength));
  }
  to["rope_scaling"] = to["rope_parameters"];
}

/// rope_parameters has an object for each kind of layers; older files have two bases. What
/// rope_scaling says wins in layers without windows.
void read_rotary_of_kinds(const HubConfig& from, ModelConfig& to, const HubRotaryBases& bases) {
  const auto base = [&](std::string_view key, double standard) {
    return from.has(key) ? from.number(key, 1, 1e12) : standard;
  };
  to.rope_base = base(bases.key, bases.standard);
  to.local_rope_base = base(bases.local_key, bases.local_standard);
  HubJson parameters = HubJson::object();
  if (from.has("rope_parameters")) parameters = object_of(from, "rope_parameters").json();
  if (from.has("rope_scaling")) {
    const HubConfig scaling = object_of(from, "rope_scaling");
    if (scaling.find("type") != nullptr && scaling.find(kRopeType) == nullptr)
      from.refuse("rope_scaling",
                  "its type scales positions in version 4 of transformers and not in version 5; "
                  "write rope_type, or remove it");
    HubJson& full = parameters[std::string(kFull)];
    if (full.is_null()) full = HubJson::object();
    if (full.is_object()) full.update(scaling.json());
  }
  const HubConfig kinds(parameters.dump(), text(from.path(), ": rope_parameters"));
  ModelConfig local = to;
  local.rope_base = to.local_rope_base;
  local.rope_scaling.clear();
  for (const auto& [key, value] : kinds.json().items()) {
    if (key == kFull) {
      read_rope(object_of(kinds, key), from, to);
    } else if (key == kSliding) {
      read_rope(object_of(kinds, key), from, local);
    } else {
      kinds.refuse(key, text("it has ", kFull, " and ", kSliding));
    }
  }
  if (!local.rope_scaling.empty())
    kinds.refuse(kSliding, "positions of layers with windows are not scaled here");
  to.local_rope_base = local.rope_base;
}

void write_rotary_of_kinds(const ModelConfig& from, HubJson& to, const HubRotaryBases& bases) {
  ModelConfig local = from;
  local.rope_base = from.local_rope_base > 0 ? from.local_rope_base : from.rope_base;
  local.rope_scaling.clear();
  to["rope_parameters"] = {{kSliding, rope_json(local)}, {kFull, rope_json(from)}};
  to[bases.key] = from.rope_base;
  to[bases.local_key] = local.rope_base;
}

void read_layer_types(const HubConfig& from, ModelConfig& to, std::string_view windows) {
  if (!from.has("layer_types")) return;
  const HubJson& types = from.json()["layer_types"];
  if (!types.is_array() || std::ssize(types) != to.layers)
    from.refuse("layer_types", text("it must have one word for each of the ", to.layers,
                                    " layers (num_hidden_layers)"));
  // The first that sees all, or the next one, says how many there are of each kind.
  const std::int64_t before = to.family->first_sees_all ? 1 : 0;
  const auto full =
      std::find(types.begin() + std::min(before, to.layers), types.end(), HubJson(kFull));
  const bool begins = before == 0 || (to.layers > 0 && types[0] == HubJson(kFull));
  if (begins && full != types.end()) {
    to.global_every = full - types.begin() + 1 - before;
  } else if (!begins || to.global_every <= to.layers - before) {
    to.global_every = begins && before > 0 ? to.layers : 0;
  }
  if (to.global_every == 1) to.global_every = to.window = 0;
  for (std::int64_t i = 0; i < to.layers; ++i) {
    if (types[static_cast<std::size_t>(i)] != (has_window(to, i) ? kSliding : kFull))
      from.refuse("layer_types",
                  text("each layer has a window (", kSliding, "), or none, or ",
                       before > 0 ? "the first and each so-many-th behind it alone have none ("
                                  : "each so-many-th alone has none (",
                       kFull, "); ", windows));
  }
}

void write_layer_types(const ModelConfig& from, HubJson& to) {
  HubJson types = HubJson::array();
  for (std::int64_t i = 0; i < from.layers; ++i)
    types.push_back(has_window(from, i) ? kSliding : kFull);
  to["layer_types"] = types;
}

void read_rotary_in_layers(const HubConfig& from, ModelConfig& to) {
  read_rotary(from, to);
  read_layer_types(from, to);
}

void write_rotary_in_layers(const ModelConfig& from, HubJson& to) {
  write_rotary(from, to);
  write_layer_types(from, to);
}

std::int64_t switched_window(const HubConfig& from) {
  const bool on = from.has("use_sliding_window") && from.truth("use_sliding_window");
  if (!on || (from.find("sliding_window") != nullptr && !from.has("sliding_window"))) return 0;
  return from.has("sliding_window") ? from.whole("sliding_window", 0, kMostHubLength) : 4096;
}

void read_rotary_with_switch(const HubConfig& from, ModelConfig& to) {
  read_rotary(from, to);
  to.window = switched_window(from);
  if (from.has("layer_types")) return read_layer_types(from, to);
  // The first with a window; all behind it have one.
  const std::int64_t first = from.has("max_window_layers")
                                 ? from.whole("max_window_layers", 0, kMostHubLength)
                                 : 28;
  if (first >= to.layers) to.window = 0;
  if (to.window > 0 && first > 0)
    from.refuse("max_window_layers", "all layers have windows here, or none");
}

void write_rotary_with_switch(const ModelConfig& from, HubJson& to) {
  write_rotary_in_layers(from, to);
  to["use_sliding_window"] = from.window > 0;
  to["sliding_window"] = from.window > 0 ? HubJson(from.window) : HubJson(nullptr);
  if (from.window > 0) to["max_window_layers"] = 0;
}

}  // namespace tessera
