package image

import (
	"context"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Nginx makes an image that stands in for the official nginx:1.25 in the local
// cluster, and only there: a real nginx, but of the version that Debian has (1.26
// in trixie), with the official image's paths, user, port, logs and command. It
// has no entry point script, so it knows no templates.
func (b Builder) Nginx(ctx context.Context) (string, error) {
	return b.debian(ctx, debian{
		Name: "docker.io/library/nginx:1.25", Short: "nginx:1.25",
		Suite:    "trixie",
		Packages: []string{"nginx"},
		Users:    script("", "nginx-users"),
		Layout:   script("", "trim", "nginx-layout"),
		Config: v1.Config{
			Env:          []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
			Cmd:          []string{"nginx", "-g", "daemon off;"},
			ExposedPorts: map[string]struct{}{"80/tcp": {}},
			StopSignal:   "SIGQUIT",
		},
	})
}
