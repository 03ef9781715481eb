/// A .model of SentencePiece as transformers makes a tokenizer.json of it.

#include <algorithm>
#include <set>
#include <string_view>

#include "tessera/base/text.h"
#include "tessera/tokenizers/byte_trie.h"
#include "tessera/tokenizers/charsmap.h"
#include "tessera/tokenizers/class_documents.h"
#include "tessera/tokenizers/sentence_piece.h"

namespace tessera::tokenizer {

namespace {

using nlohmann::json;

/// Which two pieces make another one.
class PiecePairs {
 public:
  /// `pieces` must outlive it.
  explicit PiecePairs(std::set<std::string_view> pieces) : pieces_(std::move(pieces)) {
    ByteTrie::Keys keys;
    for (const std::string_view piece : pieces_) keys.emplace_back(piece, 0);
    beginnings_ = ByteTrie(std::move(keys));
  }
  /// Calls each(left, right) of all that make `piece`, the shortest left one first.
  template <typename Each>
  void for_each(std::string_view piece, const Each& each) const {
    beginnings_.prefixes(piece, [&](std::size_t size, std::int32_t) {
      const std::string_view right = piece.substr(size);
      if (pieces_.contains(right)) each(std::string(piece.substr(0, size)), std::string(right));
    });
  }

 private:
  std::set<std::string_view> pieces_;
  ByteTrie beginnings_;  // the pieces
};

/// The pattern that finds a text as it is.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool letter = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter && static_cast<unsigned char>(c) < 0x80) out += '\\';
    out += c;
  }
  return out;
}

json replace_pattern(const char* pattern, const char* by) {
  return {{"type", "Replace"}, {"pattern", {{"Regex", pattern}}}, {"content", by}};
}

/// Merges of normal pieces alone, by the score of what they make.
json merges_by_score(const SentencePieceFile& file) {
  std::map<std::string, std::int32_t> normal;
  for (std::size_t i = 0; i < file.pieces.size(); ++i) {
    if (file.pieces[i].type == PieceType::Normal)
      normal[file.pieces[i].piece] = static_cast<std::int32_t>(i);
  }
  std::set<std::string_view> pieces;
  for (const auto& [piece, id] : normal) pieces.insert(piece);
  const PiecePairs pairs(std::move(pieces));
  using Ranked = std::tuple<double, std::int32_t, std::string, std::string>;
  std::vector<Ranked> ranked;
  for (const auto& [piece, id] : normal) {
    pairs.for_each(piece, [&](std::string left, std::string right) {
      ranked.emplace_back(-double{file.pieces[static_cast<std::size_t>(id)].score}, id,
                          std::move(left), std::move(right));
    });
  }
  std::ranges::sort(ranked);
  json out = json::array();
  for (const auto& [score, id, left, right] : ranked) out.push_back({left, right});
  return out;
}

}  // namespace

ModelVocabulary model_vocabulary(const std::string& bytes, const std::string& file) {
  const SentencePieceFile model = read_sentence_piece(bytes, file);
  ModelVocabulary out{json::array(), "", {}};
  for (const SentencePieceFile::Entry& entry : model.pieces) {
    out.vocabulary.push_back({entry.piece, double{entry.score}});
    if (entry.type == PieceType::Control || entry.type == PieceType::UserDefined)
      out.symbols.push_back({.content = entry.piece,
                             .special = entry.type == PieceType::Control,
                             .normalized = false,
                             .plain = false});
  }
  if (!model.charsmap.empty()) out.charsmap = base64_of_bytes(model.charsmap);
  return out;
}

json merges_of_pieces(const json& ids) {
  std::map<std::int64_t, std::string> by_id;
  for (auto it = ids.begin(); it != ids.end(); ++it) by_id[it->get<std::int64_t>()] = it.key();
  std::set<std::string_view> pieces;
  for (auto it = ids.begin(); it != ids.end(); ++it) pieces.insert(it.key());
  const PiecePairs pairs(std::move(pieces));
  json out = json::array();
  for (const auto& [id, piece] : by_id)
    pairs.for_each(piece, [&](std::string left, std::string right) {
      out.push_back({std::move(left), std::move(right)});
    });
  return out;
}

