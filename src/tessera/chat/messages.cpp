#include "tessera/chat/messages.h"

#include "tessera/base/error.h"

namespace tessera {

nlohmann::ordered_json chat_messages(const nlohmann::ordered_json& messages) {
  using Json = nlohmann::ordered_json;
  Json out = Json::array();
  for (const Json& message : messages) {
    check(message.is_object(), "a message is no object");
    Json kept = Json::object();
    for (const auto& [key, value] : message.items()) {
      if (!value.is_null()) kept[key] = value;
    }
    for (const char* const name : {"reasoning_content", "thinking", "reasoning"}) {
      const auto thought = kept.find(name);
      if (thought == kept.end()) continue;
      const Json value = *thought;
      if (!kept.contains("thinking")) kept["thinking"] = value;
      kept["reasoning_content"] = value;
      break;
    }
    out.push_back(std::move(kept));
  }
  return out;
}

}  // namespace tessera
