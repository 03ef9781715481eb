#include "tessera/tokenizers/added_tokens.h"

#include <algorithm>
#include <limits>

#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/tokenizers/characters.h"

namespace tessera::tokenizer {

namespace {

AddedToken read_added(const JsonPart& part) {
  AddedToken out;
  out.content = part.text("content");
  out.single_word = part.flag("single_word", false);
  out.lstrip = part.flag("lstrip", false);
  out.rstrip = part.flag("rstrip", false);
  out.special = part.flag("special", false);
  out.normalized = part.flag("normalized", !out.special);
  return out;
}

std::size_t begin_of_last(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

bool ends_in(std::string_view text, Traits traits) {
  return !text.empty() && (traits_of(code_point_at(text, begin_of_last(text)).value) & traits) != 0;
}

bool begins_with(std::string_view text, Traits traits) {
  return !text.empty() && (traits_of(code_point_at(text, 0).value) & traits) != 0;
}

}  // namespace

AddedTokens::AddedTokens(const JsonPart& file, const Model& model, const Normalizer& normalizer,
                         std::vector<std::string>& notices) {
  if (!file.has("added_tokens")) return;
  std::int32_t next = model.count();
  for (std::size_t i = 0; i < file.count("added_tokens"); ++i) {
    const JsonPart part = file.item("added_tokens", i);
    AddedToken token = read_added(part);
    if (token.content.empty()) continue;
    const std::int32_t before = numbers_.find(token.content);
    token.id = before != kNoId ? all_[static_cast<std::size_t>(before)].id
                               : model.tokens().find(token.content);
    const bool is_new = token.id == kNoId;
    if (is_new) token.id = next;
    if (token.id >= std::numeric_limits<std::int32_t>::max() - 1)
      part.bad("there is no id left for '", token.content.substr(0, 60),
               "': the model has tokens up to the greatest; restore the file");
    if (is_new) ++next;
    const std::int32_t written = part.number("id", token.id);
    if (written != token.id)
      notices.push_back(text("added token '", token.content, "' has id ", written,
                             " in the file but gets id ", token.id, ", as in the reference"));
    if (before != kNoId) {
      all_[static_cast<std::size_t>(before)] = std::move(token);
      continue;
    }
    numbers_.add(token.content, static_cast<std::int32_t>(all_.size()));
    ids_[token.id] = all_.size();
    all_.push_back(std::move(token));
  }
  std::vector<std::string> contents(all_.size());
  ByteTrie::Keys keys[2];
  for (std::size_t i = 0; i < all_.size(); ++i) {
    NormalizedText content{all_[i].content};
    if (all_[i].normalized && normalizer) normalizer(content);
    contents[i] = content.text;
    all_[i].decoded = std::move(content.text);
    keys[all_[i].normalized ? 1 : 0].emplace_back(contents[i], static_cast<std::int32_t>(i));
  }
  for (std::size_t i = 0; i < 2; ++i) {
    any_[i] = !keys[i].empty();
    tries_[i] = ByteTrie(std::move(keys[i]));
  }
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  const std::int32_t found = numbers_.find(content);
  return found == kNoId ? nullptr : &all_[static_cast<std::size_t>(found)];
}

const AddedToken* AddedTokens::find(std::int32_t id) const {
  const auto found = ids_.find(id);
  return found == ids_.end() ? nullptr : &all_[found->second];
}

void AddedTokens::split(std::string_view text, bool normalized, bool special, OnText on_text,
                        OnToken on_token) const {
  const std::size_t which = normalized ? 1 : 0;
  std::size_t done = 0;
  for (std::size_t at = 0; any_[which] && at < text.size();) {
    std::size_t size = 0;
    std::int32_t number = kNoId;
    if (tries_[which].begins(text[at])) {
      tries_[which].prefixes(text.substr(at), [&](std::size_t length, std::int32_t value) {
        size = length;
        number = value;
      });
    }
    if (number == kNoId) {
      ++at;
      continue;
    }
    const AddedToken& token = all_[static_cast<std::size_t>(number)];
    std::size_t begin = at, end = at + size;
    at = end;
    if (token.special && !special) continue;
    if (token.single_word &&
        (ends_in(text.substr(0, begin), kWord) || begins_with(text.substr(end), kWord)))
      continue;
    if (token.lstrip) {
      while (begin > done && ends_in(text.substr(0, begin), kBlank))
        begin = begin_of_last(text.substr(0, begin));
      begin = std::max(begin, done);
    }
    while (token.rstrip && begins_with(text.substr(end), kBlank))
      end += static_cast<std::size_t>(code_point_at(text, end).size);
    if (done < begin) on_text(done, begin);
    on_token(token.id, begin, end);
    done = end;
  }
  if (done < text.size()) on_text(done, text.size());
}

}  // namespace tessera::tokenizer
