#include "cuda/solver.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "cuda/blas.h"
#include "cuda/check.h"
#include "cuda/graph.h"
#include "cuda/launch.h"
#include "host/core/error.h"
#include "host/core/instantiate.h"

namespace cfaa::cuda {
namespace {

constexpr int kThreads = 256;

// inverse_factor = I for each problem, and the pointer arrays that the batched calls want.
// report: start_inverse threads=256 bytes=S*D*D*T
template <class T>
__global__ void start_inverse(T* a,               // (S, n, n)
                              T* inverse_factor,  // (S, n, n)
                              int n,
                              T** a_pointers,        // (S)
                              T** inverse_pointers)  // (S)
{
  const int64_t set = blockIdx.y;
  const int64_t size = static_cast<int64_t>(n) * n;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < size) inverse_factor[set * size + i] = i % (n + 1) == 0 ? T(1) : T(0);
  if (i == 0) {
    a_pointers[set] = a + set * size;
    inverse_pointers[set] = inverse_factor + set * size;
  }
}

// The first problem whose info is not zero sets the latch, unless an earlier fault already has.
// One thread: the batch is small and the order then is the problems'.
// report: latch_info threads=1 bytes=4*S
__global__ void latch_info(const int* info,  // (S)
                           int problems, FaultCode code, FaultSite site, Fault* latch) {
  if (latch->code != static_cast<int32_t>(FaultCode::none)) return;
  for (int problem = 0; problem < problems; ++problem) {
    if (info[problem] == 0) continue;
    *latch = {static_cast<int32_t>(code), static_cast<int32_t>(site), problem, info[problem], 0};
    return;
  }
}

// After a fault the matrices may hold NaN, on which an eigensolver need not return: give it I.
// report: replace_after_fault threads=256 bytes=16
template <class T>
__global__ void replace_after_fault(const Fault* latch, int n,
                                    T* a)  // (S, n, n)
{
  if (latch->code == static_cast<int32_t>(FaultCode::none)) return;
  const int64_t size = static_cast<int64_t>(n) * n;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < size) a[blockIdx.y * size + i] = i % (n + 1) == 0 ? T(1) : T(0);
}

dim3 elementwise(int64_t n, int64_t batch) {
  return dim3(static_cast<unsigned>((n * n + kThreads - 1) / kThreads),
              static_cast<unsigned>(batch));
}

// A row-major lower triangle is the column-major upper one.
constexpr cublasFillMode_t kRowMajorLower = CUBLAS_FILL_MODE_UPPER;

cusolverStatus_t potrf_call(cusolverDnHandle_t solver, int n, float** a, int* info, int batch) {
  return cusolverDnSpotrfBatched(solver, kRowMajorLower, n, a, n, info, batch);
}

cusolverStatus_t potrf_call(cusolverDnHandle_t solver, int n, double** a, int* info, int batch) {
  return cusolverDnDpotrfBatched(solver, kRowMajorLower, n, a, n, info, batch);
}

// potrf and potri of one matrix, with the workspace that either wants.
int potrf_work(cusolverDnHandle_t solver, int n, float* a) {
  int elements = 0;
  CFAA_CUDA_CHECK(cusolverDnSpotrf_bufferSize(solver, kRowMajorLower, n, a, n, &elements));
  return elements;
}
int potrf_work(cusolverDnHandle_t solver, int n, double* a) {
  int elements = 0;
  CFAA_CUDA_CHECK(cusolverDnDpotrf_bufferSize(solver, kRowMajorLower, n, a, n, &elements));
  return elements;
}
int potri_work(cusolverDnHandle_t solver, int n, float* a) {
  int elements = 0;
  CFAA_CUDA_CHECK(cusolverDnSpotri_bufferSize(solver, kRowMajorLower, n, a, n, &elements));
  return elements;
}
int potri_work(cusolverDnHandle_t solver, int n, double* a) {
  int elements = 0;
  CFAA_CUDA_CHECK(cusolverDnDpotri_bufferSize(solver, kRowMajorLower, n, a, n, &elements));
  return elements;
}
void potrf(cusolverDnHandle_t solver, int n, float* a, float* work, int elements, int* info) {
  CFAA_CUDA_CHECK(cusolverDnSpotrf(solver, kRowMajorLower, n, a, n, work, elements, info));
}
void potrf(cusolverDnHandle_t solver, int n, double* a, double* work, int elements, int* info) {
  CFAA_CUDA_CHECK(cusolverDnDpotrf(solver, kRowMajorLower, n, a, n, work, elements, info));
}
void potri(cusolverDnHandle_t solver, int n, float* a, float* work, int elements, int* info) {
  CFAA_CUDA_CHECK(cusolverDnSpotri(solver, kRowMajorLower, n, a, n, work, elements, info));
}
void potri(cusolverDnHandle_t solver, int n, double* a, double* work, int elements, int* info) {
  CFAA_CUDA_CHECK(cusolverDnDpotri(solver, kRowMajorLower, n, a, n, work, elements, info));
}

template <class T>
constexpr cudaDataType kDataType = sizeof(T) == sizeof(double) ? CUDA_R_64F : CUDA_R_32F;

