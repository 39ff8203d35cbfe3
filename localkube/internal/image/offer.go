package image

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"toban.dev/localkube/internal/machine"
)

const (
	// askAgain is how long an answer of Debian's archives holds.
	askAgain = 24 * time.Hour
	// askLimit is how long to wait for an answer where an older one will do.
	askLimit = time.Minute
	// keepOffers is how many tars of one image stay in the cache: who loads the
	// one that was current until now may go on.
	keepOffers = 2
)

// Archives of a machine whose apt knows no Debian.
const (
	defaultMirror   = "http://deb.debian.org/debian"
	defaultSecurity = "http://deb.debian.org/debian-security"
)

// An offer is what Debian's archives had when they were asked: the version of
// every package that a recipe names.
type offer struct {
	Asked    time.Time         `json:"asked"`
	Versions map[string]string `json:"versions"`
}

// asker asks Debian's archives which versions apt would take for an image.
type asker func(context.Context, debian) (map[string]string, error)

// newest returns the tar of an image of what Debian offers: when that has changed,
// write makes a new one. The archives are asked once a day. What they offered is
// noted when the image is there, so it is always one that can be gone on with.
func (b Builder) newest(ctx context.Context, d debian, ask asker, write func(work, out string) error) (string, error) {
	hash, err := hashOf(d)
	if err != nil {
		return "", fmt.Errorf("hash the recipe of %s: %w", d.Short, err)
	}
	note := filepath.Join(b.CacheDir, fmt.Sprintf("offer-%s-%s.json", fileName(d.Short), hash))
	known := readOffer(note)
	current, err := b.current(ctx, d, known, time.Now(), ask)
	if err != nil {
		return "", err
	}
	d.Versions = current.Versions
	path, err := b.cached(ctx, d.Short, d, write)
	if err != nil || current.Asked.Equal(known.Asked) {
		return path, err
	}
	if err := writeOffer(note, current); err != nil {
		return "", err
	}
	tars, err := filepath.Glob(filepath.Join(b.CacheDir, "image-"+fileName(d.Short)+"-*.tar"))
	if err != nil {
		return "", fmt.Errorf("list old images of %s: %w", d.Short, err)
	}
	keepNewest(tars, keepOffers, path)
	return path, nil
}

// current returns what is known, or what the archives say now if that is too old.
// A machine that can't ask goes on with what it has, for another day.
func (b Builder) current(ctx context.Context, d debian, known offer, now time.Time, ask asker) (offer, error) {
	has := len(known.Versions) > 0
	if age := now.Sub(known.Asked); has && age >= 0 && age < askAgain {
		return known, nil
	}
	b.sayf("image %s: asking what Debian offers", d.Short)
	limited := ctx
	if has {
		var cancel func()
		limited, cancel = context.WithTimeout(ctx, askLimit)
		defer cancel()
	}
	versions, err := ask(limited, d)
	switch {
	case err == nil:
		return offer{now, versions}, nil
	case ctx.Err() != nil || !has:
		return offer{}, fmt.Errorf("ask which versions Debian offers for image %s: %w", d.Short, err)
	}
	said, _, _ := strings.Cut(err.Error(), "\n")
	b.sayf("image %s: Debian can't be asked, so it stays as it is: %s", d.Short, said)
	return offer{now, known.Versions}, nil
}

// readOffer reads what was noted. What can't be read is asked again.
func readOffer(path string) offer {
	var o offer
	if data, err := os.ReadFile(path); err != nil || json.Unmarshal(data, &o) != nil {
		return offer{}
	}
	return o
}

func writeOffer(path string, o offer) error {
	data, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("note what Debian offers: %w", err)
	}
	return os.Rename(path+".new", path)
}

// ask has apt plan an image as bootstrap makes it, and installs nothing.
func (b Builder) ask(ctx context.Context, d debian) (map[string]string, error) {
	if err := machine.Install(ctx, Needs, b.progress()); err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "localkube-ask-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(work) }() // nothing but apt's lists
	cmd, err := d.mmdebstrap(ctx, work, filepath.Join(work, "rootfs.tar"), "--simulate", "--verbose")
	if err != nil {
		return nil, err
	}
	output, err := run(cmd)
	if err != nil {
		return nil, err
	}
	return planned(output, d.Packages)
}

// planned reads the versions of packages out of what apt plans: lines such as
// "Inst postgresql-17 (17.12-0+deb13u1 Debian-Security:13/stable-security [amd64])".
func planned(output string, packages []string) (map[string]string, error) {
	versions := map[string]string{}
	for _, match := range planLine.FindAllStringSubmatch(output, -1) {
		if slices.Contains(packages, match[1]) {
			versions[match[1]] = match[2]
		}
	}
	for _, name := range packages {
		if versions[name] == "" {
			return nil, fmt.Errorf("apt plans no version of %s", name)
		}
	}
	return versions, nil
}

var planLine = regexp.MustCompile(`(?m)^Inst (\S+) (?:\[\S+\] )?\((\S+) `)

// sid is where Debian is made. It has no archive of security updates.
const sid = "sid"

// sources are where an image gets its packages from, as mmdebstrap takes them. Minor releases of PostgreSQL are in the
// security archive first, and stay there until the next point release of Debian.
func (d debian) sources(ctx context.Context) []string {
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets",
		"--format", "$(LABEL) $(REPO_URI)", "Created-By: Packages").Output()
	if err != nil {
		out = nil
	}
	mirror, security := archives(string(out))
	if d.WithoutSecurity { // to a bare address mmdebstrap would add the archives of updates
		return []string{fmt.Sprintf("deb [signed-by=%s] %s %s main", keyring, mirror, d.Suite)}
	}
	if d.Suite == sid {
		return []string{
			fmt.Sprintf("deb [signed-by=%s] %s %s main", keyring, mirror, sid),
			fmt.Sprintf("deb [signed-by=%s] %s experimental main", keyring, mirror),
		}
	}
	list := []string{mirror}
	if security != "" {
		list = append(list, fmt.Sprintf("deb [signed-by=%s] %s %s-security main", keyring, security, d.Suite))
	}
	return list
}

// pin has apt take PostgreSQL and its libraries from experimental, where it takes nothing from by itself
// (apt_preferences of Debian). The preferences are in a folder that stays while it works.
func (d debian) pin(folder string) ([]string, error) {
	if d.Suite != sid {
		return nil, nil
	}
	file := filepath.Join(folder, "preferences")
	text := fmt.Sprintf("Package: src:%s\nPin: release a=experimental\nPin-Priority: 990\n", d.Packages[0])
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("write apt's preferences: %w", err)
	}
	return []string{fmt.Sprintf("--aptopt=Dir::Etc::preferences %q", file)}, nil
}

// archives reads where this machine gets Debian from, so that a mirror or a cache
// set up for apt is used here too. Beside a mirror of its own a machine that has
// no security archive gets none: Debian's may be out of its reach.
func archives(targets string) (mirror, security string) {
	found := map[string]string{}
	for line := range strings.Lines(targets) {
		label, uri, _ := strings.Cut(strings.TrimSpace(line), " ")
		if _, known := found[label]; !known && uri != "" {
			found[label] = uri
		}
	}
	mirror, security = found["Debian"], found["Debian-Security"]
	if mirror == "" {
		mirror = defaultMirror
	}
	_, place, _ := strings.Cut(strings.TrimSuffix(mirror, "/"), "://")
	if security == "" && strings.HasSuffix(defaultMirror, "://"+place) {
		security = defaultSecurity
	}
	return mirror, security
}
