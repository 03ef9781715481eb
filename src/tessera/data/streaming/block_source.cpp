#include "tessera/data/streaming/block_source.h"

#include <algorithm>
#include <span>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/start_thread.h"
#include "tessera/token_files/in_order.h"

namespace tessera {

namespace {

constexpr std::size_t kBlocksAhead = 2, kPlacesKept = 64;

struct ReaderStops {};

struct EncodedPieces {
  std::vector<std::int32_t> ids;
  std::vector<std::size_t> ends;  // of each piece
};

}  // namespace

BlockSource::BlockSource(const StreamFiles& files, const PieceEncoder& encoder, StreamPlace begin,
                         std::int64_t tokens, std::int64_t workers)
    : files_(files), encoder_(encoder), tokens_(tokens), workers_(workers) {
  places_[0] = {begin, 0};
}

BlockSource::~BlockSource() { stop(); }

const std::vector<std::int32_t>& BlockSource::block(std::int64_t number) {
  if (now_.number == number) return now_.tokens;
  const bool soon =
      next_ >= 0 && number >= next_ && number - next_ <= static_cast<std::int64_t>(kBlocksAhead);
  if (!soon) start(number);
  while (now_.number != number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !ready_.empty() || failure_ != nullptr; });
    if (ready_.empty()) {
      const std::exception_ptr failure = std::exchange(failure_, nullptr);
      next_ = -1;
      std::rethrow_exception(failure);
    }
    now_ = std::move(ready_.front());
    ready_.pop_front();
    next_ = now_.number + 1;
    changed_.notify_all();
  }
  return now_.tokens;
}

std::optional<BlockPlace> BlockSource::place(std::int64_t number) const {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(number);
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

void BlockSource::set_place(std::int64_t number, const BlockPlace& place) {
  const std::lock_guard lock(mutex_);
  places_[number] = place;
}

void BlockSource::start(std::int64_t number) {
  stop();
  now_ = {};
  ready_.clear();
  failure_ = nullptr;
  const auto nearest = std::prev(places_.upper_bound(number));  // block 0 stays
  next_ = nearest->first;
  stops_ = false;
  reader_ = start_thread([this, from = *nearest] { read(from.first, from.second); });
}

void BlockSource::stop() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  if (reader_.joinable()) reader_.join();
}

void BlockSource::read(std::int64_t number, BlockPlace from) {
  try {
    PieceReader reader(files_, from.piece);
    Block block{number, {}};
    block.tokens.reserve(static_cast<std::size_t>(tokens_) + 1);
    auto skip = static_cast<std::size_t>(from.skipped);
    std::int64_t pass = from.piece.pass,
                 of_pass = 1;  // tokens of the pass; of the first one unknown
    in_order<Pieces, EncodedPieces>(
        static_cast<std::size_t>(workers_),
        [&](Pieces& pieces) {
          {
            const std::lock_guard lock(mutex_);
            if (stops_) throw ReaderStops();
          }
          reader.next(pieces);
          return true;
        },
        [&](const Pieces& pieces) {
          EncodedPieces out;
          for (std::size_t i = 0; i < pieces.all.size(); ++i) {
            encoder_.add(pieces, i, out.ids);
            out.ends.push_back(out.ids.size());
          }
          return out;
        },
        [&](const Pieces& pieces, const EncodedPieces& encoded) {
          if (pieces.first.pass != pass) {
            if (of_pass == 0)
              fail(Fault::Data, "the texts of '", files_.paths.front(), "'",
                   files_.paths.size() > 1 ? " and the files beside it" : "", " have no token");
            pass = pieces.first.pass;
            of_pass = 0;
          }
          of_pass += std::ssize(encoded.ids);
          std::size_t begin = 0;
          for (std::size_t i = 0; i < pieces.all.size(); ++i) {
            const std::size_t end = encoded.ends[i];
            std::size_t at = begin + std::exchange(skip, 0);
            if (at > end)
              fail(Fault::Data, "'", pieces.path, "' line ", pieces.all[i].line, " has ",
                   end - begin, " tokens, and the run went on behind ", at - begin,
                   " of them: the file or the tokenizer is another one; give the same, or begin "
                   "anew");
            while (at < end) {
              const std::size_t room = static_cast<std::size_t>(tokens_) + 1 - block.tokens.size(),
                                some = std::min(room, end - at);
              const auto first = encoded.ids.begin() + static_cast<std::ptrdiff_t>(at);
              block.tokens.insert(block.tokens.end(), first,
                                  first + static_cast<std::ptrdiff_t>(some));
              at += some;
              if (some < room) continue;
              // The token behind a block is the first of the next one.
              Block next{block.number + 1, {}};
              next.tokens.reserve(static_cast<std::size_t>(tokens_) + 1);
              next.tokens.push_back(block.tokens.back());
              push(std::exchange(block, std::move(next)),
                   {pieces.place(i), static_cast<std::int64_t>(at - 1 - begin)});
            }
            begin = end;
          }
        });
  } catch (const ReaderStops&) {
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
  }
  changed_.notify_all();
}

void BlockSource::push(Block block, const BlockPlace& next) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stops_ || ready_.size() < kBlocksAhead; });
  if (stops_) throw ReaderStops();
  places_[block.number + 1] = next;
  while (places_.size() > kPlacesKept) places_.erase(std::next(places_.begin()));
  ready_.push_back(std::move(block));
  changed_.notify_all();
}

}  // namespace tessera
