package sampledb

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
)

// queriesAnswered says whether the users' queries for metrics work, as the primary has seen when somebody read its
// metrics. Without such queries there is no verdict.
func (s *scope) queriesAnswered() verdict {
	if s.db.Spec.Metrics == nil || len(s.db.Spec.Metrics.Queries) == 0 {
		return verdict{}
	}
	asked := s.seen.answers[s.primary()].Queries
	switch {
	case asked == nil:
		return s.asBefore(v1.ConditionQueriesAnswered, verdict{metav1.ConditionUnknown, v1.ReasonQueriesNotAsked,
			"nobody has read the metrics of the primary yet"})
	case len(asked.Problems) > 0:
		var words []string
		for _, p := range asked.Problems {
			words = append(words, p.Name+": "+p.Message)
		}
		return no(v1.ReasonQueryFailed, strings.Join(words, "; "))
	}
	return yes(v1.ReasonQueriesAnswered, fmt.Sprintf("%d queries are answered", asked.Asked))
}
