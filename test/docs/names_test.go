package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"toban.dev/internal/agent/exporter"
	"toban.dev/internal/front/pooler"
	"toban.dev/internal/operator/metrics"
)

// docs/reference/annotations.md has every annotation and label of internal/naming, and no other.
func TestEveryAnnotationIsInTheReference(t *testing.T) {
	files, err := filepath.Glob(root + "/internal/naming/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var used []string
	for _, file := range files {
		used = append(used, names(read(t, file), `(?m)^\s+(?:Annotation|Label)\w+\s+= "([^"]+)"`)...)
	}
	documented := names(read(t, root+"/docs/reference/annotations.md"), "(?m)^\\| `([^`]+)` \\|")
	slices.Sort(used)
	slices.Sort(documented)
	if len(used) < 30 {
		t.Fatalf("only %d names were found in internal/naming: %q", len(used), used)
	}
	if !slices.Equal(used, documented) {
		t.Errorf("docs/reference/annotations.md lacks %q and has %q too many",
			without(used, documented), without(documented, used))
	}
}

// docs/reference/metrics.md has every metric with its labels, and says of each what the metric says itself.
func TestEveryMetricIsInTheReference(t *testing.T) {
	var r registry
	metrics.New(&r)
	r.MustRegister(&metrics.Drills{}, &metrics.Kinds{}, &exporter.Exporter{}, &pooler.Metrics{})
	if len(r.rows) < 5 {
		t.Fatalf("only %d metrics were found: %q", len(r.rows), r.rows)
	}
	var documented []string
	for _, line := range strings.Split(read(t, root+"/docs/reference/metrics.md"), "\n") {
		if strings.HasPrefix(line, "| `") {
			documented = append(documented, line)
		}
	}
	for _, row := range without(r.rows, documented) {
		t.Errorf("docs/reference/metrics.md lacks\n%s", row)
	}
	for _, row := range without(documented, r.rows) {
		t.Errorf("docs/reference/metrics.md has what is no metric:\n%s", row)
	}
}

// registry notes what is registered as rows of a table.
type registry struct{ rows []string }

var description = regexp.MustCompile(`fqName: "([^"]*)", help: "([^"]*)", .*variableLabels: \{([^}]*)\}`)

func (r *registry) Register(c prometheus.Collector) error {
	all := make(chan *prometheus.Desc)
	go func() {
		c.Describe(all)
		close(all)
	}()
	for d := range all {
		m := description.FindStringSubmatch(d.String())
		if m == nil {
			return os.ErrInvalid
		}
		labels := ""
		if m[3] != "" {
			labels = "`" + strings.Join(strings.Split(m[3], ","), "`, `") + "`"
		}
		r.rows = append(r.rows, "| `"+m[1]+"` | "+labels+" | "+m[2]+" |")
	}
	return nil
}

func (r *registry) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

func (r *registry) Unregister(prometheus.Collector) bool { return false }

// What is written from comments has no names of Go in it: a comment begins with "ConditionX is true when", and not with
// "ConditionX, of a Y,".
func TestConditionsHaveNoNamesOfGo(t *testing.T) {
	all, err := filepath.Glob(root + "/docs/reference/*conditions.md")
	if err != nil || len(all) < 3 {
		t.Fatalf("found the pages %q (%v)", all, err)
	}
	for _, page := range all {
		if leaked := names(read(t, page), `\b((?:Condition|Reason)[A-Z]\w+)`); len(leaked) > 0 {
			t.Errorf("%s has the names %q", page, leaked)
		}
	}
}
