package bluegreen

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
)

// Sides don't change before green shows clients a certificate that they know.
func TestWhyTheSecondSideShowsNoCertificateIsSaid(t *testing.T) {
	green := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: "x-green"}}
	for _, c := range []struct {
		status metav1.ConditionStatus
		want   string
	}{
		{"", "has not said yet"}, {metav1.ConditionUnknown, "could not be asked"},
		{metav1.ConditionFalse, "could not be asked"}, {metav1.ConditionTrue, ""},
	} {
		if c.status != "" {
			meta.SetStatusCondition(&green.Status.Conditions, metav1.Condition{
				Type: v1.ConditionCertificateServed, Status: c.status, Reason: "R", Message: "could not be asked",
			})
		}
		if got := greenUnshown(green); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%q: it says %q", c.status, got)
		}
	}
	if got := greenUnshown(nil); got != "" {
		t.Errorf("where there is none it says %q", got)
	}
}
