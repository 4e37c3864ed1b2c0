# Two stages build the page's scripts and the program; the image has nothing else than the
# program, the certificate authorities, and empty directories.
FROM --platform=$BUILDPLATFORM node:22-alpine AS page
WORKDIR /page
COPY internal/web/package.json internal/web/package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && npm run --silent vendor

FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
COPY --from=page /page/static/vendor/ internal/web/static/vendor/
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=0.0.0-dev
ARG COMMIT=""
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false \
    -ldflags "-s -w -buildid= -X assay/internal/cli.stampedVersion=$VERSION -X assay/internal/cli.stampedCommit=$COMMIT" \
    -o /usr/bin/assay ./cmd/assay \
    && mkdir -p -m 0700 /own/data /own/tmp

FROM scratch
LABEL org.opencontainers.image.title="Assay" \
      org.opencontainers.image.description="Keeps the prices of game items up to date" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /usr/bin/assay /usr/bin/assay
# The parent is copied, because builders disagree about the mode of a directory that is itself the
# source of a copy.
COPY --from=build --chown=65532:65532 /own/ /
ENV PATH=/usr/bin HOME=/data DATA_DIR=/data LISTEN_ADDR=0.0.0.0:8080 LOG_FORMAT=json
USER 65532:65532
WORKDIR /data
VOLUME /data
EXPOSE 8080
# The image has no shell: the program checks itself.
HEALTHCHECK --interval=10s --timeout=5s --start-period=40s --retries=3 CMD ["/usr/bin/assay", "healthcheck"]
ENTRYPOINT ["/usr/bin/assay"]
CMD ["serve"]
