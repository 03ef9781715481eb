#include "tessera/data/dialogues.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/chat/messages.h"
#include "tessera/files/deep_json.h"
#include "tessera/files/json_fault.h"

namespace tessera {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char *kMessages = "messages", *kShared = "conversations",  // ShareGPT's
                                                  *kKwargs = "chat_template_kwargs";

constexpr std::pair<std::string_view, std::string_view> kFromRoles[] = {
    {"system", "system"},       {"human", "user"},       {"user", "user"}, {"gpt", "assistant"},
    {"assistant", "assistant"}, {"observation", "tool"}, {"tool", "tool"}};

template <typename... Parts>
[[noreturn]] void bad_dialogue(const LinePlace& place, const Parts&... parts) {
  fail(Fault::Data, "'", *place.path, "' line ", place.line, ": ", parts...);
}

constexpr std::string_view kRoles[] = {"system", "developer", "user", "assistant", "tool"};

/// A list, or a text that is one: tables have lists as texts.
Json listed(const Json& value) {
  return value.is_string() ? parse_shallow<Json>(value.get_ref<const std::string&>()) : value;
}

bool is_messages(const Json& value) {
  const Json list = listed(value);  // an empty one is refused where it is read
  return list.is_array() && (list.empty() ? value.is_array() : list.front().is_object());
}

/// The object of the first line; discarded: there is none.
Json first_object(const std::string& path) {
  const std::string end = std::filesystem::path(unpacked_name(path)).extension().string();
  if (end != ".jsonl" && end != ".json") return Json(Json::value_t::discarded);
  const std::vector<std::string> paths = {path};
  LineBlocks blocks(paths, 1 << 16);
  LineBlock block;
  std::optional<Json> out;
  while (!out && blocks.next(block)) {
    for_each_line(block, [&](std::string_view line, const LinePlace&) {
      if (!out) out = parse_shallow<Json>(line);
    });
  }
  return out && out->is_object() ? *out : Json(Json::value_t::discarded);
}

std::string in_small_ascii(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  return text;
}

Json role_of(const Json& message, const std::string& what, const LinePlace& place) {
  if (message.contains("role")) {
    if (!message["role"].is_string())
      bad_dialogue(place, "the role of ", what, " is not a text; give \"user\", \"assistant\" ...");
    // Templates compare roles, and many write nothing for one that they do not know.
    const std::string role = message["role"], small = in_small_ascii(role);
    if (role != small && std::ranges::find(kRoles, small) != std::end(kRoles))
      bad_dialogue(place, "the role of ", what, " is '", role, "', which templates do not know; ",
                   "give \"", small, "\"");
    return role;
  }
  const auto from = message.find("from");
  if (from == message.end())
    bad_dialogue(place, what, " has no \"role\"; give each message a role and a content");
  const std::string name = from->is_string() ? from->get<std::string>() : from->dump();
  const auto found = std::ranges::find(kFromRoles, name, [](const auto& row) { return row.first; });
  if (found == std::end(kFromRoles)) {
    std::vector<std::string_view> known;
    for (const auto& row : kFromRoles) known.push_back(row.first);
    bad_dialogue(place, what, " is from '", name, "', which is none of ", join(known));
  }
  return std::string(found->second);
}

Json message_of(const Json& given, const std::string& what, const LinePlace& place) {
  if (!given.is_object()) bad_dialogue(place, what, " is not an object");
  Json out = Json::object();
  out["role"] = role_of(given, what, place);
  const char* const key = given.contains("role") ? "content" : "value";
  for (const auto& [name, value] : given.items()) {
    if (name == "role" || name == "from") continue;
    out[name == key ? std::string("content") : name] = value;
  }
  const auto content = out.find("content");
  const bool none = content == out.end() || content->is_null(),
             calls = out.contains("tool_calls") && !out["tool_calls"].is_null();
  if (none && !calls) bad_dialogue(place, what, " has no \"", key, "\"; give it a text");
  if (!none && !content->is_string() && !content->is_array() && !content->is_object())
    bad_dialogue(place, "\"", key, "\" of ", what, " is not a text");
  return out;
}

/// Adds the messages at a key, or a text as a message of a role.
void add_messages(Json& out, const Json& line, const std::string& key, const char* role,
                  const LinePlace& place) {
  const auto value = line.find(key);
  if (value == line.end()) bad_dialogue(place, "there is no key \"", key, "\"");
  if (value->is_string() && role != nullptr) {
    out.push_back({{"role", role}, {"content", *value}});
    return;
  }
  const Json parsed = value->is_string() ? listed(*value) : Json(),
             &list = parsed.is_null() ? *value : parsed;
  if (!list.is_array() || list.empty())
    bad_dialogue(place, "\"", key, "\" is not ", role == nullptr ? "" : "a text or ",
                 "a list of messages, like [{\"role\": \"user\", \"content\": \"Hello\"}]");
  for (const Json& message : list)
    out.push_back(message_of(message, text("message ", out.size() + 1), place));
}

/// ShareGPT's "system" of a line, before its messages, unless they begin with one.
void add_system(Json& messages, const Json& line, const LinePlace& place) {
  const auto system = line.find("system");
  if (system == line.end() || system->is_null() || *system == "") return;
  if (!system->is_string()) bad_dialogue(place, "\"system\" is not a text");
  if (messages.front()["role"] != "system")
    messages.insert(messages.begin(), Json{{"role", "system"}, {"content", *system}});
}

}  // namespace

