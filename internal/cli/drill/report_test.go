package drill

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/show"
)

// reported is a drill with all that a report can have.
func reported(d *v1.FaultDrill) {
	apiAway(d)
	d.Spec.Instance = v1.DrillPrimary
	d.Spec.Objectives.MaxOutage.Duration, d.Spec.Objectives.WholeWithin.Duration = time.Second, time.Minute
	begun := metav1.Date(2026, 11, 25, 3, 0, 10, 0, time.UTC)
	for after, at := range map[time.Duration]**metav1.Time{
		0: &d.Status.StartedAt, 10 * time.Second: &d.Status.StruckAt,
		20 * time.Second: &d.Status.WholeAt, 40 * time.Second: &d.Status.CompletedAt,
	} {
		moment := metav1.NewTime(begun.Add(after))
		*at = &moment
	}
	d.Status.Clients[0].Staleness, d.Status.Clients[0].FirstError = nil, "<script>alert(1)</script>"
	d.Status.Clients = append(d.Status.Clients, v1.FaultDrillClient{Way: "Hosts", Acknowledged: 10,
		Outage: metav1.Duration{Duration: 600 * time.Millisecond}},
		v1.FaultDrillClient{Way: "Standbys", Reads: 9, Staleness: &metav1.Duration{Duration: time.Second}})
}

func showReport(t *testing.T, format string, d *v1.FaultDrill) string {
	t.Helper()
	var out bytes.Buffer
	if err := writeReport(&out, &show.Output{Format: format}, reportOf(d)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestAReportOfADrill(t *testing.T) {
	d := overDrill(tooLong, reported)
	text := showReport(t, "", d)
	for _, words := range []string{
		"ServerKilled of shop-0, APIAway of shop-0, shop-1\nnot passed: says it", "2026-11-25T03:00:20Z  broken",
		"no outage longer than 1s, none lost, whole again within 60s", "Hosts     0.60s",
	} {
		if !strings.Contains(text, words) {
			t.Errorf("the text lacks %q:\n%s", words, text)
		}
	}
	var shown shownDrill
	if err := json.Unmarshal([]byte(showReport(t, "json", d)), &shown); err != nil {
		t.Fatal(err)
	}
	if shown.Passed == nil || *shown.Passed || shown.Reason != v1.ReasonOutageTooLong || shown.OutageSeconds != 1.2 ||
		len(shown.Faults) != 2 || shown.Faults[1].Broken != "shop-0, shop-1" || len(shown.Clients) != 3 {
		t.Errorf("a program sees %+v", shown)
	}
}

// The page is well-formed, shows each client that writes beside what is allowed, and takes no text for markup.
func TestThePageOfADrill(t *testing.T) {
	page := showReport(t, formatHTML, overDrill(tooLong, reported))
	for _, words := range []string{
		"not passed</b> (OutageTooLong): says it", "&lt;script&gt;", ">1.20s</text>", ">0.60s</text>", "allowed: 1s",
	} {
		if !strings.Contains(page, words) {
			t.Errorf("the page lacks %q:\n%s", words, page)
		}
	}
	if n := strings.Count(page, `class="long"`); n != 1 || strings.Count(page, "<rect ") != 2 {
		t.Errorf("%d of two bars are too long:\n%s", n, page)
	}
	_, body, _ := strings.Cut(page, "<title>")
	decoder := xml.NewDecoder(strings.NewReader("<html><title>" + body))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the page is not well-formed: %v\n%s", err, page)
		}
	}
}

// Of a drill without a result there is what is known.
func TestAReportOfADrillWithoutAResult(t *testing.T) {
	for name, d := range map[string]*v1.FaultDrill{
		"failed": overDrill(failed), "new": {Spec: v1.FaultDrillSpec{SampleDB: "shop", Fault: v1.FaultServerKilled}},
	} {
		if text := showReport(t, "", d); !strings.Contains(text, "no result: ") {
			t.Errorf("%s: it says %s", name, text)
		}
		if page := showReport(t, formatHTML, d); !strings.Contains(page, `class="faint">no result</b>`) {
			t.Errorf("%s: the page is %s", name, page)
		}
	}
}
