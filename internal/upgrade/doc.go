// Package upgrade decides about versions of PostgreSQL: which runs, which there is, and whether what runs is old. All
// of it is pure, with named reasons; docs/upgrade.md has the same words. It knows no Kubernetes.
package upgrade
