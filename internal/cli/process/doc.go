// Package process has the verbs of the toban binary that Pods call: those of the operator and of the agent in one file
// each, those of Jobs and other Pods in worker.go and upgrade.go. A verb reads its flags and files, puts the parts
// together and runs them; what is done is elsewhere, for Jobs in internal/work.
package process
