#include "plan/wire_format.h"

namespace tutti {

std::vector<std::string> wire_names() { return {"fp32", "fp16", "bf16", "topk", "sign"}; }

bool is_compressed(const std::string& wire) { return wire == "topk" || wire == "sign"; }

}  // namespace tutti
