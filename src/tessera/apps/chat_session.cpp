#include "tessera/apps/chat_session.h"

#include <optional>

#include "tessera/base/counted.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/data/chat_form.h"
#include "tessera/launch/interrupt.h"
#include "tessera/models/stop_texts.h"

namespace tessera {

namespace {

constexpr std::string_view kClear = "/clear", kSystem = "/system";

/// The messages so far, and those that the model was asked to answer.
class ChatDialogue {
 public:
  explicit ChatDialogue(const std::string& system) { begin(system); }

  void begin(const std::string& system) {
    messages_ = nlohmann::ordered_json::array();
    if (!system.empty()) messages_.push_back(chat_message("system", system));
    system_ = system;
  }
  /// Whether the line was for the dialogue itself.
  bool takes(std::string_view line) {
    const std::string_view words = trim(line);
    if (words == kClear) {
      begin(system_);
    } else if (words == kSystem || words.starts_with("/system ")) {
      begin(replaced_utf8(trim(words.substr(kSystem.size()))));
    } else {
      return false;
    }
    return true;
  }
  void add(const char* role, const std::string& content) {
    messages_.push_back(chat_message(role, content));
  }
  const nlohmann::ordered_json& messages() const { return messages_; }

 private:
  std::string system_;
  nlohmann::ordered_json messages_;
};

/// Writes one answer as it is drawn, and returns it.
std::string answer(TextModel& model, const Vocabulary& vocabulary, const ChatOptions& how,
                   const Tokens& prompt, std::optional<std::int32_t> end, std::int64_t number,
                   Console& console) {
  std::string out;
  TextStream written(vocabulary, prompt);
  StopTexts stop(how.stops);
  std::optional<CaughtInterrupt> interrupt;
  if (how.asks) interrupt.emplace();
  const auto write = [&](const std::string& piece) {
    out += piece;
    console.out << piece << std::flush;
    if (!console.out) throw OutputFailed{};
  };
  GenerateOptions options = how.generate;
  options.first = number;
  options.on_token = [&](std::size_t, std::int32_t id) {
    if (id != end) write(stop.add(written.add(id)));
  };
  options.ends = [&](std::size_t, std::int32_t id) {
    return id == end || stop.stopped() || (interrupt && interrupt->asked());
  };
  const Beginning beginning{{}, prompt};
  generate(model, vocabulary, {&beginning, 1}, options);
  write(stop.add(written.rest()));
  if (!stop.stopped()) write(stop.rest());
  console.out << "\n" << std::flush;
  return replaced_utf8(out);
}

}  // namespace

void chat(TextModel& model, RankGroup& group, const Vocabulary& vocabulary,
          const ChatOptions& options, std::istream& in, Console& console) {
  const ChatForm form(vocabulary);
  const std::optional<std::int32_t> end = form.end();
  ChatDialogue dialogue(options.system);
  std::int64_t number = 0;
  bool more = true;
  for (std::string line; more;) {
    if (options.asks) console.out << "> " << std::flush;
    group.run_alone([&] { more = static_cast<bool>(std::getline(in, line)); });
    if (!more) break;
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty() || dialogue.takes(line)) continue;
    dialogue.add("user", replaced_utf8(line));
    const Tokens prompt = form.tokens(dialogue.messages());
    if (std::ssize(prompt) > model.writing().context)
      console.err << "notice: the dialogue has " << counted(std::ssize(prompt), "token")
                  << ", the context " << model.writing().context
                  << ": the model sees its end alone; /clear begins anew\n";
    dialogue.add("assistant", answer(model, vocabulary, options, prompt, end, number++, console));
  }
  if (options.asks) console.out << "\n";
}

}  // namespace tessera
