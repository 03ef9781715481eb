#include "tessera/data/encoded_lines.h"

#include <algorithm>
#include <span>
#include <utility>

#include "tessera/base/cores.h"
#include "tessera/base/counted.h"
#include "tessera/base/hash.h"
#include "tessera/token_files/in_order.h"

namespace tessera {

namespace {

/// Rows [first, last) of `from` behind those of `to`.
void append_lines(const EncodedLines& from, std::int64_t first, std::int64_t last,
                  EncodedLines& to) {
  const auto begin_of = [&](std::int64_t row) {
    return row == 0 ? 0 : from.ends[static_cast<std::size_t>(row * from.columns) - 1];
  };
  const std::int64_t shift = std::ssize(to.ids) - begin_of(first);
  to.ids.insert(to.ids.end(), from.ids.begin() + begin_of(first),
                from.ids.begin() + begin_of(last));
  to.counts.insert(to.counts.end(), from.counts.begin() + begin_of(first),
                   from.counts.begin() + begin_of(last));
  for (std::int64_t i = first * from.columns; i < last * from.columns; ++i)
    to.ends.push_back(from.ends[static_cast<std::size_t>(i)] + shift);
}

/// Dataset::digest is of the lines.
void add_to(StreamHash& hash, const LineBlock& block) {
  for_each_line(block, [&](std::string_view line, const LinePlace&) {
    hash.update(text(line.size(), ":"));
    hash.update(line);
  });
}

}  // namespace

void EncodedLines::add(const DialogueTokens& text) {
  ids.insert(ids.end(), text.ids.begin(), text.ids.end());
  counts.insert(counts.end(), text.counts.begin(), text.counts.end());
  ends.push_back(std::ssize(ids));
}

bool fits(DialogueTokens& made, const DialogueRules& rules, const std::string& what,
          std::string_view these) {
  const auto most =
      static_cast<std::size_t>(rules.context) + 1;  // the last token is only predicted
  if (rules.context > 0 && made.ids.size() > most) {
    if (!rules.cut_long)
      fail(Fault::Data, what, " has ", made.ids.size(), " tokens, more than the ", most,
           " that the context of ", rules.context, " holds; give a larger context (--seq-length), ",
           "leave the line out, or cut ", these, " with --long-dialogues cut");
    made.ids.resize(most);
    made.counts.resize(most);
  }
  return made.counts.size() > 1 && std::count(made.counts.begin() + 1, made.counts.end(), 1) > 0;
}

EncodedLines encode_lines(const std::vector<std::string>& paths, std::int64_t columns,
                          const std::function<EncodeLine()>& encoder) {
  constexpr std::int64_t kBlockBytes = 1 << 18;
  EncodedLines out{.columns = columns};
  StreamHash hash;
  for (const std::string& path : text_files(paths)) {
    LineBlocks blocks(std::span(&path, 1), kBlockBytes);
    const std::int64_t most = 1 + blocks.bytes() / kBlockBytes;
    in_order<LineBlock, EncodedLines>(
        static_cast<std::size_t>(std::min<std::int64_t>(num_usable_cores(), most)),
        [&](LineBlock& block) { return blocks.next(block); },
        [&](const LineBlock& block) {
          EncodedLines made{.columns = columns};
          const EncodeLine encode = encoder();
          for_each_line(block, [&](std::string_view line, const LinePlace& place) {
            encode(line, place, made);
          });
          return made;
        },
        [&](const LineBlock& block, const EncodedLines& made) {
          add_to(hash, block);
          append_lines(made, 0, made.rows(), out);
          out.cut += made.cut;
          out.without_answer += made.without_answer;
          out.same += made.same;
        });
    out.files.push_back({path, blocks.bytes(), 0, 0});
  }
  out.digest = hash.text();
  return out;
}

std::string lines_digest(const RowsChoice& choice) {
  const std::vector<std::string> paths = text_files(choice.paths);
  StreamHash hash;
  LineBlocks blocks(paths);
  for (LineBlock block; blocks.next(block);) add_to(hash, block);
  return hash.text();
}

std::string notice_of_cut(const EncodedLines& given, const EncodedLines& apart,
                          std::string_view what) {
  const std::int64_t cut = given.cut + apart.cut,
                     left_out = given.without_answer + apart.without_answer;
  if (cut == 0) return "";
  return text(
      counted(cut, what), cut == 1 ? " is" : " are", " longer than the context and cut",
      left_out == 0 ? "" : text(", of which ", left_out, " have no answer left and are left out"));
}

Texts texts_of_rows(const RowsChoice& choice, const EncodedLines& given, const EncodedLines& apart,
                    std::string_view what) {
  const std::int64_t all = given.rows(), trains = choice.trains(all);
  EncodedLines train, held;
  append_lines(given, 0, trains, train);
  choice.valid_paths.empty() ? append_lines(given, trains, all, held)
                             : append_lines(apart, 0, apart.rows(), held);
  if (train.ids.empty() && !choice.tests)
    fail(Fault::Data, "no ", what, " of ", name_of(given.files), " is left for training; give ",
         "more of them, or hold out fewer");
  if (held.ids.empty() && choice.tests)
    fail(Fault::Data, name_of(given.files), " has no ", what, " to test on; give one in each line");
  RowTokens where{given.columns, train.ends, std::ssize(train.ends) / given.columns};
  for (const std::int64_t end : held.ends) where.ends.push_back(std::ssize(train.ids) + end);
  std::vector<std::uint8_t> counts = std::move(train.counts);
  counts.insert(counts.end(), held.counts.begin(), held.counts.end());
  Texts out{stream_of(choice, std::move(train.ids), std::move(held.ids)),
            given.files,
            apart.files,
            std::move(where),
            {}};
  out.counts = std::move(counts);
  return out;
}

}  // namespace tessera
