// Package process has the verbs of the toban binary that Pods call: those of the operator and of the agent in one file
// each, those of Jobs and other Pods in work.go, and in a file for each annex. A verb reads its flags and files, puts
// the parts together and runs them; what is done is elsewhere, for Jobs in internal/work.
package process
