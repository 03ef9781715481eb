#include "tessera/data/encoded_lines.h"

#include <span>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/text.h"

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

}  // namespace

void EncodedLines::add(const DialogueTokens& text) {
  ids.insert(ids.end(), text.ids.begin(), text.ids.end());
  counts.insert(counts.end(), text.counts.begin(), text.counts.end());
  ends.push_back(std::ssize(ids));
}

std::string each_data_line(
    const std::vector<std::string>& paths, std::vector<TextFile>& files,
    const std::function<void(std::string_view line, const LinePlace& place)>& take) {
  StreamHash hash;
  for (const std::string& path : text_files(paths)) {
    LineBlocks blocks(std::span(&path, 1));
    LineBlock block;
    while (blocks.next(block)) {
      for_each_line(block, [&](std::string_view line, const LinePlace& place) {
        hash.update(text(line.size(), ":"));
        hash.update(line);
        take(line, place);
      });
    }
    files.push_back({path, blocks.bytes(), 0, 0});
  }
  return hash.text();
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
