package image

import (
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

// compress turns the tar of a root file system into a zstd layer.
//
// How it is compressed hardly matters to loading: unpacking is bound by the
// kernel making files. Of the processor time that one node took for postgres:17,
// 1.3 s went into making 2600 files, 0.4 s into writing and hashing, 0.2 s into
// zstd; three nodes on two busy cores took 4 to 10 s, plain or zstd alike, and
// longest with gzip. So the images have few files, and zstd, because it is a
// third of the size in the cache and over a network.
func compress(layer, rootfs string) error {
	in, err := os.Open(rootfs)
	if err != nil {
		return fmt.Errorf("open the root file system: %w", err)
	}
	defer in.Close()
	out, err := os.Create(layer)
	if err != nil {
		return fmt.Errorf("create the layer: %w", err)
	}
	defer out.Close()
	// One worker: the frame, and so the digest, must not depend on the number of cores.
	w, err := zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return fmt.Errorf("start zstd: %w", err)
	}
	if _, err := io.Copy(w, in); err != nil {
		return fmt.Errorf("compress the layer: %w", err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("finish the layer: %w", err)
	}
	return out.Close()
}
