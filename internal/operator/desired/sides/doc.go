// Package sides has the objects of upgrades by a second side: that side, and the Pods that do the work of both. It is
// pure, as package desired is, which has the parts of their Pods.
package sides
