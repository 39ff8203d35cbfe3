package sampledb

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world"
)

// queriesAnswered says whether the users' queries for metrics work, as the primary has seen when somebody read its
// metrics. Without such queries there is no verdict.
func (s *scope) queriesAnswered() world.Verdict {
	if s.DB.Spec.Metrics == nil || len(s.DB.Spec.Metrics.Queries) == 0 {
		return world.Verdict{}
	}
	asked := s.Seen.Answers[s.Primary()].Queries
	switch {
	case asked == nil:
		return s.AsBefore(v1.ConditionQueriesAnswered, world.Verdict{Status: metav1.ConditionUnknown,
			Reason:  v1.ReasonQueriesNotAsked,
			Message: "nobody has read the metrics of the primary yet"})
	case len(asked.Problems) > 0:
		var words []string
		for _, p := range asked.Problems {
			words = append(words, p.Name+": "+p.Message)
		}
		return world.No(v1.ReasonQueryFailed, strings.Join(words, "; "))
	}
	return world.Yes(v1.ReasonQueriesAnswered, fmt.Sprintf("%d queries are answered", asked.Asked))
}
