package api

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/backup"
	"toban.dev/internal/cli/complete"
	"toban.dev/internal/cli/logs"
	"toban.dev/internal/cli/psql"
	"toban.dev/internal/cli/report"
	"toban.dev/internal/cli/restore"
	"toban.dev/internal/cli/servers"
	"toban.dev/internal/cli/status"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/protocol"
)

// reconcilesWhile reconciles a SampleDB until a verb of a person has ended, and returns what that prints.
func (w *world) reconcilesWhile(db *v1.SampleDB, verb *cobra.Command, args ...string) (string, error) {
	w.Helper()
	type result struct {
		out string
		err error
	}
	done := make(chan result, 1)
	go func() {
		out, err := w.command(w.Context(), verb, args...)
		done <- result{out, err}
	}()
	for {
		select {
		case got := <-done:
			return got.out, got.err
		case <-time.After(100 * time.Millisecond):
			w.reconcile(db)
		}
	}
}

func TestTheRestartVerbRestartsEachServerOnce(t *testing.T) {
	// An agent that does not say which run its server is in.
	former := func(s *protocol.Status) { s.Started = "" }
	for name, c := range map[string]struct {
		args     []string
		change   func(*protocol.Status)
		restarts string
		out      string
		failed   string
	}{
		"all, the primary last": {nil, nil, "x-2 x-1 x-0", "x: every server was restarted", ""},
		"one":                   {[]string{"--instance", "x-0"}, nil, "x-0", "x: the server of x-0 was restarted", ""},
		"one that is not there": {[]string{"--instance", "y-0"}, nil, "", "", "refused: there is no instance y-0"},
		"an earlier agent":      {nil, former, "", "", "the agent of x-1 is of an earlier release"},
		"nobody waits":          {[]string{"--wait=false"}, nil, "", "x: a restart of all is asked for", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			db := w.started("x", instances(3))
			if c.change != nil {
				w.agents.change("10.1.0.2", c.change)
			}
			out, err := w.reconcilesWhile(db, servers.Restart(), append([]string{"x"}, c.args...)...)
			if !strings.Contains(out, c.out) || (err == nil) != (c.failed == "") ||
				err != nil && !strings.Contains(err.Error(), c.failed) {
				t.Errorf("it says %q, %v", out, err)
			}
			if name == "nobody waits" {
				return
			}
			for range 3 {
				db = w.reconcile(db)
			}
			if got := strings.Join(w.agents.restarts, " "); got != c.restarts {
				t.Errorf("restarted are %q, want %q", got, c.restarts)
			}
			if r := db.Status.Restart; db.Annotations[naming.AnnotationRestart] != "" || !r.Ended() ||
				len(r.Left) > 0 || r.CompletedAt == nil {
				t.Errorf("it is not over: %+v", r)
			}
			if events := w.drainEvents(); strings.Contains(events, "RestartRefused") != (c.failed != "") {
				t.Errorf("events: %s", events)
			}
		})
	}
}

