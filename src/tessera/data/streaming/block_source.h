#pragma once
/// The tokens of files as blocks of one size, read and encoded by a thread ahead of their use.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "tessera/data/streaming/pieces.h"

namespace tessera {

/// Where a block begins: with the token behind `skipped` of those of a piece.
struct BlockPlace {
  StreamPlace piece;
  std::int64_t skipped = 0;
  friend bool operator==(const BlockPlace&, const BlockPlace&) = default;
};

/// Blocks by number, of which two are read ahead. They are the same wherever it begins and however
/// many threads encode. One thread calls.
class BlockSource {
 public:
  /// Block 0 begins at `begin`; `tokens` of a block, in which that behind its last one is not
  /// counted. `files` and `encoder` outlive it.
  BlockSource(const StreamFiles& files, const PieceEncoder& encoder, StreamPlace begin,
              std::int64_t tokens, std::int64_t workers);
  ~BlockSource();
  BlockSource(const BlockSource&) = delete;
  BlockSource& operator=(const BlockSource&) = delete;

  /// Its tokens, and the one behind them. Another than the next one is read from the nearest place
  /// before it that is known. Errors: as of PieceReader and PieceEncoder.
  const std::vector<std::int32_t>& block(std::int64_t number);
  /// Where a block begins, if that is known: of one that was read, and of the one behind it.
  std::optional<BlockPlace> place(std::int64_t number) const;
  /// Says it, of a run that goes on.
  void set_place(std::int64_t number, const BlockPlace& place);

 private:
  struct Block {
    std::int64_t number = -1;
    std::vector<std::int32_t> tokens;
  };
  void start(std::int64_t number);
  void stop();
  void read(std::int64_t number, BlockPlace from);
  void push(Block block, const BlockPlace& next);

  const StreamFiles& files_;
  const PieceEncoder& encoder_;
  const std::int64_t tokens_, workers_;
  Block now_;
  std::thread reader_;
  std::int64_t next_ = -1;  // the block that the reader gives next

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Block> ready_;
  std::map<std::int64_t, BlockPlace> places_;
  std::exception_ptr failure_;  // of the reader, which has ended
  bool stops_ = false;
};

}  // namespace tessera
