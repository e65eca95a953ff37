# cfaa_gpu for NVIDIA GPUs, with TensorRT for the encoder.
#
#   docker build -f tools/container/cuda.Dockerfile -t cfaa_gpu:cuda \
#     --build-arg BASE=nvcr.io/nvidia/tensorrt:TAG@sha256:DIGEST .
#   docker run --rm --gpus all -v "$PWD/data:/data" cfaa_gpu:cuda train /data --out /data/run
#
# BASE is yours to pin, by digest: NVIDIA's TensorRT image (it holds CUDA, cuBLAS and cuSOLVER too),
# or nvidia/cuda:13.0.x-devel-ubuntu24.04, without which `embed` has no GPU. ARCHITECTURES=native
# needs a GPU while the image is built; the default is every generation.
ARG BASE
FROM ${BASE}
ARG ARCHITECTURES=""
WORKDIR /cfaa_gpu
COPY . .
RUN tools/setup && tools/setup cuda && \
    cmake --preset cuda ${ARCHITECTURES:+-DCMAKE_CUDA_ARCHITECTURES=${ARCHITECTURES}} \
          -DCFAA_TESTS=OFF -DTensorRT_ROOT=/usr && \
    cmake --build --preset cuda -j "$(nproc)" && \
    cmake --install build/cuda && rm -rf build/cuda
ENTRYPOINT ["cfaa_gpu"]
