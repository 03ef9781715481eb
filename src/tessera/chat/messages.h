#pragma once
/// Messages as templates see them.

#include <nlohmann/json.hpp>

namespace tessera {

/// As transformers hands them to a template: keys whose value is null are left out; what a message
/// thinks is there as reasoning_content and thinking, whichever of reasoning_content, thinking and
/// reasoning has it. `messages` is a list of objects.
nlohmann::ordered_json chat_messages(const nlohmann::ordered_json& messages);

}  // namespace tessera
