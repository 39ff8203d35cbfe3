package pooler

import (
	"flag"
	"os"
	"strings"
	"testing"

	"toban.dev/internal/protocol"
)

var update = flag.Bool("update", false, "write testdata anew")

func TestPgBouncersConfiguration(t *testing.T) {
	settings := protocol.PoolSettings{
		Server: "shop.default.svc", Mode: protocol.PoolTransaction, Connections: 22, MaxClients: 1000,
	}
	at := paths{run: "/run/pool", certificate: "/etc/pool"}
	for file, got := range map[string]string{
		"testdata/pgbouncer.ini": configuration(settings, at, listening{everywhere, 5432}),
		"testdata/hba.conf":      access,
		"testdata/resolv.conf":   resolver("127.0.0.1:40001"),
	} {
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || got != string(want) {
			t.Errorf("%s differs (go test -update writes it anew): %v\n%s", file, err, got)
		}
		if strings.Contains(got, "%!") {
			t.Errorf("%s has a value that is not written: %s", file, got)
		}
	}
}
