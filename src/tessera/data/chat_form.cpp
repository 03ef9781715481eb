#include "tessera/data/chat_form.h"

#include <algorithm>
#include <ctime>

#include "tessera/base/error.h"
#include "tessera/data/dialogue_tokens.h"

namespace tessera {

namespace {

const Tokenizer& tokenizer_of_chat(const Vocabulary& vocabulary) {
  const Tokenizer* const out = vocabulary.made_elsewhere();
  require(out != nullptr, "a dialogue needs a model whose tokenizer has a chat template; this ",
          "one's vocabulary is ", to_text(vocabulary.kind()));
  return *out;
}

}  // namespace

nlohmann::ordered_json chat_message(const std::string& role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

ChatForm::ChatForm(const Vocabulary& vocabulary)
    : tokenizer_(tokenizer_of_chat(vocabulary)),
      templates_(ChatTemplates::of(tokenizer_.files())) {}

std::string ChatForm::render(const nlohmann::ordered_json& messages, bool prompt) const {
  Dialogue dialogue;
  dialogue.others = nlohmann::ordered_json::object();
  nlohmann::ordered_json variables = chat_variables(dialogue, tokenizer_);
  variables["messages"] = messages;
  variables["add_generation_prompt"] = prompt;
  const std::time_t now = std::time(nullptr);
  std::tm here = {};
  localtime_r(&now, &here);
  return templates_.with_tools(false).render(variables, here).text;
}

std::vector<std::int32_t> ChatForm::tokens(const nlohmann::ordered_json& messages) const {
  std::vector<std::int32_t> out =
      tokenizer_.encode(render(messages, true), {.add_special_tokens = false});
  if (out.empty()) fail(Fault::Data, "the chat template writes no text for these messages");
  return out;
}

std::optional<std::int32_t> ChatForm::end() const {
  nlohmann::ordered_json messages = nlohmann::ordered_json::array({chat_message("user", "a")});
  const std::string before = render(messages, true);
  messages.push_back(chat_message("assistant", "b"));
  const std::string with = render(messages, false);
  if (!with.starts_with(before)) return std::nullopt;
  const std::vector<std::int32_t> behind =
      tokenizer_.encode(with.substr(before.size()), {.add_special_tokens = false});
  const auto found =
      std::ranges::find_if(behind, [&](std::int32_t id) { return tokenizer_.is_special(id); });
  if (found == behind.end()) return std::nullopt;
  return *found;
}

}  // namespace tessera
