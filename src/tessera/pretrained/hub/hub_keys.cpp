#include "tessera/pretrained/hub/hub_keys.h"

#include <algorithm>
#include <optional>

#include "tessera/base/text.h"
#include "tessera/models/family.h"

namespace tessera {

namespace {

constexpr std::int64_t kMostOfSize = 1'000'000'000'000;

/// Keys of every family that change no number: how the folder was made, what generation does, what
/// programs return. With blanks between.
constexpr std::string_view kHarmless =
    "_name_or_path name_or_path _commit_hash transformers_version model_type architectures dtype "
    "torch_dtype use_cache output_hidden_states output_attentions return_dict torchscript "
    "chunk_size_feed_forward is_encoder_decoder id2label label2id num_labels problem_type "
    "finetuning_task task_specific_params tokenizer_class prefix bos_token_id eos_token_id "
    "pad_token_id sep_token_id mask_token_id decoder_start_token_id forced_bos_token_id "
    "forced_eos_token_id bad_words_ids begin_suppress_tokens suppress_tokens max_length min_length "
    "do_sample early_stopping num_beams num_beam_groups diversity_penalty temperature top_k top_p "
    "typical_p repetition_penalty length_penalty no_repeat_ngram_size "
    "encoder_no_repeat_ngram_size num_return_sequences output_scores return_dict_in_generate "
    "remove_invalid_values exponential_decay_length_penalty output_past gradient_checkpointing "
    "use_bfloat16 attn_implementation _attn_implementation _attn_implementation_autoset "
    "_flash_attn_2_enabled auto_map cross_attention_hidden_size tf_legacy_loss "
    "generation_config sentence_transformers adapters custom_pipelines";

/// Keys of every family that change numbers wherever they say something: none of it is computed.
struct HubForbidden {
  std::string_view key, why;
};
constexpr HubForbidden kForbidden[] = {
    {"quantization_config",
     "weights are quantized; supported are f32, bf16 and f16: give the original model"},
    {"compression_config", "weights are compressed; give the original model"},
    {"per_layer_config", "all layers must have the same sizes"},
    {"pruned_heads", "all layers must have all their heads"},
    {"tie_encoder_decoder", "encoder and decoder must have separate weights"},
    {"vision_config", "the model is part of one that reads pictures; give only that part"},
    {"text_config", "the model is part of a larger one; give only that part"}};

/// `name` is `meant` but for a letter too many, too few or another one, or two that changed places.
bool is_slip(std::string_view name, std::string_view meant) {
  while (!name.empty() && !meant.empty() && name.front() == meant.front())
    name.remove_prefix(1), meant.remove_prefix(1);
  while (!name.empty() && !meant.empty() && name.back() == meant.back())
    name.remove_suffix(1), meant.remove_suffix(1);
  const bool swapped =
      name.size() == 2 && meant.size() == 2 && name[0] == meant[1] && name[1] == meant[0];
  return swapped || (name.size() <= 1 && meant.size() <= 1);
}

/// null, false, {}, [], "" and 0 say nothing.
bool says_nothing(const HubJson& value) {
  return value.is_null() || value == false || value == 0 || value == "" ||
         (value.is_structured() && value.empty());
}

std::string value_text(const HubValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return text(*whole);
  if (const auto* number = std::get_if<double>(&value)) return text(*number);
  if (const auto* truth = std::get_if<bool>(&value)) return text(*truth);
  if (const auto* word = std::get_if<std::string_view>(&value)) return std::string(*word);
  return "null";
}

HubJson json_of(const HubValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return *whole;
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* truth = std::get_if<bool>(&value)) return *truth;
  if (const auto* word = std::get_if<std::string_view>(&value)) return std::string(*word);
  return nullptr;
}

/// A value of a key, as JSON has it, in the kind of the row.
using ReadValue = std::variant<std::monostate, std::int64_t, double, bool, std::string>;

ReadValue plain(const HubValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return *whole;
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* truth = std::get_if<bool>(&value)) return *truth;
  if (const auto* word = std::get_if<std::string_view>(&value)) return std::string(*word);
  return {};
}

