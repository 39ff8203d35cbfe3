package pod

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/naming"
)

// StoreConfig completes the configuration of a store with what only a Pod has: the certificate for a volume's
// server, which it issues itself. All of them may change meanwhile.
func StoreConfig(ctx context.Context, config bucket.Config, own *Issuer, run string) (bucket.Config, error) {
	config.Patient = true
	if config.Volume == nil {
		return config, nil
	}
	config.Credentials = run
	return config, own.Files(ctx, run)
}

// OpenStore opens the store of a configuration that StoreConfig completes.
func OpenStore(ctx context.Context, config bucket.Config, own *Issuer, run string) (bucket.Bucket, error) {
	config, err := StoreConfig(ctx, config, own, run)
	if err != nil {
		return nil, err
	}
	return bucket.Open(ctx, config)
}

// ErrKey says that the key of an archive is of no use.
var ErrKey = errors.New("the key of the archive")

// Decoder opens what is not encrypted, or what is with the key in a folder.
func Decoder(encrypted bool, folder string) (*format.Decoder, error) {
	if !encrypted {
		return format.NewDecoder("")
	}
	text, err := os.ReadFile(filepath.Join(folder, naming.KeyAge))
	if err != nil {
		return nil, fmt.Errorf("%w: the Secret that encryption.key names, or its %s, is not there: %w",
			ErrKey, naming.KeyAge, err)
	}
	decoder, err := format.NewDecoder(string(text))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	return decoder, nil
}
