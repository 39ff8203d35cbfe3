package image

import (
	"testing"
)

func TestPauseIsReproducibleAndCached(t *testing.T) {
	first, err := Builder{CacheDir: t.TempDir()}.Pause(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, err := Builder{CacheDir: t.TempDir()}.Pause(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a, err := Inspect(first)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Inspect(second)
	if err != nil {
		t.Fatal(err)
	}
	if a != b {
		t.Errorf("two builds differ: %v and %v", a, b)
	}
	if a.Name != PauseName {
		t.Errorf("the image is called %q, want %q", a.Name, PauseName)
	}
}
