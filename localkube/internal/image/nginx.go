package image

import (
	"context"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Nginx makes an image that stands in for the official nginx:1.25 in the local
// cluster: a real nginx, of the version that Debian has, with the official
// image's paths, user and command.
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
