package work

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toban.dev/internal/work/initjob"
	"toban.dev/internal/work/pod"
)

// The kubelet cuts a longer message off, and half of a JSON says nothing.
func TestTheResultFitsIntoATerminationMessage(t *testing.T) {
	cases := map[string]string{
		"a short message":               "no",
		"a long one":                    strings.Repeat("long ", 2000),
		"a long one in Japanese":        strings.Repeat("失敗", 3000),
		"one that JSON makes longer":    strings.Repeat("\x00\"", 2000),
		"one that is as long as it can": strings.Repeat("x", pod.MaxTermination),
	}
	for name, message := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			if err := writeInit(path,
				initjob.Result{Step: "ConfigMap schema, key a.sql, line 3", Message: message}); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var got initjob.Result
			if err := json.Unmarshal(text, &got); err != nil || len(text) > pod.MaxTermination {
				t.Fatalf("%d bytes, %v", len(text), err)
			}
			if got.Step == "" || !strings.HasPrefix(message, strings.TrimSuffix(got.Message, "…")) {
				t.Errorf("the result is %+v", got)
			}
		})
	}
}

// What goes wrong before the work begins is told in the same place.
func TestAMissingPlanIsReported(t *testing.T) {
	folder := t.TempDir()
	o := InitOptions{Plan: filepath.Join(folder, "none"), Termination: filepath.Join(folder, "log")}
	if err := Init(t.Context(), o); err == nil {
		t.Fatal("there is no error")
	}
	text, err := os.ReadFile(o.Termination)
	if err != nil || !strings.Contains(string(text), "read the plan") {
		t.Errorf("the termination message is %q, %v", text, err)
	}
}
