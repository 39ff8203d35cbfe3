// Package cluster is what verbs do in a cluster, with the rights of the person who calls them: it reaches the
// Kubernetes API by kubectl's own rules, finds a SampleDB and its instances, reads logs of Pods, and runs programs in
// Pods: also psql, to ask a server. It knows no verb.
package cluster
