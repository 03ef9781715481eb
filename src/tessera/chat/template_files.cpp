#include "tessera/chat/template_files.h"

#include "tessera/base/error.h"
#include "tessera/files/deep_json.h"

namespace tessera {

namespace {

using Json = nlohmann::ordered_json;
constexpr const char *kJinjaFile = "chat_template.jinja", *kConfigFile = "tokenizer_config.json",
                     *kConfigKey = "chat_template";

/// chat_template of tokenizer_config.json; null: there is none.
Json in_config(const std::map<std::string, std::string>& files) {
  const auto file = files.find(kConfigFile);
  if (file == files.end()) return nullptr;
  const Json config = parse_shallow<Json>(file->second);
  if (!config.is_object() || !config.contains(kConfigKey)) return nullptr;
  return config[kConfigKey];
}

[[noreturn]] void refuse_form() {
  fail(Fault::Data, "chat_template of ", kConfigFile, " is neither a text nor a list of ",
       "{\"name\", \"template\"}; restore the file");
}

}  // namespace

bool ChatTemplates::are_in(const std::map<std::string, std::string>& files) {
  return files.contains(kJinjaFile) || !in_config(files).is_null();
}

ChatTemplates ChatTemplates::of(const std::map<std::string, std::string>& files) {
  ChatTemplates out;
  if (const auto file = files.find(kJinjaFile); file != files.end()) {
    out.default_ = ChatTemplate::parse(file->second, kJinjaFile);
    return out;
  }
  const Json found = in_config(files);
  if (found.is_null())
    fail(Fault::Data, "the tokenizer has no chat template: there is neither ", kJinjaFile,
         " beside it, nor ", kConfigKey, " in its ", kConfigFile, "; put a ", kJinjaFile,
         " into its folder");
  if (found.is_string()) {
    out.default_ = ChatTemplate::parse(found.get_ref<const std::string&>(),
                                       "chat_template of tokenizer_config.json");
    return out;
  }
  if (!found.is_array()) refuse_form();
  for (const Json& one : found) {
    const bool is_one = one.is_object() && one.contains("name") && one["name"].is_string() &&
                        one.contains("template") && one["template"].is_string();
    if (!is_one) refuse_form();
    const std::string name = one["name"];
    if (name != "default" && name != "tool_use") continue;
    (name == "default" ? out.default_ : out.tools_) =
        ChatTemplate::parse(one["template"].get_ref<const std::string&>(),
                            "chat_template '" + name + "' of tokenizer_config.json");
  }
  if (!out.default_)
    fail(Fault::Data, "chat_template of ", kConfigFile, " has no template called 'default'; ",
         "put a ", kJinjaFile, " into the folder");
  return out;
}

}  // namespace tessera
