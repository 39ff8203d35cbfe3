package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path"
	"strconv"
	"strings"
	"testing/fstest"
	"time"
)

// passedVariable names the file into which hack/gotest writes which tests passed.
const passedVariable = "TOBAN_PASSED"

func execute(command []string, environment ...string) error {
	fmt.Println("==", strings.Join(command, " "))
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), environment...)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(command, " "), err)
	}
	return nil
}

func output(command ...string) (string, error) {
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec // the commands are this program's own
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(command, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// now is a run that begins: at which commit, with a + where the tree is another.
func now() (ran, error) {
	commit, err := output("git", "rev-parse", "--short=12", "HEAD")
	if err != nil {
		return ran{}, err
	}
	changed, err := output("git", "status", "--porcelain", "--", ":!"+ranFile)
	if err != nil {
		return ran{}, err
	}
	if changed != "" {
		commit += "+"
	}
	return ran{on: time.Now().UTC(), commit: commit}, nil
}

// leftOut is how a script ends that was asked to leave out what it can't try here (hack/env.sh). It is not recorded.
const leftOut = 77

// commitsSince is how many commits there are since the one that last changed a file.
func commitsSince(file, commit string) (n int, err error) {
	last, err := output("git", "log", "-1", "--format=%H", commit, "--", file)
	if err != nil {
		return 0, err
	}
	return countCommits(last + ".." + commit)
}

// countCommits is how many there are in a range, as git log takes it.
func countCommits(in string) (int, error) {
	count, err := output("git", "rev-list", "--count", in)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(count)
}

// runScript runs a piece that is a command.
func (s suite) runScript(p piece) error {
	at, err := now()
	if err != nil {
		return err
	}
	began := time.Now()
	var exit *exec.ExitError
	switch err := execute(p.command); {
	case errors.As(err, &exit) && exit.ExitCode() == leftOut:
		return nil
	case err != nil:
		return err
	}
	at.seconds = int(math.Ceil(time.Since(began).Seconds()))
	return writeRecord(s.all, map[string]ran{p.name: at})
}

// runStories runs long stories, those of a ring at once. What passes is recorded, also where others fail.
func (s suite) runStories(pieces []piece) error {
	var failed []error
	for _, r := range rings {
		var chosen []test
		for _, p := range pieces {
			if of, ok := ringOf(*p.story); ok && of.name == r.name {
				chosen = append(chosen, *p.story)
			}
		}
		if len(chosen) > 0 {
			failed = append(failed, s.runChosen(r, chosen))
		}
	}
	return errors.Join(failed...)
}

func (s suite) runChosen(r ring, chosen []test) error {
	at, err := now()
	if err != nil {
		return err
	}
	f, err := os.CreateTemp("", "passed-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	if err := f.Close(); err != nil {
		return err
	}
	command := r.command(s.all, chosen, nil)
	if r.name == "stories" { // it brings the images along
		command = []string{"hack/e2e.sh", "-run", anyOf(chosen)}
	}
	failed := execute(command, passedVariable+"="+f.Name())
	text, err := os.ReadFile(f.Name())
	if err != nil {
		return errors.Join(failed, err)
	}
	took, err := passed(string(text), at)
	if err != nil {
		return errors.Join(failed, err)
	}
	return errors.Join(failed, writeRecord(s.all, took))
}

// startCluster has the local Kubernetes up, and gives what puts it down again if it was down.
func startCluster() (stop func(), err error) {
	state, err := output("bash", "-c", ". hack/env.sh && cluster")
	if err != nil {
		return nil, err
	}
	if err := execute([]string{"hack/up.sh", "--quiet"}); err != nil {
		return nil, err
	}
	return func() {
		if state == down {
			_ = execute([]string{"bin/localkube", "down"})
		}
	}, nil
}

// landed records the long stories that CI has run for a commit: those that the commit's own record asked for.
func (s suite) landed(commit string) error {
	archived, err := exec.Command("git", "archive", commit).Output() //nolint:gosec // git refuses what is no commit
	if err != nil {
		return fmt.Errorf("git archive %s: %w", commit, err)
	}
	repository, err := untar(archived)
	if err != nil {
		return err
	}
	then, err := findTests(repository)
	if err != nil {
		return err
	}
	last, err := parseRecord(string(repository[ranFile].Data))
	if err != nil {
		return err
	}
	on, err := output("git", "show", "--no-patch", "--format=%ct", commit)
	if err != nil {
		return err
	}
	var seconds int64
	if _, err := fmt.Sscan(on, &seconds); err != nil {
		return err
	}
	short, err := output("git", "rev-parse", "--short=12", commit)
	if err != nil {
		return err
	}
	commits, err := commitsSince(ranFile, commit)
	if err != nil {
		return err
	}
	chosen := next(stories(then), testShares, last, commits)
	took := map[string]ran{}
	for _, p := range shareOut(stories(then), testShares, last)[chosen.number-1] {
		took[p.name] = ran{int(last.cost(p) * p.beside), time.Unix(seconds, 0).UTC(), short}
	}
	fmt.Printf("%s: share %s, %d long stories\n", short, chosen, len(took))
	return writeRecord(s.all, took)
}

// untar has the files of an archive in memory.
func untar(archived []byte) (fstest.MapFS, error) {
	files := fstest.MapFS{ranFile: {}}
	for r := tar.NewReader(bytes.NewReader(archived)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		wanted := path.Ext(h.Name) == ".go" || path.Base(h.Name) == "go.mod" || h.Name == ranFile
		if h.Typeflag != tar.TypeReg || !wanted {
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		files[h.Name] = &fstest.MapFile{Data: data}
	}
}
