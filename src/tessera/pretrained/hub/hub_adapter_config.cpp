/// What adapter_config.json of an adapter says.

#include <algorithm>

#include "tessera/pretrained/hub/hub_adapter.h"

namespace tessera {

namespace {

constexpr double kMostAlpha = 1e6;
constexpr std::int64_t kMostRank = 1 << 16;

/// Keys of adapter_config.json that change no number, whatever they say.
constexpr std::string_view kHarmlessKeys[] = {"auto_mapping",    "base_model_name_or_path",
                                              "revision",        "task_type",
                                              "inference_mode",  "target_modules",
                                              "exclude_modules", "fan_in_fan_out",
                                              "modules_to_save", "init_lora_weights",
                                              "peft_version",    "megatron_core",
                                              "layers_pattern",  "qalora_group_size",
                                              "runtime_config",  "lora_dropout",
                                              "peft_type",       "r",
                                              "lora_alpha",      "use_rslora",
                                              "use_dora"};

bool is_nothing(const HubJson& value) {
  return value.is_null() || value == false || value.empty() || value == "none";
}

constexpr std::pair<TaskHead, std::string_view> kTaskTypes[] = {
    {TaskHead::CausalLm, "CAUSAL_LM"},
    {TaskHead::Seq2SeqLm, "SEQ_2_SEQ_LM"},
    {TaskHead::SequenceClassification, "SEQ_CLS"},
    {TaskHead::TokenClassification, "TOKEN_CLS"},
    {TaskHead::QuestionAnswering, "QUESTION_ANS"}};

}  // namespace

std::string_view peft_task_type(const ModelConfig& model) {
  for (const auto& [head, type] : kTaskTypes)
    if (has_head(model, head)) return type;
  return "";
}

HubAdapterConfig read_adapter_config(const HubConfig& from) {
  if (!from.has("peft_type") || from.word("peft_type") != "LORA")
    from.refuse("peft_type", "adapters are read where it is LORA");
  for (const auto& [key, value] : from.json().items()) {
    const bool known = std::ranges::find(kHarmlessKeys, key) != std::end(kHarmlessKeys);
    const bool judged = key == "init_lora_weights" || key == "revision";
    if (!known && !judged && !is_nothing(value))
      from.refuse(key, "only LoRA of whole layers without it is read; merge the adapter with PEFT");
  }
  if (!from.has("r")) from.refuse("r", "it is the rank");
  if (const HubJson* const first = from.find("init_lora_weights")) {
    constexpr std::string_view kLeavesBase[] = {"gaussian", "eva", "orthogonal"};
    const bool leaves =
        first->is_boolean() || first->is_null() ||
        (first->is_string() && std::ranges::find(kLeavesBase, *first) != std::end(kLeavesBase));
    if (!leaves)
      from.refuse("init_lora_weights",
                  "it changes the base's weights; merge the adapter with PEFT");
  }
  if (from.has("revision") && from.word("revision") != "main")
    from.refuse("revision",
                "of names in the cache main is read; write the folder of that revision "
                "in base_model_name_or_path, and null here");
  HubAdapterConfig out;
  out.lora.rank = from.whole("r", 1, kMostRank);
  out.lora.alpha = from.has("lora_alpha") ? from.number("lora_alpha", 1e-9, kMostAlpha) : 8;
  if (from.has("lora_dropout")) out.lora.dropout = from.number("lora_dropout", 0, 1);
  if (from.has("use_rslora")) out.lora.rank_stabilized = from.truth("use_rslora");
  if (from.has("use_dora")) out.lora.decomposed = from.truth("use_dora");
  if (!from.has("base_model_name_or_path"))
    from.refuse("base_model_name_or_path", "it names the model that the adapter is of");
  out.base = from.word("base_model_name_or_path");
  if (from.has("task_type"))
    for (const auto& [head, type] : kTaskTypes)
      if (from.word("task_type") == type) out.head = head;
  if (const HubJson* const said = from.find("auto_mapping"); said != nullptr && said->is_object()) {
    const auto name = said->find("base_model_class");
    if (name != said->end() && name->is_string()) out.model_class = name->get<std::string>();
  }
  return out;
}

}  // namespace tessera
