package image

import (
	"context"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// PgBouncer makes an image that stands in for ghcr.io/cloudnative-pg/pgbouncer:1.24.1 in the local cluster: the same
// version, path, user and command, from Debian's package. It has no configuration, as there.
func (b Builder) PgBouncer(ctx context.Context) (string, error) {
	return b.debian(ctx, debian{
		Name: "ghcr.io/cloudnative-pg/pgbouncer:1.24.1", Short: "pgbouncer:1.24",
		Suite:    "trixie",
		Packages: []string{"pgbouncer"},
		Users:    script("", "pgbouncer-users"),
		Layout:   script("", "trim", "pgbouncer-layout"),
		Config: v1.Config{
			Env:          []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
			Entrypoint:   []string{"/usr/bin/pgbouncer"},
			User:         "998:996",
			ExposedPorts: map[string]struct{}{"6432/tcp": {}},
		},
	})
}
