// Package upgrades has the objects of upgrades to another major version in place, and of their rehearsals: pure, as
// package desired is, which has the parts of their Pods.
package upgrades
