#include "tessera/tokenizers/text_encoder.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "tessera/tokenizers/byte_tokens.h"
#include "tessera/tokenizers/tokenizer_choice.h"
#include "tessera/tokenizers/vocabulary.h"

namespace tessera {

namespace {

constexpr std::size_t kGathered = std::size_t{1} << 22;  // bytes of text between two looks at them

void refuse_file(const TextEncoderChoice& choice, const char* flag, const std::string& file) {
  require(file.empty(), "tokenizer-type ", choice.type, " takes no ", flag, ", but '", file,
          "' is given; leave it out, or give the type of your files");
}

void refuse_files(const TextEncoderChoice& choice) {
  refuse_file(choice, "vocab-file", choice.vocab_file);
  refuse_file(choice, "merge-file", choice.merge_file);
  refuse_file(choice, "tokenizer-model", choice.path);
}

TextEncoder encoder_of(std::string name, Vocabulary vocabulary) {
  const auto shared = std::make_shared<const Vocabulary>(std::move(vocabulary));
  TextEncoder out;
  out.name = std::move(name);
  out.end_of_document = shared->size();
  out.vocabulary = shared->size() + 1;
  out.encode = [shared](std::string_view text) { return shared->encode(text); };
  return out;
}

Vocabulary characters_of(const TextEncoderChoice& choice) {
  std::string gathered;
  const auto reduce = [&] {  // to one of each
    std::vector<std::int32_t> all;
    const Vocabulary known = Vocabulary::characters(gathered);
    for (std::int32_t id = 0; id < known.size(); ++id) all.push_back(id);
    gathered = known.decode(all);
  };
  std::size_t next = kGathered;
  choice.texts([&](std::string_view text) {
    gathered += text;
    if (gathered.size() < next) return;
    reduce();
    next = gathered.size() + kGathered;
  });
  return Vocabulary::characters(gathered);
}

Vocabulary learned_bpe(const TextEncoderChoice& choice) {
  require(choice.vocab_size >= kByteTokens, "tokenizer-type bpe without vocab-file learns tokens, ",
          "but vocab-size is ", choice.vocab_size, "; give their number, at least ", kByteTokens,
          ", like 8000, or a vocab-file");
  std::string all;
  choice.texts([&](std::string_view text) {
    all += text;
    all += '\n';
  });
  return Vocabulary::bpe(all, choice.vocab_size);
}

TextEncoder kept_or_learned(const TextEncoderChoice& choice, VocabularyKind kind) {
  refuse_file(choice, "merge-file", choice.merge_file);
  refuse_file(choice, "tokenizer-model", choice.path);
  if (!choice.vocab_file.empty()) {
    Vocabulary kept = Vocabulary::from_json(read_file(choice.vocab_file), choice.vocab_file);
    require(kept.kind() == kind, "vocab-file '", choice.vocab_file, "' has a vocabulary of kind ",
            to_text(kept.kind()), ", but tokenizer-type is ", choice.type,
            "; give the type of the file");
    return encoder_of(choice.type, std::move(kept));
  }
  Vocabulary learned = kind == VocabularyKind::Bpe ? learned_bpe(choice) : characters_of(choice);
  const std::string json = learned.to_json();
  TextEncoder out = encoder_of(choice.type, std::move(learned));
  out.learned = json;
  return out;
}

TextEncoder null_encoder(const TextEncoderChoice& choice) {
  refuse_files(choice);
  require(choice.vocab_size > 0 && choice.vocab_size < std::numeric_limits<std::int32_t>::max(),
          "tokenizer-type ", choice.type, " needs vocab-size, which is ", choice.vocab_size,
          "; give the number of ids");
  TextEncoder out;
  out.name = choice.type;
  out.vocabulary = choice.vocab_size + 1;
  out.end_of_document = static_cast<std::int32_t>(choice.vocab_size);
  out.encode = [below = choice.vocab_size](std::string_view text) {
    return ids_in_text(text, below);
  };
  return out;
}

TextEncoder tokenizer_encoder(const TextEncoderChoice& choice) {
  const Tokenizer made =
      load_tokenizer({choice.type, choice.path, choice.vocab_file, choice.merge_file});
  TextEncoder out;
  out.name = choice.type;
  out.vocabulary = made.size();
  out.end_of_document = end_of_document(made);
  out.notices = made.notices();
  out.encode = [made](std::string_view text) {
    return made.encode(text, {.add_special_tokens = false});
  };
  return out;
}

}  // namespace

bool learns_vocabulary(const TextEncoderChoice& choice) {
  return choice.vocab_file.empty() && (choice.type == "characters" || choice.type == "bpe");
}

std::vector<std::string> text_encoder_names() {
  std::vector<std::string> out = {"bytes", "characters", "bpe", "NullTokenizer"};
  for (std::string& type : tokenizer_types()) out.push_back(std::move(type));
  return out;
}

TextEncoder text_encoder(const TextEncoderChoice& choice) {
  if (choice.type == "bytes") {
    refuse_files(choice);
    return encoder_of(choice.type, Vocabulary::bytes());
  }
  if (choice.type == "characters") return kept_or_learned(choice, VocabularyKind::Characters);
  if (choice.type == "bpe") return kept_or_learned(choice, VocabularyKind::Bpe);
  if (choice.type == "NullTokenizer") return null_encoder(choice);
  if (is_tokenizer_type(choice.type)) return tokenizer_encoder(choice);
  fail(Fault::Usage, "tokenizer-type is '", printable(choice.type), "'; it can be ",
       join(text_encoder_names()));
}

}  // namespace tessera
