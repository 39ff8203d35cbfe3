// Package pod is what all kinds of work in Pods of their own share: the settings, which are read from a file, the
// certificate, which is issued by the SampleDB's own authority, the server that tells the operator how far the work is,
// and the result, which is left for the kubelet. It knows no kind.
package pod

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/transfer"
	"toban.dev/internal/naming"
)

// Options are what each process that works on an archive in a Pod of its own is told.
type Options struct {
	// Settings is the file with the settings, Authority the folder with the SampleDB's authority.
	Settings, Authority string
	// Run is a folder in memory for keys and the socket.
	Run string
	// Address is where the operator reaches the Pod, Listen where to tell it how far the work is.
	Address, Listen string
	// Termination is the file for the result.
	Termination string
	// Asked is when the operator has made the Job, by its clock; zero where it does not say.
	Asked time.Time
	// Within is after how long Kubernetes ends the Job: the Pod may have waited for so long at most.
	Within time.Duration
}

// Pod is such a process at work.
type Pod struct {
	Options
	// Own issues the certificates that it shows, once it has begun.
	Own      *Issuer
	Progress Progress
	Log      *slog.Logger
	began    time.Time
}

// New is one that has not begun.
func New(o Options) Pod {
	return Pod{Options: o, Log: slog.New(slog.NewJSONHandler(os.Stdout, nil)), began: time.Now()}
}

// ByOperator is what time it is by the operator's clock, or earlier: for how long the Pod was waited for, it does not
// know. It is zero where the operator has not said when it has made the Job.
func (p *Pod) ByOperator() time.Time {
	if p.Asked.IsZero() {
		return time.Time{}
	}
	return p.Asked.Add(time.Since(p.began)) // however the clock of this machine is set
}

// Begin reads the settings, which name the operator, and tells that from then on how far this is, until stop is called.
func (p *Pod) Begin(ctx context.Context, identity string, settings any, operator *string) (stop func(), err error) {
	if err := ReadSettings(p.Settings, settings); err != nil {
		return nil, err
	}
	if p.Own, err = NewIssuer(p.Authority, identity, p.Address); err != nil {
		return nil, err
	}
	stop, _, err = p.Progress.serve(ctx, p.Own, *operator, p.Listen)
	return stop, err
}

// ReadSettings reads a file with settings in JSON.
func ReadSettings(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the settings: %w", err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("understand the settings %s: %w", path, err)
	}
	return nil
}

// Telling is a context in which it is told when the store is away, and waited for.
func (p *Pod) Telling(ctx context.Context) context.Context {
	return transfer.WithWaits(ctx, func(err error) {
		p.Progress.Step("waits for the store: " + err.Error())
		p.Log.Warn("waits for the store", "error", err.Error())
	})
}

// Says tells the operator and the log which step is being done.
func (p *Pod) Says(words string) {
	p.Progress.Step(words)
	p.Log.Info("step", "step", words)
}

// WaitsForVolume tells whom the work waits for, which still works on the volume.
func (p *Pod) WaitsForVolume(whom string) {
	p.Progress.Step("waits for the volume: " + whom + " still works on it")
	p.Log.Warn("the volume is in use", "by", whom)
}

// InitTLS opens superusers' sessions with the SampleDB's servers, by certificates of its own authority in a folder.
// given are further authorities (PEM) by which servers are known.
func InitTLS(folder, given string) (*tls.Config, error) {
	own, err := NewIssuer(folder, naming.IdentityInit)
	if err != nil {
		return nil, err
	}
	return own.DatabaseTLS(given)
}

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
