package upgrade

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	change "toban.dev/internal/change/major"
	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/work"
	"toban.dev/internal/work/former"
	"toban.dev/internal/work/major"
	"toban.dev/internal/work/pod"
)

// CheckOptions are what the check of an upgrade is told.
type CheckOptions struct {
	pod.Options
	// Former is the folder with the programs of the former version, Scratch one for a copy of the schema.
	Former, Scratch string
	// Volume is where the instances have theirs. It need not be here.
	Volume string
	// Port is that of the PostgreSQL servers.
	Port uint16
}

// Check looks whether a SampleDB can be upgraded, while it serves, and leaves what it has found where the
// kubelet finds it.
func Check(ctx context.Context, o CheckOptions) error {
	c := &upgradeCheck{Pod: pod.New(o.Options), options: o}
	err := c.do(ctx)
	c.result.Error = pod.Words(err)
	fitCheck(&c.result)
	return errors.Join(err, pod.Leave(o.Termination, &c.result, &c.result.Error))
}

// upgradeCheck is one run.
type upgradeCheck struct {
	pod.Pod
	options  CheckOptions
	settings protocol.UpgradeSettings
	facts    change.Facts
	result   protocol.UpgradeCheck
}

func (c *upgradeCheck) do(ctx context.Context) error {
	stop, err := c.Begin(ctx, naming.IdentityUpgrade, &c.settings, &c.settings.Operator)
	if err != nil {
		return err
	}
	defer stop()
	c.Progress.Step("looks at the programs")
	options, err := c.programs(ctx)
	if err != nil {
		return err
	}
	c.Progress.Step("asks the primary")
	begin := time.Now()
	if err := c.ask(ctx); err != nil {
		return err
	}
	c.result.Steps = append(c.result.Steps,
		protocol.UpgradeStep{Name: "ask", Seconds: time.Since(begin).Seconds()})
	if err := c.try(ctx, options); err != nil {
		return err
	}
	refusals, warnings := change.Check(c.facts)
	c.result.Refusals, c.result.Warnings = Findings(refusals), Findings(warnings)
	return nil
}

// programs find out what both images have.
func (c *upgradeCheck) programs(ctx context.Context) (major.Options, error) {
	s := c.settings
	next, err := postgres.FindPrograms(ctx, s.To)
	if err != nil {
		return major.Options{}, err
	}
	collected, old, err := former.Open(c.options.Former)
	if err != nil {
		return major.Options{}, err
	}
	c.result.From, c.result.To = old.Version, next.Version
	c.facts = change.Facts{
		From: s.From, To: s.To, Former: append([]string{}, collected.Locales...), Locales: locales(ctx),
		CLibraries: [2]string{collected.CLibrary, work.CLibrary(ctx)},
		Extensions: versions(work.Extensions(ctx, next)), Scripts: scripts(work.SharedFolders(ctx, next)),
		Libraries: libraries(ctx, next),
		OnRequest: s.OnRequest, UpdateExtensions: s.UpdateExtensions,
	}
	return major.Options{
		Instance: s.Instance, Volume: c.options.Scratch, Run: c.Run, Former: old, New: next, Parameters: s.Parameters,
		Jobs: runtime.GOMAXPROCS(0), Log: os.Stderr, Step: c.Progress.Step,
	}, nil
}

// versions are extensions with their versions by name, nil where none are known.
func versions(extensions []string) map[string]string {
	if len(extensions) == 0 {
		return nil
	}
	all := map[string]string{}
	for _, text := range extensions {
		name, version, _ := strings.Cut(text, " ")
		all[name] = version
	}
	return all
}

