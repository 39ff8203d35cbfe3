// Package restore has the verbs that bring data back: restore, of all or of tables, beside or in place; undelete, of a
// SampleDB that is gone; promote, when only one instance has data left; and verify, which proves that a backup can be
// restored.
package restore