/// The name by which the config has it; empty: it has it by none.
std::string_view name_in(const HubKey& row, const HubConfig& from) {
  const bool own = from.find(row.key) != nullptr,
             other = !row.also.empty() && from.find(row.also) != nullptr;
  if (own && other && *from.find(row.key) != *from.find(row.also))
    from.refuse(row.also, text("and ", row.key, ", its other name, is ", shown(*from.find(row.key)),
                               "; give one of them"));
  return own ? row.key : other ? row.also : std::string_view();
}

ReadValue read_value(const HubKey& row, const HubConfig& from) {
  const std::string_view name = name_in(row, from);
  if (name.empty()) return plain(row.standard);
  if (from.find(name)->is_null() && !std::holds_alternative<std::monostate>(row.null))
    return plain(row.null);
  if (std::holds_alternative<std::int64_t>(row.standard))
    return from.whole(name, row.use == HubUse::Must ? -kMostOfSize : 1 + row.behind, kMostOfSize);
  if (std::holds_alternative<double>(row.standard)) {
    if (row.use != HubUse::Rate && row.use != HubUse::Same)
      return from.number(name, row.least, row.most);
    const double rate = from.number(name, 0, 1);
    if (rate >= 1) from.refuse(name, "it must be a share from 0 to below 1");
    return rate;
  }
  if (std::holds_alternative<bool>(row.standard)) return from.truth(name);
  return from.word(name);
}

void refuse_other(const HubKey& row, const HubConfig& from) {
  const std::string_view name = name_in(row, from);
  const std::vector<std::string> words = split(row.words, ' ');
  const std::string wanted = row.words.empty() ? value_text(row.must) : join(words, " or ");
  if (!row.why.empty()) from.refuse(name.empty() ? row.key : name, row.why);
  from.refuse(name.empty() ? row.key : name, text("supported is only ", wanted));
}

void put(const HubKey& row, const ReadValue& value, ModelConfig& to) {
  if (const auto* slot = std::get_if<std::int64_t ModelConfig::*>(&row.slot)) {
    const std::int64_t whole = std::get<std::int64_t>(value);
    to.*(*slot) = whole == 0 ? 0 : whole - row.behind;
  } else if (const auto* slot = std::get_if<double ModelConfig::*>(&row.slot)) {
    to.*(*slot) = std::get<double>(value);
  } else if (const auto* slot = std::get_if<bool ModelConfig::*>(&row.slot)) {
    to.*(*slot) = std::get<bool>(value);
  } else if (const auto* slot = std::get_if<std::string ModelConfig::*>(&row.slot)) {
    to.*(*slot) = std::get<std::string>(value);
  }
}

/// The row is of models with the head of this one.
bool is_of_head(const HubKey& row, const ModelConfig& model) {
  return is_of(row.heads, family_task(model).hub_head);
}

void read_row(const HubKey& row, const HubConfig& from, ModelConfig& to,
              std::vector<std::string>& notices) {
  if (row.required && name_in(row, from).empty())
    from.refuse(row.key, "write that of the program that made the weights");
  if (row.use == HubUse::Own || !is_of_head(row, to)) return;
  const ReadValue value = read_value(row, from);
  const auto* word = std::get_if<std::string>(&value);
  if (word != nullptr && !row.words.empty() && !is_one_of(row.words, *word))
    refuse_other(row, from);
  if (row.use == HubUse::Must) {
    if (row.words.empty() && value != plain(row.must)) refuse_other(row, from);
    return;
  }
  if (row.use != HubUse::Same) return put(row, value, to);
  const double used = to.*std::get<double ModelConfig::*>(row.slot), rate = std::get<double>(value);
  if (rate != used)
    notices.push_back(text(from.path(), ": ", row.key, " is ", rate,
                           name_in(row, from).empty() ? " where it is missing" : "",
                           "; it shares one rate with the others, ", used));
}

/// All names that rows read, and whether one is there.
struct KnownKeys {
  std::vector<std::string> all, missing;
};

KnownKeys known_keys(HubKeys keys, const HubConfig& from) {
  KnownKeys out;
  for (const std::span<const HubKey> block : keys) {
    for (const HubKey& row : block) {
      out.all.emplace_back(row.key);
      if (!row.also.empty()) out.all.emplace_back(row.also);
      if (from.find(row.key) == nullptr && (row.also.empty() || from.find(row.also) == nullptr))
        out.missing.emplace_back(row.key);
    }
  }
  return out;
}

