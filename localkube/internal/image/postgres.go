package image

import (
	"context"
	"fmt"
	"strconv"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// suites names the Debian release that carries each major version of PostgreSQL. Release candidates are in
// experimental, which is on top of sid.
var suites = map[int]string{15: "bookworm", 17: "trixie", 18: "forky", 19: sid}

// Postgres makes an image that stands in for the official postgres:MAJOR in the
// local cluster: the same uid, paths, environment and socket directory, from
// Debian's packages. It has no entry point script (so it makes no database by
// itself), no JIT compilation and no wrappers in Perl.
func (b Builder) Postgres(ctx context.Context, major int) (string, error) {
	d, err := postgres(major)
	if err != nil {
		return "", err
	}
	return b.debian(ctx, d)
}

// PostgresBeforeSecurity is the same without what is in Debian's security archive alone: between two point releases of
// Debian, it may have an older minor version.
func (b Builder) PostgresBeforeSecurity(ctx context.Context, major int) (string, error) {
	d, err := postgres(major)
	if err != nil {
		return "", err
	}
	d.WithoutSecurity, d.Name, d.Short = true, d.Name+"-stable", d.Short+"-stable"
	return b.debian(ctx, d)
}

func postgres(major int) (debian, error) {
	suite, ok := suites[major]
	if !ok {
		return debian{}, fmt.Errorf("no Debian release is known to have PostgreSQL %d", major)
	}
	version := strconv.Itoa(major)
	return debian{
		Name: "docker.io/library/postgres:" + version, Short: "postgres:" + version,
		Suite:    suite,
		Packages: []string{"postgresql-" + version, "locales"},
		Users:    script("", "postgres-users"),
		Layout:   script("major="+version, "postgres-layout", "trim"),
		Config:   postgresConfig(version, major),
	}, nil
}

// postgresConfig is the official image's config. It has no user there either:
// the official entry point starts as root, and a Pod must say what it runs as.
func postgresConfig(version string, major int) v1.Config {
	data, volume := "/var/lib/postgresql/data", "/var/lib/postgresql/data"
	if major >= 18 {
		data, volume = "/var/lib/postgresql/"+version+"/docker", "/var/lib/postgresql"
	}
	return v1.Config{
		Env: []string{
			"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/lib/postgresql/" + version + "/bin",
			"LANG=en_US.utf8",
			"PG_MAJOR=" + version,
			"PGDATA=" + data,
		},
		Cmd:          []string{"postgres"},
		Volumes:      map[string]struct{}{volume: {}},
		ExposedPorts: map[string]struct{}{"5432/tcp": {}},
		StopSignal:   "SIGINT",
	}
}