std::optional<DialogueKeys> find_dialogue_keys(const std::string& path) {
  const Json line = first_object(path);
  if (!line.is_object()) return std::nullopt;
  for (const char* const key : {kMessages, kShared}) {
    if (line.contains(key) && is_messages(line[key])) return DialogueKeys{key, ""};
  }
  if (line.contains("prompt") && line.contains("completion"))
    return DialogueKeys{"prompt", "completion"};
  return std::nullopt;
}

bool has_messages(const std::string& path, const std::string& key) {
  const Json line = first_object(path);
  const bool usual = key == kMessages || key == kShared;  // whose list may be a text
  return line.is_object() && line.contains(key) && (usual || line[key].is_array()) &&
         is_messages(line[key]);
}

bool is_list_of_dialogues(const std::string& path) {
  constexpr std::size_t kBeginning = 1 << 16;
  const std::vector<std::string> paths = {path};
  LineBlocks blocks(paths, kBeginning);
  LineBlock block;
  std::string beginning;
  while (beginning.size() < kBeginning && blocks.next(block)) beginning += block.bytes;
  std::erase_if(beginning, [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; });
  return beginning.starts_with("[{") &&
         (beginning.find("\"messages\":[{") != beginning.npos ||
          beginning.find(text('"', kShared, "\":[{")) != beginning.npos);
}

Dialogue dialogue_of(std::string_view line, const DialogueKeys& keys, const LinePlace& place) {
  const Json given = parse_shallow<Json>(line);
  if (!given.is_object())
    bad_dialogue(place, given.is_discarded() ? json_fault(line, "a JSON object in each line")
                                             : "this is not a JSON object");
  Dialogue out;
  out.line = place.line;
  Json messages = Json::array();
  const bool pair = !keys.completion.empty();
  add_messages(messages, given, keys.messages, pair ? "user" : nullptr, place);
  if (keys.messages == kShared) add_system(messages, given, place);
  if (pair) {
    out.prompt = messages.size();
    add_messages(messages, given, keys.completion, "assistant", place);
  }
  out.messages = chat_messages(messages);
  if (given.contains("tools")) {
    if (given["tools"] != "") out.tools = listed(given["tools"]);
    if (out.tools.is_array() && out.tools.empty()) out.tools = nullptr;
    if (!out.tools.is_null() &&
        !(out.tools.is_array() && std::ranges::all_of(out.tools, &Json::is_object)))
      bad_dialogue(place, "\"tools\" is not a list of objects");
  }
  out.others = Json::object();
  if (const auto kwargs = given.find(kKwargs); kwargs != given.end() && !kwargs->is_null()) {
    if (!kwargs->is_object())
      bad_dialogue(place, '"', kKwargs, "\" is not an object, like {\"enable_thinking\": false}");
    out.others = *kwargs;
  }
  return out;
}

}  // namespace tessera
