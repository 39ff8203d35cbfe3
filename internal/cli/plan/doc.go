// Package plan is `toban plan`: what applying a file would do to SampleDBs.
package plan
