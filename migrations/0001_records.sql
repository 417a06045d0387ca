-- One row per key. `scope` stands first in the primary key so that it can be the distribution column on Citus.

CREATE TYPE oncegate.state AS ENUM ('in_progress', 'completed', 'failed_retryable', 'unknown', 'dead_letter');

-- No CACHE: cached blocks of several connections would let a later attempt of one key get a smaller epoch.
CREATE SEQUENCE oncegate.epoch;

CREATE TABLE oncegate.instance (
  id          uuid        PRIMARY KEY,
  lease_until timestamptz NOT NULL,
  started_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The settings that make a key's identity. One row; an instance that differs refuses to start.
CREATE TABLE oncegate.identity (
  only_row boolean PRIMARY KEY DEFAULT true CONSTRAINT identity_is_one_row CHECK (only_row),
  settings text    NOT NULL,
  set_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE oncegate.record (
  scope            bytea          NOT NULL,
  key              text COLLATE "C" NOT NULL,
  attempt          uuid           NOT NULL,
  epoch            bigint         NOT NULL,
  instance         uuid           NOT NULL,
  state            oncegate.state NOT NULL,
  had_credentials  boolean        NOT NULL,
  fingerprint      bytea          NOT NULL,
  raw_digest       bytea          NOT NULL,
  fingerprint_rule text           NOT NULL,
  deadline         timestamptz    NOT NULL,
  reserved_at      timestamptz    NOT NULL,
  completed_at     timestamptz,
  retain_until     timestamptz,
  status           smallint,
  close_framed     boolean        NOT NULL DEFAULT false,
  tenant           text,
  method           text           NOT NULL,
  path             text           NOT NULL,
  request_id       text           NOT NULL,
  last_error       text,
  headers          bytea,
  body             bytea,

  CONSTRAINT record_pkey PRIMARY KEY (scope, key),
  CONSTRAINT record_scope_is_a_digest CHECK (octet_length(scope) = 32),
  CONSTRAINT record_key_is_bounded CHECK (octet_length(key) BETWEEN 1 AND 255),
  CONSTRAINT record_completed_has_an_answer CHECK (
    state <> 'completed' OR (status IS NOT NULL AND headers IS NOT NULL AND completed_at IS NOT NULL)
  ),
  CONSTRAINT record_only_completed_keeps_an_answer CHECK (state = 'completed' OR (headers IS NULL AND body IS NULL)),
  -- What may still run, or may have run, never expires into running.
  CONSTRAINT record_only_settled_expires CHECK (
    (state IN ('completed', 'failed_retryable')) = (retain_until IS NOT NULL)
  )
);

-- Small: only what runs now. For the sweeper.
CREATE INDEX record_in_progress ON oncegate.record (deadline) WHERE state = 'in_progress';

-- For the reaper; unsettled records are not in it.
CREATE INDEX record_retained ON oncegate.record (retain_until) WHERE retain_until IS NOT NULL;