void judge_other_keys(HubKeys keys, std::string_view harmless, const HubConfig& from,
                      std::vector<std::string>& notices) {
  const KnownKeys known = known_keys(keys, from);
  for (const HubForbidden& each : kForbidden) {
    const HubJson* value = from.find(each.key);
    const bool own = std::ranges::find(known.all, each.key) != known.all.end();
    if (value != nullptr && !own && !says_nothing(*value)) from.refuse(each.key, each.why);
  }
  std::vector<std::string> unknown;
  for (const auto& [key, value] : from.json().items()) {
    const bool read =
        std::ranges::find(known.all, key) != known.all.end() ||
        std::ranges::find(kForbidden, key, &HubForbidden::key) != std::end(kForbidden);
    if (read || is_one_of(kHarmless, key) || is_one_of(harmless, key)) continue;
    const auto meant = std::ranges::find_if(
        known.missing, [&key](const std::string& missing) { return is_slip(key, missing); });
    if (meant != known.missing.end())
      from.refuse(key, text("transformers knows no such key, and ", *meant,
                            " is missing: rename it if that is meant, else remove it"));
    unknown.push_back(key);
  }
  if (!unknown.empty())
    notices.push_back(
        text(from.path(),
             ": ignored keys, unknown to transformers for this model_type: ", join(unknown)));
}

struct NamedSize {
  std::string words;  // "n_embd is 32"
  std::int64_t value;
  bool missing;
  bool of_layers;  // is no extent of a tensor
  HubSlot slot;
};

std::vector<NamedSize> sizes_of(HubKeys keys, const HubConfig& config) {
  std::vector<NamedSize> out;
  for (const std::span<const HubKey> block : keys) {
    for (const HubKey& row : block) {
      if (!std::holds_alternative<std::int64_t ModelConfig::*>(row.slot)) continue;
      if (row.slot == HubSlot(&ModelConfig::context)) continue;  // is of samples, not of weights
      const std::int64_t value = std::get<std::int64_t>(read_value(row, config));
      const std::string_view name = name_in(row, config);
      const std::string is =
          name.empty() ? text(row.key, " is missing and so ") : text(name, " is ");
      out.push_back({is + (value == 0 ? "as others say" : text(value)), value, name.empty(),
                     row.slot == HubSlot(&ModelConfig::layers) ||
                         row.slot == HubSlot(&ModelConfig::decoder_layers),
                     row.slot});
    }
  }
  return out;
}

/// Every size and rate that follows from others is written out.
ModelConfig written_out(ModelConfig model) {
  model.kv_heads = model.groups();
  if (!model.has_latent_attention()) model.head_width = model.head_dim();
  model.ffn_width = model.hidden();
  model.embedding_width = model.embedded();
  model.decoder_layers = model.decoder();
  model.decoder_heads = model.heads_of_decoder();
  model.decoder_ffn_width = model.hidden_of_decoder();
  model.positions = model.most_positions();
  if (model.query_scalar == 0) model.query_scalar = model.head_dim();
  model.attention_dropout = model.attention_rate();
  return model;
}

HubJson value_of(const HubKey& row, const ModelConfig& from) {
  if (const auto* slot = std::get_if<std::int64_t ModelConfig::*>(&row.slot)) {
    const std::int64_t whole = from.*(*slot);
    return whole == 0 && row.null == HubValue(whole) ? HubJson(nullptr)
                                                     : HubJson(whole + row.behind);
  }
  if (const auto* slot = std::get_if<bool ModelConfig::*>(&row.slot)) return from.*(*slot);
  if (const auto* slot = std::get_if<std::string ModelConfig::*>(&row.slot)) return from.*(*slot);
  const double value = from.*std::get<double ModelConfig::*>(row.slot);
  if (value == 0 && row.null == HubValue(value)) return nullptr;
  if (row.use != HubUse::Rate || value >= 0) return value;
  return row.null == HubValue(value) ? HubJson(nullptr) : HubJson(from.dropout);
}

