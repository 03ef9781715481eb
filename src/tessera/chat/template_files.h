#pragma once
/// The chat templates among the files of a tokenizer.

#include <map>
#include <optional>
#include <string>

#include "tessera/chat/chat_template.h"

namespace tessera {

/// chat_template.jinja, else chat_template of tokenizer_config.json: a text, or a list of
/// {"name", "template"}, of which `tool_use` is for dialogues with tools and `default` for others.
class ChatTemplates {
 public:
  /// `files` by name, as a tokenizer's. Errors: Fault::Data: none of them has a template; as of
  /// ChatTemplate::parse.
  static ChatTemplates of(const std::map<std::string, std::string>& files);
  /// Whether `files` has one.
  static bool are_in(const std::map<std::string, std::string>& files);

  const ChatTemplate& with_tools(bool tools) const { return tools && tools_ ? *tools_ : *default_; }

 private:
  std::optional<ChatTemplate> default_, tools_;
};

}  // namespace tessera
