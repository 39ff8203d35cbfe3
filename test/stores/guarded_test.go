package stores

import (
	"errors"
	"io"
	"testing"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/test/stores/servers"
)

// With credentials that may list, read and create, and with nothing more, an archive is claimed and written; what lies
// there these can neither replace nor remove. Others can remove it, and write nothing.
func TestInstancesCanNeitherReplaceNorDelete(t *testing.T) {
	for name, start := range map[string]func(*testing.T) servers.Guarded{
		"S3":    servers.GuardS3,
		"Azure": servers.GuardAzure,
		"GCS":   servers.GuardGCS,
	} {
		t.Run(name, func(t *testing.T) {
			guarded := start(t)
			instance, remover := open(t, guarded.Instances), open(t, guarded.Deletion)
			claimed(t, instance)
			const object = "wal/00000001/segment"
			keeps(t, instance, object)
			removes(t, remover, object)
			if left := names(t, instance); len(left) > 0 {
				t.Errorf("there is %v", left)
			}
		})
	}
}

// claimed sees that who may not delete can claim an archive, and nobody else after it.
func claimed(t *testing.T, instance bucket.Bucket) {
	t.Helper()
	owner := format.Owner{UID: "one", Namespace: "n", Name: "main", SystemIdentifier: "1"}
	if err := format.Claim(t.Context(), instance, owner); err != nil {
		t.Fatalf("claim it: %v", err)
	}
	other := format.Owner{UID: "two", Namespace: "n", Name: "main", SystemIdentifier: "1"}
	if err := format.Claim(t.Context(), instance, other); !errors.Is(err, format.ErrTaken) {
		t.Errorf("another claims it: %v", err)
	}
}

// keeps sees that who may not delete can create an object, and neither replace nor remove it.
func keeps(t *testing.T, instance bucket.Bucket, object string) {
	t.Helper()
	if err := instance.Create(t.Context(), object, []byte("first")); err != nil {
		t.Fatal(err)
	}
	if err := instance.Create(t.Context(), object, []byte("second")); !errors.Is(err, bucket.ErrExists) {
		t.Errorf("create what is there: %v", err)
	}
	if err := instance.Put(t.Context(), object, []byte("second")); !errors.Is(err, bucket.ErrDenied) {
		t.Errorf("replace it: %v", err)
	}
	if err := instance.Delete(t.Context(), object); !errors.Is(err, bucket.ErrDenied) {
		t.Errorf("delete it: %v", err)
	}
	if got := content(t, instance, object); got != "first" {
		t.Errorf("there is %q", got)
	}
}

// removes sees that who may delete can read and remove everything, and write nothing.
func removes(t *testing.T, remover bucket.Bucket, object string) {
	t.Helper()
	if err := remover.Create(t.Context(), "wal/more", []byte("x")); !errors.Is(err, bucket.ErrDenied) {
		t.Errorf("who may delete writes: %v", err)
	}
	if got := content(t, remover, object); got != "first" {
		t.Errorf("who may delete reads %q", got)
	}
	if err := remover.Delete(t.Context(), names(t, remover)...); err != nil {
		t.Errorf("who may delete does: %v", err)
	}
}

func open(t *testing.T, config bucket.Config) bucket.Bucket {
	t.Helper()
	b, err := bucket.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func content(t *testing.T, b bucket.Bucket, name string) string {
	t.Helper()
	body, err := b.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
