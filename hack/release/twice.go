package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// twice makes something twice, and fails where it differs: who builds a release again must get the same bytes. Without
// a flag that is the program with its image, in two folders. With -whole nothing is used that was compiled before,
// which takes many minutes: also what Go's build cache would hide is found then. With -release it is a whole release;
// the programs that were compiled for the first one are used for the second.
func twice(ctx context.Context, flag string) (err error) {
	work, err := os.MkdirTemp("", "toban-twice-")
	if err != nil {
		return fmt.Errorf("make room for two: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	switch flag {
	case "-release":
		return twoReleases(ctx, work)
	case "", "-whole":
		return twoPrograms(ctx, work, flag == "-whole")
	}
	return errUsage
}

func twoReleases(ctx context.Context, work string) error {
	var sums []string
	for _, folder := range []string{"one", "two"} {
		folder = filepath.Join(work, folder)
		if err := makeRelease(ctx, folder, "v0.0.0-reproduced", "", ""); err != nil {
			return err
		}
		sums = append(sums, filepath.Join(folder, "SHA256SUMS"))
	}
	return same("release", sums)
}

func twoPrograms(ctx context.Context, work string, whole bool) error {
	var programs, images []string
	for _, folder := range []string{"a", "a/longer/name"} {
		program, image, err := build(ctx, filepath.Join(work, folder), whole)
		if err != nil {
			return err
		}
		programs, images = append(programs, program), append(images, image)
	}
	return errors.Join(same("program", programs), same("image", images))
}

// sources are what a program is built from.
var sources = []string{"Makefile", "hack/compile.sh", "api", "cmd", "internal", "go.mod", "go.sum"}

// build builds the program from a copy of the sources in a folder, and the image with a cache of its own.
func build(ctx context.Context, folder string, whole bool) (program, image string, err error) {
	source := filepath.Join(folder, "source")
	if err := copySources(ctx, source); err != nil {
		return "", "", err
	}
	var cache []string
	if whole {
		cache = []string{"GOCACHE=" + filepath.Join(folder, "gocache")}
	}
	if err := command(ctx, cache, "make", "-s", "--no-print-directory", "-C", source, "bin/toban").Run(); err != nil {
		return "", "", fmt.Errorf("build the program: %w", err)
	}
	program = filepath.Join(source, "bin/toban")
	made, err := command(ctx, []string{"XDG_CACHE_HOME=" + filepath.Join(folder, "images")}, "bin/localkube",
		"image", "binary", "--name", "toban:reproduced", "--binary", program).Output()
	if err != nil {
		return "", "", fmt.Errorf("make the image: %w", err)
	}
	return program, strings.TrimSpace(string(made)), nil
}

// copySources copies what git knows, and what would be committed.
func copySources(ctx context.Context, to string) error {
	args := append([]string{"ls-files", "-co", "--exclude-standard", "-z", "--"}, sources...)
	list, err := output(ctx, "git", args...)
	if err != nil {
		return err
	}
	for path := range strings.SplitSeq(strings.Trim(list, "\x00"), "\x00") {
		err := copySource(path, filepath.Join(to, path))
		if err != nil && !errors.Is(err, os.ErrNotExist) { // it is deleted, and that is not committed yet
			return fmt.Errorf("copy the sources: %w", err)
		}
	}
	return nil
}

func copySource(path, target string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return errors.Join(makeFolder(filepath.Dir(target)), os.WriteFile(target, text, info.Mode().Perm()))
}

// same fails where files differ.
func same(what string, files []string) error {
	var sums []string
	for _, file := range files {
		sum, err := sumOf(file)
		if err != nil {
			return err
		}
		sums = append(sums, sum)
	}
	if sums[0] != sums[1] {
		return fmt.Errorf("the same sources gave different %ss:\n%s  %s\n%s  %s", what, sums[0], files[0], sums[1],
			files[1])
	}
	fmt.Printf("the %s, twice: sha256:%s\n", what, sums[0])
	return nil
}
