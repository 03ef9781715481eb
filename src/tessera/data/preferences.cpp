#include "tessera/data/preferences.h"

#include <algorithm>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/files/deep_json.h"
#include "tessera/files/json_fault.h"

namespace tessera {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char *kPrompt = "prompt", *kChosen = "chosen", *kRejected = "rejected";

template <typename... Parts>
[[noreturn]] void bad_preference(const LinePlace& place, const Parts&... parts) {
  fail(Fault::Data, "'", *place.path, "' line ", place.line, ": ", parts...);
}

bool has_text(const Json& line, const char* key) {
  return line.contains(key) && line[key].is_string();
}
bool has_list(const Json& line, const char* key) {
  return line.contains(key) && line[key].is_array();
}

void require_answers(const Json& line, const LinePlace& place) {
  for (const char* const key : {kChosen, kRejected}) {
    if (!line.contains(key))
      bad_preference(place, "there is no key \"", key, "\"; a preference has \"chosen\" and ",
                     "\"rejected\", two answers to its \"prompt\"");
    if (!has_text(line, key) && !has_list(line, key))
      bad_preference(place, "\"", key, "\" is not a text or a list of messages");
  }
  if (has_text(line, kChosen) != has_text(line, kRejected))
    bad_preference(place, "of \"chosen\" and \"rejected\" one is a text and one a list of ",
                   "messages; give both alike");
  if (line.contains(kPrompt) && !has_text(line, kPrompt) && !has_list(line, kPrompt))
    bad_preference(place, "\"prompt\" is not a text or a list of messages");
  if (has_list(line, kPrompt) && has_text(line, kChosen))
    bad_preference(place, "\"prompt\" is a list of messages and \"chosen\" a text; give both ",
                   "alike");
}

[[noreturn]] void no_answer(const LinePlace& place, const char* key, bool has_prompt) {
  bad_preference(place, "the answer in \"", key, "\" is empty",
                 has_prompt ? ""
                            : ": without \"prompt\", what \"chosen\" and \"rejected\" begin with "
                              "alike is the prompt",
                 "; give it a text, or leave the line out");
}

/// How many bytes two texts begin with alike, as a prompt: whole characters, without the blank
/// before the first that differs.
std::size_t common_prompt(const std::string& a, const std::string& b) {
  auto at = static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  const auto inside = [&](const std::string& text) {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
  };
  while (at > 0 && (inside(a) || inside(b))) --at;
  if (at > 0 && at < a.size() && at < b.size() && a[at - 1] == ' ') --at;
  return at;
}

Preference of_texts(const Json& line, const LinePlace& place) {
  const std::string chosen = line[kChosen].get<std::string>(),
                    rejected = line[kRejected].get<std::string>();
  const bool has_prompt = line.contains(kPrompt);
  const std::string before = has_prompt ? line[kPrompt].get<std::string>() : "";
  const std::size_t prompt = has_prompt ? before.size() : common_prompt(chosen, rejected);
  const auto answered = [&](const std::string& answer, const char* key) {
    AnsweredText out{before + answer, prompt};
    if (out.text.size() <= prompt) no_answer(place, key, has_prompt);
    return out;
  };
  return {answered(chosen, kChosen), answered(rejected, kRejected), chosen == rejected};
}

void require_answer(const Dialogue& dialogue, const char* key, bool has_prompt,
                    const LinePlace& place) {
  if (dialogue.messages.size() <= dialogue.prompt) no_answer(place, key, has_prompt);
  const Json& last = dialogue.messages.back();
  const auto content = last.find("content");
  if (!last.contains("tool_calls") && content != last.end() && *content == "")
    no_answer(place, key, true);
}

Preference of_dialogues(std::string_view text, const Json& line, const LinePlace& place) {
  const bool apart = has_list(line, kPrompt);
  const auto read = [&](const char* key, bool with_prompt) {
    return with_prompt ? dialogue_of(text, {kPrompt, key}, place)
                       : dialogue_of(text, {key, ""}, place);
  };
  Dialogue chosen = read(kChosen, apart), rejected = read(kRejected, apart);
  if (!apart) {
    std::size_t prompt = 0;
    while (prompt < std::min(chosen.messages.size(), rejected.messages.size()) &&
           chosen.messages[prompt] == rejected.messages[prompt])
      ++prompt;
    if (prompt == 0 && has_text(line, kPrompt)) {  // the lists are answers alone
      chosen = read(kChosen, true);
      rejected = read(kRejected, true);
    } else {
      chosen.prompt = rejected.prompt = prompt;
    }
  }
  const bool has_prompt = apart || has_text(line, kPrompt);
  require_answer(chosen, kChosen, has_prompt, place);
  require_answer(rejected, kRejected, has_prompt, place);
  const bool same = chosen.messages == rejected.messages;
  return {std::move(chosen), std::move(rejected), same};
}

}  // namespace

Preference preference_of(std::string_view line, const LinePlace& place) {
  const Json given = parse_shallow<Json>(line);
  if (!given.is_object())
    bad_preference(place, given.is_discarded() ? json_fault(line, "a JSON object in each line")
                                               : "this is not a JSON object");
  require_answers(given, place);
  return has_text(given, kChosen) ? of_texts(given, place) : of_dialogues(line, given, place);
}

}  // namespace tessera
