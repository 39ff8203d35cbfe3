package image

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// TestDebianImages makes images and uses them. That takes minutes and the
// network, so they are asked for by name:
//
//	LOCALKUBE_IMAGES="postgres:17 nginx:1.25" go test -run TestDebianImages -v
func TestDebianImages(t *testing.T) {
	names := strings.Fields(os.Getenv("LOCALKUBE_IMAGES"))
	if len(names) == 0 {
		t.Skip("LOCALKUBE_IMAGES names no image")
	}
	dir, err := CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		path, err := Builder{CacheDir: dir, Progress: t.Output()}.Build(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		ref, err := Inspect(path)
		if err != nil {
			t.Fatal(err)
		}
		want := "docker.io/library/" + name
		if name == "pgbouncer:1.24" {
			want = "ghcr.io/cloudnative-pg/pgbouncer:1.24.1"
		}
		if ref.Name != want {
			t.Errorf("the image is called %q, want %q", ref.Name, want)
		}
		kind, _, _ := strings.Cut(name, ":")
		if use, ok := uses[kind]; ok {
			use.try(t, path)
		}
	}
}

// useful is what people do with the official image, as its user.
const useful = `
id -u | grep -qx 999
initdb -k -A trust -D /tmp/one >/dev/null
echo "unix_socket_directories = '/var/run/postgresql'" >> /tmp/one/postgresql.conf
pg_ctl -D /tmp/one -w start -l /tmp/log >/dev/null
psql -d postgres -Atc "select version(), current_setting('listen_addresses')"
psql -d postgres -qAtc "create extension pg_stat_statements; create extension amcheck; create extension postgres_fdw"
psql -d postgres -qAtc "create collation ja (provider = icu, locale = 'ja-JP'); set timezone to 'Asia/Tokyo'"
pgbench -d postgres -q -i 2>/dev/null
pg_basebackup -D /tmp/two -c fast && pg_verifybackup /tmp/two >/dev/null
pg_amcheck postgres
pg_dump postgres > /dev/null
pg_ctl -D /tmp/one -m fast stop >/dev/null
pg_rewind --version; pg_waldump --version; pg_upgrade --version
`

// use is a script that uses an image, and as whom.
type use struct {
	script string
	user   uint32
}

var uses = map[string]use{
	"postgres": {useful, 999},
	// A chroot has no /proc; that it serves is seen in a cluster (test/e2e).
	"nginx": {`
id -u nginx | grep -qx 101
test "$(readlink /var/log/nginx/access.log) $(readlink /var/log/nginx/error.log)" = "/dev/stdout /dev/stderr"
mkdir -p /proc/self/fd && : > /dev/stdout && : > /dev/stderr
nginx -v && nginx -t
grep -q "listen 80;" /etc/nginx/conf.d/default.conf
`, 0},
	"pgbouncer": {`
id -u pgbouncer | grep -qx 998
pgbouncer --version | grep "PgBouncer 1.24"
test ! -e /etc/pgbouncer
`, 998},
}

// try unpacks an image and uses it, as far as that goes without a
// container: as root's chroot, with the image's environment.
func (u use) try(t *testing.T, path string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Log("not root: the image is not tried")
		return
	}
	root, config := unpack(t, path)
	cmd := exec.Command("/bin/sh", "-euc", u.script)
	cmd.Env, cmd.Dir = config.Config.Env, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: u.user, Gid: u.user}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v", path, err)
	}
	t.Logf("%s", out)
}

func unpack(t *testing.T, path string) (root string, config *v1.ConfigFile) {
	t.Helper()
	a, err := openArchive(path)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	image, err := a.image()
	if err != nil {
		t.Fatal(err)
	}
	config, err = image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	root = t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	r := mutate.Extract(image)
	defer r.Close()
	cmd := exec.Command("tar", "-x", "-C", root)
	cmd.Stdin = r
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("unpack: %v: %s", err, out)
	}
	return root, config
}

func TestEveryHookNamesItsRoot(t *testing.T) {
	for name, hook := range map[string]string{
		"postgres":  script("major=17", "postgres-users", "postgres-layout", "trim"),
		"nginx":     script("", "nginx-users", "nginx-layout", "trim"),
		"pgbouncer": script("", "pgbouncer-users", "pgbouncer-layout", "trim"),
	} {
		if !strings.HasPrefix(hook, "set -eu\nroot=$1\n") {
			t.Errorf("%s: the hook would run without a root and remove the host's files:\n%s", name, hook)
		}
	}
}
