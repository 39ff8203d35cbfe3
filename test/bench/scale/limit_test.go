package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Beside what Go keeps to there must be room in the limit of the operator's container: Go's is a soft one, and the
// pages of the program's file count too.
func TestGoKeepsBelowTheLimitOfTheContainer(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", deployment))
	if err != nil {
		t.Fatal(err)
	}
	s, err := settingsOf(text)
	if err != nil {
		t.Fatal(err)
	}
	own, err := resource.ParseQuantity(strings.TrimSuffix(s.memory, "B")) // Go's MiB is Kubernetes' Mi
	if err != nil {
		t.Fatalf("GOMEMLIMIT is %q: %v", s.memory, err)
	}
	if share := own.AsApproximateFloat64() / s.limit.AsApproximateFloat64(); share < 0.5 || share > 0.75 {
		t.Errorf("Go keeps to %v of the limit", share)
	}
}
