package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"toban.dev/internal/naming"
)

// The ioctls of fsfreeze, of linux/fs.h.
const (
	fiFreeze = 0xC0045877
	fiThaw   = 0xC0045878
)

// longestHang is how long a disk may hang beyond the time after which faults are healed,
// before it thaws although nobody has healed it.
const longestHang = 30 * time.Second

// stallDisk makes a volume stand still: who writes to it waits, and so does who wants
// to be sure that it is written. It thaws when the fault is healed, and after that
// time at the latest, even if the drill has been killed meanwhile.
func stallDisk(of func(*scene) instance, most time.Duration) injection {
	return func(ctx context.Context, s *scene) error {
		volume, err := s.volume(ctx, of(s).name)
		if err != nil {
			return err
		}
		if err := ownFilesystem(volume); err != nil {
			return err
		}
		thaws, err := afterwards(most, "fsfreeze", "--unfreeze", volume)
		if err != nil {
			return err
		}
		s.later("the disk of "+of(s).name+" goes on", func(context.Context) error {
			if err := thaw(volume); err != nil {
				return err
			}
			thaws()
			return nil
		})
		s.strike()
		return freezeFilesystem(volume)
	}
}

// volume is where the volume of an instance is mounted on this machine.
func (s *scene) volume(ctx context.Context, instance string) (string, error) {
	ordinal, _ := naming.Ordinal(instance)
	var claim corev1.PersistentVolumeClaim
	if err := s.Get(ctx, key(naming.Claim(name, ordinal)), &claim); err != nil {
		return "", fmt.Errorf("find the volume of %s: %w", instance, err)
	}
	var volume corev1.PersistentVolume
	if err := s.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, &volume); err != nil {
		return "", fmt.Errorf("find the volume of %s: %w", instance, err)
	}
	if volume.Spec.Local == nil {
		return "", fmt.Errorf("the volume %s does not lie on this machine", volume.Name)
	}
	return filepath.Dir(volume.Spec.Local.Path), nil // what the Pod sees is a directory in it
}

// ownFilesystem refuses a directory that is no mount of its own: where volumes are plain
// directories, the machine's own disk would stand still.
func ownFilesystem(dir string) error {
	own, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("look at the volume: %w", err)
	}
	above, err := os.Stat(filepath.Dir(dir))
	if err != nil {
		return fmt.Errorf("look at the volume: %w", err)
	}
	device := func(info os.FileInfo) uint64 {
		return info.Sys().(*syscall.Stat_t).Dev //nolint:errcheck,forcetypeassert // on Linux it is that
	}
	if device(own) == device(above) {
		return fmt.Errorf("%s has no file system of its own, so that it can't be frozen without the machine", dir)
	}
	return nil
}

func freezeFilesystem(dir string) error { return control(dir, fiFreeze, "freeze") }

// thaw lets a file system go on; one that does is left alone.
func thaw(dir string) error {
	err := control(dir, fiThaw, "thaw")
	if errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}

func control(dir string, request uint, verb string) error {
	file, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("%s the volume: %w", verb, err)
	}
	defer file.Close()
	if err := unix.IoctlSetInt(int(file.Fd()), request, 0); err != nil {
		return fmt.Errorf("%s %s: %w", verb, dir, err)
	}
	return nil
}

// afterwards starts a process that runs a program after a while, whatever has become of
// this one by then. never ends it before.
func afterwards(wait time.Duration, program ...string) (never func(), err error) {
	seconds := strconv.FormatFloat(wait.Seconds(), 'f', 3, 64)
	c := exec.Command("sh", append([]string{"-c", `sleep "$1" && shift && exec "$@"`, "sh", seconds}, program...)...)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no signal for this one's group or terminal is for it
	c.Dir = "/"
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("start what runs %s later: %w", program[0], err)
	}
	ended := make(chan struct{})
	go func() {
		_ = c.Wait() // a program that has nothing to do any more says so by an error
		close(ended)
	}()
	return func() {
		select {
		case <-ended:
		default:
			_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // its group is its own
			<-ended
		}
	}, nil
}
