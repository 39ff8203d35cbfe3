package api

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/servers"
	"toban.dev/internal/cli/status"
	"toban.dev/internal/naming"
)

// kubeconfig writes a kubeconfig for the test's API server and namespace.
func (w *world) kubeconfig() string {
	w.Helper()
	writesPastUs(server, w.namespace)
	path := filepath.Join(w.TempDir(), "kubeconfig")
	w.must(clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: server.Host, CertificateAuthorityData: server.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{
			"u": {Token: server.BearerToken},
		},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u", Namespace: w.namespace}},
		CurrentContext: "x",
	}, path))
	return path
}

// command runs a verb as a person does.
func (w *world) command(ctx context.Context, verb *cobra.Command, args ...string) (string, error) {
	w.Helper()
	var out bytes.Buffer
	verb.SetOut(&out)
	verb.SetErr(&out)
	verb.SetArgs(append(args, "--kubeconfig", w.kubeconfig()))
	err := verb.ExecuteContext(ctx)
	return out.String(), err
}

func TestStatusShowsWhoIsPrimaryAndWhoCounts(t *testing.T) {
	w := newWorld(t)
	w.started("x", instances(2))
	out, err := w.command(t.Context(), status.Status(), "x")
	w.must(err)
	for _, want := range []string{
		w.namespace + "/x: Ready, 2/2 ready", "primary: x-0 (term 1)", "standby", "Follower", "Durable",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	out, err = w.command(t.Context(), status.Status(), "x", "-o", "json")
	w.must(err)
	var got struct{ Status v1.SampleDBStatus }
	w.must(json.Unmarshal([]byte(out), &got))
	if s := got.Status; s.Primary != "x-0" || s.Term != 1 || len(s.InstanceStatuses) != 2 ||
		!s.InstanceStatuses[1].Voter {
		t.Errorf("the JSON has %+v", s)
	}
	_, err = w.command(t.Context(), status.Status(), "y")
	if err == nil || !strings.Contains(err.Error(), "SampleDB y") {
		t.Errorf("of one that is not there it says: %v", err)
	}
}

func TestTheSwitchoverVerbWaitsForTheOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		args        []string
		refuse      string
		lead        bool
		out, failed string
	}{
		"to a named one":  {[]string{"--to", "x-1"}, "", true, "x: x-1 takes writes (before: x-0)", ""},
		"to any":          {nil, "", true, "x: x-1 takes writes (before: x-0)", ""},
		"it is refused":   {nil, "x-1 lags behind", false, "", "the switchover is refused: x-1 lags behind"},
		"it takes long":   {[]string{"--timeout", "2s"}, "", false, "", "not over after 2s"},
		"nobody waits":    {[]string{"--wait=false", "--to", "x-1"}, "", false, "a switchover to x-1 is asked for", ""},
		"to one of no DB": {[]string{"--to", "y-1"}, "", false, "", "there is no instance y-1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			db := w.started("x", instances(2))
			w.agents.refuse = c.refuse
			type result struct {
				out string
				err error
			}
			done := make(chan result, 1)
			go func() {
				out, err := w.command(t.Context(), servers.Switchover(), append([]string{"x"}, c.args...)...)
				done <- result{out, err}
			}()
			got, led := result{}, false
			for over := false; !over; {
				select {
				case got = <-done:
					over = true
				case <-time.After(100 * time.Millisecond):
					db = w.reconcile(db)
					if c.lead && !led && db.Annotations[naming.AnnotationSwitchoverFrom] != "" {
						w.lead("x-1", 2)
						led = true
					}
				}
			}
			if !strings.Contains(got.out, c.out) || (got.err == nil) != (c.failed == "") ||
				got.err != nil && !strings.Contains(got.err.Error(), c.failed) {
				t.Errorf("it says %q, %v", got.out, got.err)
			}
		})
	}
}
