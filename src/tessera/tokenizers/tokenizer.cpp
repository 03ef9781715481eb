#include "tessera/tokenizers/tokenizer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <mutex>

#include "tessera/base/error.h"
#include "tessera/base/start_thread.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/tokenizers/files.h"
#include "tessera/tokenizers/normalizers.h"
#include "tessera/tokenizers/parts.h"

namespace tessera {

namespace {

/// Roles, and the names that special tokens with them usually have.
struct RoleNames {
  std::string_view role;
  std::optional<std::int32_t> SpecialTokens::*id;
  std::array<std::string_view, 4> usual;
};
constexpr RoleNames kRoleNames[] = {
    {"pad_token", &SpecialTokens::pad, {"[PAD]", "<pad>"}},
    {"unk_token", &SpecialTokens::unk, {"[UNK]", "<unk>"}},
    {"cls_token", &SpecialTokens::cls, {"[CLS]", "<cls>"}},
    {"sep_token", &SpecialTokens::sep, {"[SEP]", "<sep>"}},
    {"mask_token", &SpecialTokens::mask, {"[MASK]", "<mask>"}},
    {"bos_token", &SpecialTokens::bos, {"<s>", "<bos>", "<|begin_of_text|>", "<|endoftext|>"}},
    {"eos_token", &SpecialTokens::eos, {"</s>", "<eos>", "<|end_of_text|>", "<|endoftext|>"}},
};

}  // namespace

Tokenizer::Tokenizer(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}

bool Tokenizer::is_in(const std::string& folder) { return tokenizer::has_tokenizer_files(folder); }

Tokenizer Tokenizer::load(const std::string& path) {
  return of(tokenizer::read_tokenizer_files(path), path);
}

Tokenizer Tokenizer::of(TokenizerFiles files, const std::string& where) {
  const auto parts = std::make_shared<Parts>();
  parts->files = std::move(files);
  parts->where = where;
  const tokenizer::TokenizerDocument document = tokenizer::document_of(parts->files, where);
  const tokenizer::JsonPart root(document.json, tokenizer::main_file(parts->files, where));
  if (document.of_sentence_piece) {
    parts->read_model(parts->files.at(tokenizer::kSentencePiece), root);
  } else {
    parts->read_document(root);
  }
  parts->read_use(document.settings.part(), root);
  parts->size = parts->model->tokens().end();
  for (const tokenizer::AddedToken& token : parts->added.all())
    parts->size = std::max(parts->size, token.id + 1);
  if (parts->size == 0) root.bad("it has no token; restore the file");
  for (const tokenizer::Template* const form : {&parts->templates.single, &parts->templates.pair}) {
    for (const tokenizer::TemplatePart& part : *form) {
      if (part.text < 0 && part.id >= parts->size)
        root.bad("its post-processor adds the id ", part.id, ", but ids end at ", parts->size - 1,
                 "; restore the file");
    }
  }
  const Tokenizer out(parts);
  for (const RoleNames& role : kRoleNames) {
    std::optional<std::int32_t>& id = parts->special.*role.id;
    if (const tokenizer::TokenText* const token = document.settings.role(role.role))
      id = out.id_of(token->content);
    for (const std::string_view usual : role.usual) {
      const tokenizer::AddedToken* const found = parts->added.find(usual);
      if (!id && found != nullptr && found->special) id = found->id;
    }
  }
  return out;
}

const TokenizerFiles& Tokenizer::files() const { return parts_->files; }
const std::vector<std::string>& Tokenizer::notices() const { return parts_->notices; }
std::int32_t Tokenizer::size() const { return parts_->size; }
const SpecialTokens& Tokenizer::special_tokens() const { return parts_->special; }

std::vector<std::int32_t> Tokenizer::encode(std::string_view text,
                                            const EncodeOptions& options) const {
  std::unique_ptr<Parts::Scratch> scratch = parts_->take_scratch();
  tokenizer::Ids out;
  parts_->fill(parts_->templates.single, {&text, 1}, options, *scratch, out, nullptr);
  parts_->give_back(std::move(scratch));
  return out;
}

SpannedIds Tokenizer::encode_spans(std::string_view text) const {
  if (const std::size_t bad = find_invalid_utf8(text); bad != std::string_view::npos)
    fail(Fault::Data, "byte ", bad + 1, " of the text is not UTF-8; convert it to UTF-8");
  std::unique_ptr<Parts::Scratch> scratch = parts_->take_scratch();
  SpannedIds out;
  parts_->append_spans(text, *scratch, out);
  parts_->give_back(std::move(scratch));
  return out;
}

Encoding Tokenizer::encode_pair(std::string_view first, std::string_view second,
                                const EncodeOptions& options) const {
  std::unique_ptr<Parts::Scratch> scratch = parts_->take_scratch();
  Encoding out;
  const std::string_view texts[] = {first, second};
  parts_->fill(parts_->templates.pair, texts, options, *scratch, out.ids, &out.type_ids);
  parts_->give_back(std::move(scratch));
  return out;
}

TextFrame Tokenizer::frame() const {
  const auto parts = [&](const tokenizer::Template& of, int texts) {
    for (int text = 0; text < texts; ++text) {
      if (const auto count = std::ranges::count(of, text, &tokenizer::TemplatePart::text);
          count != 1)
        fail(Fault::Data, "tokenizer '", parts_->where, "': its post-processor has ",
             text == 0 ? "$A" : "$B", " ", count, " times in its template of ",
             texts == 1 ? "one text" : "two texts",
             ", but a sample has each text once; correct post_processor of tokenizer.json");
    }
    std::vector<FramePart> out;
    for (const tokenizer::TemplatePart& part : of)
      out.push_back({.text = part.text,
                     .id = part.text < 0 ? part.id : 0,
                     .type = parts_->types ? part.type : 0});
    return out;
  };
  return {parts(parts_->templates.single, 1), parts(parts_->templates.pair, 2), parts_->keeps_end};
}

std::vector<std::vector<std::int32_t>> Tokenizer::encode_batch(std::span<const std::string> texts,
                                                               int threads,
                                                               const EncodeOptions& options) const {
  require(threads >= 1, "threads is ", threads, "; it must be 1 or more");
  std::vector<tokenizer::Ids> out(texts.size());
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr problem;
  const auto work = [&] {
    try {
      std::unique_ptr<Parts::Scratch> scratch = parts_->take_scratch();
      for (std::size_t i = next++; i < texts.size(); i = next++) {
        const std::string_view text = texts[i];
        parts_->fill(parts_->templates.single, {&text, 1}, options, *scratch, out[i], nullptr);
      }
      parts_->give_back(std::move(scratch));
    } catch (...) {
      const std::lock_guard lock(mutex);
      problem = std::current_exception();
      next = texts.size();
    }
  };
  std::vector<std::thread> others;
  try {
    for (int i = 1; i < threads; ++i) others.push_back(start_thread(work));
    work();
  } catch (...) {
    next = texts.size();
    problem = std::current_exception();
  }
  for (std::thread& other : others) other.join();
  if (problem) std::rethrow_exception(problem);
  return out;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const {
  std::vector<std::string> tokens;
  for (const std::int32_t id : ids) {
    std::optional<std::string> spelled = token(id);
    if (!spelled) continue;
    const tokenizer::AddedToken* const added = parts_->added.find(*spelled);
    const bool special = added != nullptr ? added->special : parts_->model->is_special(id);
    if (!(skip_special_tokens && special)) tokens.push_back(std::move(*spelled));
  }
  if (!parts_->decoder) return join(tokens, " ");
  parts_->decoder(tokens);
  return join(tokens, "");
}

std::optional<std::int32_t> Tokenizer::id_of(std::string_view token) const {
  if (const tokenizer::AddedToken* const added = parts_->added.find(token)) return added->id;
  const std::int32_t id = parts_->model->tokens().find(token);
  return id == tokenizer::kNoId ? std::nullopt : std::optional(id);
}

std::optional<std::string> Tokenizer::token(std::int32_t id) const {
  if (const tokenizer::AddedToken* const added = parts_->added.find(id)) return added->decoded;
  std::string_view out;
  return parts_->model->tokens().token(id, out) ? std::optional(std::string(out)) : std::nullopt;
}

bool Tokenizer::is_special(std::int32_t id) const {
  const tokenizer::AddedToken* const added = parts_->added.find(id);
  return added != nullptr && added->special;
}

}  // namespace tessera
