package image

import (
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

// compress turns the tar of a root file system into a zstd layer. zstd at its
// fastest level loads quickest: reading and hashing fewer bytes on every node
// saves more than unpacking them costs. See the measurements in README.md.
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
