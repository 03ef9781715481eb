#pragma once
/// Dialogues in JSON lines.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/files/json_lines.h"

namespace tessera {

/// The keys that hold a dialogue: one with a list of messages, or a prompt and a completion, which
/// are texts or lists of messages.
struct DialogueKeys {
  std::string messages, completion;  // completion: empty: one key
};

/// Of files of usual names: "messages", "conversations", "prompt" and "completion", in the first
/// line of a .jsonl or .json file. Nothing: it has none of these, or they hold no dialogue.
std::optional<DialogueKeys> find_dialogue_keys(const std::string& path);
/// Whether the first line of such a file has a list of objects at `key`.
bool has_messages(const std::string& path, const std::string& key);

/// Whether a file begins as one JSON list of objects with messages, which no line of it is.
bool is_list_of_dialogues(const std::string& path);

/// A dialogue as templates see it.
struct Dialogue {
  nlohmann::ordered_json messages;  // of {"role", "content", ...}
  nlohmann::ordered_json tools;     // null: none
  nlohmann::ordered_json others;    // chat_template_kwargs of the line, an object
  std::size_t prompt = 0;           // the first so many messages are a prompt
  std::int64_t line = 0;            // of its file
};

/// What a line holds. Messages are {"role", "content"}, or {"from", "value"} with the roles system,
/// human, user, gpt, assistant, observation, tool; a list of them may be the text of one. A text
/// `system` beside ShareGPT's "conversations" is their first message. Errors: Fault::Data, with the
/// place: no JSON object; a key that is missing; no list of messages; a message without a role or a
/// content, or with another `from`; a usual role in other letters; tools that are no objects.
Dialogue dialogue_of(std::string_view line, const DialogueKeys& keys, const LinePlace& place);

}  // namespace tessera