func TestARestartIsNotAskedForTwice(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(2))
	_, err := w.command(t.Context(), servers.Restart(), "x", "--wait=false")
	w.must(err)
	_, err = w.command(t.Context(), servers.Restart(), "x")
	if err == nil || !strings.Contains(err.Error(), "under way") {
		t.Errorf("it says %v", err)
	}
	db = w.reconcile(db)
	w.must(w.api.Patch(t.Context(), db, client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"annotations":{"toban.dev/restart":null}}}`))))
	for range 3 {
		db = w.reconcile(db)
	}
	if len(w.agents.restarts) > 0 || db.Status.Restart != nil {
		t.Errorf("it was given up, and restarted are %q, with %+v", w.agents.restarts, db.Status.Restart)
	}
}

func TestWhatWasDoneIsToldInJSON(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(2))
	verb := servers.Restart()
	var answer bytes.Buffer
	verb.SetOut(&answer)
	verb.SetErr(io.Discard)
	verb.SetArgs([]string{"x", "-o", "json", "--instance", "x-1", "--kubeconfig", w.kubeconfig()})
	done := make(chan error, 1)
	go func() { done <- verb.ExecuteContext(t.Context()) }()
	for over := false; !over; {
		select {
		case err := <-done:
			w.must(err)
			over = true
		case <-time.After(100 * time.Millisecond):
			db = w.reconcile(db)
		}
	}
	var got struct {
		Kind, Namespace, Name, Message string
		Status                         v1.SampleDBStatus
	}
	w.must(json.Unmarshal(answer.Bytes(), &got))
	if got.Kind != "SampleDB" || got.Namespace != w.namespace || got.Name != "x" ||
		got.Message != "x: the server of x-1 was restarted" || !got.Status.Restart.Ended() {
		t.Errorf("it answers %s", answer.String())
	}
	out, err := w.command(t.Context(), restore.Undelete(), "-o", "json")
	if err != nil || !strings.Contains(out, `"deleted": []`) {
		t.Errorf("nothing is deleted, and it says %s, %v", out, err)
	}
	out, err = w.command(t.Context(), status.Status(), "x", "-o", "yaml")
	if err != nil || !strings.Contains(out, "primary: x-0") {
		t.Errorf("the status is %s, %v", out, err)
	}
	if _, err = w.command(t.Context(), backup.Backup(), "x", "-o", "xml"); err == nil || len(w.backups()) > 0 {
		t.Errorf("what is not understood is done: %v", err)
	}
}

func TestTheVerifyVerbShowsTheProof(t *testing.T) {
	for name, c := range map[string]struct {
		of     func(first string) string
		result protocol.VerifyResult
		out    string
		failed string
	}{
		"of a SampleDB, its last": {
			func(string) string { return "x" }, proven, "verified: restored up to 0/6000000 in 2.4s", "",
		},
		"of a backup": {func(first string) string { return first }, proven, "the assertion orders holds: 1 rows", ""},
		"one that can't be restored": {
			func(string) string { return "x" }, protocol.VerifyResult{Error: "an object is missing"}, "",
			"an object is missing",
		},
	} {
		t.Run(name, func(t *testing.T) {
			k, _ := newWorld(t).ready("x")
			first := k.backup(k.backups()[0])
			type result struct {
				out string
				err error
			}
			done := make(chan result, 1)
			go func() {
				out, err := k.command(t.Context(), restore.Verify(), c.of(first.Name))
				done <- result{out, err}
			}()
			asked := ""
			for {
				select {
				case got := <-done:
					if !strings.Contains(got.out, c.out) || (got.err == nil) != (c.failed == "") ||
						got.err != nil && !strings.Contains(got.err.Error(), c.failed) {
						t.Errorf("it says %q, %v", got.out, got.err)
					}
					return
				case <-time.After(100 * time.Millisecond):
				}
				if first = k.backup(first.Name); first.Annotations[naming.AnnotationVerify] != "" && asked == "" {
					asked = first.Annotations[naming.AnnotationVerify]
					first = k.verify(first)
					k.verifies(first, asked, c.result)
				}
			}
		})
	}
}

func TestTheVerifyVerbNeedsACompleteBackup(t *testing.T) {
	w := newWorld(t)
	w.started("x")
	for name, words := range map[string]string{"x": "no complete backup", "y": "no SampleDB and no DatabaseBackup y"} {
		_, err := w.command(t.Context(), restore.Verify(), name)
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNamesFromTheClusterCompleteACommand(t *testing.T) {
	k, _ := newWorld(t).ready("x")
	backup := k.backups()[0]
	for line, want := range map[string]string{
		"status ": "x", "status x": "x", "status z": "", "status x ": "", "psql ": "x",
		"switchover x --to ": "x-0 x-1", "restart x --instance x-1": "x-1",
		"restore x --backup ": backup, "verify ": "x " + backup, "verify x-": backup,
	} {
		root := &cobra.Command{Use: "toban"}
		root.AddCommand(status.Status(), psql.PSQL(), servers.Switchover(), servers.Restart(), restore.RestoreTo(),
			restore.Verify())
		complete.Verbs(root.Commands()...)
		verb, rest, _ := strings.Cut(line, " ")
		args := append([]string{cobra.ShellCompNoDescRequestCmd, verb, "--kubeconfig=" + k.kubeconfig()},
			strings.Split(rest, " ")...)
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(io.Discard)
		root.SetArgs(args)
		k.must(root.ExecuteContext(t.Context()))
		said, _, _ := strings.Cut(out.String(), ":4") // cobra.ShellCompDirectiveNoFileComp
		if got := strings.Join(strings.Fields(said), " "); got != want {
			t.Errorf("%q is completed with %q, want %q", line, got, want)
		}
	}
}

// hidden is what must not be in a report.
const hidden = "h1dden"

// kubeletWith has a kubelet for the Pods, which has one log for all of them.
func (w *world) kubeletWith(log string) {
	w.Helper()
	kubelet := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/"+naming.ContainerPostgreSQL) {
			_, _ = io.WriteString(out, log)
		}
	}))
	w.Cleanup(kubelet.Close)
	address, err := url.Parse(kubelet.URL)
	w.must(err)
	port, err := strconv.ParseInt(address.Port(), 10, 32)
	w.must(err)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "kubelet-"}}
	w.must(w.api.Create(w.Context(), node))
	w.Cleanup(func() { _ = w.api.Delete(context.Background(), node) })
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address.Hostname()}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(port)
	w.must(w.api.Status().Update(w.Context(), node))
	var pods corev1.PodList
	w.must(w.api.List(w.Context(), &pods, client.InNamespace(w.namespace)))
	for _, pod := range pods.Items {
		w.must(w.api.SubResource("binding").Create(w.Context(), &pod, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
			Target:     corev1.ObjectReference{Kind: "Node", Name: node.Name},
		}))
		w.read(pod.Name, &pod)
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{
			{Name: naming.ContainerPostgreSQL, Image: "x", ImageID: "x"},
		}
		w.must(w.api.Status().Update(w.Context(), &pod))
	}
}

func TestTheLogsOfAllInstancesAreOne(t *testing.T) {
	w := newWorld(t)
	w.started("x", instances(2))
	w.kubeletWith("2026-11-25T02:00:00Z LOG:  the first\n" +
		`2026-11-25T02:00:01Z {"time":"2026-11-25T02:00:01Z","level":"INFO","msg":"the second"}` + "\n")
	out, err := w.command(t.Context(), logs.Logs(), "x")
	w.must(err)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 4 || lines[0] != "x-0 primary LOG:  the first" || lines[1] != "x-1 standby LOG:  the first" {
		t.Errorf("it shows:\n%s", out)
	}
	out, err = w.command(t.Context(), logs.Logs(), "x", "--instance", "x-1", "--agent", "-o", "json")
	w.must(err)
	var line struct{ Instance, Role, Source, Line string }
	w.must(json.Unmarshal([]byte(out), &line))
	if line.Instance != "x-1" || line.Role != "standby" || line.Source != "agent" ||
		!strings.Contains(line.Line, "second") {
		t.Errorf("it shows:\n%s", out)
	}
	if _, err = w.command(t.Context(), logs.Logs(), "x", "--instance", "x-7"); err == nil {
		t.Error("it shows the log of an instance that is not there")
	}
}

// reportVerb is `toban report`, with what other verbs give to it.
func reportVerb() *cobra.Command {
	return report.Report("9.9.9", report.Parts{Status: status.Text, Top: status.CleanTop})
}

func TestAReportHasNoSecrets(t *testing.T) {
	k, db := newWorld(t).ready("x")
	k.must(k.api.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "x-mine", Labels: naming.Common("x")},
		StringData: map[string]string{"a": hidden},
	}))
	db = k.edit(db, func(db *v1.SampleDB) {
		db.Annotations = map[string]string{
			"kubectl.kubernetes.io/last-applied-configuration": `{"x":"` + hidden + `"}`, "mine": hidden,
		}
		db.Spec.Pod.Annotations = map[string]string{"vault": hidden}
	})
	config := &corev1.ConfigMap{}
	k.read(naming.ConfigMap("x"), config)
	config.Data["mine"] = "primary_conninfo = 'host=x password=" + hidden + "'\nurl: postgres://a:" + hidden + "@b/c"
	config.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = `{"x":"` + hidden + `"}`
	k.must(k.api.Update(t.Context(), config))
	k.must(k.api.Create(t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: k.namespace, Name: "x.1"},
		InvolvedObject: corev1.ObjectReference{Kind: "SampleDB", Name: "x", Namespace: k.namespace},
		Message:        "it says: ALTER ROLE app PASSWORD '" + hidden + "'",
	}))
	k.kubeletWith("2026-11-25T02:00:00Z STATEMENT:  ALTER ROLE app\n2026-11-25T02:00:00Z \tPASSWORD '" + hidden +
		"'\n2026-11-25T02:00:01Z {\"msg\":\"\\\"password\\\":\\\"" + hidden + "\\\"\"}\n")
	path := filepath.Join(t.TempDir(), "report.tar.gz")
	out, err := k.command(t.Context(), reportVerb(), "x", "--file", path)
	k.must(err)
	files := unpack(t, path)
	for name, text := range files {
		if strings.Contains(text, hidden) || strings.Contains(text, string(k.appPassword(db))) {
			t.Errorf("%s has a secret:\n%s", name, text)
		}
	}
	for name, words := range map[string]string{
		"versions.txt": "command: 9.9.9", "status.txt": "primary: x-0", "objects/sampledb.yaml": "kind: SampleDB",
		"objects/pod.yaml": "name: x-1", "objects/databasebackup.yaml": "sampleDB: x",
		"objects/event.yaml":     "ALTER ROLE app",
		"objects/configmap.yaml": "host=x", "logs/x-0/postgresql.log": "STATEMENT:", "problems.txt": "top",
	} {
		if !strings.Contains(files[name], words) {
			t.Errorf("%s does not say %q:\n%s", name, words, files[name])
		}
	}
	if !strings.Contains(out, "left out: top") || !strings.Contains(out, path) {
		t.Errorf("it says %s", out)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is for others too: %v, %v", info.Mode(), err)
	}
	if _, err := k.command(t.Context(), reportVerb(), "x", "--file", path); err == nil {
		t.Error("it writes over a file")
	}
}

// appPassword is that of the Secret NAME-app.
func (w *world) appPassword(db *v1.SampleDB) []byte {
	w.Helper()
	secret := &corev1.Secret{}
	w.read(naming.AppSecret(db.Name), secret)
	if role := string(secret.Data[naming.KeyUsername]); role != desired.AppRole(db) {
		w.Fatalf("the Secret is of %s", role)
	}
	return secret.Data[naming.KeyPassword]
}

// unpack reads a compressed archive. All is in one folder.
func unpack(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zip, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	files, folders := map[string]string{}, []string{}
	for all := tar.NewReader(zip); ; {
		header, err := all.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(all)
		if err != nil {
			t.Fatal(err)
		}
		folder, name, _ := strings.Cut(header.Name, "/")
		files[name], folders = string(content), append(folders, folder)
	}
	if slices.Sort(folders); len(slices.Compact(folders)) != 1 {
		t.Errorf("it is in %q", slices.Compact(folders))
	}
	return files
}
