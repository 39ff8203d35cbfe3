package sampledb

import (
	"os"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"

	v1 "toban.dev/api/v1"
)

// Each annotation by which docs/reference/annotations.md lets users ask a SampleDB for something is acted on at once.
func TestRequestsAreNoticed(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/annotations.md")
	if err != nil {
		t.Fatal(err)
	}
	ours, _, _ := strings.Cut(string(page), "## Annotations that Toban sets")
	request := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| SampleDB \\|.*The operator removes it")
	rows := request.FindAllStringSubmatch(ours, -1)
	if len(rows) < 4 {
		t.Fatalf("the page has %d of them", len(rows))
	}
	for _, row := range rows {
		was := &v1.SampleDB{}
		is := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{row[1]: "now"}}}
		if !requestChanged().Update(ctrlevent.UpdateEvent{ObjectOld: was, ObjectNew: is}) {
			t.Errorf("%s waits until the SampleDB is looked at anyway", row[1])
		}
	}
}
