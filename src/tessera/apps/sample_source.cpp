#include "tessera/apps/sample_source.h"

#include <algorithm>
#include <string>

#include "tessera/apps/writer.h"
#include "tessera/base/text.h"

namespace tessera {

void fit_to_task(SampleRequest& request, const TextWriting& writing, const ModelConfig& model,
                 Problems& problems) {
  const bool from_source = writing.source > 0;
  const auto of_sources = [&](const char* flag, bool given) {
    if (given && !from_source)
      problems.add(text(
          "--", flag, " is for models that write from a source, but family ", model.family,
          " continues a prompt: give --prompt TEXT or --prompts FILE, and leave --", flag, " out"));
  };
  of_sources("input", request.texts_flag == "input");
  if (from_source && !request.prompt_given && request.texts_flag.empty())
    problems.add(text("no source given: a model of family ", model.family,
                      " needs one; give --prompt TEXT or --input FILE"));
  if (!request.warm)
    request.options.temperature = request.options.beams > 1 ? 0 : writing.temperature;
  if (request.samples > 1 && request.options.temperature == 0 && problems.empty())
    problems.add(
        text("--samples ", request.samples,
             " would all be the same text, as nothing is drawn at random; give a --temperature "
             "above 0, or leave --samples out"));
  if (request.options.length_penalty != 0 && !writing.end)
    request.notices.push_back(text("--length-penalty ", request.options.length_penalty,
                                   " has no effect: texts of family ", model.family,
                                   " have no end token, so all candidates have one length"));
}

void begin_as_folder(const Vocabulary& vocabulary, const TextWriting& writing,
                     const std::vector<GivenText>& given, std::vector<Beginning>& beginnings) {
  const Tokenizer* const made = vocabulary.made_elsewhere();
  if (made == nullptr || writing.source > 0) return;
  const auto some = std::ranges::find_if(given, [](const GivenText& g) { return !g.text.empty(); });
  const std::string words = some == given.end() ? "a" : some->text;
  const Tokens bare = made->encode(words, {.add_special_tokens = false}),
               framed = made->encode(words);
  const auto inside = std::ranges::search(framed, bare);
  const Tokens before(framed.begin(), inside.empty() ? framed.begin() : inside.begin());
  for (std::size_t i = 0; i < beginnings.size() && !before.empty(); ++i) {
    Tokens& prompt = beginnings[i].prompt;
    if (given[i].text.empty()) prompt.clear();
    prompt.insert(prompt.begin(), before.begin(), before.end());
  }
}

void shorten_context(ModelConfig& model, TextWriting& writing,
                     const std::vector<Beginning>& beginnings, std::int64_t tokens) {
  if (writing.source > 0) return;
  std::int64_t longest = 0;
  for (const Beginning& each : beginnings)
    longest = std::max<std::int64_t>(longest, std::ssize(each.prompt));
  // Texts of almost one length share a program.
  constexpr std::int64_t kStep = 64;
  const std::int64_t wanted = longest + std::min(tokens, model.context);
  limit_context(model, writing, (wanted + kStep - 1) / kStep * kStep);
}

}  // namespace tessera
