-- With a default, so that version 1, which does not know of it, can go on while version 2 starts, and after going back.
ALTER TABLE entry ADD COLUMN place text NOT NULL DEFAULT '';
