// Package root is the command that all verbs hang on, and how it runs as a program. It knows no verb: those for people
// and those of Pods are added by the programs in cmd.
package root
