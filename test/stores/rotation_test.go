package stores

import (
	"errors"
	"testing"
	"time"

	"toban.dev/internal/archive/bucket"
	"toban.dev/test/stores/servers"
)

// A store that refuses the old credentials goes on being used as soon as the files have the new ones: nothing is opened
// anew, as it is not while the term of a leader lasts, or a backup.
func TestRotatedCredentials(t *testing.T) {
	for name, start := range map[string]func(*testing.T) servers.Rotating{
		"S3":           servers.RotateS3,
		"an Azure key": servers.RotateAzureKey,
		"an Azure SAS": servers.RotateAzureSAS,
		"GCS":          servers.RotateGCS,
	} {
		t.Run(name, func(t *testing.T) {
			world := start(t)
			b, err := bucket.Open(t.Context(), world.Config)
			if err != nil {
				t.Fatal(err)
			}
			use := func() error {
				err := b.Put(t.Context(), "object", []byte("content"))
				if err != nil {
					return err
				}
				body, err := b.Get(t.Context(), "object")
				if err != nil {
					return err
				}
				return body.Close()
			}
			if err := use(); err != nil {
				t.Fatalf("with the first credentials: %v", err)
			}
			world.Rotate()
			if err := use(); !errors.Is(err, bucket.ErrDenied) {
				t.Fatalf("with those that the store takes no more: %v, want ErrDenied", err)
			}
			world.Renew()
			if err := use(); err != nil {
				t.Fatalf("with the new ones: %v", err)
			}
		})
	}
}

// A Secret gets into a Pod later than the store knows of the new credentials: a backup waits for it.
func TestPatientWithRotation(t *testing.T) {
	world := servers.RotateS3(t)
	world.Config.Patient = true
	b, err := bucket.Open(t.Context(), world.Config)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Put(t.Context(), "first", nil); err != nil {
		t.Fatal(err)
	}
	world.Rotate()
	done := make(chan error, 1)
	go func() { done <- b.Put(t.Context(), "second", nil) }()
	for world.Denied.Load() == 0 {
		select {
		case err := <-done:
			t.Fatalf("it did not wait: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	world.Renew()
	if err := <-done; err != nil {
		t.Errorf("with the new ones: %v", err)
	}
}
