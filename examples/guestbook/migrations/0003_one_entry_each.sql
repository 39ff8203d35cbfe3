-- PostgreSQL refuses this where a name is there twice, and then nothing has changed.
ALTER TABLE entry ADD CONSTRAINT one_entry_each UNIQUE (name);
