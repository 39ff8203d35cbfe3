package work

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"toban.dev/internal/agent/serve"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/naming"
	"toban.dev/internal/work/pod"
)

// archiveDrain is how long requests may take to end when the server is stopped.
const archiveDrain = 20 * time.Second

// ArchiveOptions are what the server of a volume is told.
type ArchiveOptions struct {
	// Folder is that with the objects, Authority that with the SampleDB's authority.
	Folder, Authority string
	// Path is the SampleDB's first archive among the objects. Nothing may be written but to that, and to those of other
	// major versions, which are beside it.
	Path string
	// Listen is where to serve objects over HTTPS, Probe where to answer the kubelet over HTTP.
	Listen, Probe string
}

// ServeArchive serves the objects in a folder to a SampleDB's instances and backups, in the Deployment NAME-archive.
func ServeArchive(ctx context.Context, o ArchiveOptions) error {
	if strings.Trim(o.Path, "/") == "" {
		return errors.New("--path must be given")
	}
	own, err := pod.NewIssuer(o.Authority, naming.IdentityArchive)
	if err != nil {
		return err
	}
	config := bucket.ServerTLS(own.Certificate, own.Roots)
	may := func(client *x509.Certificate, prefix string, write bool) bool {
		return own.Trusts(client) && o.may(client, prefix, write)
	}
	server := bucket.NewServer(bucket.OpenFolder(o.Folder), may, config)
	probes := serve.PlainServer(probeHandler(o.Folder))
	objects, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("listen for objects: %w", err)
	}
	health, err := net.Listen("tcp", o.Probe)
	if err != nil {
		return fmt.Errorf("listen for probes: %w", err)
	}
	slog.New(slog.NewJSONHandler(os.Stdout, nil)).Info("serving", "folder", o.Folder, "path", o.Path,
		"address", objects.Addr().String())
	ended := make(chan error, 2)
	go func() { ended <- server.ServeTLS(objects, "", "") }()
	go func() { ended <- probes.Serve(health) }()
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	drained, cancel := context.WithTimeout(context.WithoutCancel(ctx), archiveDrain)
	defer cancel()
	// What was not written to its end is written again by its client.
	_ = server.Shutdown(drained)
	_ = probes.Close()
	return err
}

// may lets instances, backups and restores read all that is there, which may be what a former SampleDB of the name
// has left to restore from; and instances and backups write to their own archive, that of any major version, and
// nowhere else (docs/archive.md, invariants 2 and 8).
func (o ArchiveOptions) may(client *x509.Certificate, prefix string, write bool) bool {
	switch client.Subject.CommonName {
	case naming.IdentityInstance, naming.IdentityBackup:
		return !write || o.own(prefix)
	case naming.IdentityRestore:
		return !write
	}
	return false
}

// own says that a folder, or what it begins with, is in an archive of the SampleDB.
func (o ArchiveOptions) own(prefix string) bool {
	path := strings.Trim(o.Path, "/")
	if strings.HasPrefix(prefix, path+"/") {
		return true
	}
	// namespace/name-uid, whose names have no slash
	if parts := strings.SplitN(prefix, "/", 3); len(parts) == 3 {
		first, major := naming.FirstArchivePath(parts[0] + "/" + parts[1])
		return major > 0 && first == path
	}
	return false
}

// probeHandler says that the process is alive, and ready when the volume can be read.
func probeHandler(folder string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if _, err := os.Stat(folder); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	return mux
}