// scripts are the versions of the scripts of extensions, by the extensions' names, in the first of some folders that
// has any (PostgreSQL 18 documentation, "Extension Updates"). Of one whose control file names another folder none are
// here.
func scripts(folders []string) map[string][]string {
	all := map[string][]string{}
	for _, folder := range folders {
		pattern := filepath.Join(folder, "extension", "*--*.sql")
		files, _ := filepath.Glob(pattern) // only a malformed pattern is an error
		for _, path := range files {
			name, version, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".sql"), "--")
			all[name] = append(all[name], version)
		}
		if len(all) > 0 {
			break
		}
	}
	return all
}

// libraries are those that a server can load by their names, nil where they are not known.
func libraries(ctx context.Context, programs postgres.Programs) (all []string) {
	folder := filepath.Join(programs.Dir, "../lib")
	out, err := exec.CommandContext(ctx, filepath.Join(programs.Dir, "pg_config"), "--pkglibdir").Output()
	if err == nil {
		folder = strings.TrimSpace(string(out))
	}
	found, err := filepath.Glob(filepath.Join(folder, "*.so"))
	if err != nil {
		return nil
	}
	for _, path := range found {
		all = append(all, strings.TrimSuffix(filepath.Base(path), ".so"))
	}
	return all
}

// locales are those of the C library here, nil where they are not known.
func locales(ctx context.Context) []string {
	out, err := exec.CommandContext(ctx, "locale", "-a").Output()
	if err != nil {
		return nil
	}
	return strings.Fields(string(out))
}

// try upgrades a copy of the schema.
func (c *upgradeCheck) try(ctx context.Context, options major.Options) error {
	source, err := c.source(ctx)
	if err != nil {
		return err
	}
	var databases []string
	for _, d := range c.facts.Databases {
		if !d.Invalid && !d.Closed {
			databases = append(databases, d.Name)
		}
	}
	if err := os.MkdirAll(options.Volume, 0o700); err != nil {
		return fmt.Errorf("make room for a copy of the schema: %w", err)
	}
	tried, err := major.Trial(ctx, major.TrialOptions{Options: options, Source: source, Databases: databases})
	c.facts.Trial, c.facts.Skipped, c.facts.Rejected = tried.Refused, tried.Skipped, tried.Rejected
	c.result.Steps = append(c.result.Steps, tried.Steps...)
	if err != nil {
		return fmt.Errorf("try the upgrade on a copy of the schema: %w", err)
	}
	return nil
}

// source is how PostgreSQL's programs connect to the primary, with files of their own for the certificate.
func (c *upgradeCheck) source(ctx context.Context) (string, error) {
	own, err := pod.NewIssuer(c.Authority, naming.IdentityInit)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(c.Run, "init")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", fmt.Errorf("make the folder of the certificate: %w", err)
	}
	if err := own.Files(ctx, folder); err != nil {
		return "", err
	}
	trusted, err := own.Trusted()
	if err != nil {
		return "", err
	}
	// Servers may show clients a certificate of another authority.
	authorities := filepath.Join(folder, "servers.crt")
	if err := postgres.WriteFile(authorities, []byte(pki.Union(string(trusted), c.settings.Given)), 0o600); err != nil {
		return "", err
	}
	return fmt.Sprintf("host=%s port=%d user=%s target_session_attrs=read-write connect_timeout=5 "+
		"application_name='toban upgrade' sslmode=verify-full sslrootcert=%s sslcert=%s sslkey=%s",
		strings.Join(c.settings.Hosts, ","), c.options.Port, naming.RoleSuperuser, authorities,
		filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")), nil
}

// fitCheck leaves out what a termination message has no room for: objects first, then warnings.
func fitCheck(result *protocol.UpgradeCheck) {
	shortenTo := func(most int) func() bool {
		return pod.Once(func() {
			for _, f := range [][]protocol.UpgradeFinding{result.Warnings, result.Refusals} {
				ShortenFindings(f, most)
			}
		})
	}
	pod.Fit(result, pod.MaxTermination-256, shortenTo(600), shortenTo(200), shortenTo(80),
		pod.Drop(&result.Warnings, 0), pod.Drop(&result.Refusals, 1))
}
