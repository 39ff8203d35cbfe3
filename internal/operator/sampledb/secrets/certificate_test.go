package secrets

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/pki"
	"toban.dev/internal/pki/pkitest"
	"toban.dev/internal/protocol"
)

func saying(c *protocol.CertificateStatus) protocol.Status { return protocol.Status{Certificate: c} }

func TestClientsAreToldWhatEveryInstanceKnows(t *testing.T) {
	a, b := string(pkitest.NewRoot(t, "a").PEM), string(pkitest.NewRoot(t, "b").PEM)
	members := []protocol.Member{{Name: "x-0"}, {Name: "x-1"}}
	has := func(authorities string) protocol.Status {
		return saying(&protocol.CertificateStatus{Authorities: authorities})
	}
	for name, c := range map[string]struct {
		told    string
		answers map[string]protocol.Status
		want    string
	}{
		"all have the same":            {"", map[string]protocol.Status{"x-0": has(a), "x-1": has(a)}, a},
		"one has another":              {a, map[string]protocol.Status{"x-0": has(a), "x-1": has(b)}, pki.Union(a, b)},
		"the other has gone":           {pki.Union(a, b), map[string]protocol.Status{"x-0": has(b), "x-1": has(b)}, b},
		"one has none yet":             {"", map[string]protocol.Status{"x-0": has(a), "x-1": has("")}, a},
		"one is of an earlier release": {"", map[string]protocol.Status{"x-0": has(a), "x-1": {}}, ""},
		"one could not be asked":       {a, map[string]protocol.Status{"x-0": has(b)}, a},
		"none has any more":            {a, map[string]protocol.Status{"x-0": has(""), "x-1": has("")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := GivenAuthorities(c.told, members, c.answers); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestWhatIsSaidOfTheCertificate(t *testing.T) {
	until := time.Date(2030, 2, 3, 4, 5, 6, 0, time.UTC)
	good := &protocol.CertificateStatus{Secret: "shop-tls", Mounted: true, NotAfter: until}
	for name, c := range map[string]struct {
		second *protocol.CertificateStatus
		silent bool
		status metav1.ConditionStatus
		reason string
		words  string
	}{
		"all show it": {good, false, metav1.ConditionTrue, v1.ReasonCertificateServed, "2030-02-03T04:05:06Z"},
		"one is refused": {
			&protocol.CertificateStatus{Mounted: true, Refusal: "it has expired"}, false, metav1.ConditionFalse,
			v1.ReasonCertificateRefused, "x-1 shows a certificate of the SampleDB's own authority: it has expired",
		},
		"one is refused, and the former stays": {
			&protocol.CertificateStatus{Secret: "shop-tls", Mounted: true, Refusal: "no key", NotAfter: until}, false,
			metav1.ConditionFalse, v1.ReasonCertificateRefused, "x-1 shows the former certificate, valid until 2030",
		},
		"one waits": {
			&protocol.CertificateStatus{Mounted: true, Waits: "until then"}, false, metav1.ConditionFalse,
			v1.ReasonCertificatePending, "own authority until then",
		},
		"one does not have it": {
			&protocol.CertificateStatus{}, false, metav1.ConditionFalse, v1.ReasonCertificatePending, "not in the Pods",
		},
		"one is of an earlier release": {
			nil, false, metav1.ConditionFalse, v1.ReasonCertificatePending, "not in the Pods yet of x-1",
		},
		"one could not be asked": {nil, true, metav1.ConditionUnknown, v1.ReasonUnknown, "x-1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := topicsOf(world.Core{DB: &v1.SampleDB{Spec: v1.SampleDBSpec{TLS: v1.TLSSpec{SecretName: "shop-tls"}}}})
			s.Config.Members = []protocol.Member{{Name: "x-0"}, {Name: "x-1"}}
			s.Seen.Answers = map[string]protocol.Status{"x-0": saying(good)}
			if !c.silent {
				s.Seen.Answers["x-1"] = saying(c.second)
			}
			got := s.CertificateServed()
			if got.Status != c.status || got.Reason != c.reason || !strings.Contains(got.Message, c.words) {
				t.Errorf("got %+v", got)
			}
			s.DB.Spec.TLS.SecretName = ""
			if got := s.CertificateServed(); got.Reason != "" {
				t.Errorf("without a Secret there is a condition: %+v", got)
			}
		})
	}
}