json document_of_model(const std::string& bytes, Settings& settings, const std::string& file) {
  const SentencePieceFile model = read_sentence_piece(bytes, file);
  ModelVocabulary of = model_vocabulary(bytes, file);
  const bool legacy = settings.part().flag("legacy", true);
  const auto text_of = [&](std::int32_t id) {
    return id >= 0 && id < std::ssize(model.pieces)
               ? model.pieces[static_cast<std::size_t>(id)].piece
               : std::string();
  };
  for (const auto& [id, token] : settings.added) {
    if (id < std::ssize(model.pieces) && text_of(id) != token.content)
      settings.part().bad("\"added_tokens_decoder\" names id ", id, " '", token.content,
                          "', which is '", text_of(id), "' in ", file,
                          "; renaming pieces is not supported: write a tokenizer.json");
  }
  json out = {{"version", "1.0"}};
  std::vector<std::string> defined;
  for (const SentencePieceFile::Entry& entry : model.pieces) {
    if (entry.type == PieceType::UserDefined) defined.push_back(entry.piece);
  }
  const std::string unknown = text_of(model.unk);
  if (model.bpe) {
    json ids = json::object();
    for (std::size_t i = 0; i < model.pieces.size(); ++i) ids[model.pieces[i].piece] = i;
    out["model"] = {{"type", "BPE"},
                    {"unk_token", unknown},
                    {"fuse_unk", true},
                    {"byte_fallback", model.byte_fallback},
                    {"ignore_merges", !defined.empty()},
                    {"merges", merges_by_score(model)}};
    out["model"]["vocab"] = std::move(ids);
  } else {
    out["model"] = {
        {"type", "Unigram"}, {"unk_id", model.unk}, {"byte_fallback", model.byte_fallback}};
    out["model"]["vocab"] = std::move(of.vocabulary);
  }
  json steps = json::array();
  if (!of.charsmap.empty())
    steps.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", of.charsmap}});
  if (model.remove_extra_whitespaces) {
    steps.push_back(replace_pattern(R"(\A +| +\z)", ""));
    steps.push_back(replace_pattern(" {2,}", " "));
  }
  if (model.escape_whitespaces)
    steps.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}});
  if (model.add_dummy_prefix && legacy)
    steps.push_back(replace_pattern("\\A\u2581", "\u2581\u2581"));
  out["normalizer"] = {{"type", "Sequence"}, {"normalizers", std::move(steps)}};
  json pieces = json::array();
  if (model.add_dummy_prefix)
    pieces.push_back({{"type", "Metaspace"},
                      {"replacement", "\u2581"},
                      {"prepend_scheme", legacy ? "always" : "first"},
                      {"split", false}});
  if (!defined.empty()) {
    std::ranges::stable_sort(defined, std::greater(), &std::string::size);
    std::vector<std::string> patterns;
    for (const std::string& piece : defined) patterns.push_back(escaped(piece));
    pieces.push_back({{"type", "Split"},
                      {"pattern", {{"Regex", join(patterns, "|")}}},
                      {"behavior", "Isolated"}});
  }
  if (!pieces.empty()) out["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", pieces}};
  json decoders = {{{"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}}};
  if (model.byte_fallback) decoders.push_back({{"type", "ByteFallback"}});
  if (model.add_dummy_prefix || model.byte_fallback) decoders.push_back({{"type", "Fuse"}});
  if (model.add_dummy_prefix)
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  out["decoder"] = {{"type", "Sequence"}, {"decoders", std::move(decoders)}};
  for (const auto& [role, id] :
       {std::pair{"bos_token", model.bos}, {"eos_token", model.eos}, {"unk_token", model.unk}}) {
    if (!text_of(id).empty()) settings.set_default(role, text_of(id));
  }
  std::erase_if(of.symbols, [](const TokenText& token) { return !token.special; });
  settings.additional = std::move(of.symbols);
  return out;
}

}  // namespace tessera::tokenizer
