-- What operators need: which outcomes are unknown, what was done about them, and which answers came too late.

-- Whether this attempt tells before it sends. NULL: it does not, so it may have sent. false: not yet. true: it may have sent.
ALTER TABLE oncegate.record ADD COLUMN dispatched boolean;

-- Else a replica that knows no marks could take such a record over and send it, and it would still look unsent.
ALTER TABLE oncegate.record ADD CONSTRAINT record_only_running_is_unsent CHECK (
  state = 'in_progress' OR dispatched IS NOT FALSE
) NOT VALID; -- Earlier rows have no mark at all: to look through them would only hold up traffic.

-- After a purge the key may not run again while another replica could still replay the old answer.
ALTER TABLE oncegate.record ADD COLUMN blocked_until timestamptz;

-- Small: only what waits for somebody. With the state, so that each is counted without reading the table.
CREATE INDEX record_unknown ON oncegate.record (reserved_at) INCLUDE (state) WHERE state IN ('unknown', 'dead_letter');

-- One row per change made by a person, in the same transaction as the change.
CREATE TABLE oncegate.audit (
  scope      bytea          NOT NULL,
  key        text COLLATE "C" NOT NULL,
  id         uuid           NOT NULL,
  at         timestamptz    NOT NULL DEFAULT clock_timestamp(),
  actor      text           NOT NULL,
  action     text           NOT NULL,
  reason     text           NOT NULL,
  attempt    uuid           NOT NULL,
  epoch      bigint         NOT NULL,
  from_state oncegate.state NOT NULL,
  to_state   oncegate.state NOT NULL,

  CONSTRAINT audit_pkey PRIMARY KEY (scope, key, id),
  CONSTRAINT audit_action_is_known CHECK (action IN ('complete', 'release', 'purge')),
  CONSTRAINT audit_has_a_reason CHECK (reason <> '')
);

-- Answers of attempts that no longer had their key: the request may have run twice, and somebody must look.
CREATE TABLE oncegate.late_answer (
  scope       bytea       NOT NULL,
  key         text COLLATE "C" NOT NULL,
  attempt     uuid        NOT NULL,
  request_id  text        NOT NULL,
  outcome     text        NOT NULL,
  status      smallint,
  headers     bytea,
  body        bytea,
  received_at timestamptz NOT NULL DEFAULT clock_timestamp(),

  CONSTRAINT late_answer_pkey PRIMARY KEY (scope, key, attempt)
);

CREATE INDEX late_answer_received ON oncegate.late_answer (received_at);
