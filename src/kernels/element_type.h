#pragma once

namespace tutti {

/// What activations are made of. Kernels compute in fp32 whatever they are given.
enum class ElementType { fp32, bf16 };

}  // namespace tutti
