// Package cli has the verbs of the toban binary: those for people, the operator's and the agent's in one file each, and
// those that Pods call in worker.go. A verb reads its flags and files, puts the parts together and runs them; what is
// done is elsewhere, for Pods in internal/worker.
package cli
