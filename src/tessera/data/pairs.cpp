#include "tessera/data/pairs.h"

#include <algorithm>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/dataset.h"

namespace tessera {

namespace {

constexpr std::int32_t kNoToken = -1;

/// kNoToken where the vocabulary lacks it.
std::int32_t token_of(const Vocabulary& vocabulary, char c) {
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.decode(std::span(&id, 1)) == std::string_view(&c, 1)) return id;
  }
  return kNoToken;
}

/// The lines of one part, and how many come before them in the text of these files.
struct Lines {
  std::span<const std::int32_t> tokens;
  std::int64_t before = 0;
  const std::vector<TextFile>& files;
};

/// Of a vocabulary's tokens.
Lines lines_of(const Texts& texts, DataPart part, std::int32_t newline) {
  const TokenStream& stream = texts.tokens;
  if (stream.held_out_apart()) {
    if (part == DataPart::Train) return {stream.train(), 0, texts.files};
    return {stream.held_out(), 0, texts.held_out_files};
  }
  // The first line that begins in the held-out part.
  const auto all = stream.all();
  auto border = all.begin() + static_cast<std::ptrdiff_t>(stream.train().size());
  while (border != all.begin() && border != all.end() && border[-1] != newline) ++border;
  if (part == DataPart::Train) return {{all.begin(), border}, 0, texts.files};
  return {{border, all.end()}, std::count(all.begin(), border, newline), texts.files};
}

/// Of a tokenizer's tokens, with others of ours for tabs and ends of lines. `into` holds them.
Lines lines_of_text(const Dataset& data, DataPart part, std::int32_t newline, std::int32_t tab,
                    std::vector<std::int32_t>& into) {
  const Texts& texts = data.texts();
  const TokenStream& stream = texts.tokens;
  const bool apart = stream.held_out_apart();
  const std::vector<TextFile>& files =
      apart && part == DataPart::Valid ? texts.held_out_files : texts.files;
  std::vector<std::string> paths;
  for (const TextFile& file : files) paths.push_back(file.path);
  const std::string whole = load_text(paths).bytes;
  // The first line that begins in the held-out part, whose share is that of the tokens.
  std::size_t border = part == DataPart::Train ? whole.size() : 0;
  if (!apart) {
    const double share = static_cast<double>(stream.train().size()) /
                         static_cast<double>(std::max<std::size_t>(stream.all().size(), 1));
    border = static_cast<std::size_t>(share * static_cast<double>(whole.size()));
    while (border > 0 && border < whole.size() && whole[border - 1] != '\n') ++border;
  }
  const std::string_view all = whole;
  const std::string_view text =
      part == DataPart::Train ? all.substr(0, border) : all.substr(border);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find_first_of("\t\n", begin);
    const std::vector<std::int32_t> side = data.vocabulary.encode(text.substr(begin, end - begin));
    into.insert(into.end(), side.begin(), side.end());
    if (end == std::string_view::npos) break;
    into.push_back(text[end] == '\t' ? tab : newline);
    begin = end + 1;
  }
  const std::int64_t before =
      part == DataPart::Train ? 0 : std::ranges::count(all.substr(0, border), '\n');
  return {into, before, files};
}

/// Writes a text with what stands around it; returns how many tokens these are.
std::size_t write(std::span<const std::int32_t> tokens, const PairOptions& options,
                  std::span<std::int32_t> to) {
  std::size_t at = 0;
  if (options.first) to[at++] = *options.first;
  std::ranges::copy(tokens, to.subspan(at).begin());
  at += tokens.size();
  to[at] = options.end;
  return at + 1;
}

}  // namespace

Pairs::Pairs(const Dataset& data, DataPart part, const PairOptions& options) : options_(options) {
  data.has_rows() ? add_rows(data, part) : add_lines(data, part);
  if (!pairs_.empty()) return;
  const bool train = part == DataPart::Train;
  const std::string fits = text(" fits into a source of ", options.source, " and a target of ",
                                options.target, " tokens");
  fail(Fault::Data, "the ", train ? "training" : "held-out", " part of ",
       name_of_part(data.texts(), part), " has ",
       left_out_ == 0 ? "no pair" : text(counted(left_out_, "pair"), ", of which none", fits),
       "; use a longer text", train ? "" : ", hold out more of it",
       left_out_ == 0 ? "" : ", or raise source-context and context");
}

