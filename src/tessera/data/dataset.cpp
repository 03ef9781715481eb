#include "tessera/data/dataset.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/data/images.h"
#include "tessera/token_files/token_files.h"

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
  return {std::move(vocabulary), Texts{std::move(tokens), loaded.files, {}}, digest_of(loaded)};
} catch (const Error& error) {
  throw error.with(text("in ", name_of(loaded.files)));
}

/// The lines that begin before the held-out part, the last one excepted; all where that is nothing.
std::string_view not_held_out(std::string_view text, double held_out) {
  const double bytes = (1 - held_out) * static_cast<double>(text.size());
  const std::string_view out = text.substr(0, static_cast<std::size_t>(std::max(bytes, 0.0)));
  if (out.size() == text.size()) return text;
  const std::size_t end = out.rfind('\n');
  return end == std::string_view::npos ? out : out.substr(0, end + 1);
}

}  // namespace

std::span<const std::int32_t> RowTokens::text(std::span<const std::int32_t> all, std::int64_t row,
                                              std::int64_t column) const {
  const auto i = static_cast<std::size_t>(row * columns + column);
  check(column < columns && i < ends.size(), "text ", column, " of row ", row);
  const std::int64_t begin = i == 0 ? 0 : ends[i - 1];
  return all.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(ends[i] - begin));
}

std::string name_of(const std::vector<TextFile>& files) {
  return text("the text of '", files.front().path, "'",
              files.size() > 1 ? text(" and ", files.size() - 1, " more files") : "");
}

std::string text_digest(const std::vector<std::string>& paths, VocabularyKind kind) {
  return digest_of(load(paths, kind));
}

Dataset load_dataset(const std::vector<std::string>& paths, const VocabularyChoice& vocabulary,
                     double held_out) {
  const Text loaded = load(paths, vocabulary.kind);
  const bool learns = vocabulary.kind == VocabularyKind::Bpe;
  return make_dataset(
      Vocabulary::of(vocabulary, learns ? not_held_out(loaded.bytes, held_out) : loaded.bytes),
      loaded, held_out);
}

Dataset load_dataset(const std::vector<std::string>& paths, const Vocabulary& vocabulary,
                     double held_out) {
  return make_dataset(vocabulary, load(paths, vocabulary.kind()), held_out);
}

Dataset load_test_text(const std::vector<std::string>& paths, const Vocabulary& vocabulary) {
  const Text loaded = load(paths, vocabulary.kind());
  try {
    return {vocabulary,
            Texts{TokenStream::held_out_alone(vocabulary.encode(loaded.bytes)), loaded.files,
                  loaded.files},
            digest_of(loaded)};
  } catch (const Error& error) {
    throw error.with(text("in the test text of '", loaded.files.front().path, "'"));
  }
}

DataKind Dataset::kind() const {
  return token_files() != nullptr                          ? DataKind::TokenFiles
         : pictures() != nullptr                           ? DataKind::Pictures
         : std::holds_alternative<ProgramSamples>(content) ? DataKind::Program
                                                           : DataKind::Text;
}

std::string_view to_text(DataKind kind) {
  constexpr std::string_view kNames[] = {"texts", "token files", "pictures",
                                         "samples of a program"};
  return kNames[static_cast<std::size_t>(kind)];
}

Dataset token_file_dataset(TokenFiles files, Vocabulary vocabulary) {
  std::string digest = files.digest();
  return {std::move(vocabulary), std::make_shared<const TokenFiles>(std::move(files)),
          std::move(digest)};
}

Dataset picture_dataset(Pictures pictures) {
  std::string digest = pictures.digest();
  return {Vocabulary::ids(1), std::make_shared<const Pictures>(std::move(pictures)),
          std::move(digest)};
}

Dataset program_dataset(Vocabulary vocabulary, std::string digest) {
  return {std::move(vocabulary), ProgramSamples(), std::move(digest)};
}

std::string name_of_part(const Texts& texts, DataPart part) {
  return name_of(part == DataPart::Train || texts.held_out_files.empty() ? texts.files
                                                                         : texts.held_out_files);
}

void hold_out(Dataset& data, const std::vector<std::string>& paths) {
  const Text loaded = load(paths, data.vocabulary.kind());
  auto& texts = std::get<Texts>(data.content);
  try {
    const std::span<const std::int32_t> all = texts.tokens.all();
    texts.tokens = TokenStream({all.begin(), all.end()}, data.vocabulary.encode(loaded.bytes));
    texts.held_out_files = loaded.files;
    data.held_out_digest = digest_of(loaded);
  } catch (const Error& error) {
    throw error.with(text("in the validation text of '", loaded.files.front().path, "'"));
  }
}

}  // namespace tessera
