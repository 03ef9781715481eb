#pragma once
/// What is asked of a library of messages between processes, MPI or our own over TCP: nothing that
/// blocks once ranks run.

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tessera::process {

/// A message under way, until it is no longer pending.
struct Request {
  std::uint64_t handle = 0;
  bool pending = false;
};

/// Bytes of the longest segment in which a collective's operands move. A link is quick with
/// messages up to this.
inline constexpr std::size_t kLongestSegment = 256 << 10;

/// Messages of one channel and tag between two ranks arrive in the order in which they were sent.
enum class Channel { Calls, Control };

class Link {
 public:
  static constexpr int kAnyone = -1;

  virtual ~Link() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// The lowest rank of those that share a machine with this one. Blocks, as gather does.
  virtual int machine() = 0;
  /// Every rank's `bytes`, in rank order. Blocks: only before and after the body.
  virtual void gather(const void* mine, void* all, std::size_t bytes) = 0;

  virtual Request send(Channel channel, const void* data, std::size_t bytes, int to, int tag) = 0;
  /// `from` may be kAnyone.
  virtual Request receive(Channel channel, void* data, std::size_t bytes, int from, int tag) = 0;
  virtual bool done(Request& request) = 0;
  /// A receive for which nothing has come yet is given up; another message goes on, or this rank's
  /// memory is no part of it any more, and it is done.
  virtual void cancel(Request& request) = 0;

  /// How many ranks are known to have gone without their orderly end, and whether `rank` has. A
  /// link that cannot know says none.
  virtual int losses() const { return 0; }
  virtual bool lost(int /*rank*/) const { return false; }
  /// The errno with which the connection to a lost rank ended; 0: the other side has closed it.
  virtual int loss_errno(int /*rank*/) const { return 0; }

  /// True where what started the ranks ends all of them soon after one has died.
  virtual bool ends_together() const = 0;

  /// The orderly end, together with all ranks.
  virtual void finish() = 0;
  /// Ends all processes of the world, this one included. A link that cannot do so lets go of them,
  /// and returns.
  virtual void end_all(int code) = 0;
};

/// Joins the ranks that an MPI launcher has started. Blocks until all have come.
/// Errors: Fault::Peer, with the words of the library.
std::unique_ptr<Link> open_mpi_link();

}  // namespace tessera::process
