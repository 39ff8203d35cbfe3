package image

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// Builder makes images and keeps them in one directory.
type Builder struct {
	// CacheDir holds the finished tars. It may be shared: builders in other
	// processes wait for each other.
	CacheDir string
	// Progress is told in a line what takes long and how long it took. Nil is silence.
	Progress io.Writer
}

// CacheDir is where images are kept unless the caller says otherwise:
// $XDG_CACHE_HOME/localkube, or ~/.cache/localkube.
func CacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache directory (set XDG_CACHE_HOME or HOME): %w", err)
	}
	return filepath.Join(dir, "localkube"), nil
}

// recipes are the images that have a short name, which is also what a user
// types. Each returns the path of the finished tar.
var recipes = map[string]func(Builder, context.Context) (string, error){
	"pause":       Builder.Pause,
	"postgres:15": func(b Builder, ctx context.Context) (string, error) { return b.Postgres(ctx, 15) },
	"postgres:17": func(b Builder, ctx context.Context) (string, error) { return b.Postgres(ctx, 17) },
	"postgres:18": func(b Builder, ctx context.Context) (string, error) { return b.Postgres(ctx, 18) },
	"postgres:19": func(b Builder, ctx context.Context) (string, error) { return b.Postgres(ctx, 19) },
	"postgres:17-stable": func(b Builder, ctx context.Context) (string, error) {
		return b.PostgresBeforeSecurity(ctx, 17)
	},
	"nginx:1.25":     Builder.Nginx,
	"pgbouncer:1.24": Builder.PgBouncer,
}

// Names lists the short names that Build knows, in order.
func Names() []string {
	names := make([]string, 0, len(recipes))
	for name := range recipes {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Build makes the image with a short name from Names, or finds it in the cache.
// A path of an existing tar is returned as it is, so that commands take both.
func (b Builder) Build(ctx context.Context, nameOrTar string) (string, error) {
	if recipe, ok := recipes[nameOrTar]; ok {
		return recipe(b, ctx)
	}
	if _, err := os.Stat(nameOrTar); err != nil {
		return "", fmt.Errorf("%q is neither an image tar nor one of %s", nameOrTar, strings.Join(Names(), ", "))
	}
	return nameOrTar, nil
}

func (b Builder) sayf(format string, args ...any) {
	fmt.Fprintf(b.progress(), format+"\n", args...)
}

func (b Builder) progress() io.Writer {
	if b.Progress == nil {
		return io.Discard
	}
	return b.Progress
}
