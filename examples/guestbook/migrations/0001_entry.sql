-- The id is chosen before the row is sent, so that sending it again changes nothing.
CREATE TABLE entry (
  id         text PRIMARY KEY,
  name       text NOT NULL,
  message    text NOT NULL,
  written_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON entry (written_at DESC, id);
