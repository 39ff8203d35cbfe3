package kube

import (
	"maps"
	"testing"
)

func TestParseNodes(t *testing.T) {
	const body = `{"items": [
		{"metadata": {"name": "ready"}, "status": {"conditions": [
			{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"}]}},
		{"metadata": {"name": "lost"}, "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}},
		{"metadata": {"name": "new"}}
	]}`
	got, err := parseNodes([]byte(body))
	want := map[string]bool{"ready": true, "lost": false, "new": false}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if _, err := parseNodes([]byte("<html>")); err == nil {
		t.Error("what is no list was accepted")
	}
}
