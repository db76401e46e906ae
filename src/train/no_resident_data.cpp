#include "train/resident_data.h"
#include "tutti/error.h"

namespace tutti {

std::unique_ptr<ResidentData> make_resident_data(const PackedSamples&, const BatchPlace&) {
  throw Error("this build of Tutti has no CUDA, and only a GPU keeps data sets in its memory");
}

}  // namespace tutti
