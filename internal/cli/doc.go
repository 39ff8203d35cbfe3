// Package cli has the verbs of the toban binary for people: plugin.go is the list of them. A folder has verbs that
// belong together and knows no other verb; what all of them need is in await, cluster, complete and show; root is the
// command that they hang on. Beside plugin.go is what needs several verbs: the console's. Those that Pods call are in
// internal/cli/process. A verb reads what is there and writes what is wanted. What it has a database say is asked of
// the servers, with the rights of the person who calls it.
package cli
