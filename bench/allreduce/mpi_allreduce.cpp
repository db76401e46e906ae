// All-reduce of float32, in place, by MPI, measured like allreduce_bench does.
//   mpirun -n RANKS mpi_allreduce BUDGET_S BYTES...

#include <mpi.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "timing.h"

using namespace bench;

namespace {

constexpr int kBatches = 5;

double slowest(double mine) {
  double all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 3) MPI_Abort(MPI_COMM_WORLD, 2);
  const double budget_s = std::atof(argv[1]);
  for (int a = 2; a < argc; ++a) {
    const std::size_t bytes = std::strtoull(argv[a], nullptr, 10);
    std::vector<float> data(bytes / sizeof(float));
    const auto all_reduce = [&] {
      MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(data.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    };
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = input_at(rank, i);
    all_reduce();
    for (std::size_t i = 0; i < data.size(); ++i) {
      if (data[i] != sum_at(size, i)) {
        std::fprintf(stderr, "mpi_allreduce: wrong sum at element %zu\n", i);
        MPI_Abort(MPI_COMM_WORLD, 1);
      }
    }
    std::memset(data.data(), 0, bytes);
    for (int i = 0; i < 3; ++i) all_reduce();
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = now_s();
    for (int i = 0; i < 3; ++i) all_reduce();
    const int times = repetitions(slowest((now_s() - begin) / 3), budget_s / kBatches);
    std::vector<double> samples;
    for (int batch = 0; batch < kBatches; ++batch) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = now_s();
      for (int i = 0; i < times; ++i) all_reduce();
      samples.push_back(slowest((now_s() - start) / times));
    }
    if (rank == 0) print_result("openmpi", size, bytes, samples);
  }
  MPI_Finalize();
  return 0;
}
