package sampledb

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

func TestWhetherQueriesAreAnswered(t *testing.T) {
	queries := &v1.MetricsSpec{Queries: []v1.MetricsQuery{{Name: "orders", SQL: "select 1 as n"}}}
	for name, c := range map[string]struct {
		spec   *v1.MetricsSpec
		asked  *protocol.QueriesStatus
		reason string
		status metav1.ConditionStatus
		says   string
	}{
		"there are none":            {nil, nil, "", "", ""},
		"only who may read is said": {&v1.MetricsSpec{}, nil, "", "", ""},
		"nobody has read metrics":   {queries, nil, v1.ReasonQueriesNotAsked, metav1.ConditionUnknown, "nobody"},
		"all are answered": {
			queries, &protocol.QueriesStatus{Asked: 1}, v1.ReasonQueriesAnswered, "True", "1",
		},
		"one has failed, with words": {
			queries, failed("orders", "no such table"), v1.ReasonQueryFailed, "False", "orders: no such",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := scopeOf(world.Core{DB: &v1.SampleDB{}, Seen: world.Observed{Answers: map[string]protocol.Status{
				"x-0": {Name: "x-0", Role: protocol.RolePrimary, Ready: true, Queries: c.asked},
			}}})
			s.DB.Spec.Metrics = c.spec
			v := s.queriesAnswered()
			if v.Reason != c.reason || v.Status != c.status || !strings.Contains(v.Message, c.says) {
				t.Errorf("it says %+v", v)
			}
		})
	}
}

func failed(query, why string) *protocol.QueriesStatus {
	return &protocol.QueriesStatus{Asked: 1, Problems: []protocol.QueryProblem{{Name: query, Message: why}}}
}
