#include "tessera/comm/process/link.h"

// The C interface is all that is used.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <array>
#include <chrono>
#include <climits>
#include <cstring>
#include <thread>

#include "tessera/base/error.h"
#include "tessera/comm/processes.h"

namespace tessera::process {

namespace {

static_assert(sizeof(MPI_Request) <= sizeof(Request::handle));

Request packed(MPI_Request request) {
  Request out;
  std::memcpy(&out.handle, &request, sizeof(request));
  out.pending = request != MPI_REQUEST_NULL;
  return out;
}
MPI_Request unpacked(const Request& request) {
  MPI_Request out;
  std::memcpy(&out, &request.handle, sizeof(out));
  return out;
}

void require_success(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING + 1> words{};
  int length = 0;
  MPI_Error_string(code, words.data(), &length);
  fail(Fault::Peer, "MPI: ", what, " fails: ", words.data(),
       "; the launcher's output may say more");
}

/// Lengths are counts of int: long messages are counted in larger units.
constexpr int kUnits = 13;  // 1, 2, 4, ... 4096 bytes

class MpiLink final : public Link {
 public:
  MpiLink() {
    int level = 0;
    require_success(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level), "start");
    if (level < MPI_THREAD_FUNNELED)
      fail(Fault::Resource, "MPI: this library does not support threads (it provides level ", level,
           ", but MPI_THREAD_FUNNELED, ", int{MPI_THREAD_FUNNELED},
           ", is required); use one built with threads");
    for (MPI_Comm& comm : comms_) {
      require_success(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "a communicator of all ranks");
      MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    for (int i = 0; i < kUnits; ++i) {
      MPI_Datatype& unit = units_[static_cast<std::size_t>(i)];
      MPI_Type_contiguous(1 << i, MPI_BYTE, &unit);
      MPI_Type_commit(&unit);
    }
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  int machine() override {
    MPI_Comm neighbours = MPI_COMM_NULL;
    require_success(MPI_Comm_split_type(comm(Channel::Calls), MPI_COMM_TYPE_SHARED, rank_,
                                        MPI_INFO_NULL, &neighbours),
                    "a communicator of one machine");
    int lowest = rank_;
    require_success(MPI_Allreduce(&rank_, &lowest, 1, MPI_INT, MPI_MIN, neighbours), "a minimum");
    MPI_Comm_free(&neighbours);
    return lowest;
  }

  void gather(const void* mine, void* all, std::size_t bytes) override {
    const int count = static_cast<int>(bytes);
    require_success(
        MPI_Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, comm(Channel::Calls)),
        "a gather");
  }

  Request send(Channel channel, const void* data, std::size_t bytes, int to, int tag) override {
    MPI_Request out = MPI_REQUEST_NULL;
    const Length length = length_of(bytes);
    require_success(MPI_Isend(data, length.count, length.unit, to, tag, comm(channel), &out),
                    "a send");
    return packed(out);
  }

  Request receive(Channel channel, void* data, std::size_t bytes, int from, int tag) override {
    MPI_Request out = MPI_REQUEST_NULL;
    const Length length = length_of(bytes);
    if (from == kAnyone) from = MPI_ANY_SOURCE;
    require_success(MPI_Irecv(data, length.count, length.unit, from, tag, comm(channel), &out),
                    "a receive");
    return packed(out);
  }

  bool done(Request& request) override {
    if (!request.pending) return true;
    MPI_Request handle = unpacked(request);
    int flag = 0;
    const int code = MPI_Test(&handle, &flag, MPI_STATUS_IGNORE);
    request = packed(handle);
    require_success(code, "a message");
    return flag != 0;
  }

  void cancel(Request& request) override {
    if (!request.pending) return;
    MPI_Request handle = unpacked(request);
    MPI_Cancel(&handle);
    request = packed(handle);
  }

  bool ends_together() const override { return true; }

  void finish() override { MPI_Finalize(); }

  void end_all(int code) override {
    for (;;) {
      MPI_Abort(MPI_COMM_WORLD, code);
      std::this_thread::sleep_for(std::chrono::seconds(1));  // until the launcher has seen to it
    }
  }

 private:
  struct Length {
    int count;
    MPI_Datatype unit;
  };
  Length length_of(std::size_t bytes) const {
    if (bytes <= INT_MAX) return {static_cast<int>(bytes), MPI_BYTE};
    int unit = 0;
    while (unit + 1 < kUnits && bytes % (std::size_t{2} << unit) == 0) ++unit;
    const std::size_t count = bytes >> unit;
    check(count <= INT_MAX, "a message of ", bytes, " bytes, an odd multiple of ", 1 << unit);
    return {static_cast<int>(count), units_[static_cast<std::size_t>(unit)]};
  }
  MPI_Comm comm(Channel channel) const { return comms_[static_cast<std::size_t>(channel)]; }

  std::array<MPI_Comm, 2> comms_{};
  std::array<MPI_Datatype, kUnits> units_{};
  int rank_ = 0, size_ = 1;
};

}  // namespace

std::unique_ptr<Link> open_mpi_link() { return std::make_unique<MpiLink>(); }

}  // namespace tessera::process

namespace tessera {
bool has_mpi() { return true; }
}  // namespace tessera