class SolverParams {
 public:
  SolverParams() { CFAA_CUDA_CHECK(cusolverDnCreateParams(&params_)); }
  ~SolverParams() { cusolverDnDestroyParams(params_); }
  SolverParams(const SolverParams&) = delete;
  SolverParams& operator=(const SolverParams&) = delete;
  operator cusolverDnParams_t() const { return params_; }

 private:
  cusolverDnParams_t params_ = nullptr;
};

}  // namespace

void latch_reports(Context& context, const int* reports, int64_t batch, FaultCode code,
                   FaultSite site) {
  launch(device_of(context).stream(), latch_info, dim3(1), dim3(1), 0, reports,
         static_cast<int>(batch), code, site, context.fault_latch());
}

template <class T>
void inverse_cholesky_factor(Context& context, View<T, 3> a, View<T, 3> inverse_factor,
                             FaultSite site) {
  CFAA_ASSERT(a.shape == inverse_factor.shape && a.shape[1] == a.shape[2]);
  CFAA_ASSERT(a.contiguous() && inverse_factor.contiguous());
  Device& device = device_of(context);
  const int batch = static_cast<int>(a.shape[0]), n = static_cast<int>(a.shape[1]);
  const Arena::Scope scope(context.scratch());
  T** a_pointers = context.scratch().template take<T*, 1>({batch}).data;
  T** inverse_pointers = context.scratch().template take<T*, 1>({batch}).data;
  int* info = context.scratch().template take<int, 1>({batch}).data;

  launch(device.stream(), start_inverse<T>, elementwise(n, batch), dim3(kThreads), 0, a.data,
         inverse_factor.data, n, a_pointers, inverse_pointers);
  library_call(device, "cuSOLVER's potrfBatched", Capturing::never, [=, &device] {
    CFAA_CUDA_CHECK(potrf_call(device.solver(), n, a_pointers, info, batch));
  });
  latch_reports(context, info, batch, FaultCode::not_positive_definite, site);
  solve_lower_batched<T>(device, n, n, a_pointers, n, inverse_pointers, n, batch);
}

template <class T>
int inverse_of_lower_triangle(Context& context, MatrixView<T> a) {
  CFAA_ASSERT(a.rows() == a.cols() && a.contiguous() && a.rows() <= INT32_MAX);
  Device& device = device_of(context);
  const int n = static_cast<int>(a.rows());
  const int elements =
      std::max(potrf_work(device.solver(), n, a.data), potri_work(device.solver(), n, a.data));
  const Arena::Scope scope(context.scratch());
  T* work = context.scratch().template take<T, 1>({elements}).data;
  int* info = context.scratch().template take<int, 1>({1}).data;
  const auto reported = [&] {
    int answer = 0;
    device.copy_to_host(&answer, info, sizeof(int));
    device.synchronize();
    return answer;
  };
  potrf(device.solver(), n, a.data, work, elements, info);
  if (const int minor = reported()) return minor;
  potri(device.solver(), n, a.data, work, elements, info);
  return reported();
}

template <class T>
void eigen_symmetric(Context& context, View<T, 3> a, MatrixView<T> values, Eigenvectors wanted,
                     FaultSite site) {
  const int64_t batch = a.shape[0], n = a.shape[1];
  CFAA_ASSERT(a.shape[2] == n && values.shape[0] == batch && values.shape[1] == n);
  CFAA_ASSERT(a.contiguous() && values.contiguous());
  Device& device = device_of(context);
  const cusolverEigMode_t mode =
      wanted == Eigenvectors::yes ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
  const auto params = std::make_shared<const SolverParams>();
  const WorkspaceBytes bytes = device.workspace_of({n, batch, sizeof(T), mode}, [&] {
    WorkspaceBytes answer;
    CFAA_CUDA_CHECK(cusolverDnXsyevBatched_bufferSize(
        device.solver(), *params, mode, kRowMajorLower, n, kDataType<T>, a.data, n, kDataType<T>,
        values.data, kDataType<T>, &answer.device, &answer.host, batch));
    return answer;
  });

  const Arena::Scope scope(context.scratch());
  void* workspace = context.scratch().take_bytes(bytes.device);
  int* info = context.scratch().template take<int, 1>({batch}).data;
  const auto host_workspace = std::make_shared<std::vector<char>>(bytes.host);
  launch(device.stream(), replace_after_fault<T>, elementwise(n, batch), dim3(kThreads), 0,
         context.fault_latch(), static_cast<int>(n), a.data);
  // Every replay makes the call again: it owns what lies on the host.
  library_call(device, "cuSOLVER's XsyevBatched", Capturing::never, [=, &device] {
    CFAA_CUDA_CHECK(cusolverDnXsyevBatched(device.solver(), *params, mode, kRowMajorLower, n,
                                           kDataType<T>, a.data, n, kDataType<T>, values.data,
                                           kDataType<T>, workspace, bytes.device,
                                           host_workspace->data(), bytes.host, info, batch));
  });
  latch_reports(context, info, batch, FaultCode::eigensolver_failed, site);
}

CFAA_FOR_FLOAT_AND_DOUBLE(inverse_cholesky_factor);
CFAA_FOR_FLOAT_AND_DOUBLE(inverse_of_lower_triangle);
CFAA_FOR_FLOAT_AND_DOUBLE(eigen_symmetric);

}  // namespace cfaa::cuda
