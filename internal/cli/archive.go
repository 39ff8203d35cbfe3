package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"toban.dev/internal/agent/serve"
	"toban.dev/internal/bucket"
	"toban.dev/internal/naming"
)

// archiveDrain is how long requests may take to end when the server is stopped.
const archiveDrain = 20 * time.Second

type archiveOptions struct {
	folder, authority, path, listen, probe string
}

// Archive is `toban archive`: what belongs to an archive on a volume.
func Archive() *cobra.Command {
	c := &cobra.Command{Use: "archive", Short: "Work on an archive that lies on a volume", Hidden: true}
	c.AddCommand(archiveServe())
	return c
}

// archiveServe is `toban archive serve`: the process in the Deployment NAME-archive.
func archiveServe() *cobra.Command {
	var o archiveOptions
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the objects in a folder to a SampleDB's instances and backups",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	f := c.Flags()
	f.StringVar(&o.folder, "folder", naming.PathArchive, "the folder with the objects")
	f.StringVar(&o.authority, "authority", naming.PathAuthority, "folder with the SampleDB's authority")
	f.StringVar(&o.path, "path", "", "the one folder in it that may be written to: the SampleDB's archive")
	f.StringVar(&o.listen, "listen", ":"+strconv.Itoa(naming.PortAgent), "where to serve objects over HTTPS")
	f.StringVar(&o.probe, "probe", ":"+strconv.Itoa(naming.PortProbe), "where to answer the kubelet over HTTP")
	return c
}

func (o archiveOptions) run(ctx context.Context) error {
	if strings.Trim(o.path, "/") == "" {
		return errors.New("--path must be given")
	}
	own, err := newIssuer(o.authority, naming.IdentityArchive)
	if err != nil {
		return err
	}
	config := bucket.ServerTLS(own.certificate, func() (*x509.CertPool, error) { return own.roots, nil })
	server := bucket.NewServer(bucket.OpenFolder(o.folder), o.may, config)
	probes := serve.PlainServer(probeHandler(o.folder))
	objects, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("listen for objects: %w", err)
	}
	health, err := net.Listen("tcp", o.probe)
	if err != nil {
		return fmt.Errorf("listen for probes: %w", err)
	}
	slog.New(slog.NewJSONHandler(os.Stdout, nil)).Info("serving", "folder", o.folder, "path", o.path,
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
// has left to restore from; and instances and backups write to their own archive, and nowhere else
// (docs/backup.md, invariants 2 and 8).
func (o archiveOptions) may(client *x509.Certificate, prefix string, write bool) bool {
	switch client.Subject.CommonName {
	case naming.IdentityInstance, naming.IdentityBackup:
		return !write || strings.HasPrefix(prefix, strings.Trim(o.path, "/")+"/")
	case naming.IdentityRestore:
		return !write
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
