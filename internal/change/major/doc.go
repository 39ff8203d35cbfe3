// Package major decides about upgrades to another major version of PostgreSQL in place, and about their rehearsals:
// which step is done, what is in the way, whether there is room, what leads back. All of it is pure, with named
// reasons; docs/upgradesteps.md has the same words. It knows no Kubernetes.
package major
