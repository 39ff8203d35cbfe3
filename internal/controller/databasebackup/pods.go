package databasebackup

import (
	"context"
	"crypto/tls"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/protocol"
)

// Pods asks the Pods of backups.
type Pods interface {
	// Progress asks the Pod at an address how far it is. The authority (PEM) is the SampleDB's.
	Progress(ctx context.Context, authority, host string) (protocol.BackupProgress, error)
}

// HTTPSPods are the real ones.
type HTTPSPods struct {
	// Certificate is the operator's own.
	Certificate func() (tls.Certificate, error)
}

// Progress is of Pods. A backup is asked every few seconds for as long as it takes, so there is no connection to keep.
func (p HTTPSPods) Progress(ctx context.Context, authority, host string) (protocol.BackupProgress, error) {
	roots, err := pki.Pool(authority)
	if err != nil {
		return protocol.BackupProgress{}, err
	}
	c := protocol.NewClient(pki.ClientTLS(p.Certificate, roots, naming.IdentityBackup), naming.PortAgent)
	defer c.Close()
	return c.Backup(ctx, host)
}
