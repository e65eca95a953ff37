// The GPU as a device: memory, pinned copies, events, handles, and the fault latch set by a kernel.

#if CFAA_HAS_CUDA

#include "cuda/device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "cuda/stream.h"
#include "host/core/error.h"
#include "host/core/tensor.h"
#include "host/device/make_context.h"
#include "host/device/upload.h"
#include "host/ops/coupling.h"
#include "host/ops/typical_samples.h"
#include "tests/on_cuda.h"

namespace cfaa::test {
namespace {

using Device = OnCuda;

std::string refusal_of(const std::string& name) {
  try {
    make_context(name);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_F(Device, AGpuThatIsNotThereIsNamed) {
  EXPECT_NE(refusal_of("cuda:99").find("--device cuda:99: "), std::string::npos);
  EXPECT_NE(refusal_of("cuda:99").find("cuda:0"), std::string::npos) << refusal_of("cuda:99");
  for (const char* name : {"cuda:", "cuda:x", "cuda:-1", "cuda1", "gpu"}) {
    EXPECT_NE(refusal_of(name).find("there is no such device"), std::string::npos) << name;
  }
}

#if CFAA_EMULATED
TEST_F(Device, ASecondGpuIsChosenByItsNumber) {
  const auto second = make_context("cuda:1");
  const Tensor<float, 1> there(*second, {4});
  cudaPointerAttributes attributes{};

  CFAA_CUDA_CHECK(cudaPointerGetAttributes(&attributes, there.view().data));

  EXPECT_EQ(attributes.device, 1);
  CFAA_CUDA_CHECK(cudaSetDevice(0));
}
#endif

TEST_F(Device, BytesComeBackAsTheyWent) {
  std::vector<float> values(1000);
  std::iota(values.begin(), values.end(), 1.0f);

  const Tensor<float, 1> first(context(), {1000}, values.data());
  Tensor<float, 1> second(context(), {1000});
  device().copy(second.view().data, first.view().data, first.bytes());

  EXPECT_EQ(second.to_host(), values);

  second.fill_zero();

  EXPECT_EQ(second.to_host(), std::vector<float>(1000, 0.0f));
}

TEST_F(Device, EmptyCopiesAreAllowed) {
  device().copy_from_host(nullptr, nullptr, 0);
  device().copy_to_host(nullptr, nullptr, 0);
  device().copy(nullptr, nullptr, 0);
  device().fill_zero(nullptr, 0);
  EXPECT_NO_THROW(device().synchronize());
}

TEST_F(Device, MemoryIsAlignedTo256Bytes) {
  void* const one = device().allocate(1);
  void* const other = device().allocate(3);

  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(one) % 256, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(other) % 256, 0u);

  device().release(one);
  device().release(other);
}

TEST_F(Device, MoreThanThereIsIsRefusedWithTheSize) {
  try {
    device().allocate(std::size_t{1} << 60);
    FAIL() << "an exbibyte was found";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("1152921504606.8 MB"), std::string::npos)
        << error.what();
  }
  EXPECT_NO_THROW(device().synchronize()) << "the refusal must not poison later calls";
}

TEST_F(Device, PinnedCopiesOverlapAndMeetAtAnEvent) {
  cuda::Pinned<float> sent(512), received(512);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<float>(i);
  const Tensor<float, 1> buffer(context(), {512});
  cuda::Stream copies;
  cuda::Event arrived;

  CFAA_CUDA_CHECK(cudaMemcpyAsync(buffer.view().data, sent.data(), sent.bytes(),
                                  cudaMemcpyHostToDevice, copies));
  arrived.record(copies);
  arrived.hold(device().stream());
  device().copy_to_host(received.data(), buffer.view().data, received.bytes());
  device().synchronize();

  EXPECT_TRUE(std::equal(sent.begin(), sent.end(), received.begin()));
}

TEST_F(Device, EventsMeasureTimeThatPasses) {
  cuda::Event start, end;
  Tensor<float, 1> buffer(context(), {1 << 20});

  start.record(device().stream());
  buffer.fill_zero();
  end.record(device().stream());
  end.synchronize();

  EXPECT_GE(end.milliseconds_since(start), 0.0);
}

TEST_F(Device, HandlesAreMadeOnceAndWorkOnTheDevicesStream) {
  const cublasHandle_t blas = device().blas();
  const cusolverDnHandle_t solver = device().solver();
  cudaStream_t of_blas = nullptr, of_solver = nullptr;
  cublasMath_t mode = CUBLAS_TF32_TENSOR_OP_MATH;
  CFAA_CUDA_CHECK(cublasGetStream(blas, &of_blas));
  CFAA_CUDA_CHECK(cusolverDnGetStream(solver, &of_solver));
  CFAA_CUDA_CHECK(cublasGetMathMode(blas, &mode));

  EXPECT_EQ(device().blas(), blas);
  EXPECT_EQ(device().solver(), solver);
  EXPECT_EQ(of_blas, device().stream());
  EXPECT_EQ(of_solver, device().stream());
  EXPECT_EQ(mode, CUBLAS_DEFAULT_MATH);
}

TEST_F(Device, ANonFiniteColumnSetsTheLatchWithItsAttribute) {
  std::vector<float> z = normal<float>(16 * 5, 3);
  z[7 * 5 + 2] = std::numeric_limits<float>::infinity();
  const Tensor<float, 2> source(context(), {16, 5}, z.data());
  const Tensor<float, 2> target(context(), {16, 5}, normal<float>(16 * 5, 4).data());
  const EmbeddingPair<float> pair{source.view(), target.view()};
  const Arena::Scope scope(context().scratch());

  typical_samples<float>(context(), {&pair, 1}, {});

  try {
    context().check_faults();
    FAIL() << "infinity went unnoticed";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("attribute 2"), std::string::npos) << error.what();
  }
  EXPECT_NO_THROW(context().check_faults()) << "the latch opens again";
}

TEST_F(Device, AnUploadIsFoundByTheWorkBehindItsDeliveryAndByNoneBefore) {
  Upload upload(context(), 4 * sizeof(float));
  cuda::Pinned<float> first(4), second(4);
  std::fill(first.begin(), first.end(), 1.0f);
  std::fill(second.begin(), second.end(), 2.0f);
  Tensor<float, 1> batch(context(), {4}), seen(context(), {4});
  batch.fill_zero();

  upload.begin();
  upload.copy(4, first.data() + 1, 2 * sizeof(float));
  upload.deliver(batch.view().data);
  device().copy(seen.view().data, batch.view().data, seen.bytes());
  upload.begin();
  upload.copy(0, second.data(), 4 * sizeof(float));
  upload.deliver(batch.view().data);

  EXPECT_EQ(batch.to_host(), std::vector<float>(4, 2.0f));
  EXPECT_EQ(seen.to_host(), (std::vector<float>{0, 1, 1, 0}));
}

TEST_F(Device, TheFirstFaultStays) {
  std::vector<float> samples = normal<float>(3 * 8, 5);
  samples[1 * 8 + 4] = std::numeric_limits<float>::quiet_NaN();
  const Tensor<float, 2> bad(context(), {3, 8}, samples.data());
  samples[1 * 8 + 4] = 0;
  samples[2 * 8 + 4] = std::numeric_limits<float>::quiet_NaN();
  const Tensor<float, 2> later(context(), {3, 8}, samples.data());
  const Tensor<float, 2> good(context(), {3, 8}, normal<float>(3 * 8, 6).data());
  const Arena::Scope scope(context().scratch());

  coupling<float>(context(), bad.view(), good.view(), {});
  coupling<float>(context(), later.view(), good.view(), {});

  try {
    context().check_faults();
    FAIL() << "NaN went unnoticed";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("problem 1"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace cfaa::test

#endif
