#include "tessera/apps/chat_session.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/utf8.h"
#include "tessera/data/dialogue_tokens.h"
#include "tessera/models/stop_texts.h"
#include "tessera/train/generate.h"

namespace tessera {

namespace {

using ChatJson = nlohmann::ordered_json;

const Tokenizer& tokenizer_of_chat(const Vocabulary& vocabulary) {
  const Tokenizer* const out = vocabulary.made_elsewhere();
  require(out != nullptr, "--chat needs a model whose tokenizer has a chat template; this one's ",
          "vocabulary is ", to_text(vocabulary.kind()));
  return *out;
}

ChatJson message(const char* role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

/// Writes one answer as it is drawn, and returns it.
std::string answer(TextModel& model, const Vocabulary& vocabulary, const SampleRequest& request,
                   const Tokens& prompt, std::optional<std::int32_t> end, std::int64_t number,
                   Console& console) {
  std::string out;
  TextStream written(vocabulary, prompt);
  StopTexts stop(request.stops);
  const auto write = [&](const std::string& piece) {
    out += piece;
    console.out << piece << std::flush;
    if (!console.out) throw OutputFailed{};
  };
  GenerateOptions options = request.options;
  options.first = number;
  options.on_token = [&](std::size_t, std::int32_t id) {
    if (id != end) write(stop.add(written.add(id)));
  };
  options.ends = [&](std::size_t, std::int32_t id) { return id == end || stop.stopped(); };
  const Beginning beginning{{}, prompt};
  generate(model, vocabulary, {&beginning, 1}, options);
  write(stop.add(written.rest()));
  if (!stop.stopped()) write(stop.rest());
  console.out << "\n" << std::flush;
  return replaced_utf8(out);
}

}  // namespace

ChatForm::ChatForm(const Vocabulary& vocabulary)
    : tokenizer_(tokenizer_of_chat(vocabulary)),
      templates_(ChatTemplates::of(tokenizer_.files())) {}

std::string ChatForm::render(const ChatJson& messages, bool prompt) const {
  Dialogue dialogue;
  dialogue.others = ChatJson::object();
  ChatJson variables = chat_variables(dialogue, tokenizer_);
  variables["messages"] = messages;
  variables["add_generation_prompt"] = prompt;
  const std::time_t now = std::time(nullptr);
  std::tm here = {};
  localtime_r(&now, &here);
  return templates_.with_tools(false).render(variables, here).text;
}

Tokens ChatForm::tokens(const ChatJson& messages) const {
  Tokens out = tokenizer_.encode(render(messages, true), {.add_special_tokens = false});
  if (out.empty()) fail(Fault::Data, "the chat template writes no text for these messages");
  return out;
}

std::optional<std::int32_t> ChatForm::end() const {
  ChatJson messages = ChatJson::array({message("user", "a")});
  const std::string before = render(messages, true);
  messages.push_back(message("assistant", "b"));
  const std::string with = render(messages, false);
  if (!with.starts_with(before)) return std::nullopt;
  const Tokens behind =
      tokenizer_.encode(with.substr(before.size()), {.add_special_tokens = false});
  const auto found =
      std::ranges::find_if(behind, [&](std::int32_t id) { return tokenizer_.is_special(id); });
  if (found == behind.end()) return std::nullopt;
  return *found;
}

void chat(TextModel& model, const Vocabulary& vocabulary, const SampleRequest& request,
          std::istream& in, bool asks, Console& console) {
  const ChatForm form(vocabulary);
  const std::optional<std::int32_t> end = form.end();
  ChatJson messages = ChatJson::array();
  std::int64_t number = 0;
  for (std::string line; true;) {
    if (asks) console.out << "> " << std::flush;
    if (!std::getline(in, line)) break;
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    messages.push_back(message("user", replaced_utf8(line)));
    const Tokens prompt = form.tokens(messages);
    messages.push_back(
        message("assistant", answer(model, vocabulary, request, prompt, end, number++, console)));
  }
  if (asks) console.out << "\n";
}

}  // namespace tessera
