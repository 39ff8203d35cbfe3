// Package upgrade is `toban upgrade`: to another major version in place or by a second side, its rehearsal on a copy,
// and the way back.
package upgrade
