// The communicator alone, on plain memory, without libtorch: include <tutti/job.h>.
// Start it alone, or on several ranks: tutti run -n 4 -- ./collectives
#include <tutti/error.h>
#include <tutti/job.h>

#include <cstdio>
#include <numeric>
#include <vector>

int main() try {
  tutti::Job job = tutti::Job::from_environment();
  tutti::Communicator& comm = job.communicator();

  // Every rank ends with the sum; added in the order of the ranks, so all have the same bits.
  std::vector<float> numbers(1000);
  std::iota(numbers.begin(), numbers.end(), static_cast<float>(job.rank()));
  const auto sum = comm.all_reduce_sum({numbers.data(), numbers.size(), tutti::DataType::f32});
  // … compute something else meanwhile …
  sum->wait();

  // Rank 0 tells the others.
  int64_t answer = job.rank() == 0 ? 42 : 0;
  comm.broadcast({&answer, 1, tutti::DataType::i64}, /*root=*/0)->wait();

  const int ranks = job.size();
  const bool is_right = answer == 42 && numbers[10] == static_cast<float>(10 * ranks + ranks * (ranks - 1) / 2);
  if (job.rank() == 0) std::printf("%d ranks over %s: %s\n", ranks, comm.name(), is_right ? "right" : "wrong");
  job.finish();
  return is_right ? 0 : 1;
} catch (const tutti::Error& error) {
  std::fprintf(stderr, "collectives: %s\n", error.what());
  return 1;
}
