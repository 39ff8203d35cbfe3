package process

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"toban.dev/internal/front/pooler"
	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/protocol"
)

// Pooler is `toban pooler`: the process with id 1 in a pooler's Pod.
func Pooler() *cobra.Command {
	var o pooler.Options
	c := &cobra.Command{
		Use:    "pooler",
		Short:  "Run PgBouncer, open to the instance that leads (in the Pod of a pooler, as process 1)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o.Log = slog.New(slog.NewJSONHandler(os.Stdout, nil))
			o.Asker = func(authorities func() string) pooler.Asker { return asker(o.Certificate, authorities) }
			p, err := pooler.New(o)
			if err != nil {
				return err
			}
			return p.Run(c.Context())
		},
	}
	f := c.Flags()
	f.StringVar(&o.Name, "name", os.Getenv("POD_NAME"), "name of the pooler")
	f.StringVar(&o.Settings, "settings", filepath.Join(naming.PathPool, naming.KeyPool), "file with the settings")
	f.StringVar(&o.Certificate, "certificate", naming.PathPoolKey, "folder with the pooler's certificate and key")
	f.StringVar(&o.Run, "run", naming.PathRun, "folder in memory for PgBouncer's files")
	f.StringVar(&o.Program, "pgbouncer", "pgbouncer", "PgBouncer's program")
	f.StringVar(&o.Listen, "listen", "*", "address to listen on (* is all)")
	f.Uint16Var(&o.Port, "port", naming.PortPostgreSQL, "port for clients")
	return c
}

// asker asks the instances with the pooler's certificate. Files that the kubelet changes count for new connections.
func asker(folder string, authorities func() string) *protocol.Client {
	certificate := func() (tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(
			filepath.Join(folder, naming.KeyTLSCertificate), filepath.Join(folder, naming.KeyTLSKey))
		if err != nil {
			return pair, fmt.Errorf("read the pooler's certificate: %w", err)
		}
		return pair, nil
	}
	roots := func() (*x509.CertPool, error) { return pki.Pool(authorities()) }
	return protocol.NewClient(pki.ClientTLSBy(certificate, roots, naming.IdentityInstance), naming.PortAgent)
}
