# cfaa_gpu for machines without a GPU, with OpenVINO for the encoder.
#
#   docker build -f tools/container/cpu.Dockerfile -t cfaa_gpu:cpu \
#     --build-arg BASE=debian:12@sha256:DIGEST .
#   docker run --rm -v "$PWD/data:/data" cfaa_gpu:cpu train /data --out /data/run
#
# BASE is yours to pin, by digest: Debian 12 or later, whose packages tools/setup knows.
ARG BASE
FROM ${BASE}
WORKDIR /cfaa_gpu
COPY . .
RUN tools/setup && cmake --preset cpu -DCFAA_TESTS=OFF && \
    cmake --build --preset cpu -j "$(nproc)" && \
    cmake --install build/cpu && rm -rf build/cpu
ENTRYPOINT ["cfaa_gpu"]
