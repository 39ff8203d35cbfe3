// Package bluegreen decides about upgrades by a second side: which step is done, what keeps a second side from
// following. All of it is pure, with named reasons; docs/sides.md and docs/bluegreen.md have the same words. It knows
// no Kubernetes.
package bluegreen
