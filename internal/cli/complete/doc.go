// Package complete has a shell complete the words of verbs with names from the cluster. It knows no verb, but for what
// the arguments and flags of verbs are called.
package complete
