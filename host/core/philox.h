#pragma once

// Philox4x32-10 (Salmon et al., SC '11): random numbers as a pure function of a key and a counter,
// so that every device, thread count and restart draws the same ones. The counter is
// (index, stream): give each use its own stream, and element i of an array its own index.

#include <cstdint>

#if defined(__CUDACC__)
#define CFAA_HOST_DEVICE __host__ __device__
#else
#define CFAA_HOST_DEVICE
#endif

namespace cfaa {

struct Philox {
  uint64_t seed = 0;

  struct Block {
    uint32_t word[4];
  };

  CFAA_HOST_DEVICE Block operator()(uint64_t index, uint64_t stream) const {
    uint32_t c0 = static_cast<uint32_t>(index), c1 = static_cast<uint32_t>(index >> 32);
    uint32_t c2 = static_cast<uint32_t>(stream), c3 = static_cast<uint32_t>(stream >> 32);
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = 0xD2511F53ull * c0;
      const uint64_t p1 = 0xCD9E8D57ull * c2;
      c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
      c1 = static_cast<uint32_t>(p1);
      c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
      c3 = static_cast<uint32_t>(p0);
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
  }

  // Uniform in [0, 1) with 24 random bits.
  CFAA_HOST_DEVICE float uniform(uint64_t index, uint64_t stream) const {
    return static_cast<float>((*this)(index, stream).word[0] >> 8) * (1.0f / 16777216.0f);
  }

  // Uniform integer in [0, bound), unbiased to one part in 2^32 / bound ... 2^64 / bound.
  CFAA_HOST_DEVICE uint64_t below(uint64_t bound, uint64_t index, uint64_t stream) const {
    const Block b = (*this)(index, stream);
    const uint64_t x = (static_cast<uint64_t>(b.word[0]) << 32) | b.word[1];
#if defined(__CUDA_ARCH__)
    return __umul64hi(x, bound);
#else
    return static_cast<uint64_t>((static_cast<unsigned __int128>(x) * bound) >> 64);
#endif
  }
};

}  // namespace cfaa
