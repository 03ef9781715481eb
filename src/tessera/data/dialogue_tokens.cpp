#include "tessera/data/dialogue_tokens.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/tokenizers/tokenizer.h"

namespace tessera {

namespace {

using Json = nlohmann::ordered_json;
using Ids = std::vector<std::int32_t>;

Ids ids_of(const Tokenizer& tokenizer, std::string_view text) {
  return tokenizer.encode(text, {.add_special_tokens = false});
}

/// The parts of a text on both sides of the ends of spans, each as tokens; nothing: together they
/// are others than those of the whole.
std::optional<std::vector<std::uint8_t>> by_parts(const Tokenizer& tokenizer, std::string_view text,
                                                  const ByteSpans& spans, const Ids& whole) {
  std::vector<std::uint8_t> out;
  std::size_t at = 0;
  const auto take = [&](std::size_t end, bool counts) {
    if (end == at) return true;
    const Ids ids = ids_of(tokenizer, text.substr(at, end - at));
    at = end;
    const bool same =
        out.size() + ids.size() <= whole.size() &&
        std::equal(ids.begin(), ids.end(), whole.begin() + static_cast<std::ptrdiff_t>(out.size()));
    out.insert(out.end(), ids.size(), counts);
    return same;
  };
  for (const auto& [begin, end] : spans) {
    if (!take(begin, false) || !take(end, true)) return std::nullopt;
  }
  if (!take(text.size(), false) || out.size() != whole.size()) return std::nullopt;
  return out;
}

/// How many tokens the first `end` bytes are; nothing: a token stands on both sides of the end.
std::optional<std::size_t> tokens_before(const Tokenizer& tokenizer, std::string_view text,
                                         std::size_t end, const Ids& whole) {
  const Ids ids = ids_of(tokenizer, text.substr(0, end));
  if (ids.size() > whole.size() || !std::equal(ids.begin(), ids.end(), whole.begin()))
    return std::nullopt;
  return ids.size();
}

/// By the places of tokens, where one stands on both sides of the end of an answer.
std::vector<std::uint8_t> by_places(const Tokenizer& tokenizer, const std::string& text,
                                    const ByteSpans& spans, const Ids& whole) {
  const SpannedIds placed = tokenizer.encode_spans(text);
  if (placed.ids != whole)
    fail(Fault::Data, "a token stands on both sides of the beginning or end of an answer, and ",
         "this tokenizer's tokens cannot be placed; give --chat-loss all");
  std::vector<std::uint8_t> out(whole.size(), 0);
  for (const auto& [first, last] : spans) {
    const auto begin = static_cast<std::int64_t>(first), end = static_cast<std::int64_t>(last);
    if (begin == end) continue;
    const auto from = tokens_before(tokenizer, text, first, whole),
               to = tokens_before(tokenizer, text, last, whole);
    std::size_t at = from.value_or(0), stop = to.value_or(whole.size());
    if (!from) {
      while (at < stop && placed.spans[at].end <= begin) ++at;
    }
    if (!to) {
      while (stop > at && placed.spans[stop - 1].begin >= end) --stop;
    }
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(at),
              out.begin() + static_cast<std::ptrdiff_t>(stop), std::uint8_t{1});
  }
  return out;
}

/// Where the text of a dialogue's beginning, `part`, ends in `whole`, but for what the template
/// writes behind the last message alone, as the end token of Phi-3's: that also ends `shorter`, the
/// text without its last message. Nothing: they differ in more.
std::optional<std::size_t> end_in(const Tokenizer& tokenizer, std::string_view whole,
                                  std::string_view part, std::string_view shorter,
                                  const Ids& ids_of_whole) {
  constexpr std::size_t kMostBack = 64;
  const auto alike =
      static_cast<std::size_t>(std::ranges::mismatch(part, whole).in1 - part.begin());
  const Ids ids = ids_of(tokenizer, part);
  // What is behind it may begin as what follows in `whole`, but not with the same token.
  for (std::size_t end = alike; end > 0 && alike - end < kMostBack; --end) {
    if (!shorter.ends_with(part.substr(end))) return std::nullopt;
    if (find_invalid_utf8(part.substr(0, end)) != std::string_view::npos) continue;
    if (tokens_before(tokenizer, part, end, ids) &&
        tokens_before(tokenizer, whole, end, ids_of_whole))
      return end;
  }
  return std::nullopt;
}

/// Of each token of a text 1 where it has a part of a span, else 0.
std::vector<std::uint8_t> counted_tokens(const Tokenizer& tokenizer, const std::string& text,
                                         const ByteSpans& spans, const Ids& whole) {
  const auto counts = by_parts(tokenizer, text, spans, whole);
  return counts ? *counts : by_places(tokenizer, text, spans, whole);
}

std::string beginning_of(std::string_view text) {
  constexpr std::size_t kShown = 60;
  std::string out(text.substr(0, kShown));
  while (!out.empty() && text.size() > kShown && (out.back() & 0xC0) == 0x80) out.pop_back();
  return Json(out + (text.size() > kShown ? "..." : ""))
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::tm day_of(const std::string& date) {
  std::tm out = {};
  const char *at = date.data(), *const end = at + date.size();
  int* const parts[] = {&out.tm_year, &out.tm_mon, &out.tm_mday};
  bool fits = date.size() == 10 && date[4] == '-' && date[7] == '-';
  for (int* const part : parts) {
    const char* const stop = part == &out.tm_year ? at + 4 : at + 2;
    fits = fits && std::from_chars(at, stop, *part).ptr == stop;
    at = std::min(stop + 1, end);
  }
  out.tm_year -= 1900;
  out.tm_mon -= 1;
  std::tm same = out;
  fits = fits && timegm(&same) != -1 && same.tm_mday == out.tm_mday && same.tm_mon == out.tm_mon;
  require(fits, "chat-date '", date, "' is no day; give one like 2024-07-26");
  return same;
}

DialogueTokens tokens_of_spans(const Tokenizer& tokenizer, const std::string& text,
                               const ByteSpans& spans, DialogueLoss loss) {
  DialogueTokens out;
  out.ids = ids_of(tokenizer, text);
  if (loss == DialogueLoss::All) {
    out.counts.assign(out.ids.size(), 1);
  } else {
    out.counts = counted_tokens(tokenizer, text, spans, out.ids);
  }
  return out;
}

nlohmann::ordered_json chat_variables(const Dialogue& dialogue, const Tokenizer& tokenizer) {
  Json out = dialogue.others;
  const SpecialTokens& special = tokenizer.special_tokens();
  const std::pair<const char*, const std::optional<std::int32_t>*> kRoles[] = {
      {"bos_token", &special.bos},  {"eos_token", &special.eos}, {"unk_token", &special.unk},
      {"sep_token", &special.sep},  {"pad_token", &special.pad}, {"cls_token", &special.cls},
      {"mask_token", &special.mask}};
  for (const auto& [name, id] : kRoles) {
    if (*id && !out.contains(name)) out[name] = tokenizer.token(**id).value_or("");
  }
  out["tools"] = dialogue.tools;
  out["documents"] = nullptr;
  return out;
}

DialogueEncoder::DialogueEncoder(const Tokenizer& tokenizer, DialogueLoss loss, const std::tm& day)
    : tokenizer_(tokenizer),
      templates_(ChatTemplates::of(tokenizer.files())),
      loss_(loss),
      day_(day) {}

RenderedChat DialogueEncoder::render(const Dialogue& dialogue, std::size_t messages,
                                     bool prompt) const {
  Json variables = chat_variables(dialogue, tokenizer_);
  variables["messages"] = Json::array();
  for (std::size_t i = 0; i < messages; ++i) variables["messages"].push_back(dialogue.messages[i]);
  variables["add_generation_prompt"] = prompt;
  return templates_.with_tools(!dialogue.tools.is_null()).render(variables, day_);
}

std::string DialogueEncoder::before_all(const Dialogue& dialogue) const try {
  return render(dialogue, 0, true).text;
} catch (const Error& error) {
  fail(Fault::Data,
       "message 1 is one of the assistant, and the template writes nothing before it: ",
       error.what(), "; begin with one of the user, or give --chat-loss all");
}

ByteSpans DialogueEncoder::answers(const Dialogue& dialogue, const RenderedChat& whole,
                                   const std::vector<std::int32_t>& ids) const {
  if (templates_.with_tools(!dialogue.tools.is_null()).has_generation()) {
    ByteSpans out = whole.generated;
    if (dialogue.prompt > 0) {  // what an earlier answer wrote is part of the prompt
      const std::size_t before = render(dialogue, dialogue.prompt, false).generated.size();
      out.erase(out.begin(),
                out.begin() + static_cast<std::ptrdiff_t>(std::min(before, out.size())));
    }
    return out;
  }
  constexpr const char* kInstead =
      "; put {% generation %} and {% endgeneration %} around what the model writes into "
      "chat_template.jinja, or learn all tokens with --chat-loss all";
  ByteSpans out;
  for (std::size_t i = dialogue.prompt; i < dialogue.messages.size(); ++i) {
    if (dialogue.messages[i]["role"] != "assistant") continue;
    const std::string before = i == 0 ? before_all(dialogue) : render(dialogue, i, true).text,
                      with = i + 1 == dialogue.messages.size()
                                 ? whole.text
                                 : render(dialogue, i + 1, false).text;
    const std::size_t differs =
        static_cast<std::size_t>(std::ranges::mismatch(before, with).in1 - before.begin());
    if (differs < before.size())
      fail(Fault::Data, "answers are not found: the text up to message ", i, ", ready for an ",
           "answer, does not begin the text with message ", i + 1, ", but goes on with ",
           beginning_of(before.substr(differs)), " where that has ",
           beginning_of(with.substr(differs)), kInstead);
    std::optional<std::size_t> end = with.size();
    if (!whole.text.starts_with(with))
      end = i == 0 ? std::nullopt
                   : end_in(tokenizer_, whole.text, with, render(dialogue, i, false).text, ids);
    if (!end || *end < before.size())
      fail(Fault::Data, "answers are not found: the text of message ", i + 1,
           " changes when others follow it", kInstead);
    out.emplace_back(before.size(), *end);
  }
  return out;
}

DialogueTokens DialogueEncoder::encode(const Dialogue& dialogue) const {
  const RenderedChat whole = render(dialogue, dialogue.messages.size(), false);
  DialogueTokens out;
  out.ids = ids_of(tokenizer_, whole.text);
  if (loss_ == DialogueLoss::All) {
    out.counts.assign(out.ids.size(), 1);
    return out;
  }
  out.counts = counted_tokens(tokenizer_, whole.text, answers(dialogue, whole, out.ids), out.ids);
  if (std::ranges::count(out.counts, 1) == 0)
    fail(Fault::Data, "no message of the assistant has a token to learn; give it an answer, or ",
         "learn all tokens with --chat-loss all");
  return out;
}

}  // namespace tessera
