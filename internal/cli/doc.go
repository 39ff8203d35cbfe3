// Package cli has the verbs of the toban binary for people, one file each; those that Pods call are in
// internal/cli/process. A verb reads what is there and writes what is wanted. What it has a database say is asked of
// the servers, with the rights of the person who calls it.
package cli