void Pairs::add_rows(const Dataset& data, DataPart part) {
  const bool train = part == DataPart::Train;
  const RowTokens& rows = data.texts().rows;
  const std::span<const std::int32_t> all = data.texts().tokens.all();
  for (std::int64_t row = train ? 0 : rows.train, end = train ? rows.train : rows.rows(); row < end;
       ++row)
    add({rows.text(all, row, 0), rows.text(all, row, 1)});
}

void Pairs::add_lines(const Dataset& data, DataPart part) {
  const bool made_elsewhere = data.vocabulary.kind() == VocabularyKind::Tokenizer;
  const std::int32_t newline =
      made_elsewhere ? data.vocabulary.size() : token_of(data.vocabulary, '\n');
  const std::int32_t tab = made_elsewhere ? newline + 1 : token_of(data.vocabulary, '\t');
  const Lines lines = made_elsewhere ? lines_of_text(data, part, newline, tab, own_)
                                     : lines_of(data.texts(), part, newline);
  std::int64_t before = lines.before;
  for (auto begin = lines.tokens.begin(); begin != lines.tokens.end();) {
    const auto end = std::find(begin, lines.tokens.end(), newline);
    add_line({begin, end}, tab, [&] { return line_name(lines.files, before); });
    ++before;
    begin = end == lines.tokens.end() ? end : end + 1;
  }
}

void Pairs::add(const Pair& pair) {
  if (std::ssize(pair.source) + around() <= options_.source &&
      std::ssize(pair.target) + around() <= options_.target) {
    pairs_.push_back(pair);
  } else {
    ++left_out_;
  }
}

void Pairs::add_line(std::span<const std::int32_t> line, std::int32_t tab,
                     const std::function<std::string()>& name) {
  const auto at = std::find(line.begin(), line.end(), tab);
  const auto tabs = std::count(at, line.end(), tab);
  if (tabs != 1)
    fail(Fault::Data, name(), " has ", tabs == 0 ? "no tab" : counted(tabs, "tab"),
         "; a pair is a source, one tab and a target");
  add({{line.begin(), at}, {at + 1, line.end()}});
}

std::int64_t Pairs::length(std::int64_t i) const {
  const Pair& pair = pairs_.at(static_cast<std::size_t>(i));
  return std::max(std::ssize(pair.source), std::ssize(pair.target)) + around();
}

std::int64_t Pairs::tokens(std::int64_t i) const {
  const Pair& pair = pairs_.at(static_cast<std::size_t>(i));
  return std::ssize(pair.source) + std::ssize(pair.target) + 2 * around();
}

void Pairs::fill(std::int64_t i, std::span<std::int32_t> source, std::span<std::int32_t> ids,
                 std::span<std::int32_t> labels) const {
  check(i < size() && ids.size() == labels.size(), "pair ", i, " of ", size(), " for ", ids.size(),
        " ids and ", labels.size(), " labels");
  std::ranges::fill(source, options_.pad);
  std::ranges::fill(ids, options_.pad);
  std::ranges::fill(labels, kIgnoredLabel);
  if (i < 0) return;
  const Pair& pair = pairs_[static_cast<std::size_t>(i)];
  check(std::ssize(pair.source) + around() <= std::ssize(source) &&
            std::ssize(pair.target) + around() <= std::ssize(ids),
        "pair ", i, " of ", pair.source.size(), " and ", pair.target.size(), " tokens for ",
        source.size(), " and ", ids.size());
  write(pair.source, options_, source);
  const std::size_t tokens = write(pair.target, options_, labels);
  ids[0] = options_.start;
  std::ranges::copy(labels.first(tokens - 1), ids.subspan(1).begin());
}

}  // namespace tessera
