// Package desiredtest has what the tests of all packages of desired objects need.
package desiredtest

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "toban.dev/api/v1"
)

var update = flag.Bool("update", false, "write the golden files anew")

// SampleDB makes a small SampleDB, changed by the modifiers.
func SampleDB(name string, modify ...func(*v1.SampleDB)) *v1.SampleDB {
	db := &v1.SampleDB{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "shop", UID: types.UID("0b5c"), CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0)),
		},
		Spec: v1.SampleDBSpec{Version: 17, Instances: 1, Storage: v1.StorageSpec{Size: "10Gi"}},
	}
	for _, m := range modify {
		m(db)
	}
	return db
}

// Compare compares what a test got with a golden file.
func Compare(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; run go test ./internal/operator/desired/... -update", err)
	}
	if string(want) != string(got) {
		t.Errorf("%s differs; look at git diff after go test ./internal/operator/desired/... -update\n%s", file,
			firstDifference(string(want), string(got)))
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return "want " + w[i] + "\ngot  " + g[i]
		}
	}
	return "one is longer than the other"
}
