// Package upgrade decides about versions of PostgreSQL: which runs, which there is, whether what runs is old, and
// whether an update begins. All of it is pure, with named reasons; docs/upgrade.md and docs/upgradesteps.md have the
// same words. It knows no Kubernetes.
package upgrade