/// "new_decoder_architecture is missing": the family's own, by which tensors are others.
std::vector<std::string> shaping_keys(HubKeys keys, const HubConfig& config) {
  std::vector<std::string> out;
  for (const std::span<const HubKey> block : keys) {
    for (const HubKey& row : block) {
      if (!row.shapes) continue;
      const std::string_view name = name_in(row, config);
      out.push_back(name.empty() ? text(row.key, " is missing")
                                 : text(name, " is ", shown(*config.find(name))));
    }
  }
  return out;
}

}  // namespace

std::string shaping_text(HubKeys keys, const HubConfig& config) {
  return join(shaping_keys(keys, config));
}

void read_keys(HubKeys keys, std::string_view harmless, const HubConfig& from, ModelConfig& to,
               std::vector<std::string>& notices) {
  judge_other_keys(keys, harmless, from, notices);
  for (const std::span<const HubKey> block : keys) {
    for (const HubKey& row : block) read_row(row, from, to, notices);
  }
  if (to.attention_dropout == to.dropout) to.attention_dropout = -1;
}

void write_keys(HubKeys keys, const ModelConfig& model, HubJson& to) {
  const ModelConfig from = written_out(model);
  for (const std::span<const HubKey> block : keys) {
    for (const HubKey& row : block) {
      if (row.use == HubUse::Own || row.write == HubWrite::Never) continue;
      if (!is_of_head(row, from)) continue;
      if (row.write == HubWrite::IfMissing && to.contains(row.key)) continue;
      to.erase(std::string(row.also));
      to[std::string(row.key)] = row.use == HubUse::Must ? json_of(row.must) : value_of(row, from);
    }
  }
}

std::string keys_of_size(HubKeys keys, const HubConfig& config, std::int64_t extent) {
  const std::vector<NamedSize> sizes = sizes_of(keys, config);
  std::vector<std::string> out;
  // Heads that have a width of their own make a size together.
  const auto heads = std::ranges::find(sizes, HubSlot(&ModelConfig::heads), &NamedSize::slot),
             width = std::ranges::find(sizes, HubSlot(&ModelConfig::head_width), &NamedSize::slot);
  if (heads != sizes.end() && width != sizes.end() && heads->value > 0 &&
      extent % heads->value == 0 && extent / heads->value == width->value)
    out.push_back(text(heads->words, " and ", width->words));
  for (const NamedSize& size : sizes) {
    if (size.value == extent && !size.of_layers) out.push_back(size.words);
  }
  if (config.has("id2label") && std::ssize(config.json()["id2label"]) == extent)
    out.push_back(text("id2label names ", extent));
  if (!config.has("id2label") && !config.has("num_labels") && extent == 2)
    out.emplace_back("id2label is missing and so 2 labels");
  return join(out, " or ");
}

std::string open_sizes(HubKeys keys, const HubConfig& config) {
  std::vector<std::string> out = shaping_keys(keys, config);
  for (const NamedSize& size : sizes_of(keys, config)) {
    if (size.value == 0) out.push_back(size.words);
  }
  return join(out);
}

std::string missing_sizes(HubKeys keys, const HubConfig& config) {
  std::vector<std::string> out;
  for (const NamedSize& size : sizes_of(keys, config)) {
    if (size.missing && size.value > 0) out.push_back(size.words);
  }
  return join(out);
}

std::string sizes_text(HubKeys keys, const HubConfig& config) {
  std::vector<std::string> out;
  for (const NamedSize& size : sizes_of(keys, config)) out.push_back(size.words);
  for (const std::string& each : shaping_keys(keys, config)) out.push_back(each);
  return join(out);
}

std::string switches_text(HubKeys keys, const HubConfig& config) {
  std::vector<std::string> out = shaping_keys(keys, config);
  for (const std::span<const HubKey> block : keys) {
    for (const HubKey& row : block) {
      const bool is_switch = std::holds_alternative<bool ModelConfig::*>(row.slot);
      const bool adds = row.standard == HubValue(false) || row.slot == HubSlot(&ModelConfig::bias);
      if (is_switch && adds && read_value(row, config) == ReadValue(true))
        out.push_back(name_in(row, config).empty() ? text(row.key, " is missing and so true")
                                                   : text(row.key, " is true"));
    }
  }
  return join(out);
}

}  // namespace tessera
