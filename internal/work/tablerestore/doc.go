// Package tablerestore brings tables, schemas and databases over from a restored server into the one that runs: beside
// what is there, or in its place. What it promises is in docs/databaserestore.md. It knows no Kubernetes and not who
// asks.
//
// A table takes these steps: it is moved to a schema of its own in the copy (move), dumped (dump), loaded into a schema
// of its own on the primary as its owner (stage, load), compared (compare), and given its name and its schema in one
// transaction (arrive). If it is to replace the present one, its rows are exchanged in one more (exchange). A
// superuser's session must never plan a query on a user's table: the planner computes what is constant in an index or a
// CHECK, and that may be a user's function.
package tablerestore
