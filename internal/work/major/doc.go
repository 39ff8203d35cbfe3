// Package major moves the data of an instance to another major version of PostgreSQL, beside the old data, and back. It
// knows no Kubernetes and makes no decisions about when.
package major
