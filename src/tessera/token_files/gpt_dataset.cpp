#include "tessera/token_files/gpt_dataset.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/token_files/index_room.h"
#include "tessera/token_files/index_sets.h"

namespace tessera {

namespace {

constexpr std::int64_t kDocumentsAtOnce = 64;
constexpr std::int64_t kLengthsAtOnce = 1 << 16;

std::int64_t tokens_in(const IndexedDataset& files, std::int64_t first, std::int64_t last) {
  if (first == 0 && last == files.num_sequences()) return files.num_tokens();
  std::int64_t out = 0;
  std::vector<std::int32_t> block(static_cast<std::size_t>(std::min(kLengthsAtOnce, last - first)));
  for (; first < last; first += kLengthsAtOnce) {
    const std::span<std::int32_t> part =
        std::span(block).first(static_cast<std::size_t>(std::min(kLengthsAtOnce, last - first)));
    files.lengths(first, part);
    out = std::accumulate(part.begin(), part.end(), out);
  }
  return out;
}

/// "the valid part (sequences 969 to 998 of 'a')"
std::string name_of_part(const IndexedDataset& files, const GptDatasetChoice& choice,
                         const GptIndexRequest& request) {
  if (request.first == request.last)
    return text("the ", to_text(choice.part), " part of '", files.prefix(), "', which is empty");
  return text("the ", to_text(choice.part), " part of '", files.prefix(), "', sequences ",
              request.first, " to ", request.last - 1);
}

}  // namespace

GptPart gpt_part(const IndexedDataset& files, const GptDatasetChoice& choice) {
  const SplitShares split =
      choice.split.empty() ? SplitShares::all(choice.part) : parse_split(choice.split);
  const auto [first, last] = split.range(choice.part, files.num_sequences());
  GptPart out{{first, last, choice.context, choice.samples, choice.seed}, {}};
  try {
    out.plan = plan_gpt_indices(out.request, tokens_in(files, first, last));
    if (out.plan.samples == 0)
      fail(Fault::Data, "context ", choice.context, " is longer than the data: a sample takes ",
           choice.context + 1, " tokens (one more for the last label), and there are ",
           out.plan.tokens_per_epoch, "; give a shorter context, or more data");
  } catch (const Error& error) {
    throw error.with(text("in ", name_of_part(files, choice, out.request), " (split ",
                          choice.split.empty() ? "none" : choice.split, ")"));
  }
  return out;
}

GptDataset::GptDataset(std::shared_ptr<const IndexedDataset> files, const GptDatasetChoice& choice,
                       std::vector<std::string>& notices)
    : files_(std::move(files)), vocabulary_(choice.vocabulary), part_(gpt_part(*files_, choice)) {
  const GptIndexRequest& request = part_.request;
  IndexSet set = index_set(files_->prefix(), choice);
  set.arrays[0].shape = {part_.plan.epochs * (request.last - request.first)};
  set.arrays[1].shape = {part_.plan.samples + 1, 2};
  set.arrays[2].shape = {part_.plan.samples};
  const auto make = [&] {
    require_room_for_indices(text("of '", files_->prefix(), "'"), part_.plan.samples,
                             gpt_index_bytes(request, part_.plan));
    std::vector<std::int32_t> lengths(static_cast<std::size_t>(request.last - request.first));
    files_->lengths(request.first, lengths);
    GptIndices made = build_gpt_indices(request, part_.plan, lengths);
    return std::vector<IntegerArray>{std::move(made.documents), std::move(made.samples),
                                     std::move(made.shuffle)};
  };
  std::vector<IntegerArray> kept = kept_indices(set, make, notices);
  indices_ = GptIndices{std::move(kept[0]), std::move(kept[1]), std::move(kept[2])};
}

IndexSet GptDataset::index_set(const std::string& prefix, const GptDatasetChoice& choice) {
  return gpt_index_set(prefix, choice);
}

void GptDataset::read(std::int64_t sample, std::span<std::int32_t> out) const {
  check(sample >= 0 && sample < size() && std::ssize(out) == part_.request.context + 1, "sample ",
        sample, " of ", size(), " into ", out.size(), " tokens");
  const auto refuse = [&](const std::string& what) {
    const std::string& path = indices_->samples.path();
    fail(Fault::Data, "the sample indices ", path.empty() ? "" : text("of '", path, "' "),
         "do not fit the token files '", files_->prefix(), "': ", what,
         "; delete the index files to rebuild them");
  };
  const std::int64_t row = indices_->shuffle.at(sample);
  if (row < 0 || row >= size()) refuse(text("sample ", sample, " is number ", row, " of ", size()));
  std::array<std::int64_t, 4> ends{};  // place in documents and token: of this sample, of the next
  indices_->samples.read(2 * row, ends);
  std::int64_t place = ends[0], offset = ends[1];
  const std::int64_t last = ends[2];
  if (place < 0 || last < place || last >= indices_->documents.elements() || offset < 0)
    refuse(text("sample ", row, " is from place ", place, " to ", last, " of ",
                indices_->documents.elements(), " documents"));
  std::array<std::int64_t, kDocumentsAtOnce> documents{};
  std::size_t done = 0;
  while (done < out.size() && place <= last) {
    const std::span<std::int64_t> some = std::span(documents).first(
        static_cast<std::size_t>(std::min(kDocumentsAtOnce, last + 1 - place)));
    indices_->documents.read(place, some);
    for (const std::int64_t document : some) {
      if (document < part_.request.first || document >= part_.request.last)
        refuse(text("place ", place, " is sequence ", document, ", not one of ",
                    part_.request.first, " to ", part_.request.last - 1));
      done += files_->read_up_to(document, offset, vocabulary_, out.subspan(done));
      offset = 0;
      if (done == out.size()) break;
    }
    place += std::ssize(some);
  }
  if (done < out.size())
    refuse(text("sample ", row, " has ", counted(static_cast<std::int64_t>(done), "token"),
                " where ", out.size(), " are expected"));
}

}  // namespace tessera
