#include "tessera/sources/dialogue_data.h"

#include <filesystem>

#include "tessera/base/error.h"
#include "tessera/base/words.h"
#include "tessera/config/row_fields.h"
#include "tessera/data/dialogue_tokens.h"
#include "tessera/data/dialogues.h"
#include "tessera/files/text.h"
#include "tessera/files/unpack.h"
#include "tessera/models/family.h"
#include "tessera/models/task_kind.h"
#include "tessera/token_files/token_files.h"

namespace tessera {

namespace {

/// The first file; empty: there is none that can be read as lines.
std::string first_file(const std::vector<std::string>& paths) {
  if (paths.empty() || names_token_files(paths)) return "";
  return text_files(paths).front();
}

}  // namespace

bool are_dialogues(const RunConfig& config, const std::vector<std::string>& paths) {
  if (config.text_column.empty() || find_task(config.model) == nullptr ||
      !has_task(config.model, kCausalLm))
    return false;
  if (!config.target_column.empty()) return true;
  const std::string first = first_file(paths);
  return !first.empty() && has_messages(first, config.text_column);
}

void refuse_listed_dialogues(const RunConfig& config) {
  const std::string path = first_file(config.data),
                    end = std::filesystem::path(unpacked_name(path)).extension().string();
  if (has_task(config.model, kCausalLm) && (end == ".json" || end == ".jsonl") &&
      is_list_of_dialogues(path))
    fail(Fault::Data, "'", path, "' is one list of dialogues; write one in each line, as jq -c ",
         "'.[]' does, or, to learn the file as text, give it another ending than ", end);
}

void find_dialogues(RunConfig& config) try {
  if (find_task(config.model) == nullptr || !has_task(config.model, kCausalLm)) return;
  if (!config.program_data.empty()) return;
  if (config.text_column.empty() && config.target_column.empty()) {
    const std::string first = first_file(config.data);
    const auto keys = first.empty() ? std::nullopt : find_dialogue_keys(first);
    if (!keys) return;
    config.text_column = keys->messages;
    config.target_column = keys->completion;
  }
  if (!are_dialogues(config, config.data) || !config.defaulted.contains("packing")) return;
  const bool apart = reads_field(config.model, "reset-attention-mask");
  config.packing = to_text(apart ? Packing::Bfd : Packing::None);
} catch (const Error&) {  // whoever reads the data says so
}

DialogueRules dialogue_rules(const RunConfig& config) {
  const bool packs = rows_of(config.model) == RowsKind::None;
  require(!packs || config.packing != to_text(Packing::Wrapped), "packing ", config.packing,
          " would cut dialogues; give ", to_text(Packing::Bfd), " or ", to_text(Packing::None));
  const ModelConfig& model = config.model;
  return {.loss = parse_word<DialogueLoss>(kDialogueLosses, config.chat_loss, "chat-loss"),
          .cut_long = config.long_dialogues == kLongDialogues[1],
          .context = model.context > 0 ? model.context : model.positions,
          .day = day_of(config.chat_date)};
}

}  // namespace tessera
