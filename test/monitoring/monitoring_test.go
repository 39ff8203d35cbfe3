package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/yaml"

	"toban.dev/internal/agent/exporter"
	"toban.dev/internal/front/pooler"
	"toban.dev/internal/operator/metrics"
)

const root = "../.."

func promtool(t *testing.T, args ...string) {
	t.Helper()
	program, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not here: hack/deps.sh tests installs it")
	}
	if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestPrometheusTakesTheRules(t *testing.T) {
	promtool(t, "check", "rules", root+"/config/monitoring/rules.yaml")
}

// Each alert is raised by what it is about, with its labels and texts, and ends after it.
func TestEveryAlertIsRaisedAndEnds(t *testing.T) {
	promtool(t, "test", "rules", "alerts.test.yaml")
	rules, err := ofRules(root + "/config/monitoring/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile("alerts.test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	alerts := 0
	for _, r := range rules {
		if r.Alert {
			alerts++
			if !strings.Contains(string(tests), "\n  name: "+r.Where+"\n") {
				t.Errorf("the alert %s has no test", r.Where)
			}
		}
	}
	if alerts < 20 {
		t.Errorf("only %d alerts were found", alerts)
	}
}

// Debian's promtool knows no discovery in Kubernetes; the rest of the file is checked.
func TestPrometheusTakesTheScrapeConfig(t *testing.T) {
	var config map[string]any
	if err := read(root+"/config/monitoring/scrape.yaml", &config); err != nil {
		t.Fatal(err)
	}
	jobs, ok := config["scrape_configs"].([]any)
	if !ok || len(jobs) != 3 {
		t.Fatalf("the jobs are %v", config["scrape_configs"])
	}
	for _, j := range jobs {
		if job, ok := j.(map[string]any); ok {
			delete(job, "kubernetes_sd_configs")
		}
	}
	text, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "prometheus.yml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "config", "--syntax-only", file)
}

// What rules and dashboards name is what agents or the operator serve, or what a rule records.
func TestEveryMetricThatIsNamedExists(t *testing.T) {
	there := map[string]bool{"up": true}
	var served names
	metrics.New(&served)
	served.MustRegister(&metrics.Drills{}, &metrics.Kinds{}, &exporter.Exporter{}, &pooler.Metrics{})
	for _, name := range served.names {
		there[name] = true
	}
	all, err := Expressions(root, "shop", "x")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if strings.HasPrefix(e.Where, "toban:") {
			there[e.Where] = true
		}
	}
	if len(all) < 60 || len(there) < 80 {
		t.Fatalf("only %d expressions and %d metrics were found", len(all), len(there))
	}
	for _, e := range all {
		if len(e.Metrics()) == 0 {
			t.Errorf("%s names no metric: %s", e.Where, e.Text)
		}
		for _, name := range e.Metrics() {
			if !there[name] {
				t.Errorf("%s names %s, which nobody serves", e.Where, name)
			}
		}
	}
}

// names notes what is registered.
type names struct{ names []string }

var fqName = regexp.MustCompile(`fqName: "([^"]*)"`)

func (n *names) Register(c prometheus.Collector) error {
	all := make(chan *prometheus.Desc)
	go func() {
		c.Describe(all)
		close(all)
	}()
	for d := range all {
		n.names = append(n.names, fqName.FindStringSubmatch(d.String())[1])
	}
	return nil
}

func (n *names) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		_ = n.Register(c)
	}
}

func (n *names) Unregister(prometheus.Collector) bool { return false }
