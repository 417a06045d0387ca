# Two images from one file:
#   docker build -t oncegate .                                        with a PostgreSQL of your own
#   docker build -t oncegate-embedded --target oncegate-embedded .    brings one along, to try it out
#
#   docker run -p 8080:8080 -v ./oncegate.yaml:/etc/oncegate/config.yaml:ro -e DATABASE_URL oncegate
#   docker run -p 8080:8080 -e DATABASE_URL -e ONCEGATE_UPSTREAM_URL=http://orders:3000 oncegate
#   docker run --rm -e DATABASE_URL oncegate migrate up
#   docker run -p 8080:8080 oncegate-embedded demo --listen 0.0.0.0:8080
#
# Both run with --read-only; the embedded PostgreSQL writes to the volume /var/lib/oncegate alone.
ARG BUILD_IMAGE=node:24-bookworm-slim
ARG RUNTIME_IMAGE=node:24-bookworm-slim

# Apart from the sources, so that a change of these does not download anything again.
FROM ${BUILD_IMAGE} AS packages
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund

FROM packages AS build
COPY . .
# The modes of the checkout come along, and a umask of 077 would lock our user out.
RUN node_modules/.bin/tsc -p tsconfig.build.json --sourceMap false \
 && chmod -R a+rX dist migrations package.json LICENSE

# Without the packages' source maps and TypeScript, which nothing runs.
FROM packages AS production-embedded
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund --prefer-offline \
 && find node_modules -type f -regex '.*\.\(map\|[cm]?ts\)' -delete

FROM packages AS production
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund --prefer-offline \
 && find node_modules -type f -regex '.*\.\(map\|[cm]?ts\)' -delete

FROM ${RUNTIME_IMAGE} AS runtime
# A name for the user, because initdb asks for one. npm is only there to be found by scanners.
RUN useradd --uid 10001 --user-group --no-log-init --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin oncegate \
 && rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /usr/local/bin/yarn* /opt/yarn* \
 && ln -s /app/dist/cli/oncegate.js /usr/local/bin/oncegate \
 && mkdir /etc/oncegate
LABEL org.opencontainers.image.title="oncegate" \
      org.opencontainers.image.description="A reverse-proxy sidecar that makes retries safe: idempotency keys for any HTTP service, kept in PostgreSQL." \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
# By memory: 16 MB is each half of the room for new objects, which V8 makes 64 MB large and in a small container 1 MB, and 40 % of the
# container is what else the heap may take. For another Node.js that does not know the second flag: -e NODE_OPTIONS=.
ENV NODE_ENV=production \
    NODE_OPTIONS="--max-semi-space-size=16 --max-old-space-size-percentage=40"
WORKDIR /app
COPY --from=build /app/package.json /app/LICENSE ./
COPY --from=build /app/migrations migrations
COPY --from=build /app/dist dist
EXPOSE 8080 9090
STOPSIGNAL SIGTERM
# The same settings as serve's: the mounted file and the variables, but not the flags after `serve`.
HEALTHCHECK --interval=10s --timeout=5s --start-period=40s --retries=3 \
  CMD ["node", "/app/dist/cli/oncegate.js", "healthcheck"]
# node itself is process 1, so that SIGTERM reaches it. `serve` reads /etc/oncegate/config.yaml where it is mounted.
ENTRYPOINT ["node", "/app/dist/cli/oncegate.js"]
CMD ["serve"]

FROM runtime AS oncegate-embedded
COPY --from=production-embedded /app/node_modules node_modules
# store.dataDir is .oncegate by default, so below this directory.
RUN install -d -o 10001 -g 10001 /var/lib/oncegate
VOLUME /var/lib/oncegate
WORKDIR /var/lib/oncegate
USER 10001:10001

FROM runtime AS oncegate
COPY --from=production /app/node_modules node_modules
USER 10001:10001
