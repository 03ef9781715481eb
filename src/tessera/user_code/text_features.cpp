#include "tessera/user_code/text_features.h"

#include <array>
#include <span>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/tokenizers/text_frame.h"

namespace tessera {

namespace {

Features framed_features(const Tokenizer& tokenizer, std::span<const std::string_view> texts,
                         std::int64_t length) {
  const TextFrame frame = tokenizer.frame();
  require(length > frame.around(texts.size()), "a sample of ", length,
          " tokens has no room beside the ", frame.around(texts.size()),
          " special tokens; give a longer one");
  std::array<std::vector<std::int32_t>, 2> ids;
  std::array<std::span<const std::int32_t>, 2> parts;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    ids[i] = tokenizer.encode(texts[i], {.add_special_tokens = false});
    parts[i] = ids[i];
  }
  FramedTexts sample = framed(frame, std::span(parts).first(texts.size()), length);
  std::vector<std::int32_t> mask(sample.ids.size(), 1);
  const auto size = static_cast<std::size_t>(length);
  sample.ids.resize(size, tokenizer.special_tokens().pad.value_or(0));
  sample.types.resize(size), mask.resize(size);
  return {{"input_ids", std::move(sample.ids)},
          {"token_type_ids", std::move(sample.types)},
          {"attention_mask", std::move(mask)}};
}

}  // namespace

Features tokenized(const Tokenizer& tokenizer, std::string_view first, std::string_view second,
                   std::int64_t length) {
  return framed_features(tokenizer, std::array{first, second}, length);
}

Features tokenized(const Tokenizer& tokenizer, std::string_view text, std::int64_t length) {
  return framed_features(tokenizer, std::array{text}, length);
}

Tokenizer tokenizer_of(const RunConfig& args) {
  const TokenizerChoice choice = tokenizer_choice(args);
  if (!choice.none()) return load_tokenizer(choice);
  require(!args.init_from.empty() && Tokenizer::is_in(args.init_from),
          "no tokenizer is given, and the model's folder has none; give --tokenizer-name-or-path, ",
          "or --tokenizer-type and its files");
  return Tokenizer::load(args.init_from);
}

}  // namespace tessera
