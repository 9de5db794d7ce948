# The image that the chart runs: docker build --tag punctual .
# CI has no container engine, so this file is built by hand before a release.

FROM rust:1.95-bookworm AS build
RUN apt-get update \
  && apt-get install -y --no-install-recommends clang libclang-dev libssl-dev pkg-config zlib1g-dev \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cargo build --release --locked --bin punctual

FROM debian:bookworm-slim
RUN apt-get update \
  && apt-get install -y --no-install-recommends ca-certificates libssl3 libstdc++6 zlib1g \
  && rm -rf /var/lib/apt/lists/* \
  && install --directory --owner=10001 --group=10001 /var/lib/punctual
COPY --from=build /src/target/release/punctual /usr/local/bin/punctual
USER 10001:10001
VOLUME /var/lib/punctual
# /metrics, /livez, /readyz, /startupz. In a container they must be reachable from outside.
ENV PUNCTUAL__ADMIN__LISTEN=0.0.0.0:9464
EXPOSE 9464
ENTRYPOINT ["/usr/local/bin/punctual"]
CMD ["serve"]
