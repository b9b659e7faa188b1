#include "distributed/mpi_communicator.h"

// The C++ bindings were removed from MPI.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <array>
#include <cstdlib>
#include <exception>
#include <limits>
#include <string>
#include <string_view>

#include "core/text/error.h"

namespace miniqat::distributed {
namespace {

void require(int status, std::string_view what) {
  if (status == MPI_SUCCESS) return;
  std::string text(MPI_MAX_ERROR_STRING, ' ');
  int length = 0;
  MPI_Error_string(status, text.data(), &length);
  fail("MPI: ", what, " failed: ", text.substr(0, length));
}

int count_of(std::size_t bytes) {
  if (bytes > std::numeric_limits<int>::max()) fail("MPI: a message of ", bytes, " bytes is too large");
  return static_cast<int>(bytes);
}

/// One or two requests: a collective, or a send and a receive.
class MpiTransfer : public Transfer {
 public:
  /// After an error the others may never send theirs, and this process is about to end.
  ~MpiTransfer() override {
    if (std::uncaught_exceptions() == 0) MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
  }
  bool done() override {
    int flag = 0;
    require(MPI_Testall(2, requests.data(), &flag, MPI_STATUSES_IGNORE), "a transfer");
    return flag != 0;
  }

  std::array<MPI_Request, 2> requests = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

class MpiCommunicator : public Communicator {
 public:
  explicit MpiCommunicator(MPI_Comm channel) : channel_(channel) {
    require(MPI_Comm_set_errhandler(channel_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    MPI_Comm_rank(channel_, &rank_);
    MPI_Comm_size(channel_, &size_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::unique_ptr<Communicator> channel() override {
    MPI_Comm copy = MPI_COMM_NULL;
    require(MPI_Comm_dup(channel_, &copy), "MPI_Comm_dup");
    return std::make_unique<MpiCommunicator>(copy);
  }

  std::unique_ptr<Transfer> all_to_all(std::span<const std::byte> out, std::span<std::byte> in) override {
    auto transfer = std::make_unique<MpiTransfer>();
    const int block = count_of(out.size() / size_);
    require(MPI_Ialltoall(out.data(), block, MPI_BYTE, in.data(), block, MPI_BYTE, channel_, &transfer->requests[0]),
            "MPI_Ialltoall");
    return transfer;
  }

  std::unique_ptr<Transfer> all_gather(std::span<const std::byte> out, std::span<std::byte> in) override {
    auto transfer = std::make_unique<MpiTransfer>();
    const int block = count_of(out.size());
    require(MPI_Iallgather(out.data(), block, MPI_BYTE, in.data(), block, MPI_BYTE, channel_, &transfer->requests[0]),
            "MPI_Iallgather");
    return transfer;
  }

  std::unique_ptr<Transfer> swap(int partner, std::span<const std::byte> out, std::span<std::byte> in) override {
    auto transfer = std::make_unique<MpiTransfer>();
    require(MPI_Irecv(in.data(), count_of(in.size()), MPI_BYTE, partner, 0, channel_, &transfer->requests[0]),
            "MPI_Irecv");
    require(MPI_Isend(out.data(), count_of(out.size()), MPI_BYTE, partner, 0, channel_, &transfer->requests[1]),
            "MPI_Isend");
    return transfer;
  }

  std::unique_ptr<Transfer> broadcast(std::span<std::byte> data, int root) override {
    auto transfer = std::make_unique<MpiTransfer>();
    require(MPI_Ibcast(data.data(), count_of(data.size()), MPI_BYTE, root, channel_, &transfer->requests[0]),
            "MPI_Ibcast");
    return transfer;
  }

  std::unique_ptr<Transfer> barrier() override {
    auto transfer = std::make_unique<MpiTransfer>();
    require(MPI_Ibarrier(channel_, &transfer->requests[0]), "MPI_Ibarrier");
    return transfer;
  }

  void abort(int status) override {
    MPI_Abort(MPI_COMM_WORLD, status);
    std::_Exit(status);
  }

  void close() override { require(MPI_Finalize(), "MPI_Finalize"); }

 private:
  /// MPI frees it with everything else.
  MPI_Comm channel_;
  int rank_ = 0;
  int size_ = 1;
};

std::unique_ptr<Communicator> open_world() {
  int provided = 0;
  require(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
  // SimGrid has threads for ranks, runs one of them at a time, and says that it knows no threads.
#ifndef MINIQAT_SIMULATED
  if (provided < MPI_THREAD_SERIALIZED) fail("this MPI does not allow calls from several threads");
#endif
  return std::make_unique<MpiCommunicator>(MPI_COMM_WORLD);
}

}  // namespace
}  // namespace miniqat::distributed

const int miniqat_mpi_version = miniqat::distributed::kMpiModuleVersion;

miniqat::distributed::Communicator* miniqat_mpi_open() { return miniqat::distributed::open_world().release(); }
