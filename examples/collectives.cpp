// Ranks that talk to each other without a network to train: Tutti's communicator on plain memory, without libtorch.
// Start it alone, or on several ranks: tutti run -n 3 -- ./collectives
#include <tutti/job.h>

#include <cstdio>
#include <numeric>
#include <vector>

int main() try {
  tutti::Job job = tutti::Job::from_environment();
  tutti::Communicator& comm = job.communicator();

  // Everybody's numbers added up, in rank order: the same bits on every rank, whatever the timing.
  std::vector<float> numbers(1000);
  std::iota(numbers.begin(), numbers.end(), static_cast<float>(job.rank()));
  auto sum = comm.all_reduce_sum({numbers.data(), numbers.size()});
  // … other work goes here; `numbers` belongs to the communicator until …
  sum->wait();

  // One number of each rank, collected by all.
  std::vector<int64_t> squares(static_cast<std::size_t>(job.size()));
  squares[static_cast<std::size_t>(job.rank())] = job.rank() * job.rank();
  comm.all_gather({squares.data(), squares.size(), tutti::DataType::i64}, std::vector<std::size_t>(squares.size(), 1))
      ->wait();

  // Along a ring: to the next, from the one before.
  int64_t token = job.rank(), got = 0;
  const int next = (job.rank() + 1) % job.size(), before = (job.rank() + job.size() - 1) % job.size();
  if (job.size() > 1) {
    auto sent = comm.send({&token, 1, tutti::DataType::i64}, next, /*tag=*/7);
    comm.receive({&got, 1, tutti::DataType::i64}, before, 7)->wait();
    sent->wait();
  }
  std::printf("rank %d of %d: sum %.0f to %.0f, last square %lld, token of rank %lld\n", job.rank(), job.size(),
              numbers.front(), numbers.back(), static_cast<long long>(squares.back()), static_cast<long long>(got));
  job.finish();
  return 0;
} catch (const tutti::Error& error) {
  std::fprintf(stderr, "collectives: %s\n", error.what());
  return 1;
}
