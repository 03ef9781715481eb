#include "tessera/data/dataset.h"

#include <span>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

Text load(const std::vector<std::string>& paths, VocabularyKind kind) {
  return load_text(paths,
                   {kind == VocabularyKind::Bytes ? InvalidUtf8::Keep : InvalidUtf8::Refuse});
}

std::string digest_of(const Text& loaded) {
  return hash128_text(std::as_bytes(std::span(loaded.bytes)));
}

Dataset make_dataset(Vocabulary vocabulary, const Text& loaded, double held_out) try {
  TokenStream tokens(vocabulary.encode(loaded.bytes), held_out);
  return {std::move(vocabulary), std::move(tokens), loaded.files, {}, digest_of(loaded)};
} catch (const Error& error) {
  throw error.with(text("in ", name_of(loaded.files)));
}

}  // namespace

std::string name_of(const std::vector<TextFile>& files) {
  return text("the text of '", files.front().path, "'",
              files.size() > 1 ? text(" and ", files.size() - 1, " more files") : "");
}

std::string text_digest(const std::vector<std::string>& paths, VocabularyKind kind) {
  return digest_of(load(paths, kind));
}

Dataset load_dataset(const std::vector<std::string>& paths, VocabularyKind kind, double held_out) {
  const Text loaded = load(paths, kind);
  return make_dataset(Vocabulary::of(kind, loaded.bytes), loaded, held_out);
}

Dataset load_dataset(const std::vector<std::string>& paths, const Vocabulary& vocabulary,
                     double held_out) {
  return make_dataset(vocabulary, load(paths, vocabulary.kind()), held_out);
}

void hold_out(Dataset& data, const std::vector<std::string>& paths) {
  const Text loaded = load(paths, data.vocabulary.kind());
  try {
    const std::span<const std::int32_t> all = data.tokens.all();
    data.tokens = TokenStream({all.begin(), all.end()}, data.vocabulary.encode(loaded.bytes));
    data.held_out_files = loaded.files;
  } catch (const Error& error) {
    throw error.with(text("in the validation text of '", loaded.files.front().path, "'"));
  }
}

}  // namespace tessera
