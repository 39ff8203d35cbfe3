// Package bluegreen has one side of a SampleDB follow the other one by logical replication, compares all rows of both,
// and carries over in a pause what logical replication does not. docs/sides.md has the words and the invariants. It
// knows servers by their connections only, no Kubernetes, and not when which step is due.
//
// It has no memory: each function looks at what is there, and makes what is missing. So whoever calls it may be killed
// anywhere and begin again.
//
// No query of a superuser's session reads a user's table: planning one may run the code of a user. COPY of a table
// plans none.
//
// sides*.go are the steps that Pods do, one each, with what they are told and the results that they leave.
package bluegreen
