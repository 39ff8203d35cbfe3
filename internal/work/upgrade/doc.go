// Package upgrade has what the Pods of an upgrade to another major version do: they collect the former version's
// programs, look whether the database can be upgraded, upgrade the data of each instance or give the old data back, and
// rehearse all that on a restored copy. How data is moved is in package major. It asks no Kubernetes API.
package upgrade
