// Package second copies the archives of a SampleDB into its second store, in a Pod of its own.
package second

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/keep"
	"toban.dev/internal/archive/second"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
	"toban.dev/internal/work"
	"toban.dev/internal/work/pod"
)

const (
	// tellEvery is how often the log says how much was copied.
	tellEvery = 10 * time.Second
	// mostLost bounds how many lost backups a result names.
	mostLost = 8
)

// secondCopy copies the archives of a SampleDB into the second store.
type secondCopy struct {
	pod.Pod
	settings      protocol.BackupSettings
	first, second bucket.Bucket
	clocks        [2]bucket.Clock // of the stores
	result        protocol.CopyResult
	told          time.Time
}

// Copy copies what the second store lacks of the archive, and of those of former major versions, and removes
// there what need not be kept. It leaves the result where the kubelet finds it, whatever came of it.
func Copy(ctx context.Context, o pod.Options) error {
	c := &secondCopy{Pod: pod.New(o)}
	err := c.do(ctx)
	if err != nil {
		c.result.Error, c.result.Until = err.Error(), time.Time{}
	}
	c.Log.Info("ends", "result", c.result)
	return errors.Join(err, pod.Leave(o.Termination, &c.result, &c.result.Error, &c.result.Problem))
}

func (c *secondCopy) do(ctx context.Context) error {
	if err := pod.ReadSettings(c.Settings, &c.settings); err != nil {
		return err
	}
	if c.settings.Second == nil {
		return errors.New("there is no second store: spec.backup.secondStore was removed")
	}
	if err := c.open(ctx); err != nil {
		return err
	}
	former, err := c.former(ctx) // both stores have said what time it is then
	if err != nil {
		return err
	}
	newer, err := c.copy(ctx, c.settings.Archive.Path, c.policy(c.settings.Archive.Path))
	if err != nil {
		return err
	}
	until := c.result.Until
	for _, path := range former {
		policy := c.policy(path)
		policy.Newer = newer
		restorable, err := c.copy(ctx, path, policy)
		if err != nil {
			return fmt.Errorf("the former archive %s: %w", path, err)
		}
		for kind, count := range restorable {
			newer[kind] += count
		}
	}
	c.result.CheckedAt, c.result.Until = time.Now().UTC().Truncate(time.Second), until
	if c.result.Problem != "" {
		c.result.Until = time.Time{}
	}
	return nil
}

// open opens both stores. The server of a volume is shown a certificate of one who may only read.
func (c *secondCopy) open(ctx context.Context) error {
	config := c.settings.Archive.Bucket
	if config.Volume != nil {
		var err error
		if c.Own, err = pod.NewIssuer(c.Authority, naming.IdentityRestore); err != nil {
			return err
		}
	}
	config, err := pod.StoreConfig(ctx, config, c.Own, c.Run)
	if err != nil {
		return err
	}
	config.Clock = &c.clocks[0]
	if c.first, err = bucket.Open(ctx, config); err != nil {
		return fmt.Errorf("the first store: %w", err)
	}
	config = *c.settings.Second
	files, _ := filepath.Glob(filepath.Join(config.Credentials, "*"))
	if config.Credentials != "" && len(files) == 0 {
		return errors.New("the Secret that credentials of spec.backup.secondStore names is not there, or is empty: " +
			"create it")
	}
	config.Patient, config.Clock = true, &c.clocks[1]
	if c.second, err = bucket.Open(ctx, config); err != nil {
		return fmt.Errorf("the second store: %w", err)
	}
	return nil
}

// copy copies an archive, and returns how many backups of each kind can be restored from the copy.
func (c *secondCopy) copy(ctx context.Context, path string, policy keep.Policy) (map[string]int, error) {
	c.Log.Info("compares", "archive", path)
	state, err := second.Copy(ctx, second.Options{
		First: bucket.Sub(c.first, path), Second: bucket.Sub(c.second, path),
		Owner: c.settings.Archive.Owner, Policy: policy, Listed: time.Now(), Tell: c.tell,
	})
	r := &c.result
	r.Objects, r.Bytes, r.Removed = r.Objects+state.Copied.Objects, r.Bytes+state.Copied.Bytes, r.Removed+state.Removed
	for _, words := range append(state.Problems, state.Refused) {
		if words != "" && !strings.Contains(r.Problem, words) {
			r.Problem = strings.TrimPrefix(r.Problem+"; "+words, "; ")
		}
	}
	r.Lost = append(r.Lost, state.Lost...)
	r.Lost = r.Lost[:min(len(r.Lost), mostLost)]
	if policy.Newer == nil {
		r.Until = state.Until.UTC().Truncate(time.Second)
		if state.LSN > 0 {
			r.LSN = state.LSN.String()
		}
	}
	if state.Restorable == nil {
		state.Restorable = map[string]int{}
	}
	return state.Restorable, err
}

// tell says now and then how much was copied.
func (c *secondCopy) tell(done, total second.Amount) {
	if now := time.Now(); now.Sub(c.told) >= tellEvery || done.Objects == total.Objects {
		c.told = now
		c.Log.Info("copies", "objects", done.Objects, "ofObjects", total.Objects, "bytes", done.Bytes,
			"ofBytes", total.Bytes)
	}
}

// policy is what is kept of the copy of an archive: what the spec says of the first store.
func (c *secondCopy) policy(path string) keep.Policy {
	rules := c.settings.Keep
	for _, f := range slices.Concat(c.settings.Former, c.settings.Forgotten) {
		if f.Path == path {
			rules.Pinned, rules.InUse = f.Pinned, f.InUse
		}
	}
	policy, differ := work.Policy(rules).ByClocks("the clock of the Pod that copies",
		work.Clocks(&c.Pod, &c.clocks[0], &c.clocks[1])...)
	if differ != "" {
		c.Log.Warn("clocks differ", "message", differ)
	}
	return policy
}

// former are the archives of former major versions in either store, the newest first: as the settings have them, and
// then those that nobody knows any more.
func (c *secondCopy) former(ctx context.Context) ([]string, error) {
	first, _ := naming.FirstArchivePath(c.settings.Archive.Path)
	var all []string
	for _, f := range c.settings.Former {
		all = append(all, f.Path)
	}
	var found []string
	for _, store := range []bucket.Bucket{c.first, c.second} {
		folders, err := archiveFolders(ctx, store, first)
		if err != nil {
			return nil, err
		}
		found = append(found, folders...)
	}
	slices.SortFunc(found, func(a, b string) int {
		_, majorOfA := naming.FirstArchivePath(a)
		_, majorOfB := naming.FirstArchivePath(b)
		return majorOfB - majorOfA
	})
	var out []string
	for _, path := range append(all, found...) {
		if path != c.settings.Archive.Path && !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	return out, nil
}

// archiveFolders are the folders of a SampleDB's archives in a store: its first one, and those of other major versions.
func archiveFolders(ctx context.Context, store bucket.Bucket, first string) (folders []string, err error) {
	after := ""
	for {
		found := ""
		for o, err := range store.ListAfter(ctx, first, after) {
			if err != nil {
				return nil, fmt.Errorf("look for archives: %w", err)
			}
			rest := strings.TrimPrefix(o.Name, first)
			folder, _, _ := strings.Cut(rest, "/")
			found = first + folder
			break
		}
		if found == "" {
			return folders, nil
		}
		if of, _ := naming.FirstArchivePath(found); of == first {
			folders = append(folders, found)
		}
		after = found + "0" // after all that is in the folder: 0 follows the slash
	}
}
