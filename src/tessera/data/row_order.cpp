#include "tessera/data/row_order.h"

#include <algorithm>
#include <vector>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/files/part_text.h"

namespace tessera {

RowOrder::RowOrder(const Texts& texts, DataPart part, const RowOrderOptions& options,
                   const std::function<std::int64_t(std::int64_t row)>& length)
    : texts_(texts),
      trains_(part == DataPart::Train),
      first_row_(trains_ ? 0 : texts.rows.train),
      context_(options.context),
      order_(part, lengths(options, length), options.seed, options.most, options.buckets) {}

/// Of the rows of the part, within the context; counts those that are cut.
std::vector<std::int64_t> RowOrder::lengths(
    const RowOrderOptions& options, const std::function<std::int64_t(std::int64_t row)>& length) {
  const std::int64_t end = trains_ ? texts_.rows.train : texts_.rows.rows();
  if (first_row_ == end)
    fail(Fault::Data, "the ", trains_ ? "training" : "held-out", " part of ",
         name_of_part(texts_, trains_ ? DataPart::Train : DataPart::Valid),
         " has no row; give more rows", trains_ ? "" : ", or hold out more of them");
  if (context_ <= options.around)
    fail(Fault::Usage, "context is ", context_, ", which leaves no room for text beside ", "the ",
         options.around, " special tokens of a sample; give a context of ", options.around + 1,
         " or more");
  std::vector<std::int64_t> out;
  for (std::int64_t row = first_row_; row < end; ++row) {
    const std::int64_t whole = length(row);
    cut_ += whole > context_;
    out.push_back(std::min(whole, context_));
    used_ += out.back();
  }
  return out;
}

std::string RowOrder::notice() const {
  const std::string cut =
      cut_ == 0 ? ""
                : text(counted(cut_, "sample"), part_text(trains_, texts_.rows.train > 0), " ",
                       cut_ == 1 ? "is" : "are", " longer than the context of ", context_,
                       " tokens, and cut");
  const std::string buckets = order_.notice(used_);
  return text(cut, cut.empty() || buckets.empty() ? "" : "; ", buckets);
}

}  // namespace tessera
