// Command localkube makes a real Kubernetes cluster of several nodes on this
// machine, out of Go modules and Debian packages alone. See README.md.
package main

import (
	"os"

	"toban.dev/localkube/internal/cli"
	"toban.dev/localkube/internal/proc"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == proc.SpawnCommand {
		proc.Spawned()
	}
	os.Exit(cli.Run())
}
